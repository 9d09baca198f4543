//! Parts of Go's standard library that kube-apiserver uses, including the error messages.

pub(crate) mod base64;
pub(crate) mod duration;
pub(crate) mod mail;
pub(crate) mod netip;
pub(crate) mod quote;
pub(crate) mod url;
