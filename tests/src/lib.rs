//! Implements the conformance suite, which compares admit with recordings of a real kube-apiserver.
//!
//! A *case* describes a situation: objects, webhooks with their behaviors, and requests. Its *recording* is the result
//! on a real kube-apiserver, never the output of admit. `cargo test` runs every case in process and compares the result
//! with the recording.

#![expect(clippy::indexing_slicing, reason = "all of it is tests, and a wrong index fails the test")]

pub mod case;
pub mod cases;
pub mod catalog;
pub mod cel;
pub mod coverage;
mod definitions;
pub mod difference;
pub mod differential;
pub mod fault;
pub mod known_differences;
pub mod laws;
pub mod manifests;
pub mod mask;
pub mod names;
pub mod objects;
pub mod openapi;
pub mod own_answer;
pub mod probes;
pub mod published;
pub mod record;
pub mod recording;
pub mod replay;
pub mod run;
pub mod run_error;
pub mod sections;
pub mod server;
pub mod server_error;
pub mod soak;
pub mod stop_signal;
pub mod transport;
pub mod walk;
pub mod webhooks;
pub mod websocket;

mod annotations;
mod answered;
mod audit_events;
mod concurrent_requests;
mod converters;
mod credentials;
mod launch;
mod metrics;
mod policies;
mod protobuf;
mod random;
mod requestors;
mod yaml;
