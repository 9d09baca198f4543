//! Tests a webhook that prevents a custom resource from shrinking, together with the resource's definition.

#![expect(clippy::indexing_slicing, reason = "a test fails where something is missing")]

use std::error::Error;
use std::io::Write as _;

use admit_testing::{Backend, Call, TestServer};
use axum::routing::post;
use axum::{Json, Router};
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use serde_json::{Value, json};

/// Handles a review: denies updates that make a database smaller.
async fn validate(Json(review): Json<Value>) -> Json<Value> {
    let size = |object: &str| review["request"][object]["spec"]["gigabytes"].as_i64().unwrap_or_default();
    let shrinks = size("object") < size("oldObject");
    Json(json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {
            "uid": review["request"]["uid"],
            "allowed": !shrinks,
            "status": {"message": format!("{} GB are in use", size("oldObject"))},
        },
    }))
}

#[tokio::test]
async fn database_cannot_shrink() -> Result<(), Box<dyn Error>> {
    let backends = Backend::available();
    if !backends.contains(&Backend::Envtest) {
        let test = "admit-testing databases database_cannot_shrink";
        // The output of the macros is captured in passing tests.
        drop(
            std::io::stderr()
                .write_all(format!("skipped: {test}: KUBEBUILDER_ASSETS is not set\n").as_bytes()),
        );
    }
    for backend in backends {
        let server = TestServer::builder()
            .on(backend)
            .webhook("databases/webhook", Router::new().route("/validate", post(validate)))
            .manifests("tests/databases")
            .start()
            .await?;
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Database"));
        let databases: Api<DynamicObject> = Api::default_namespaced_with(server.client(), &kind);
        let orders = DynamicObject::new("orders", &kind).data(json!({"spec": {"gigabytes": 10}}));
        databases.create(&PostParams::default(), &orders).await?;

        for (gigabytes, expected) in [(20, None), (5, Some("20 GB are in use"))] {
            let patch = Patch::Merge(json!({"spec": {"gigabytes": gigabytes}}));
            let patched = databases.patch("orders", &PatchParams::default(), &patch).await;
            let error = patched.err().map(|error| error.to_string());
            assert_eq!(error.is_some(), expected.is_some(), "{backend:?}: {error:?}");
            assert!(error.unwrap_or_default().contains(expected.unwrap_or_default()));
            let request = server.last_write().await.ok_or("no request")?;
            let mut calls: Vec<_> = request.calls_to("/validate").map(Call::allowed).collect();
            // kube-apiserver calls the webhook again if its copy of the object was stale.
            calls.dedup();
            assert_eq!(calls, [Some(expected.is_none())], "{backend:?}");
        }
    }
    Ok(())
}
