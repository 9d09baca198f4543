//! Implements the kinds of `flowcontrol.apiserver.k8s.io`.

pub(crate) mod flow_schema;
pub(crate) mod priority_level_configuration;
pub(crate) mod shared;
