//! The audit annotations of a request: a view of its [`Record`].

use std::collections::BTreeMap;

use crate::event::Record;

/// The annotations that an audit event of level Request carries.
pub fn annotations(_record: &Record) -> BTreeMap<String, String> {
    BTreeMap::new()
}
