//! Runs the tests of the API server without a socket, in one binary.

mod configuration_validation;
mod large_requests;
mod protobuf;
mod quantities;
mod server;
mod server_robustness;
