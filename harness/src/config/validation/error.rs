//! The kinds of things that can be wrong with a field, in the API server's words.

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
        let text =
            if detail.is_empty() { "Required value".to_owned() } else { format!("Required value: {detail}") };
        self.push("FieldValueRequired", path, text);
    }

    /// A text that is invalid.
    pub(super) fn invalid(&mut self, path: impl Into<String>, text: &str, detail: &str) {
        self.push("FieldValueInvalid", path, format!("Invalid value: {}: {detail}", quote(text)));
    }

    /// A number or a list that is invalid.
    pub(super) fn invalid_value(&mut self, path: impl Into<String>, value: &Value, detail: &str) {
        self.push("FieldValueInvalid", path, format!("Invalid value: {}: {detail}", encode(value)));
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
        let detail = format!("Unsupported value: {}: supported values: {}", quote(text), words.join(", "));
        self.push("FieldValueNotSupported", path, detail);
    }

    pub(super) fn duplicate(&mut self, path: impl Into<String>, text: &str) {
        self.push("FieldValueDuplicate", path, format!("Duplicate value: {}", quote(text)));
    }

    pub(super) fn forbidden(&mut self, path: impl Into<String>, detail: &str) {
        self.push("FieldValueForbidden", path, format!("Forbidden: {detail}"));
    }

    pub(super) fn too_many(&mut self, path: impl Into<String>, count: usize, limit: usize) {
        let detail = format!("Too many: {count}: must have at most {limit} items");
        self.push("FieldValueTooMany", path, detail);
    }

    pub(super) fn too_long(&mut self, path: impl Into<String>, limit: usize) {
        self.push("FieldValueTooLong", path, format!("Too long: may not be more than {limit} bytes"));
    }

    fn push(&mut self, reason: &'static str, path: impl Into<String>, detail: String) {
        self.0.push(FieldError { reason, field: path.into(), detail });
    }
}
