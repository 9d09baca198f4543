//! The Kubernetes REST API around the dispatcher, in memory.

pub(crate) mod audit_log;
pub(crate) mod authentication;
pub(crate) mod conversion;
pub(crate) mod defaulting;
pub(crate) mod plugins;
pub(crate) mod storage;
