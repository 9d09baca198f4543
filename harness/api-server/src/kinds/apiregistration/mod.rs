//! Implements the kinds of `apiregistration.k8s.io`.

pub(crate) mod api_service;
