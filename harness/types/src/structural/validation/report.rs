//! Collects the result of a validation: distinct failures, and the number of passed checks.

use std::collections::BTreeSet;
use std::fmt;
use std::rc::Rc;

use serde_json::Value;

use super::Validator;
use crate::path::Path;
use crate::quoting::quote;
use crate::status::FieldError;
use crate::structural::coerce::displayed;
use crate::structural::shown;

/// The failures of a validation and the number of passed checks.
///
/// Source: kube-openapi pkg/validation/validate/result.go, `Result`.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) failures: Vec<Failure>,
    /// The messages of the failures, to detect duplicates.
    seen: BTreeSet<Rc<str>>,
    /// The number of passed checks. It determines the best of several alternatives.
    pub(super) matches: usize,
}

/// One failed check of a value.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    /// The path of the value; `None` if the failure is about the whole object.
    place: Option<String>,
    kind: FailureKind,
    /// The value, formatted for messages.
    value: String,
    pub(super) message: Rc<str>,
}

/// The type of [`FieldError`] that reports a failure.
#[derive(Clone, Debug)]
enum FailureKind {
    Required,
    Type,
    /// The value is not allowed. Contains the list of allowed values.
    Value(String),
    TooLong(i64),
    TooMany {
        size: i64,
        most: i64,
    },
    Invalid,
}

impl Report {
    /// Adds a failure unless it is a duplicate.
    pub(super) fn add(&mut self, validator: &mut Validator, failure: Failure) {
        if self.seen.insert(Rc::clone(&failure.message)) {
            validator.count(&failure);
            self.failures.push(failure);
        }
    }

    /// Adds the contents of another report.
    pub(super) fn merge(&mut self, other: Self) {
        self.matches += other.matches;
        if self.failures.is_empty() {
            self.failures = other.failures;
            self.seen = other.seen;
            return;
        }
        for failure in other.failures {
            if self.seen.insert(Rc::clone(&failure.message)) {
                self.failures.push(failure);
            }
        }
    }

    /// Removes all failures.
    pub(super) fn forgive(&mut self) {
        self.failures.clear();
        self.seen.clear();
    }

    /// Converts the failures to field errors; `prefix` is the path of the validated value.
    ///
    /// Source: apiextensions-apiserver pkg/apiserver/validation/validation.go, `kubeOpenAPIResultToFieldErrors`.
    pub(super) fn into_field_errors(self, prefix: &str) -> Vec<FieldError> {
        self.failures.into_iter().map(|failure| failure.into_field_error(prefix)).collect()
    }
}

impl Failure {
    fn new(path: &Path<'_>, kind: FailureKind, value: String, what: impl fmt::Display) -> Self {
        Self { place: Some(path.to_string()), kind, value, message: format!("{path} in body {what}").into() }
    }

    /// Creates a failure for a wrong type or an invalid format.
    pub(super) fn wrong_type(path: &Path<'_>, expected: &str, found: &str) -> Self {
        let found = quote(found);
        Self::new(path, FailureKind::Type, found.clone(), format_args!("must be of type {expected}: {found}"))
    }

    pub(super) fn required(path: &Path<'_>) -> Self {
        Self::new(path, FailureKind::Required, String::new(), "is required")
    }

    /// Creates a failure for a value that is not in `enum`.
    pub(super) fn not_a_value(path: &Path<'_>, value: &Value, allowed: &[Value]) -> Self {
        let allowed: Vec<String> = allowed
            .iter()
            .map(|value| quote(value.as_str().map_or_else(|| displayed(value), str::to_owned).as_str()))
            .collect();
        let allowed = allowed.join(", ");
        Self {
            place: Some(path.to_string()),
            value: displayed(value),
            message: format!("{path} in body should be one of {allowed}").into(),
            kind: FailureKind::Value(allowed),
        }
    }

    pub(super) fn too_long(path: &Path<'_>, most: i64) -> Self {
        let what = format_args!("should be at most {most} chars long");
        Self::new(path, FailureKind::TooLong(most), String::new(), what)
    }

    pub(super) fn too_many(path: &Path<'_>, size: i64, most: i64, things: &str) -> Self {
        let what = format_args!("should have at most {most} {things}");
        Self::new(path, FailureKind::TooMany { size, most }, String::new(), what)
    }

    pub(super) fn not_allowed(path: &Path<'_>, name: &str) -> Self {
        Self {
            place: Some(path.to_string()),
            kind: FailureKind::Invalid,
            value: quote(name),
            message: format!("{path}.{name} in body is a forbidden property").into(),
        }
    }

    /// Creates a failure for any other invalid value.
    pub(super) fn invalid(path: &Path<'_>, value: &Value, what: impl fmt::Display) -> Self {
        Self::new(path, FailureKind::Invalid, displayed(value), what)
    }

    /// Creates a failure about the whole object, or about a value that is not shown.
    pub(super) fn message(message: String) -> Self {
        Self { place: None, kind: FailureKind::Invalid, value: "\"\"".to_owned(), message: message.into() }
    }

    /// Creates a failure for an invalid value, with a complete message.
    pub(super) fn invalid_with(path: &Path<'_>, value: &Value, message: String) -> Self {
        Self {
            place: Some(path.to_string()),
            kind: FailureKind::Invalid,
            value: displayed(value),
            message: message.into(),
        }
    }

    fn into_field_error(self, prefix: &str) -> FieldError {
        let Self { place, kind, value, message } = self;
        let name = place.as_deref().unwrap_or_default();
        let name = name.strip_prefix('.').unwrap_or(name);
        let path = match (prefix, name) {
            ("", name) => shown(name).to_owned(),
            (prefix, "") => prefix.to_owned(),
            (prefix, name) => format!("{prefix}.{name}"),
        };
        match kind {
            FailureKind::Required => FieldError::required(path, ""),
            FailureKind::Type => FieldError::type_invalid(path, value, message),
            FailureKind::Value(allowed) => FieldError::not_supported(path, value, allowed),
            FailureKind::TooLong(most) => FieldError::too_long(path, most),
            FailureKind::TooMany { size, most } => FieldError::too_many(path, size, most),
            FailureKind::Invalid => FieldError::invalid(path, value, message),
        }
    }
}
