//! Runs the tests of the `admit` command in one binary, because linking takes longer than compiling a module.
//!
//! `cargo test --test command fakes::` runs the tests of one module.

mod action;
mod assets;
mod audit_policy;
mod call_notes;
mod cel;
mod certs;
mod client_disconnect;
mod cluster;
mod cluster_features;
mod deploy;
mod fakes;
mod helpers;
mod html_report;
mod kubectl;
mod limits;
mod lint;
mod metrics;
mod own_webhooks;
mod pictures;
mod policy_notes;
mod policy_params;
mod process_cleanup;
mod pull;
mod rejected_objects;
mod review;
mod run;
mod serve;
mod serve_ui;
mod static_manifests;
mod stopped;
mod targets;
mod terminal;
mod unknown_hosts;
mod unknown_kinds;
mod v1beta1;
mod vacuous;
mod verified;
mod verify;
mod webhook_authentication;
mod webhook_calls;
mod workflows;
