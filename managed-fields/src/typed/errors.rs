//! What is wrong with a value, in upstream's words.

use std::fmt;

use crate::path::PathElement;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ValidationError {
    /// Where, such as `.spec.replicas`; empty for the value as a whole.
    pub path: String,
    /// What.
    pub message: String,
}

/// What is wrong, never empty; of very many errors only the first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValidationErrors(Vec<ValidationError>);

impl ValidationErrors {
    /// What is wrong, one by one.
    pub fn errors(&self) -> &[ValidationError] {
        &self.0
    }
}

impl std::error::Error for ValidationErrors {}

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

/// How many bytes of errors are listed at most: a name of a megabyte may have a hundred thousand errors below it.
const MOST_BYTES: usize = 1 << 20;

/// Where a walk is, and what it found there.
#[derive(Debug, Default)]
pub(super) struct Findings {
    path: Vec<PathElement>,
    errors: Vec<ValidationError>,
    /// Also of what is not listed.
    count: usize,
    bytes: usize,
    is_muted: bool,
}

impl Findings {
    /// Notes what is wrong at the current place.
    pub(super) fn push(&mut self, message: impl Into<String>) {
        self.count += 1;
        if self.is_muted || self.bytes > MOST_BYTES {
            return;
        }
        let error = ValidationError { path: crate::path::text(&self.path), message: message.into() };
        self.bytes += error.path.len() + error.message.len();
        self.errors.push(error);
    }

    /// Goes one step down for as long as `visit` takes.
    pub(super) fn below<R>(&mut self, element: &PathElement, visit: impl FnOnce(&mut Self) -> R) -> R {
        self.path.push(element.clone());
        let result = visit(self);
        self.path.pop();
        result
    }

    /// What `visit` makes of it, whatever it finds wrong.
    pub(super) fn ignoring<R>(&mut self, visit: impl FnOnce(&mut Self) -> R) -> R {
        let (count, is_muted) = (self.count, self.is_muted);
        self.is_muted = true;
        let result = visit(self);
        self.count = count;
        self.is_muted = is_muted;
        result
    }

    /// How many errors there are.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    pub(super) fn into_result(self) -> Result<(), ValidationErrors> {
        if self.count == 0 { Ok(()) } else { Err(ValidationErrors(self.errors)) }
    }
}
