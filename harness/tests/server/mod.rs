//! The API server, driven without a socket. The texts are what kube-apiserver 1.37.1 answers to the same requests, but
//! for those that say what is not imitated.

#![expect(clippy::indexing_slicing, reason = "a wrong index fails the test")]
#![expect(clippy::unwrap_used, reason = "helpers of tests are not in a test function")]

mod authorization;
mod client;
mod cluster_fixture;
mod controllers;
mod lists;
mod objects;
mod own_webhook;
mod tokens;
mod watches;
mod websockets;
