//! The types of the Kubernetes API, as kube-apiserver reads, compares and validates them.
//!
//! [`schema`] is one description of all built-in types, [`structural`] what the schema of a `CustomResourceDefinition`
//! makes of its objects; decoding, equality, ownership and validation walk them. The rest are values that every layer
//! above speaks of: [statuses](status), [selectors](selector), [quantities](quantity), texts as Go writes them.
//!
//! Nothing here knows of admission, and nothing does I/O.

pub mod budget;
pub mod equality;
pub mod go_base64;
pub mod go_time;
pub mod group_version;
pub mod json;
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

/// The Kubernetes version whose behavior is imitated.
pub const KUBERNETES_VERSION: &str = "1.37.1";
