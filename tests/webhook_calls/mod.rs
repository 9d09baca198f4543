//! Compares webhook calls on admit and kube-apiserver: their properties other than the reviews.

#![expect(clippy::unwrap_used, reason = "what a test does not expect may panic")]

mod certificates;
mod proxies;
mod services;
mod slow;
mod traces;

use admit_command::target::{Launched, TargetArguments, TargetKind};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fake_webhooks::FakeWebhook;
use kube::client::Body;
use serde_json::{Value, json};

use crate::helpers::machine;
use crate::helpers::serve::Serve;

async fn on_admit(check: impl AsyncFnOnce(kube::Client)) {
    let folder = tempfile::tempdir().unwrap();
    let (_server, client) = Serve::start(folder.path(), &[]).await;
    check(client).await;
}

async fn on_kube_apiserver(check: impl AsyncFnOnce(kube::Client)) {
    let arguments = TargetArguments::new(TargetKind::Envtest);
    let launched = Launched::start(&arguments, |_| ()).await.unwrap_or_else(|failure| panic!("{failure}"));
    check(launched.target.client.clone()).await;
}

/// Returns the configuration of a webhook for `ConfigMap` creations. Failures of its calls are ignored.
fn configuration(kind: &str, name: &str, webhook: &FakeWebhook) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name},
        "webhooks": [{
            "name": format!("{name}.example.com"),
            "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}],
            "clientConfig": {
                "url": format!("https://127.0.0.1:{}/", webhook.address().port()),
                "caBundle": STANDARD.encode(webhook.ca_bundle()),
            },
            "failurePolicy": "Ignore", "sideEffects": "None", "admissionReviewVersions": ["v1"],
        }],
    })
}

/// Sends a POST request.
///
/// # Panics
/// Panics if the request fails.
async fn post(client: &kube::Client, path: &str, headers: &[(&str, &str)], body: &Value) {
    let mut request = http::Request::post(path).header("Content-Type", "application/json");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = client.send(request.body(Body::from(body.to_string().into_bytes())).unwrap()).await;
    let response = response.unwrap();
    let status = response.status();
    let body = http_body_util::BodyExt::collect(response.into_body()).await.unwrap().to_bytes();
    assert!(status.is_success(), "{path}: {}", String::from_utf8_lossy(&body));
}
