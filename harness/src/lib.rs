//! kube-apiserver's admission webhooks, and the API server around them.
//!
//! The crates below this one are its layers, which the compiler keeps apart:
//!
//! - `kubernetes-types`: the API's types, and how they are compared and validated.
//! - `kubernetes-admission`: the admission of one request: matching, reviews, patches, reinvocation, failures, and the
//!   record of them. Decisions are pure functions; the [`dispatcher`] is the only part that waits.
//! - `admission-webhook-client`: [calls](client) webhooks over HTTPS.
//! - `kubernetes-api-server`: the Kubernetes REST API around the dispatcher, the [`server`]. It has no admission rules.
//! - `admission-webhook-verifier`: sends requests through the dispatcher to [`verify`] a webhook.
//!
//! This crate re-exports all of them and adds [`chain`], a server with its webhooks that is called in process.

pub mod chain;

pub use admission_webhook_client as client;
pub use admission_webhook_verifier as verify;
pub use kubernetes_admission::{
    admission_run, attributes, audit, authorizer, caller, cluster_state, conditions, config, dispatcher,
    event, failure, manifests, matching, metrics, ownership, patch, plugin, reinvocation, review,
    trace_context, trace_log, warnings,
};
pub use kubernetes_api_server as server;
pub use kubernetes_types::{
    KUBERNETES_VERSION, equality, json, names, quantity, quoting, secrets, selector, status,
};
