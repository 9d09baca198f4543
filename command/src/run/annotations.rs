//! Formats failed scenarios as GitHub workflow commands, which show them next to the lines of the feature files.
//!
//! Source: GitHub's documentation, "Workflow commands for GitHub Actions".

use std::fmt::Write as _;
use std::path::Path;

use super::record::{Attempt, Record};

/// Returns whether the command runs in a GitHub workflow, which shows annotations.
pub(crate) fn are_enabled() -> bool {
    std::env::var_os("GITHUB_ACTIONS").is_some_and(|value| value == "true")
}

/// Returns a workflow command for each failed scenario, each on a line.
pub(crate) fn commands(record: &Record) -> String {
    let mut text = String::new();
    for scenario in record.failures() {
        let planned = &scenario.planned;
        let attempt = scenario.attempts.last();
        let step = attempt.and_then(|attempt| scenario.failed_step(attempt));
        let line = step.map_or(planned.key.line, |(step, _)| step.line);
        let mut message = match step {
            Some((step, message)) => format!("{} {}\n{message}", step.keyword, step.text),
            None => attempt.and_then(|attempt| attempt.trouble.clone()).unwrap_or_default(),
        };
        for note in attempt.into_iter().flat_map(Attempt::causes) {
            if !message.contains(&note.text) {
                let _ = write!(message, "\n{}", note.text);
            }
        }
        let file = property(&relative(&planned.key.path));
        let title = property(&planned.name);
        let _ = writeln!(text, "::error file={file},line={line},title={title}::{}", data(&message));
    }
    text
}

/// Returns the path relative to the current directory if the file is in it, because GitHub expects such paths.
fn relative(file: &str) -> String {
    let path = Path::new(file);
    let here = std::env::current_dir().ok();
    let inner = here.and_then(|here| path.strip_prefix(here).ok()).unwrap_or(path);
    inner.strip_prefix(".").unwrap_or(inner).display().to_string()
}

/// Escapes the message of a workflow command.
fn data(text: &str) -> String {
    output::lines(text).replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes the value of a property of a workflow command.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
