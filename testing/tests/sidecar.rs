//! Tests a sidecar injector that uses kube's admission types, together with the manifest that installs it.

#![expect(clippy::expect_used, reason = "a test fails where something is missing")]

use std::convert::Infallible;
use std::error::Error;
use std::io::Write as _;

use admit_testing::{Backend, TestServer};
use axum::routing::post;
use axum::{Json, Router};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, PostParams};
use kube::core::DynamicObject;
use kube::core::admission::{AdmissionRequest, AdmissionResponse, AdmissionReview};
use serde_json::json;

/// Handles a review: adds the variable `SIDECAR` to each container of a Pod that does not yet have it.
async fn inject(
    Json(review): Json<AdmissionReview<Pod>>,
) -> Result<Json<AdmissionReview<DynamicObject>>, Infallible> {
    let request: AdmissionRequest<Pod> = match review.try_into() {
        Ok(request) => request,
        Err(error) => return Ok(Json(AdmissionResponse::invalid(error.to_string()).into_review())),
    };
    let spec = request.object.as_ref().and_then(|pod| pod.spec.as_ref());
    let containers = spec.map(|spec| spec.containers.as_slice()).unwrap_or_default();
    let additions = containers.iter().enumerate().filter_map(|(index, container)| {
        let env = container.env.as_deref().unwrap_or_default();
        if env.iter().any(|variable| variable.name == "SIDECAR") {
            return None;
        }
        let variable = json!({"name": "SIDECAR", "value": "enabled"});
        let (last, value) = if env.is_empty() { ("", json!([variable])) } else { ("/-", variable) };
        Some(json!({"op": "add", "path": format!("/spec/containers/{index}/env{last}"), "value": value}))
    });
    let patch = serde_json::from_value(additions.collect()).expect("a JSON patch");
    let response = AdmissionResponse::from(&request).with_patch(patch).expect("a patch can be written");
    Ok(Json(response.into_review()))
}

fn pod() -> Result<Pod, serde_json::Error> {
    serde_json::from_value(json!({
        "metadata": {"name": "web", "labels": {"sidecar": "enabled"}},
        "spec": {"containers": [{"name": "web", "image": "web"}]},
    }))
}

/// Returns the available backends, and prints a message if a part of the test is skipped.
///
/// The message does not use a macro such as `eprintln!`, because the output of macros is captured in passing tests.
fn backends(test: &str) -> Vec<Backend> {
    let available = Backend::available();
    if !available.contains(&Backend::Envtest) {
        let skipped = format!("skipped: admit-testing sidecar {test}: KUBEBUILDER_ASSETS is not set\n");
        drop(std::io::stderr().write_all(skipped.as_bytes()));
    }
    available
}

#[tokio::test]
async fn each_container_gets_the_variable() -> Result<(), Box<dyn Error>> {
    for backend in backends("each_container_gets_the_variable") {
        let server = TestServer::builder()
            .on(backend)
            .webhook("sidecar/injector", Router::new().route("/inject", post(inject)))
            .manifests("tests/sidecar/webhook.yaml")
            .start()
            .await?;
        let pods: Api<Pod> = Api::default_namespaced(server.client());
        let created = serde_json::to_value(pods.create(&PostParams::default(), &pod()?).await?)?;
        assert_eq!(created["spec"]["containers"][0]["env"], json!([{"name": "SIDECAR", "value": "enabled"}]));

        let request = server.last_write().await.ok_or("no request")?;
        assert_eq!(request.calls.len(), 1, "{backend:?}");
        assert_eq!(request.calls[0].request()["operation"], "CREATE");
        assert_eq!(request.calls[0].patch().ok_or("no patch")?.as_array().map(Vec::len), Some(1));
    }
    Ok(())
}

#[tokio::test]
async fn container_of_another_webhook_gets_the_variable() -> Result<(), Box<dyn Error>> {
    for backend in backends("container_of_another_webhook_gets_the_variable") {
        let server = TestServer::builder()
            .on(backend)
            .webhook("sidecar/injector", Router::new().route("/inject", post(inject)))
            .manifests("tests/sidecar/webhook.yaml")
            .fakes("tests/sidecar/fakes.yaml")
            .start()
            .await?;
        let pods: Api<Pod> = Api::default_namespaced(server.client());
        pods.create(&PostParams::default(), &pod()?).await?;

        let request = server.last_write().await.ok_or("no request")?;
        let rounds: Vec<_> = request
            .mutations()
            .into_iter()
            .map(|mutation| (mutation.round, mutation.webhook, mutation.mutated))
            .collect();
        let (injector, proxy) = ("injector.sidecar.example.com", "proxy.example.com");
        let expected = [(0, injector, true), (0, proxy, true), (1, injector, true)];
        assert_eq!(rounds, expected.map(|(round, webhook, mutated)| (round, webhook.to_owned(), mutated)));
        assert_eq!(request.calls[1].object()["spec"]["containers"][1]["name"], "proxy");
    }
    Ok(())
}
