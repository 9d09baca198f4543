//! Formats messages as GitHub workflow commands, which show them next to the lines of files.
//!
//! Source: GitHub's documentation, "Workflow commands for GitHub Actions"; actions/toolkit packages/core/src/command.ts
//! for what is escaped.

use std::path::{Path, PathBuf};

use harness::verify::Severity;

/// The settings that a GitHub workflow provides.
#[derive(Debug)]
pub(crate) struct GitHub {
    /// Whether the command prints annotations, because it runs in a workflow.
    pub(crate) annotates: bool,
    /// The file to which the workflow summary is appended.
    pub(crate) summary: Option<PathBuf>,
}

impl GitHub {
    pub(crate) fn from_environment() -> Self {
        let text = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
        Self {
            annotates: text("GITHUB_ACTIONS").as_deref() == Some("true"),
            summary: text("GITHUB_STEP_SUMMARY").map(PathBuf::from),
        }
    }
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

/// Returns the path of a file as in the repository, which is relative if the file is in the current directory.
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
