//! Formats failed scenarios as GitHub workflow commands, which show them next to the lines of the feature files.

use std::fmt::Write as _;

use harness::verify::Severity;

use super::record::{Attempt, Record};
use crate::github::command;

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
        let line = u64::try_from(line).unwrap_or(u64::MAX);
        let place = Some((planned.key.path.as_str(), line));
        text.push_str(&command(Severity::Error, place, &planned.name, &message));
    }
    text
}
