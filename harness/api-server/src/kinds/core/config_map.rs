//! Implements `ConfigMap` objects.

use kubernetes_types::json::at;
use serde_json::Value;

use crate::kinds::common::cells::{Context, age_of, count, name, row};
use crate::kinds::common::change::Change;
use crate::kinds::common::defaults::{ensure, is_empty, remove};
use crate::kinds::common::fields::{Errors, Path, entries, flag, map};
use crate::kinds::common::formats;
use crate::kinds::kind::Kind;

/// The behavior of `ConfigMap` objects.
pub(crate) const KIND: Kind = Kind {
    group: "",
    resource: "configmaps",
    kind: "ConfigMap",
    set_defaults: Some(set_defaults),
    validate,
    cells: Some(cells),
    ..Kind::PLAIN
};

/// Removes empty maps from a `ConfigMap`. The server omits them when encoding.
///
/// Source: api core/v1/types.go, `ConfigMap`.
pub(crate) fn set_defaults(object: &mut Value) {
    ensure(object, "metadata");
    for field in ["data", "binaryData"] {
        if is_empty(object, field) {
            remove(object, field);
        }
    }
}

/// The maximum total size of all values, in bytes.
///
/// Source: kubernetes pkg/apis/core/types.go, `MaxSecretSize`.
pub(crate) const MAX_SECRET_SIZE: usize = 1024 * 1024;

const IMMUTABLE_FIELDS: &str = "field is immutable when `immutable` is set";

/// Validates a `ConfigMap`.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `ValidateConfigMap` and `ValidateConfigMapUpdate`.
/// Rule: VLO-02.
pub(crate) fn validate(errors: &mut Errors, object: &Value, change: Option<Change<'_>>) {
    let old = change.map(|change| change.old);
    if let Some(old) = old {
        frozen(errors, object, old, &["data", "binaryData"], Maps::EmptyIsAbsent);
    }
    let mut size = 0;
    let (data, binary) = (Path::new("data"), Path::new("binaryData"));
    let is_binary = |key: &str| map(object, "binaryData").is_some_and(|binary| binary.contains_key(key));
    for (key, value) in entries(object, "data") {
        errors.all_invalid(&data.key(key), key, formats::config_key(key));
        if is_binary(key) {
            errors.invalid_text(&data.key(key), key, "duplicate of key present in binaryData");
        }
        size += value.as_str().unwrap_or_default().len();
    }
    for (key, value) in entries(object, "binaryData") {
        errors.all_invalid(&binary.key(key), key, formats::config_key(key));
        size += decoded_length(value);
    }
    if size > MAX_SECRET_SIZE {
        errors.too_long(&Path::new("[]"), MAX_SECRET_SIZE);
    }
}

/// Determines how the maps of an immutable object are compared.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Maps {
    /// An empty map equals an absent map, because the defaults of a `ConfigMap` replace absent maps with empty maps.
    EmptyIsAbsent,
    /// An empty map differs from an absent map.
    EmptyIsPresent,
}

/// Validates that an immutable object does not change.
pub(crate) fn frozen(errors: &mut Errors, object: &Value, old: &Value, fields: &[&'static str], maps: Maps) {
    if !flag(old, "immutable") {
        return;
    }
    if !flag(object, "immutable") {
        errors.forbidden(&Path::new("immutable"), IMMUTABLE_FIELDS);
    }
    for field in fields {
        let of =
            |object| map(object, field).filter(|members| maps == Maps::EmptyIsPresent || !members.is_empty());
        if of(object) != of(old) {
            errors.forbidden(&Path::new(field), IMMUTABLE_FIELDS);
        }
    }
}

/// Returns the decoded length of a base64 string in bytes.
pub(crate) fn decoded_length(value: &Value) -> usize {
    let text = value.as_str().unwrap_or_default();
    let padding = text.bytes().rev().take_while(|byte| *byte == b'=').count();
    (text.len() / 4 * 3).saturating_sub(padding)
}

pub(crate) fn cells(object: &Value, context: &Context<'_>) -> Vec<Value> {
    let entries = count(at(object, &["data"])) + count(at(object, &["binaryData"]));
    row![name(object), entries, age_of(object, context)]
}
