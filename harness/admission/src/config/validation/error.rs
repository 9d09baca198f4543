//! The things that are wrong with a configuration, in the API server's words.

use std::collections::HashSet;

use serde_json::Value;

use kubernetes_types::quoting::{encode, quote};
use kubernetes_types::status::{FieldError, MAX_ERRORS};

/// A list of errors that is being written.
///
/// Source: apimachinery pkg/util/validation/field/errors.go.
#[derive(Debug, Default)]
pub(super) struct Errors(Vec<FieldError>);

impl Errors {
    /// The errors in order, each once.
    ///
    /// Source: apimachinery pkg/api/validate/errors.go: the filter that all errors of a create pass through drops
    /// repetitions.
    /// Rule: VLD-01.
    pub(super) fn distinct(self) -> Vec<FieldError> {
        let mut seen = HashSet::with_capacity(self.0.len());
        self.0.into_iter().filter(|error| seen.insert(error.clone())).collect()
    }

    /// Beyond the errors that an answer can list, more of them change nothing.
    fn push(&mut self, error: FieldError) {
        if self.0.len() <= MAX_ERRORS {
            self.0.push(error);
        }
    }

    pub(super) fn required(&mut self, path: impl Into<String>, detail: &str) {
        self.push(FieldError::required(path, detail));
    }

    /// A text that is invalid.
    pub(super) fn invalid(&mut self, path: impl Into<String>, text: &str, detail: &str) {
        self.push(FieldError::invalid(path, quote(text), detail));
    }

    /// A number or a list that is invalid.
    ///
    /// Rule: NEW-12.
    pub(super) fn invalid_value(&mut self, path: impl Into<String>, value: &Value, detail: &str) {
        self.push(FieldError::invalid(path, encode(value), detail));
    }

    /// A text that is wrong in several ways: one error for each.
    pub(super) fn all_invalid(&mut self, path: &str, text: &str, details: &[String]) {
        for detail in details {
            self.invalid(path, text, detail);
        }
    }

    /// A text that is none of a few words; `supported` is sorted.
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
