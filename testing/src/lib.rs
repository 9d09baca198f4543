//! Tests admission webhooks without a cluster and without certificates.
//!
//! A [`TestServer`] is a Kubernetes API server with your webhook behind its Service. It applies your manifests, calls
//! the webhook over TLS as kube-apiserver does, and records every call.
//!
//! ```
//! use admit_testing::TestServer;
//! use axum::{Json, Router, routing::post};
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kube::api::{Api, PostParams};
//! use serde_json::{Value, json};
//!
//! # const MANIFEST: &str = r#"
//! # apiVersion: admissionregistration.k8s.io/v1
//! # kind: ValidatingWebhookConfiguration
//! # metadata: {name: policy}
//! # webhooks:
//! # - name: policy.example.com
//! #   clientConfig: {service: {namespace: policy, name: webhook, path: /validate}}
//! #   rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]
//! #   sideEffects: None
//! #   admissionReviewVersions: [v1]
//! # "#;
//! async fn validate(Json(review): Json<Value>) -> Json<Value> {
//!     Json(json!({
//!         "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
//!         "response": {"uid": review["request"]["uid"], "allowed": false, "status": {"message": "not today"}},
//!     }))
//! }
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let manifest = folder.path().join("webhook.yaml");
//! # std::fs::write(&manifest, MANIFEST)?;
//! let server = TestServer::builder()
//!     .webhook("policy/webhook", Router::new().route("/validate", post(validate)))
//!     .manifests(&manifest)
//!     .start()
//!     .await?;
//!
//! let configmap: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "settings"}}))?;
//! let denied = Api::default_namespaced(server.client()).create(&PostParams::default(), &configmap).await;
//!
//! assert!(denied.unwrap_err().to_string().contains("not today"));
//! let request = server.last_write().await.unwrap();
//! assert_eq!(request.calls.len(), 1);
//! assert_eq!(request.calls[0].request()["operation"], "CREATE");
//! # Ok(())
//! # }
//! ```
//!
//! The server runs in this process and starts in milliseconds. With
//! [`.on(Backend::Envtest)`](Builder::on) the same test runs on etcd and kube-apiserver; [`Backend::available`] returns
//! both if KUBEBUILDER_ASSETS is set. Additional webhooks, including ones that misbehave, are defined in a
//! [fakes file](Builder::fakes).

pub mod audit_log;
pub mod envtest;

mod client;
mod endpoint;
mod error;
mod manifests;
mod marker;
mod record;
mod server;
mod service_name;

use std::net::{IpAddr, Ipv4Addr};

pub use error::Error;
pub use record::{Call, Mutation, RequestTrace, Response};
pub use server::{Backend, Builder, TestServer};

pub(crate) const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
