//! The lines that close a run.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::display::{BAD, FAINT, GOOD, NOT_DONE, brief};
use super::record::{Outcome, Record};

/// Says what failed, what was not looked at and why, and how many scenarios ended how.
///
/// The last line is alone on its line for whoever reads it by program: `N passed, N failed`, with `, N skipped` if any
/// scenario was not for this target or did not get its turn.
pub(crate) fn summary(record: &Record, unchecked_audits: usize) -> String {
    let counts = record.counts();
    let mut text = String::from("\n");
    failures(&mut text, record);
    skipped(&mut text, record);
    if counts.not_run > 0 {
        let _ = writeln!(text, "{NOT_DONE}not run: {}{NOT_DONE:#}", scenarios(counts.not_run));
    }
    if counts.unsupported > 0 {
        let of_them = scenarios(counts.unsupported);
        let _ = writeln!(
            text,
            "{NOT_DONE}{of_them} failed because admit does not imitate all that they need{NOT_DONE:#}"
        );
    }
    if unchecked_audits > 0 {
        let checks = if unchecked_audits == 1 { "audit check" } else { "audit checks" };
        let _ = writeln!(
            text,
            "{NOT_DONE}{unchecked_audits} {checks} not made: this target shows no audit log; --audit-log FILE{NOT_DONE:#}"
        );
    }
    let _ = writeln!(text, "{}, {}", totals(record), brief(record.elapsed()));
    let style = if counts.failed > 0 { BAD } else { GOOD };
    let left_out = counts.skipped + counts.not_run;
    let tail = if left_out > 0 { format!(", {left_out} skipped") } else { String::new() };
    let _ = writeln!(text, "{style}{} passed, {} failed{tail}{style:#}", counts.passed, counts.failed);
    text
}

/// The failed scenarios once more, where nobody has to search for them.
fn failures(text: &mut String, record: &Record) {
    let failed: Vec<_> =
        record.scenarios().iter().filter(|scenario| scenario.outcome == Outcome::Failed).collect();
    if failed.is_empty() {
        return;
    }
    let _ = writeln!(text, "{BAD}Failed:{BAD:#}");
    for scenario in failed {
        let key = &scenario.planned.key;
        let _ = writeln!(text, "  {}  {FAINT}{}:{}{FAINT:#}", scenario.planned.name, key.path, key.line);
    }
    text.push('\n');
}

fn skipped(text: &mut String, record: &Record) {
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for scenario in record.scenarios() {
        if let Outcome::Skipped(reason) = &scenario.outcome {
            *reasons.entry(reason).or_default() += 1;
        }
    }
    for (reason, count) in reasons {
        let _ = writeln!(text, "{NOT_DONE}skipped: {} {reason}{NOT_DONE:#}", scenarios(count));
    }
}

fn totals(record: &Record) -> String {
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
    let features = match features.len() {
        1 => "1 feature".to_owned(),
        count => format!("{count} features"),
    };
    format!("{features}, {} ({}), {steps} steps", scenarios(record.scenarios().len()), parts.join(", "))
}

fn scenarios(count: usize) -> String {
    if count == 1 { "1 scenario".to_owned() } else { format!("{count} scenarios") }
}
