//! Generates objects of kinds that do not contain Pods, from a small and a full object of each kind in `kinds.json`.

use serde::Deserialize;
use serde_json::{Map, Value};

/// The number of objects to generate of each kind.
pub(super) const COUNT: usize = 6;

/// The indexes of the objects that together have both sizes and every shape of labels and names.
pub(super) const REPRESENTATIVES: [usize; 3] = [0, 1, 5];

const KINDS: &str = include_str!("kinds.json");

/// The entry of a kind in `kinds.json`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Entry {
    pub(super) api_version: String,
    pub(super) kind: String,
    /// The required metadata, such as a name that follows from the spec.
    #[serde(default)]
    metadata: Map<String, Value>,
    /// The members of a minimal object other than its metadata.
    small: Value,
    /// The members of an object with most optional fields, other than its metadata.
    full: Value,
}

pub(super) fn all() -> Vec<Entry> {
    match serde_json::from_str(KINDS) {
        Ok(kinds) => kinds,
        Err(error) => unreachable!("kinds.json is part of the program: {error}"),
    }
}

impl Entry {
    /// Returns the object with this index. Small and full objects alternate, as do the shapes of metadata.
    pub(super) fn object(&self, index: usize) -> Value {
        let mut object =
            if matches!(index % COUNT, 1 | 2 | 4) { self.full.clone() } else { self.small.clone() };
        super::complete(&mut object, &self.api_version, &self.kind, index);
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            if self.metadata.contains_key("name") {
                metadata.remove("generateName");
            }
            metadata.extend(self.metadata.clone());
        }
        object
    }
}
