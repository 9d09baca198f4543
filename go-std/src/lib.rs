//! Parts of Go's standard library that kube-apiserver uses, including the error messages.
//!
//! Crates that do the same in Rust differ from Go in texts that users see and in inputs that kube-apiserver accepts.

pub mod base64;
pub mod duration;
pub mod mail;
pub mod netip;
pub mod quote;
pub mod url;
