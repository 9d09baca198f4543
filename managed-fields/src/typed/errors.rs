//! Collects validation errors, and formats them as upstream does.

use std::fmt;

use crate::path::PathElement;

/// A validation error, with the path of the invalid value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ValidationError {
    /// The path, such as `.spec.replicas`; empty for the whole value.
    pub path: String,
    /// The error message, without the path.
    pub message: String,
}

/// One or more validation errors; a very long list is truncated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValidationErrors(Vec<ValidationError>);

impl ValidationErrors {
    /// Returns the errors in the order in which they were found.
    pub fn errors(&self) -> &[ValidationError] {
        &self.0
    }
}

impl std::error::Error for ValidationErrors {}

/// Formats a single error by itself, and several errors as a list.
///
/// Source: structured-merge-diff typed/helpers.go, `ValidationErrors.Error`.
impl fmt::Display for ValidationErrors {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [error] = self.0.as_slice() {
            return error.fmt(formatter);
        }
        formatter.write_str("errors:")?;
        self.0.iter().try_for_each(|error| write!(formatter, "\n  {error}"))
    }
}

impl fmt::Display for ValidationError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            return formatter.write_str(&self.message);
        }
        write!(formatter, "{}: {}", self.path, self.message)
    }
}

/// The maximum total length, in bytes, of the listed errors.
///
/// Without this limit, 100,000 errors below a field with a name of one megabyte would exhaust the memory.
const MAX_LISTED_BYTES: usize = 1 << 20;

/// The current position of a walk, and the errors found so far.
#[derive(Debug, Default)]
pub(super) struct Findings {
    path: Vec<PathElement>,
    errors: Vec<ValidationError>,
    /// The number of errors, including those beyond the limit.
    count: usize,
    bytes: usize,
    is_muted: bool,
}

impl Findings {
    /// Adds an error at the current position.
    pub(super) fn push(&mut self, message: impl Into<String>) {
        self.count += 1;
        if self.is_muted || self.bytes > MAX_LISTED_BYTES {
            return;
        }
        let error = ValidationError { path: crate::path::text(&self.path), message: message.into() };
        self.bytes += error.path.len() + error.message.len();
        self.errors.push(error);
    }

    /// Runs `visit` one level below the current position.
    pub(super) fn below<R>(&mut self, element: &PathElement, visit: impl FnOnce(&mut Self) -> R) -> R {
        self.path.push(element.clone());
        let result = visit(self);
        self.path.pop();
        result
    }

    /// Runs `visit` and discards its errors.
    pub(super) fn ignoring<R>(&mut self, visit: impl FnOnce(&mut Self) -> R) -> R {
        let (count, is_muted) = (self.count, self.is_muted);
        self.is_muted = true;
        let result = visit(self);
        self.count = count;
        self.is_muted = is_muted;
        result
    }

    /// Returns the number of errors.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    pub(super) fn into_result(self) -> Result<(), ValidationErrors> {
        if self.count == 0 { Ok(()) } else { Err(ValidationErrors(self.errors)) }
    }
}
