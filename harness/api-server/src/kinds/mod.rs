//! Implements the kinds: their defaults, conversion, preparation, validation, columns, and allocations.
//!
//! The functions take objects and return objects, errors, or warnings. They do not depend on requests.

pub(crate) mod admissionregistration;
pub(crate) mod apiextensions;
pub(crate) mod apiregistration;
pub(crate) mod apps;
pub(crate) mod authentication;
pub(crate) mod autoscaling;
pub(crate) mod batch;
pub(crate) mod built_in_fields;
pub(crate) mod certificates;
pub(crate) mod common;
pub(crate) mod conversion;
pub(crate) mod coordination;
pub(crate) mod core;
pub(crate) mod defaulting;
pub(crate) mod deletion;
pub(crate) mod discovery;
pub(crate) mod discovery_k8s_io;
pub(crate) mod flow_control;
pub(crate) mod flowcontrol;
pub(crate) mod kind;
pub(crate) mod metadata_validation;
pub(crate) mod networking;
pub(crate) mod node;
pub(crate) mod object_names;
pub(crate) mod policy;
pub(crate) mod rbac;
pub(crate) mod resource;
pub(crate) mod scale;
pub(crate) mod scheduling;
pub(crate) mod server_writes;
pub(crate) mod service_account_tokens;
pub(crate) mod storage;
pub(crate) mod storagemigration;
pub(crate) mod strategy;
pub(crate) mod table;
pub(crate) mod tables;
pub(crate) mod validation;
pub(crate) mod webhook_configurations;
