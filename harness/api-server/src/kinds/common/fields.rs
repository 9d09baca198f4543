//! Provides helpers for validation: field paths, the error list, and field access.

use std::fmt;

use kubernetes_types::quoting::quote;
use kubernetes_types::status::{FieldError, MAX_ERRORS, Unsupported};
use serde_json::{Map, Value};

use crate::kinds::common::internal;
use crate::kinds::common::internal::Form;

/// The path of a field, such as `spec.containers[0].name`. Paths are formatted only for errors.
///
/// Source: apimachinery pkg/util/validation/field/path.go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    part: Part<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Part<'a> {
    Name(&'a str),
    Index(usize),
    Key(&'a str),
}

impl<'a> Path<'a> {
    /// Creates the path of a top-level field of the object.
    pub(crate) const fn new(name: &'a str) -> Self {
        Self { parent: None, part: Part::Name(name) }
    }

    /// Creates the path of a field below `parent`, or of a top-level field if `parent` is `None`.
    pub(crate) const fn below(parent: Option<&'a Path<'a>>, name: &'a str) -> Self {
        Self { parent, part: Part::Name(name) }
    }

    pub(crate) const fn child<'b>(&'b self, name: &'b str) -> Path<'b> {
        Path { parent: Some(self), part: Part::Name(name) }
    }

    pub(crate) const fn index(&self, index: usize) -> Path<'_> {
        Path { parent: Some(self), part: Part::Index(index) }
    }

    pub(crate) const fn key<'b>(&'b self, key: &'b str) -> Path<'b> {
        Path { parent: Some(self), part: Part::Key(key) }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            parent.fmt(f)?;
        }
        match self.part {
            Part::Name(name) if self.parent.is_none() => f.write_str(name),
            Part::Name(name) => write!(f, ".{name}"),
            Part::Index(index) => write!(f, "[{index}]"),
            Part::Key(key) => write!(f, "[{key}]"),
        }
    }
}

/// The validation errors of an object, in kube-apiserver's order.
#[derive(Debug, Default)]
pub(crate) struct Errors {
    own: Vec<FieldError>,
    /// The errors of generated validation. They come last in the list.
    generated: Vec<FieldError>,
    /// The reason why admit cannot validate the object; `None` if admit can validate it.
    unsupported: Option<Unsupported>,
    /// The total size in bytes of the values of internal types in the errors.
    shown: usize,
}

/// The maximum total size in bytes of the values of internal types in all errors.
const MAX_SHOWN_BYTES: usize = 8 << 20;

impl Errors {
    /// Returns all errors, with the errors of generated validation last.
    pub(crate) fn into_list(mut self) -> Result<Vec<FieldError>, Unsupported> {
        self.own.append(&mut self.generated);
        self.unsupported.map_or(Ok(self.own), Err)
    }

    /// Records that the object requires validation that admit does not support.
    pub(crate) fn cannot_validate(&mut self, what: &str) {
        self.unsupported = Some(Unsupported { what: what.to_owned() });
    }

    /// Records that the object requires validation that admit does not support, if the result is an error.
    pub(crate) fn note(&mut self, result: Result<(), Unsupported>) {
        self.unsupported = result.err().or_else(|| self.unsupported.take());
    }

    pub(crate) fn len(&self) -> usize {
        self.own.len()
    }

    /// Adds an error of generated validation.
    pub(crate) fn generated(&mut self, error: FieldError) {
        if self.generated.len() <= MAX_ERRORS {
            self.generated.push(error);
        }
    }

    pub(crate) fn required_by_type(&mut self, path: &Path<'_>) {
        self.generated(FieldError::required(path.to_string(), ""));
    }

    /// Adds an invalid-value error of generated validation. `value` must already be formatted.
    pub(crate) fn invalid_by_type(&mut self, path: &Path<'_>, value: &str, why: impl fmt::Display) {
        self.generated(FieldError::invalid(path.to_string(), value, why));
    }

    pub(crate) fn forbidden_by_type(&mut self, path: &Path<'_>) {
        self.generated(FieldError::forbidden(path.to_string(), ""));
    }

    /// Adds an error. Drops errors beyond the maximum that a response can contain.
    pub(crate) fn push(&mut self, error: FieldError) {
        if self.own.len() <= MAX_ERRORS {
            self.own.push(error);
        }
    }

    pub(crate) fn extend(&mut self, errors: impl IntoIterator<Item = FieldError>) {
        for error in errors {
            self.push(error);
        }
    }

    pub(crate) fn required(&mut self, path: &Path<'_>, why: &str) {
        self.push(FieldError::required(path.to_string(), why));
    }

    pub(crate) fn forbidden(&mut self, path: &Path<'_>, why: impl fmt::Display) {
        self.push(FieldError::forbidden(path.to_string(), why));
    }

    /// Adds an invalid-value error. `value` must be a formatted number, a formatted boolean, or JSON.
    pub(crate) fn invalid(&mut self, path: &Path<'_>, value: impl fmt::Display, why: impl fmt::Display) {
        self.push(FieldError::invalid(path.to_string(), value, why));
    }

    pub(crate) fn invalid_text(&mut self, path: &Path<'_>, text: &str, why: impl fmt::Display) {
        self.invalid(path, quote(text), why);
    }

    /// Adds an error about the string for each reason in `whys`.
    pub(crate) fn all_invalid(&mut self, path: &Path<'_>, text: &str, whys: Vec<String>) {
        for why in whys {
            self.invalid_text(path, text, why);
        }
    }

    /// Adds an invalid-value error without the value.
    pub(crate) fn invalid_unshown(&mut self, path: &Path<'_>, why: impl fmt::Display) {
        self.push(FieldError::invalid_unshown(path.to_string(), why));
    }

    /// Adds a forbidden error with the difference between two values of an internal type.
    ///
    /// Source: apimachinery pkg/util/diff/diff.go, `Diff`.
    pub(crate) fn forbidden_change(
        &mut self,
        path: &Path<'_>,
        why: &str,
        of: &str,
        (old, new): (&Value, &Value),
    ) {
        let difference = self.unless_large(&[old, new], || internal::difference(of, old, new));
        self.forbidden(path, format_args!("{why}\n{difference}"));
    }

    /// Adds an invalid-value error for a value of an internal type.
    ///
    /// The error contains all fields of the value, or `null` if the value is absent.
    pub(crate) fn invalid_structure(
        &mut self,
        path: &Path<'_>,
        of: &str,
        value: &Value,
        why: impl fmt::Display,
    ) {
        let shown = self.shown(Form::Pointer, of, value);
        self.invalid(path, shown, why);
    }

    /// Formats a value of an internal type as JSON.
    pub(crate) fn shown(&mut self, form: Form, of: &str, value: &Value) -> String {
        self.unless_large(&[value], || Some(internal::shown(form, of, value)))
    }

    /// Returns the result of `shown` unless the values are too large to be reported.
    ///
    /// In an error, an empty object may take a hundred times more bytes, and many errors may contain the same value.
    fn unless_large(&mut self, values: &[&Value], shown: impl FnOnce() -> Option<String>) -> String {
        let is_told = self.unsupported.is_none() && !values.iter().any(|value| internal::is_large(value));
        let text = is_told.then(shown).flatten();
        let Some(text) = text.filter(|text| self.shown + text.len() <= MAX_SHOWN_BYTES) else {
            let what = "error messages with very large values".to_owned();
            self.unsupported = Some(Unsupported { what });
            return String::new();
        };
        self.shown += text.len();
        text
    }

    pub(crate) fn duplicate(&mut self, path: &Path<'_>, text: &str) {
        self.push(FieldError::duplicate(path.to_string(), quote(text)));
    }

    pub(crate) fn not_found(&mut self, path: &Path<'_>, text: &str) {
        self.push(FieldError::not_found(path.to_string(), quote(text)));
    }

    pub(crate) fn too_long(&mut self, path: &Path<'_>, limit: usize) {
        self.push(FieldError::too_long(path.to_string(), limit));
    }

    pub(crate) fn too_many(&mut self, path: &Path<'_>, count: usize, limit: usize) {
        self.push(FieldError::too_many(path.to_string(), count, limit));
    }

    /// Adds an unsupported-value error that lists the `supported` values as upstream does.
    pub(crate) fn unsupported(&mut self, path: &Path<'_>, text: &str, supported: &[&str]) {
        let supported: Vec<String> = supported.iter().map(|value| quote(value)).collect();
        self.push(FieldError::not_supported(path.to_string(), quote(text), supported.join(", ")));
    }

    /// Requires a value to be one of `supported` if it is present.
    pub(crate) fn one_of(&mut self, path: &Path<'_>, value: Option<&str>, supported: &[&str]) {
        if let Some(text) = value.filter(|text| !supported.contains(text)) {
            self.unsupported(path, text, supported);
        }
    }

    /// Requires a non-empty value that is one of `supported`.
    pub(crate) fn required_one_of(&mut self, path: &Path<'_>, text: &str, supported: &[&str]) {
        if text.is_empty() {
            self.required(path, "");
        } else {
            self.one_of(path, Some(text), supported);
        }
    }

    /// Requires a number to be non-negative if it is present.
    ///
    /// Source: apimachinery pkg/api/validation/generic.go, `ValidateNonnegativeField`.
    pub(crate) fn not_negative(&mut self, path: &Path<'_>, number: Option<i64>) {
        if let Some(number) = number.filter(|number| *number < 0) {
            self.invalid(path, number, NEGATIVE);
        }
    }

    /// Requires string fields of `owner` to be non-empty.
    pub(crate) fn all_required(&mut self, path: &Path<'_>, owner: &Value, fields: &[&str]) {
        for field in fields.iter().filter(|field| text(owner, field).is_empty()) {
            self.required(&path.child(field), "");
        }
    }

    /// Requires numeric fields of `owner` to be non-negative.
    pub(crate) fn none_negative(&mut self, path: &Path<'_>, owner: &Value, fields: &[&str]) {
        for field in fields {
            self.not_negative(&path.child(field), int(owner, field));
        }
    }
}

/// The error message for a number that must not be negative.
///
/// Source: apimachinery pkg/api/validation/generic.go, `IsNegativeErrorMsg`.
pub(crate) const NEGATIVE: &str = "must be greater than or equal to 0";

/// The error message for a number that must be positive.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `isNotPositiveErrorMsg`.
pub(crate) const NOT_POSITIVE: &str = "must be greater than zero";

/// The error message for a change to an immutable field.
///
/// Source: apimachinery pkg/api/validation/objectmeta.go, `FieldImmutableErrorMsg`.
pub(crate) const IMMUTABLE: &str = "field is immutable";

/// Returns a field; `null` if absent.
pub(crate) fn get<'a>(owner: &'a Value, field: &str) -> &'a Value {
    owner.get(field).unwrap_or(&Value::Null)
}

/// Returns a field; `None` if absent or `null`.
pub(crate) fn set<'a>(owner: &'a Value, field: &str) -> Option<&'a Value> {
    owner.get(field).filter(|value| !value.is_null())
}

/// Returns a string field; empty if absent.
pub(crate) fn text<'a>(owner: &'a Value, field: &str) -> &'a str {
    get(owner, field).as_str().unwrap_or_default()
}

/// Returns a string field; `None` if absent.
pub(crate) fn word<'a>(owner: &'a Value, field: &str) -> Option<&'a str> {
    get(owner, field).as_str()
}

pub(crate) fn int(owner: &Value, field: &str) -> Option<i64> {
    get(owner, field).as_i64()
}

pub(crate) fn flag(owner: &Value, field: &str) -> bool {
    get(owner, field).as_bool().unwrap_or(false)
}

pub(crate) fn list<'a>(owner: &'a Value, field: &str) -> &'a [Value] {
    get(owner, field).as_array().map_or(&[], Vec::as_slice)
}

/// Returns the strings in a list field.
pub(crate) fn texts<'a>(owner: &'a Value, field: &str) -> impl Iterator<Item = &'a str> {
    list(owner, field).iter().map(|item| item.as_str().unwrap_or_default())
}

/// Returns the entries of a map field.
pub(crate) fn entries<'a>(owner: &'a Value, field: &str) -> impl Iterator<Item = (&'a str, &'a Value)> {
    map(owner, field).into_iter().flatten().map(|(name, value)| (name.as_str(), value))
}

pub(crate) fn map<'a>(owner: &'a Value, field: &str) -> Option<&'a Map<String, Value>> {
    get(owner, field).as_object()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_formatted_like_upstream() {
        let spec = Path::new("spec");
        let list = spec.child("containers");
        let item = list.index(2);
        let limits = item.child("limits");
        assert_eq!(limits.key("a/b").to_string(), "spec.containers[2].limits[a/b]");
    }
}
