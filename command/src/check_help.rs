//! Locates and prints the documentation of checks.

use std::fmt::Write as _;

use harness::verify::{Audience, Check, Repeatability, checks};

use crate::diagnostic::{word, wrapped};

/// Expands to the URL of a page in the documentation on the default branch, because unreleased versions have no tag.
macro_rules! documentation {
    ($page:literal) => {
        concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/HEAD/docs/", $page)
    };
}
pub(crate) use documentation;

/// The maximum line width of `--explain` output.
const WIDTH: usize = 100;

/// Returns whether only `-v` shows findings of this check and kind. Most of them report intended settings.
pub(crate) fn is_verbose_note(check: &str, kind: &str) -> bool {
    matches!((check, kind), ("V57", "defaults") | ("L08", "no path"))
}

/// Returns the URL of the documentation of a check of `admit verify` or `admit lint`.
pub(crate) fn url(id: &str) -> String {
    let is_verified = checks::find(id).is_some();
    let page = if is_verified {
        documentation!("reference/checks.md")
    } else {
        documentation!("reference/lint-checks.md")
    };
    format!("{page}#{}", id.to_lowercase())
}

/// Returns the check of `admit lint` with this ID, ignoring case.
pub(crate) fn linted(id: &str) -> Option<&'static Check> {
    checks::STATIC.iter().map(|(check, _)| *check).find(|check| check.id.eq_ignore_ascii_case(id))
}

/// Returns the check of `admit verify` or `admit lint` with this ID, ignoring case.
///
/// # Errors
/// Returns an error if no check has this ID.
pub(crate) fn known(id: &str) -> Result<&'static Check, String> {
    checks::find(id).or_else(|| linted(id)).ok_or_else(|| {
        format!("unknown check `{id}`: admit verify --list and admit lint --list print all checks")
    })
}

/// Returns the error for an ID that is not a check of `admit COMMAND`. Names the other command if it has the check.
pub(crate) fn unknown(id: &str, command: &str) -> String {
    let other = if command == "lint" { "verify" } else { "lint" };
    match known(id) {
        Ok(check) => format!(
            "{} is a check of `admit {other}`, not of `admit {command}`; see `admit {command} --list`",
            check.id
        ),
        Err(_) => format!("unknown check `{id}`; see `admit {command} --list`"),
    }
}

/// Returns the text of `admit COMMAND --list`: a line for each check with the ID, the severity, and the subject.
pub(crate) fn overview<'a>(command: &str, checks: impl IntoIterator<Item = &'a Check>) -> String {
    let mut text = String::new();
    for Check { id, title, severity, .. } in checks {
        let _ = writeln!(text, "{id}  {:<7}  {}", word(*severity), subject(title));
    }
    let _ = writeln!(text, "\nDetails: admit {command} --explain ID, or --list -v for all checks");
    text
}

/// Returns the short title of a check, such as `idempotence`, without the assertion.
pub(crate) fn subject(title: &str) -> &str {
    title.split(": ").next().unwrap_or_default()
}

/// Returns the documentation of a check, as `--explain` prints it.
pub(crate) fn explanation(check: &Check) -> String {
    let Check { id, title, severity, why, help, source, audience: applies_to, repeatability, .. } = check;
    let varies = variation(*repeatability);
    let mut text = String::new();
    for (paragraph, label) in [(title, *id), (why, ""), (help, "Help:"), (source, "Source:")] {
        let paragraph = format!("{label} {paragraph}");
        let _ = writeln!(text, "{}\n", wrapped(paragraph.trim(), WIDTH).join("\n"));
        if label == *id {
            let _ = writeln!(text, "{} by default; for {}{varies}\n", word(*severity), audience(*applies_to));
        }
    }
    let _ = writeln!(text, "{}", url(id));
    text
}

/// Returns a description of the webhooks or policies that a check applies to.
pub(crate) fn audience(audience: Audience) -> &'static str {
    match audience {
        Audience::All => "all webhooks",
        Audience::Mutating => "mutating webhooks",
        Audience::Validating => "validating webhooks",
        Audience::Conversion => "conversion webhooks",
        Audience::Policies => "admission policies",
        Audience::AllAndPolicies => "all webhooks and admission policies",
    }
}

/// Returns the end of a sentence about a check that says how its result varies between runs; may be empty.
pub(crate) fn variation(repeatability: Repeatability) -> &'static str {
    match repeatability {
        Repeatability::Same => "",
        Repeatability::Varies => "; the result can differ between runs",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn explanation_has_every_text_of_the_check() {
        for check in checks::ALL.iter().chain(checks::STATIC.iter().map(|(check, _)| check)) {
            let text = explanation(check);
            let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
            for part in [check.title, check.why, check.help, check.source, &url(check.id)] {
                assert!(words(&text).contains(&words(part)), "{text}");
            }
            assert!(text.lines().all(|line| line.len() <= WIDTH || !line.contains(' ')), "{text}");
        }
        assert!(known("v01").is_ok_and(|check| check.id == "V01"));
        assert!(known("L99").is_err());
        assert!(url("V01").ends_with("/docs/reference/checks.md#v01"), "{}", url("V01"));
        assert!(url("L04").ends_with("/docs/reference/lint-checks.md#l04"), "{}", url("L04"));
    }
}
