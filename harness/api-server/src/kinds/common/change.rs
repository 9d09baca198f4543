//! Compares the old and the new object of an update.

use kubernetes_types::equality::same;
use kubernetes_types::json::at;
use kubernetes_types::schema::Type;
use serde_json::Value;

/// The old and the new object of an update.
#[derive(Clone, Copy)]
pub(crate) struct Change<'a> {
    pub(crate) new: &'a Value,
    pub(crate) old: &'a Value,
    pub(crate) of: Type,
}

impl Change<'_> {
    /// Returns whether a field is semantically unchanged.
    pub(crate) fn is_same(self, path: &[&str]) -> bool {
        let of = path.iter().fold(self.of, |of, name| of.member(name));
        same(at(self.new, path), at(self.old, path), of)
    }
}
