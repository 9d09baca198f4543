//! Waits until kube-apiserver uses webhook configurations.
//!
//! The API does not report when a stored configuration is in use. Therefore, a marker configuration is created last;
//! its webhook matches only a marked object. Once kube-apiserver calls that webhook, all earlier configurations are in
//! use, because the server loads the configurations of a kind in order.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use certs::CertificateAuthority;
use http::StatusCode;
use kube::api::{Api, DeleteParams, DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use tower::service_fn;
use uuid::Uuid;

use crate::LOOPBACK;
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::manifests::POLL_INTERVAL;
use crate::record::Recorder;
use crate::service_name::ServiceName;

const TIMEOUT: Duration = Duration::from_secs(30);
const LABEL: &str = "admit-testing.example.com/marker";

/// Waits until the server uses all earlier configurations of `kind`.
///
/// `kind` is `MutatingWebhookConfiguration` or `ValidatingWebhookConfiguration`.
pub(crate) async fn wait_until_used(
    client: &kube::Client,
    kind: &str,
    authority: &CertificateAuthority,
) -> Result<(), Error> {
    let calls = Arc::new(Recorder::default());
    let deny = service_fn(|_| async { Ok::<_, Infallible>(StatusCode::NO_CONTENT) });
    let service = ServiceName { namespace: "admit-testing".to_owned(), name: "marker".to_owned() };
    let webhook = Router::new().fallback_service(deny);
    let endpoint = Endpoint::start(&service, webhook, authority, Arc::clone(&calls)).await?;
    let mark = Uuid::new_v4().to_string();
    let configuration = configuration(kind, &mark, endpoint.port(), authority);
    let failed = |error: kube::Error| Error::Setup(format!("{kind} {NAME}: {error}"));
    let configurations: Api<DynamicObject> = api(client, "admissionregistration.k8s.io", kind);
    configurations.create(&PostParams::default(), &object(configuration)?).await.map_err(failed)?;

    let lease = object(json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "admit-testing-marker", "namespace": "default", "labels": {LABEL: mark}},
    }))?;
    let kind_of_lease = ApiResource::from_gvk(&GroupVersionKind::gvk("coordination.k8s.io", "v1", "Lease"));
    let leases: Api<DynamicObject> = Api::default_namespaced_with(client.clone(), &kind_of_lease);
    let deadline = Instant::now() + TIMEOUT;
    while calls.calls().is_empty() {
        if Instant::now() > deadline {
            let seconds = TIMEOUT.as_secs();
            return Err(Error::Setup(format!("the server did not use a new {kind} within {seconds} s")));
        }
        // Another webhook may deny the lease, but this one is called before it or in parallel.
        drop(leases.create(&PostParams { dry_run: true, ..PostParams::default() }, &lease).await);
        if calls.calls().is_empty() {
            sleep(POLL_INTERVAL).await;
        }
    }
    configurations.delete(NAME, &DeleteParams::default()).await.map(drop).map_err(failed)
}

/// The name of the marker configuration. It sorts before other names.
///
/// kube-apiserver calls mutating webhooks in the alphabetical order of their configurations.
const NAME: &str = "0-admit-testing";

fn configuration(kind: &str, mark: &str, port: u16, authority: &CertificateAuthority) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
        "metadata": {"name": NAME},
        "webhooks": [{
            "name": "marker.admit-testing.example.com",
            "clientConfig": {
                "url": format!("https://{LOOPBACK}:{port}/"),
                "caBundle": BASE64_STANDARD.encode(authority.certificate_pem()),
            },
            "rules": [{
                "operations": ["CREATE"],
                "apiGroups": ["coordination.k8s.io"], "apiVersions": ["v1"], "resources": ["leases"],
            }],
            "objectSelector": {"matchLabels": {LABEL: mark}},
            "failurePolicy": "Ignore",
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }],
    })
}

fn api(client: &kube::Client, group: &str, kind: &str) -> Api<DynamicObject> {
    Api::all_with(client.clone(), &ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind)))
}

fn object(value: Value) -> Result<DynamicObject, Error> {
    serde_json::from_value(value).map_err(|error| Error::Setup(error.to_string()))
}
