//! Formats messages as GitHub workflow commands. GitHub shows each message next to the line that it refers to.
//!
//! Source: GitHub's documentation, "Workflow commands for GitHub Actions"; actions/toolkit packages/core/src/command.ts
//! for what is escaped.

use std::path::{Path, PathBuf};

use harness::verify::Severity;

use crate::check_help::subject;

/// Returns whether the command runs in a GitHub workflow and therefore prints annotations.
pub(crate) fn annotates() -> bool {
    std::env::var("GITHUB_ACTIONS").is_ok_and(|value| value == "true")
}

/// Returns the file to which a workflow step appends its summary.
pub(crate) fn summary_file() -> Option<PathBuf> {
    let path = std::env::var("GITHUB_STEP_SUMMARY").ok()?;
    (!path.is_empty()).then(|| PathBuf::from(path))
}

/// Returns a command that shows `message` next to a line of a file.
pub(crate) fn command(severity: Severity, place: Option<(&str, u64)>, title: &str, message: &str) -> String {
    let command = match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "notice",
    };
    let place = place.map(|(file, line)| format!("file={},line={line},", property(&relative(file))));
    format!("::{command} {}title={}::{}\n", place.unwrap_or_default(), property(title), data(message))
}

/// Returns the title of a finding: the ID and the name of the check, without its assertion, which the finding contradicts.
///
/// `title` is `NAME: STATEMENT`.
pub(crate) fn check_title(id: &str, title: &str) -> String {
    format!("{id} {}", subject(title))
}

/// Returns the path of a file for annotations; the path is relative if the file is in the current directory.
pub(crate) fn relative(file: &str) -> String {
    let path = Path::new(file);
    let here = std::env::current_dir().ok();
    let inner = here.and_then(|here| path.strip_prefix(here).ok());
    let inner = inner.unwrap_or(path);
    inner.strip_prefix(".").unwrap_or(inner).display().to_string()
}

fn data(text: &str) -> String {
    output::lines(text).replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
