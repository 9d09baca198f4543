//! Tests the webhook next to a fake sidecar injector.

use std::error::Error;

use admit_testing::TestServer;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, PostParams};
use serde_json::json;

#[tokio::test]
async fn sidecar_is_pulled_from_the_mirror() -> Result<(), Box<dyn Error>> {
    let server = TestServer::builder()
        .webhook("mirror/webhook", mirror::router())
        .manifests("webhook.yaml")
        .fakes("fakes.yaml")
        .start()
        .await?;
    let pod: Pod = serde_json::from_value(
        json!({"metadata": {"name": "web"}, "spec": {"containers": [{"name": "web", "image": "nginx"}]}}),
    )?;
    let created =
        Api::<Pod>::default_namespaced(server.client()).create(&PostParams::default(), &pod).await?;
    let images =
        created.spec.into_iter().flat_map(|spec| spec.containers).filter_map(|container| container.image);
    assert_eq!(images.collect::<Vec<_>>(), ["mirror.example.com/nginx", "mirror.example.com/envoy"]);

    let request = server.last_write().await.ok_or("no request")?;
    assert_eq!(request.calls.len(), 2, "the webhook is reinvoked after the injector");
    assert_eq!(request.calls[1].object()["spec"]["containers"][1]["image"], "envoy");
    Ok(())
}
