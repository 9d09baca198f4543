//! What kube-apiserver does with admission webhooks, and the API server around it.
//!
//! The crate has three layers, and a module imports only from the layers above it:
//!
//! - **facts**: [`attributes`] of one request, webhooks read from [`config`]urations, the [`cluster_state`]
//!   around them. Everything is parsed, defaulted and checked; nothing below can meet bad input.
//! - **decisions** about an [`admission_run`]: matching, the review that is sent, what its reply means, JSON patch, failure policy,
//!   reinvocation. Pure functions of values.
//! - **shell**: the [`dispatcher`], which carries reviews to webhooks by a [`caller`] and writes down what
//!   happened in a [record](event); audit annotations, metrics, warnings and reports are views of that record.
//!
//! `server` is the Kubernetes REST API around the dispatcher. No admission rule lives there. [`verify`] sends requests
//! through the dispatcher to find out what a webhook is worth.

pub mod admission_run;
pub mod attributes;
pub mod audit;
pub mod authorizer;
pub mod caller;
pub mod chain;
pub mod client;
pub mod cluster_state;
pub mod conditions;
pub mod config;
pub mod dispatcher;
pub mod equality;
pub mod event;
pub mod failure;
pub mod json;
pub mod manifests;
pub mod matching;
pub mod metrics;
pub mod names;
pub mod ownership;
pub mod patch;
pub mod plugin;
pub mod quantity;
pub mod quoting;
pub mod reinvocation;
pub mod review;
pub mod secrets;
pub mod selector;
pub mod server;
pub mod status;
pub mod trace_context;
pub mod trace_log;
pub mod verify;
pub mod warnings;

mod budget;
mod go_base64;
mod go_time;
mod json_text;
mod mutation;
mod schema;
mod structural;
#[cfg(test)]
mod testing;
mod weight;

/// The Kubernetes version whose behaviour this crate imitates.
pub const KUBERNETES_VERSION: &str = "1.37.1";
