//! Validates standard conditions.

use std::collections::HashSet;

use serde_json::Value;

use crate::kinds::common::fields::{Errors, Path, get, int, list, set, text};
use crate::kinds::common::formats;

/// Validates the conditions in the status of an object.
pub(crate) fn of_status(errors: &mut Errors, object: &Value) {
    let path = Path::new("status");
    all(errors, &path.child("conditions"), get(object, "status"));
}

/// Validates all items in the `conditions` of `owner`.
///
/// Source: apimachinery pkg/apis/meta/v1/validation/validation.go, `ValidateConditions`.
pub(crate) fn all(errors: &mut Errors, path: &Path<'_>, owner: &Value) {
    let mut seen = HashSet::new();
    for (index, condition) in list(owner, "conditions").iter().enumerate() {
        let (path, kind) = (path.index(index), text(condition, "type"));
        if !seen.insert(kind) {
            errors.duplicate(&path, kind);
        }
        one(errors, &path, condition);
    }
}

/// Validates a condition.
///
/// Source: apimachinery pkg/apis/meta/v1/validation/validation.go, `ValidateCondition`.
fn one(errors: &mut Errors, path: &Path<'_>, condition: &Value) {
    const MAX_REASON_LEN: usize = 1024;
    const MAX_MESSAGE_LEN: usize = 32 * 1024;
    const INVALID_REASON: &str = "a condition reason must start with alphabetic character, optionally followed by a string of \
                         alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. \
                         'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used \
                         for validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')";
    let kind = text(condition, "type");
    if kind.is_empty() {
        errors.required(&path.child("type"), "is required");
    } else {
        formats::qualified_name(errors, &path.child("type"), kind);
    }
    errors.required_one_of(&path.child("status"), text(condition, "status"), &["False", "True", "Unknown"]);
    if let Some(generation) = int(condition, "observedGeneration").filter(|generation| *generation < 0) {
        let why = "must be greater than or equal to zero";
        errors.invalid(&path.child("observedGeneration"), generation, why);
    }
    if set(condition, "lastTransitionTime").is_none() {
        errors.required(&path.child("lastTransitionTime"), "");
    }
    let (path_of_reason, reason) = (path.child("reason"), text(condition, "reason"));
    if reason.is_empty() {
        errors.required(&path_of_reason, "");
    } else {
        if !is_reason(reason.as_bytes()) {
            errors.invalid_text(&path_of_reason, reason, INVALID_REASON);
        }
        if reason.len() > MAX_REASON_LEN {
            errors.too_long(&path_of_reason, MAX_REASON_LEN);
        }
    }
    if text(condition, "message").len() > MAX_MESSAGE_LEN {
        errors.too_long(&path.child("message"), MAX_MESSAGE_LEN);
    }
}

/// Returns whether a condition reason is valid.
///
/// Source: apimachinery pkg/apis/meta/v1/validation/validation.go, `IsValidConditionReason`.
fn is_reason(reason: &[u8]) -> bool {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    reason.first().is_some_and(u8::is_ascii_alphabetic)
        && reason.last().is_some_and(is_word)
        && reason.iter().all(|byte| is_word(byte) || b",:".contains(byte))
}
