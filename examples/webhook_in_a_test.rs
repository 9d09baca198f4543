//! A Rust test of a webhook, without a cluster: the API server in memory, a webhook over TLS, a `kube::Client`.
//!
//! `cargo run --example webhook_in_a_test`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use fake_webhooks::{Behaviour, Fake, FakeWebhook};
use harness::attributes::UserInfo;
use harness::server::{ApiServer, Authentication, Options};
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, PostParams};
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // The API server is an axum router, and the router is the client's transport: there is no socket between them.
    let admin = UserInfo { username: "admin".to_owned(), ..UserInfo::default() };
    let server = ApiServer::new(Options::default());
    let client = kube::Client::new(server.router(Authentication::Always(admin)), "default");

    // Your own webhook stands here; a fake does for an example. It is a real server, on loopback, with a certificate.
    let behaviour: Behaviour =
        serde_json::from_value(json!({"deny": {"code": 403, "message": "not today"}}))?;
    let webhook = FakeWebhook::start(Fake { behaviour, ..Fake::default() }).await?;

    let configuration: ValidatingWebhookConfiguration = serde_json::from_value(json!({
        "metadata": {"name": "policy"},
        "webhooks": [{
            "name": "policy.example.com",
            "clientConfig": {"url": webhook.url(), "caBundle": BASE64_STANDARD.encode(webhook.ca_bundle())},
            "rules": [{
                "operations": ["CREATE"],
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "resources": ["configmaps"],
            }],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }],
    }))?;
    Api::all(client.clone()).create(&PostParams::default(), &configuration).await?;

    let settings: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "settings"}}))?;
    let denied = Api::default_namespaced(client).create(&PostParams::default(), &settings).await;
    println!("the client: {}", denied.err().ok_or("the webhook was not called")?);
    for call in webhook.journal() {
        println!("the webhook: {} {}", call.method, String::from_utf8_lossy(&call.body));
    }
    Ok(())
}
