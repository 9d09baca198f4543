//! The Kubernetes REST API around the dispatcher, in memory.

pub(crate) mod defaulting;
pub(crate) mod plugins;
pub(crate) mod storage;
