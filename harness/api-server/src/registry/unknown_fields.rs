//! Finds the fields of an object that its kind does not have.

use std::collections::BTreeSet;

use kubernetes_admission::attributes::GroupVersionKind;
use kubernetes_admission::cluster_state::ClusterState as _;
use kubernetes_types::schema::Type;
use kubernetes_types::status::Status;
use serde_json::Value;

use super::body::{self, Types};
use super::state::State;

/// The maximum number of unknown fields for which the known names are listed. An object can have very many.
const MAX_WITH_NAMES: usize = 5;

/// A field of an object that the kind does not have. The server drops the field.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnknownField {
    /// The path, such as `spec.containers[0].imag`.
    pub path: String,
    /// The names of the fields that the kind has in the same place; empty after the first [`MAX_WITH_NAMES`] fields.
    pub known: Vec<String>,
}

impl UnknownField {
    /// Returns the name of the field without its parents.
    pub fn name(&self) -> &str {
        split(&self.path).1
    }

    /// Returns the path without the positions of list items, such as `spec.containers.imag`.
    pub fn without_positions(&self) -> String {
        without_positions(&self.path)
    }
}

/// Checks and normalizes an object with [`body::typed`].
pub(crate) fn typed(
    state: &State,
    object: Value,
    kind: &GroupVersionKind,
) -> Result<(Value, Vec<String>), Box<Status>> {
    if state.is_built_in(kind) {
        return body::typed(object, kind, Types::Server);
    }
    let resources = state.resources();
    let custom = resources.of_kind(kind).and_then(|resource| resource.custom.as_ref());
    match custom {
        Some(custom) => body::typed(object, kind, Types::Custom(custom)),
        None => body::free_form(object, kind, None),
    }
}

/// Returns the fields of `after` that neither its kind nor `before` has.
///
/// A field of several list items is returned once. Returns no field if the server cannot decode `after`.
pub(crate) fn added(state: &State, before: &Value, after: &Value) -> Vec<UnknownField> {
    let unknown = |object: &Value| {
        let kind = GroupVersionKind::from_object(object);
        typed(state, object.clone(), &kind).map(|(_, unknown)| unknown).unwrap_or_default()
    };
    let found = unknown(after);
    if found.is_empty() {
        return Vec::new();
    }
    let mut known: BTreeSet<String> = unknown(before).iter().map(|path| without_positions(path)).collect();
    let kind = GroupVersionKind::from_object(after);
    let new = found.into_iter().filter(|path| known.insert(without_positions(path)));
    let field = |(index, path): (usize, String)| {
        let is_named = index < MAX_WITH_NAMES;
        let known = if is_named { names(state, &kind, split(&path).0) } else { Vec::new() };
        UnknownField { path, known }
    };
    new.enumerate().map(field).collect()
}

/// Returns the names of the fields that a kind has in the object at `path`.
fn names(state: &State, kind: &GroupVersionKind, path: &str) -> Vec<String> {
    let owned = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect();
    if state.is_built_in(kind) {
        return owned(Type::for_kind(kind).at(path).names());
    }
    if let Some(path) = path.strip_prefix("metadata")
        && matches!(path.chars().next(), None | Some('.' | '['))
    {
        return owned(Type::for_metadata().at(path).names());
    }
    let resources = state.resources();
    let custom = resources.of_kind(kind).and_then(|resource| resource.custom.as_ref());
    let schema = custom.and_then(|custom| custom.schema().ok());
    schema.map(|schema| owned(schema.names(path))).unwrap_or_default()
}

/// Splits a path into the path of the parent and the name of the field.
fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('.').unwrap_or(("", path))
}

/// Returns a path without the positions of list items.
fn without_positions(path: &str) -> String {
    let parts = path.split('[').enumerate();
    let parts = parts.map(|(index, part)| match part.split_once(']') {
        Some((_, rest)) if index > 0 => rest,
        Some(_) | None => part,
    });
    parts.collect()
}
