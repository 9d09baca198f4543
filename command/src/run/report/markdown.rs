//! Creates the report for `--summary`: Markdown for the page of a workflow run.

use std::fmt::Write as _;

use crate::diagnostic::several;
use crate::markdown::{cell, fence, line};
use crate::request_report::cut;
use crate::run::record::{Outcome, Record, ScenarioRecord};
use crate::run::summary::{skip_reasons, totals};
use crate::style::brief;

/// The maximum number of failures to show with their messages. GitHub rejects a summary of more than 1 MiB.
const MAX_FAILURES: usize = 50;

/// The maximum number of characters in a message; longer messages are truncated.
const MAX_MESSAGE: usize = 4000;

/// The number of scenarios of a feature with each outcome.
#[derive(Default)]
struct Row<'a> {
    path: &'a str,
    passed: usize,
    failed: usize,
    skipped: usize,
    not_run: usize,
}

/// Returns the summary of a run as Markdown.
pub(super) fn summary(record: &Record) -> String {
    let mut text = format!("## admit run\n\n{}, {}\n", totals(record), brief(record.elapsed()));
    text.push_str("\n| feature | passed | failed | skipped | not run |\n|---|---|---|---|---|\n");
    for row in rows(record) {
        let mark = if row.failed > 0 { "❌ " } else { "" };
        let path = cell(row.path);
        let [passed, failed, skipped, not_run] =
            [row.passed, row.failed, row.skipped, row.not_run].map(number);
        let _ = writeln!(text, "| {mark}{path} | {passed} | {failed} | {skipped} | {not_run} |");
    }
    for scenario in record.failures().take(MAX_FAILURES) {
        failure(&mut text, scenario);
    }
    let hidden = record.failures().count().saturating_sub(MAX_FAILURES);
    if hidden > 0 {
        let _ = writeln!(text, "\n{} failed.", several(hidden, "more scenario"));
    }
    for flaky in record.scenarios().iter().filter(|scenario| scenario.is_flaky()) {
        let (attempts, name) = (flaky.attempts.len(), line(&flaky.planned.name));
        let _ = writeln!(
            text,
            "\n> **Flaky** {}: {name}: passed on attempt {attempts}",
            place(flaky, flaky.planned.key.line)
        );
    }
    for (reason, count) in skip_reasons(record) {
        let _ = writeln!(text, "\n> **Skipped** {}: {}", several(count, "scenario"), line(reason));
    }
    text
}

/// Returns the rows of the table, one for each feature file, in the order in which the files ran.
fn rows(record: &Record) -> Vec<Row<'_>> {
    let mut rows: Vec<Row<'_>> = Vec::new();
    for scenario in record.scenarios() {
        let path = scenario.planned.key.path.as_str();
        if rows.last().is_none_or(|row| row.path != path) {
            rows.push(Row { path, ..Row::default() });
        }
        let Some(row) = rows.last_mut() else { continue };
        match scenario.outcome {
            Outcome::Passed => row.passed += 1,
            Outcome::Failed => row.failed += 1,
            Outcome::Skipped(_) => row.skipped += 1,
            Outcome::NotRun => row.not_run += 1,
        }
    }
    rows
}

/// Formats a number for a table cell; zero becomes an empty cell.
fn number(count: usize) -> String {
    if count == 0 { String::new() } else { count.to_string() }
}

/// Appends a failed scenario: its location, the failed step, the message, and the notes that can explain it.
fn failure(text: &mut String, scenario: &ScenarioRecord) {
    let failure = scenario.failure();
    let _ = writeln!(text, "\n### ❌ {}\n", line(&scenario.planned.name));
    let failed_at = place(scenario, failure.line);
    match failure.step {
        Some(step) => {
            let _ = writeln!(text, "{failed_at}: **{}** {}", line(step.keyword.trim()), line(&step.text));
        }
        None => {
            let _ = writeln!(text, "{failed_at}");
        }
    }
    if let Some(message) = failure.message {
        let message = safe(message);
        let fence = fence(&message);
        let _ = writeln!(text, "\n{fence}text\n{message}\n{fence}");
    }
    for note in failure.notes {
        let _ = writeln!(text, "\n* {}", line(&note.text));
    }
}

/// Returns the file and the line of a scenario, or of one of its steps.
fn place(scenario: &ScenarioRecord, at: usize) -> String {
    format!("{}:{at}", line(&scenario.planned.key.path))
}

/// Escapes control sequences in a message, and truncates it after [`MAX_MESSAGE`] characters.
fn safe(message: &str) -> String {
    cut(&output::lines(message), MAX_MESSAGE)
}
