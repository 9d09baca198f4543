//! The types of the Kubernetes API, as kube-apiserver decodes, compares, and validates them.
//!
//! [`schema`] describes all built-in types, and [`structural`] handles custom resources by the schema of their
//! `CustomResourceDefinition`; decoding, equality, ownership, and validation use these descriptions. The other modules
//! provide types and functions for all higher layers: [statuses](status), [selectors](selector),
//! [quantities](quantity), and Go's text formats.
//!
//! This crate does not depend on admission and does not perform I/O.

pub mod budget;
pub mod equality;
pub mod go_base64;
pub mod go_time;
pub mod group_version;
pub mod json;
pub mod json_numbers;
pub mod json_text;
pub mod names;
pub mod quantity;
pub mod quoting;
pub mod schema;
pub mod secrets;
pub mod selector;
pub mod status;
pub mod structural;
pub mod unstructured;
pub mod weight;

mod path;
#[cfg(test)]
mod testing;

/// The Kubernetes version whose behavior admit implements.
pub const KUBERNETES_VERSION: &str = "1.37.1";
