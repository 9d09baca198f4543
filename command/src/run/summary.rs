//! Formats the summary at the end of a run.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use harness::verify::Severity;
use output::OneLine;

use super::record::{Outcome, Record, ScenarioRecord};
use crate::diagnostic::{Diagnostic, several};
use crate::narrator::NoteKind;
use crate::steps::{HELP, NOTE};
use crate::style::{BAD, GOOD, NOT_DONE, brief};

/// What the errors in the summary show besides the message of the failed step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Evidence {
    /// What explains the failure.
    Causes,
    /// Also the calls of the last request, because the steps of the scenario are not shown.
    Calls,
    /// Also the whole document that the failed step checked.
    Documents,
}

/// The maximum number of scenarios that one error names.
const MAX_NAMES: usize = 20;

/// Returns the failed scenarios, the skipped scenarios with reasons, and the number of scenarios with each outcome.
///
/// Programs can parse the last line: `N passed, N failed`, with `, N skipped` if scenarios do not apply to the target
/// or did not run.
pub(crate) fn summary(record: &Record, unchecked_audits: usize, evidence: Evidence) -> String {
    let counts = record.counts();
    let mut text = String::from("\n");
    failures(&mut text, record, evidence);
    skipped(&mut text, record);
    if counts.not_run > 0 {
        let _ = writeln!(text, "{NOT_DONE}not run: {}{NOT_DONE:#}", several(counts.not_run, "scenario"));
    }
    if counts.unsupported > 0 {
        let of_them = several(counts.unsupported, "scenario");
        let _ = writeln!(
            text,
            "{NOT_DONE}{of_them} failed because admit does not support what they need{NOT_DONE:#}"
        );
    }
    if unchecked_audits > 0 {
        let checks = if unchecked_audits == 1 { "audit check" } else { "audit checks" };
        let _ = writeln!(
            text,
            "{NOT_DONE}{unchecked_audits} {checks} skipped: pass the audit log of this target with --audit-log FILE{NOT_DONE:#}"
        );
    }
    let _ = writeln!(text, "{}, {}", totals(record), brief(record.elapsed()));
    let style = if counts.failed > 0 { BAD } else { GOOD };
    let left_out = counts.skipped + counts.not_run;
    let tail = if left_out > 0 { format!(", {left_out} skipped") } else { String::new() };
    let _ = writeln!(text, "{style}{} passed, {} failed{tail}{style:#}", counts.passed, counts.failed);
    text
}

/// Appends the failures, each with its scenarios, the failed step, and the message.
///
/// Failures of different steps often have the same help: only the first one shows it.
fn failures(text: &mut String, record: &Record, evidence: Evidence) {
    let mut shown: BTreeMap<String, String> = BTreeMap::new();
    for group in record.failure_groups() {
        let Some(scenario) = group.first() else { continue };
        let planned = &scenario.planned;
        let failure = scenario.failure();
        let line = u64::try_from(failure.line).unwrap_or(u64::MAX);
        let title = match group.len() {
            1 => planned.name.clone(),
            count => format!("{count} scenarios fail in the same step"),
        };
        let mut diagnostic = Diagnostic::new(Severity::Error, title).place(&planned.key.path, line);
        if let Some(step) = failure.step {
            diagnostic = diagnostic.source(Some(&format!("{} {}", step.keyword, step.text)));
        }
        if group.len() > 1 {
            for ScenarioRecord { planned, .. } in group.iter().take(MAX_NAMES) {
                diagnostic.block(
                    "scenario",
                    &format!("{} ({}:{})", planned.name, planned.key.path, planned.key.line),
                );
            }
            if group.len() > MAX_NAMES {
                diagnostic.note("scenario", format!("and {} more", group.len() - MAX_NAMES));
            }
        }
        let (message, notes) = parts(failure.message.unwrap_or_default());
        if !message.is_empty() {
            diagnostic.block("message", &message);
        }
        let shows_events = evidence == Evidence::Calls;
        if shows_events {
            failure.events.iter().for_each(|event| diagnostic.block("note", &event.text));
        }
        // The events contain the causes.
        let told = failure.notes.iter().filter(|note| !shows_events || note.kind == NoteKind::Help);
        let told = told.map(|note| (note.kind, note.text.as_str()));
        for (kind, note) in notes.into_iter().chain(told) {
            match kind {
                NoteKind::Help => {
                    if let Some(first) = shown.get(note) {
                        diagnostic.note("help", format!("see the help for {first}"));
                    } else {
                        shown.insert(note.to_owned(), format!("{}:{line}", planned.key.path));
                        diagnostic.note("help", note);
                    }
                }
                NoteKind::Event | NoteKind::Cause | NoteKind::Whole => diagnostic.block("note", note),
            }
        }
        if evidence == Evidence::Documents {
            failure.documents.iter().for_each(|document| diagnostic.block("note", &document.text));
        }
        diagnostic.write(text);
        text.push('\n');
    }
}

/// Splits a message into its text and the lines that are notes or help.
fn parts(message: &str) -> (String, Vec<(NoteKind, &str)>) {
    let mut text = Vec::new();
    let mut notes = Vec::new();
    for line in message.lines() {
        if let Some(note) = line.strip_prefix(NOTE) {
            notes.push((NoteKind::Cause, note));
        } else if let Some(help) = line.strip_prefix(HELP) {
            notes.push((NoteKind::Help, help));
        } else {
            text.push(line);
        }
    }
    (text.join("\n"), notes)
}

/// Returns the reasons why scenarios were skipped, each with the number of scenarios.
pub(super) fn skip_reasons(record: &Record) -> BTreeMap<&str, usize> {
    let mut reasons = BTreeMap::new();
    for scenario in record.scenarios() {
        if let Outcome::Skipped(reason) = &scenario.outcome {
            *reasons.entry(reason.as_str()).or_default() += 1;
        }
    }
    reasons
}

fn skipped(text: &mut String, record: &Record) {
    for (reason, count) in skip_reasons(record) {
        let _ = writeln!(
            text,
            "{NOT_DONE}skipped: {} {}{NOT_DONE:#}",
            several(count, "scenario"),
            OneLine(reason)
        );
    }
}

/// Returns the number of features, scenarios by outcome, and steps.
pub(super) fn totals(record: &Record) -> String {
    let counts = record.counts();
    let mut features: Vec<_> = record.scenarios().iter().map(|scenario| &scenario.planned.key.path).collect();
    features.dedup();
    let steps: usize = record
        .scenarios()
        .iter()
        .filter_map(|scenario| scenario.attempts.last())
        .map(|attempt| attempt.steps.len())
        .sum();
    let parts: Vec<_> = [
        (counts.passed, "passed"),
        (counts.flaky, "of them flaky"),
        (counts.failed, "failed"),
        (counts.skipped, "skipped"),
        (counts.not_run, "not run"),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, what)| format!("{count} {what}"))
    .collect();
    let (features, scenarios) =
        (several(features.len(), "feature"), several(record.scenarios().len(), "scenario"));
    format!("{features}, {scenarios} ({}), {}", parts.join(", "), several(steps, "step"))
}
