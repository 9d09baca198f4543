//! Implements the parts of Go's standard library that kube-apiserver uses, including the error messages.
//!
//! Other Rust crates for these purposes return different error messages and accept different inputs.

pub mod base64;
pub mod duration;
pub mod mail;
pub mod netip;
pub mod quote;
pub mod url;
