//! Tests the API server without a socket.
//!
//! The expected texts are the responses of kube-apiserver 1.37.1 to the same requests, except for those about
//! unsupported features.

#![expect(clippy::indexing_slicing, reason = "a wrong index fails the test")]
#![expect(clippy::unwrap_used, reason = "helpers of tests are not in a test function")]

mod api_services;
mod authorization;
mod client;
mod cluster_fixture;
mod controllers;
mod lists;
mod loopback_webhook;
mod objects;
mod tokens;
mod watches;
mod websockets;
