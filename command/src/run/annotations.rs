//! Formats failed scenarios as GitHub workflow commands. GitHub shows them next to the lines of the feature files.

use std::fmt::Write as _;

use harness::verify::Severity;

use super::record::Record;
use crate::diagnostic::several;
use crate::github::command;

/// Returns a workflow command for each failure, one per line.
pub(crate) fn commands(record: &Record) -> String {
    let mut text = String::new();
    for group in record.failure_groups() {
        let Some(scenario) = group.first() else { continue };
        let planned = &scenario.planned;
        let failure = scenario.failure();
        let mut message = failure.message.unwrap_or_default().to_owned();
        if let Some(step) = failure.step {
            message = format!("{} {}\n{message}", step.keyword, step.text);
        }
        for note in failure.notes {
            if !message.contains(&note.text) {
                let _ = write!(message, "\n{}", note.text);
            }
        }
        let line = u64::try_from(failure.line).unwrap_or(u64::MAX);
        let place = Some((planned.key.path.as_str(), line));
        let title = match group.len() {
            1 => planned.name.clone(),
            count => format!("{} (and {})", planned.name, several(count - 1, "more scenario")),
        };
        text.push_str(&command(Severity::Error, place, &title, &message));
    }
    text
}
