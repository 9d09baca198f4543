//! Validates the names of objects according to their kind.

use serde_json::Value;

use crate::apimachinery::metadata;
use crate::kinds::kind::Kind;

/// Validates `metadata.name`. Returns no errors if the name is absent.
///
/// Rule: VLO-25.
pub(crate) fn errors(object: &Value, kind: &Kind) -> Vec<String> {
    let name = metadata::text(object, "name");
    if name.is_empty() || kind.has_name_by_type { Vec::new() } else { of_kind(name, object, kind) }
}

/// Validates `metadata.generateName`. Returns no errors if the field is absent.
///
/// Rule: VLO-25.
pub(crate) fn prefix_errors(object: &Value, kind: &Kind) -> Vec<String> {
    let prefix = metadata::text(object, "generateName");
    if prefix.is_empty() || kind.has_name_by_type {
        return Vec::new();
    }
    // A trailing dash is valid because a suffix follows.
    let begun = prefix.strip_suffix('-').map_or_else(|| prefix.to_owned(), |base| format!("{base}a"));
    of_kind(&begun, object, kind)
}

fn of_kind(name: &str, object: &Value, kind: &Kind) -> Vec<String> {
    (kind.validate_name)(name, object)
}
