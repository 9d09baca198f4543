//! `metadata.managedFields` and server-side apply, as implemented by kube-apiserver.
//!
//! This crate does not depend on the API server: the caller provides the types of objects as a [`Schema`], their
//! versions as [`Versions`], and the time as a string. A [`FieldManager`] computes the object that a write stores.

mod conflict;
mod filter;
mod go;
mod last_applied;
mod managed;
mod manager;
mod path;
mod reader;
mod scale;
mod schema;
mod set;
mod typed;
mod updater;
mod value;
mod versions;

pub use conflict::{Cause, Conflicts};
pub use filter::{Filter, Pattern};
pub use managed::{Manager, Operation, validate_entries};
pub use manager::{Error, FieldManager, Writer, Written, restore_times};
pub use path::{Path, PathElement};
pub use scale::{entries_of_parent, entries_of_scale};
pub use schema::{Atom, ListType, MapType, Relation, Scalar, Schema, Type};
pub use set::Set;
pub use typed::{
    Comparison, Duplicates, ValidationError, ValidationErrors, compare, extract_items, field_set, merge,
    merge_configuration, remove_items, validate,
};
pub use versions::{ConversionError, Versions};
