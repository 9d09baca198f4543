//! Implements kube-apiserver's admission chain: calls webhooks, applies their responses, and evaluates policies.
//!
//! A module imports only from the layers above its own:
//!
//! - **facts**: the [`attributes`] of a request, webhooks parsed from a configuration by [`config`], and the
//!   [`cluster_state`]. Everything is parsed, defaulted, and validated, so that the layers below never see invalid
//!   input.
//! - **decisions** about an [`admission_run`]: matching, the review, interpreting the reply, JSON patch, failure
//!   policy, reinvocation. These are pure functions of values.
//! - **shell**: the [`dispatcher`], which sends reviews to webhooks through a [`caller`] and writes the
//!   [record](event). Audit annotations, metrics, warnings, and reports are derived from that record.
//!
//! The HTTP client for webhooks and the REST API are separate crates.

pub mod admission_run;
pub mod attributes;
pub mod audit;
pub mod authorizer;
pub mod caller;
pub mod cluster_state;
pub mod conditions;
pub mod config;
pub mod converter;
pub mod dispatcher;
pub mod event;
pub mod failure;
pub mod manifests;
pub mod matching;
pub mod metrics;
pub mod ownership;
pub mod patch;
pub mod plugin;
pub mod policies;
pub mod policy;
pub mod policy_expressions;
pub mod reinvocation;
pub mod review;
pub mod trace_context;
pub mod trace_log;
pub mod warnings;
pub mod yaml;

mod custom_scale;
mod mutation;
#[cfg(test)]
mod testing;
