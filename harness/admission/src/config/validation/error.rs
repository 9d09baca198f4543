//! Formats validation errors with kube-apiserver's messages.

use std::collections::HashSet;

use serde_json::Value;

use kubernetes_types::quoting::{encode, quote};
use kubernetes_types::status::{FieldError, MAX_ERRORS};

/// A collector of validation errors.
///
/// Source: apimachinery pkg/util/validation/field/errors.go.
#[derive(Debug, Default)]
pub(super) struct Errors(Vec<FieldError>);

impl Errors {
    /// Returns the errors in order, without duplicates.
    ///
    /// Source: apimachinery pkg/api/validate/errors.go: all errors of a create pass through a filter that drops
    /// duplicates.
    /// Rule: VLD-01.
    pub(super) fn distinct(self) -> Vec<FieldError> {
        let mut seen = HashSet::with_capacity(self.0.len());
        self.0.into_iter().filter(|error| seen.insert(error.clone())).collect()
    }

    /// Adds an error, unless there are already more errors than a response can list.
    fn push(&mut self, error: FieldError) {
        if self.0.len() <= MAX_ERRORS {
            self.0.push(error);
        }
    }

    pub(super) fn required(&mut self, path: impl Into<String>, detail: &str) {
        self.push(FieldError::required(path, detail));
    }

    /// Adds an error for an invalid string.
    pub(super) fn invalid(&mut self, path: impl Into<String>, text: &str, detail: &str) {
        self.push(FieldError::invalid(path, quote(text), detail));
    }

    /// Adds an error for an invalid number or list.
    ///
    /// Rule: NEW-12.
    pub(super) fn invalid_value(&mut self, path: impl Into<String>, value: &Value, detail: &str) {
        self.push(FieldError::invalid(path, encode(value), detail));
    }

    /// Adds an error for each reason why a string is invalid.
    pub(super) fn all_invalid(&mut self, path: &str, text: &str, details: &[String]) {
        for detail in details {
            self.invalid(path, text, detail);
        }
    }

    /// Adds an error for a string that is not in `supported`. The list must be sorted.
    pub(super) fn unsupported(&mut self, path: impl Into<String>, text: &str, supported: &[&str]) {
        let words: Vec<String> = supported.iter().map(|word| quote(word)).collect();
        self.push(FieldError::not_supported(path, quote(text), words.join(", ")));
    }

    pub(super) fn duplicate(&mut self, path: impl Into<String>, text: &str) {
        self.push(FieldError::duplicate(path, quote(text)));
    }

    pub(super) fn internal(&mut self, path: impl Into<String>, detail: &str) {
        self.push(FieldError::internal(path, detail));
    }

    pub(super) fn forbidden(&mut self, path: impl Into<String>, detail: &str) {
        self.push(FieldError::forbidden(path, detail));
    }

    pub(super) fn too_many(&mut self, path: impl Into<String>, count: usize, limit: usize) {
        self.push(FieldError::too_many(path, count, limit));
    }

    pub(super) fn too_long(&mut self, path: impl Into<String>, limit: usize) {
        self.push(FieldError::too_long(path, limit));
    }
}
