//! What kube-apiserver does with admission webhooks.
//!
//! A module imports only from the layers above it:
//!
//! - **facts**: [`attributes`] of one request, webhooks read from [`config`]urations, the [`cluster_state`]
//!   around them. Everything is parsed, defaulted and checked; nothing below can meet bad input.
//! - **decisions** about an [`admission_run`]: matching, the review that is sent, what its reply means, JSON patch, failure
//!   policy, reinvocation. Pure functions of values.
//! - **shell**: the [`dispatcher`], which carries reviews to webhooks by a [`caller`] and writes down what
//!   happened in a [record](event); audit annotations, metrics, warnings and reports are views of that record.
//!
//! How a webhook is reached, and the REST API that asks for admission, are crates of their own.

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
pub mod reinvocation;
pub mod review;
pub mod trace_context;
pub mod trace_log;
pub mod warnings;

mod custom_scale;
mod mutation;
#[cfg(test)]
mod testing;
