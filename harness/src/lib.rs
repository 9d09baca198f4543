//! What kube-apiserver does with admission webhooks, and the API server around it.
//!
//! The crates below this one are its layers, and the compiler keeps them apart:
//!
//! - `kubernetes-types`: what the API's types are, and how they are compared and validated;
//! - `kubernetes-admission`: what happens to one request: matching, reviews, patches, reinvocation, failures, and the
//!   record of it. Decisions are pure functions; the [`dispatcher`] is the one part that waits;
//! - `admission-webhook-client`: how webhooks are [called](client) over HTTPS;
//! - `kubernetes-api-server`: the Kubernetes REST API around the dispatcher, the [`server`]. No admission rule lives there;
//! - `admission-webhook-verifier`: sends requests through the dispatcher to [`verify`] what a webhook is worth.
//!
//! This crate gives all of them one name, and [`chain`]: a server with its webhooks, asked in process.

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
