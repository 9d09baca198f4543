//! A mutating webhook that makes Pods pull all images from a mirror.

use axum::routing::post;
use axum::{Json, Router};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

const REGISTRY: &str = "mirror.example.com/";

/// Returns the router of the webhook, which handles reviews at `/mutate`.
pub fn router() -> Router {
    Router::new().route("/mutate", post(review))
}

async fn review(Json(review): Json<Value>) -> Json<Value> {
    let request = &review["request"];
    let operations = Value::from(mutate(&request["object"]));
    let patch = BASE64_STANDARD.encode(operations.to_string());
    let response = json!({"uid": request["uid"], "allowed": true, "patchType": "JSONPatch", "patch": patch});
    Json(json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}))
}

fn mutate(pod: &Value) -> Vec<Value> {
    let containers = pod["spec"]["containers"].as_array().map(Vec::as_slice).unwrap_or_default();
    let images =
        containers.iter().map(|container| container["image"].as_str().unwrap_or_default()).enumerate();
    images
        .filter(|(_, image)| !image.starts_with(REGISTRY))
        .map(|(index, image)| {
            let path = format!("/spec/containers/{index}/image");
            json!({"op": "replace", "path": path, "value": format!("{REGISTRY}{image}")})
        })
        .collect()
}
