//! Tests the webhook next to a fake sidecar injector.

use std::error::Error;

use admit_testing::TestServer;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, PostParams};
use serde_json::json;

const POD: &str =
    r#"{"metadata": {"name": "web"}, "spec": {"containers": [{"name": "web", "image": "nginx"}]}}"#;

#[tokio::test]
async fn sidecar_is_pulled_from_the_mirror() -> Result<(), Box<dyn Error>> {
    let builder = TestServer::builder().webhook("mirror/webhook", mirror::router());
    let server = builder.manifests("webhook.yaml").fakes("fakes.yaml").start().await?;
    let pod = serde_json::from_str(POD)?;
    let pods = Api::<Pod>::default_namespaced(server.client());
    pods.create(&PostParams::default(), &pod).await?;
    let request = server.last_write().await.ok_or("no request")?;
    assert_eq!(request.calls.len(), 2, "the webhook is reinvoked after the injector");
    assert_eq!(request.calls[1].object()["spec"]["containers"][1]["image"], "envoy");
    let (path, image) = ("/spec/containers/1/image", "mirror.example.com/envoy");
    assert_eq!(request.calls[1].patch(), Some(json!([{"op": "replace", "path": path, "value": image}])));
    Ok(())
}
