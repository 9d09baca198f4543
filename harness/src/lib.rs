//! A Rust implementation of kube-apiserver's admission webhooks, and of the API server around them.
//!
//! This crate is built on the following layers, which are separate crates:
//!
//! - `kubernetes-types`: the API's types, and how they are compared and validated.
//! - `kubernetes-admission`: the admission of one request: matching, reviews, patches, reinvocation, failures, and the
//!   record of these steps. Decisions are pure functions; only the [`dispatcher`] waits for webhooks.
//! - `admission-webhook-client`: [calls](client) webhooks over HTTPS.
//! - `kubernetes-api-server`: the Kubernetes REST API around the dispatcher, the [`server`]. It contains no admission
//!   rules.
//! - `admission-webhook-verifier`: [verifies](verify) a webhook by sending requests through the dispatcher.
//!
//! This crate re-exports all layers and adds [`chain`]: a server and its webhooks, called in process.

pub mod chain;

pub use admission_webhook_client as client;
pub use admission_webhook_verifier as verify;
pub use kubernetes_admission::{
    admission_run, attributes, audit, authorizer, caller, cluster_state, conditions, config, dispatcher,
    event, failure, manifests, matching, metrics, ownership, patch, plugin, policies, policy, reinvocation,
    review, trace_context, trace_log, warnings,
};
pub use kubernetes_api_server as server;
pub use kubernetes_types::{
    KUBERNETES_VERSION, equality, json, names, quantity, quoting, secrets, selector, status,
};
