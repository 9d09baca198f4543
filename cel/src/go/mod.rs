//! What kube-apiserver takes from Go's standard library, down to the texts of its errors.

pub(crate) mod base64;
pub(crate) mod mail;
pub(crate) mod netip;
pub(crate) mod quote;
pub(crate) mod url;
