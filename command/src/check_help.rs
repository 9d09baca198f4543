//! Locates the documentation of checks.

/// The folder of the documentation in the repository and in the book.
const DOCUMENTATION: &str = "docs/reference";

/// Returns the location of an `admit verify` check in the documentation.
pub(crate) fn verify_docs(id: &str) -> String {
    format!("{DOCUMENTATION}/checks.md#{}", id.to_lowercase())
}

/// Returns the location of an `admit lint` check in the documentation.
pub(crate) fn lint_docs(id: &str) -> String {
    format!("{DOCUMENTATION}/lint-checks.md#{}", id.to_lowercase())
}
