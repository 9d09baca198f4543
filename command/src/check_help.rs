//! Provides advice on the findings of a check, and the location of its documentation.

use harness::verify::checks;

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

/// Returns advice on how to fix the findings of an `admit lint` check.
pub(crate) fn lint_help(id: &str) -> Option<&'static str> {
    let mut all = checks::STATIC.iter().map(|(check, _)| *check);
    all.find(|check| check.id.eq_ignore_ascii_case(id)).map(|check| check.help)
}
