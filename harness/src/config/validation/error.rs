//! The things that are wrong with a configuration, in the API server's words.

use serde_json::Value;

use crate::quoting::{encode, quote};
use crate::status::FieldError;

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
    pub(super) fn distinct(self) -> Vec<FieldError> {
        let mut distinct = Vec::with_capacity(self.0.len());
        for error in self.0 {
            if !distinct.contains(&error) {
                distinct.push(error);
            }
        }
        distinct
    }

    pub(super) fn required(&mut self, path: impl Into<String>, detail: &str) {
        self.0.push(FieldError::required(path, detail));
    }

    /// A text that is invalid.
    pub(super) fn invalid(&mut self, path: impl Into<String>, text: &str, detail: &str) {
        self.0.push(FieldError::invalid(path, quote(text), detail));
    }

    /// A number or a list that is invalid.
    pub(super) fn invalid_value(&mut self, path: impl Into<String>, value: &Value, detail: &str) {
        self.0.push(FieldError::invalid(path, encode(value), detail));
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
        self.0.push(FieldError::not_supported(path, quote(text), words.join(", ")));
    }

    pub(super) fn duplicate(&mut self, path: impl Into<String>, text: &str) {
        self.0.push(FieldError::duplicate(path, quote(text)));
    }

    pub(super) fn internal(&mut self, path: impl Into<String>, detail: &str) {
        self.0.push(FieldError::internal(path, detail));
    }

    pub(super) fn forbidden(&mut self, path: impl Into<String>, detail: &str) {
        self.0.push(FieldError::forbidden(path, detail));
    }

    pub(super) fn too_many(&mut self, path: impl Into<String>, count: usize, limit: usize) {
        self.0.push(FieldError::too_many(path, count, limit));
    }

    pub(super) fn too_long(&mut self, path: impl Into<String>, limit: usize) {
        self.0.push(FieldError::too_long(path, limit));
    }
}
