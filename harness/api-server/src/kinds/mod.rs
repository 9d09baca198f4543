//! Implements the kinds: their defaults, conversion, preparation, validation, columns, and allocations.
//!
//! The functions take objects and return objects, errors, or warnings. They do not depend on requests.

pub(crate) mod apiextensions;
pub(crate) mod built_in_fields;
pub(crate) mod common;
pub(crate) mod conversion;
pub(crate) mod defaulting;
pub(crate) mod deletion;
pub(crate) mod discovery;
pub(crate) mod flow_control;
pub(crate) mod metadata_validation;
pub(crate) mod object_names;
pub(crate) mod pod_resources;
pub(crate) mod rbac;
pub(crate) mod scale;
pub(crate) mod server_writes;
pub(crate) mod service_account_tokens;
pub(crate) mod service_allocation;
pub(crate) mod service_reading;
pub(crate) mod strategy;
pub(crate) mod tables;
pub(crate) mod validation;
pub(crate) mod webhook_configurations;
