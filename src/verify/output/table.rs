//! The report for people: a table, then each finding with its difference.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use harness::verify::report::{CheckReport, CheckResult, Finding, Report, Tally};
use harness::verify::{Difference, Severity};
use serde_json::Value;

use super::{caveats, examples, word};

const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default().bold();
const SOSO: Style = AnsiColor::Yellow.on_default();
const FAINT: Style = Style::new().dimmed();

/// More differences of one finding than this are counted.
pub(super) const MOST_DIFFERENCES: usize = 12;
/// A longer value is cut.
const LONGEST_VALUE: usize = 160;

/// The whole report.
pub(crate) fn text(report: &Report) -> String {
    let mut text = String::new();
    for (webhook, caveat) in &report.caveats {
        let _ = writeln!(text, "{SOSO}caveat:{SOSO:#} {webhook}: {caveat}");
    }
    if !report.caveats.is_empty() {
        text.push('\n');
    }
    for check in &report.checks {
        lines(&mut text, check);
    }
    for (check, result, found) in report.findings() {
        text.push('\n');
        finding(&mut text, report, check, result, found);
    }
    summary(&mut text, report);
    text
}

fn lines(text: &mut String, check: &CheckReport) {
    if let Some(reason) = &check.skipped {
        let _ = writeln!(text, "{FAINT}{} - skipped         {}: {reason}{FAINT:#}", check.id, check.title);
    }
    for result in &check.results {
        let (style, mark, word, detail) = match result.verdict {
            Tally::Found => {
                let count = result.findings.len();
                let severity = result.findings.iter().map(|finding| finding.severity).max();
                let style = if severity == Some(Severity::Error) { BAD } else { SOSO };
                (style, "✘", "found", format!("{count} {}", if count == 1 { "finding" } else { "findings" }))
            }
            Tally::Passed => (GOOD, "✔", "passed", held(result)),
            Tally::NotChecked => (SOSO, "?", "not checked", most(&result.not_checked)),
            Tally::NotApplicable => (FAINT, "-", "not applicable", most(&result.not_applicable)),
        };
        let _ = writeln!(
            text,
            "{style}{} {mark} {word:<15}{style:#} {}: {}{}",
            check.id,
            result.webhook,
            check.title,
            if detail.is_empty() { String::new() } else { format!(" {FAINT}({detail}){FAINT:#}") },
        );
        for note in &result.notes {
            let _ = writeln!(text, "{:21}{FAINT}{note}{FAINT:#}", "");
        }
    }
}

/// How often it held, and how often it could not be told.
pub(super) fn held(result: &CheckResult) -> String {
    let unclear: u64 = result.not_checked.values().sum();
    match (result.held, unclear) {
        (1, 0) => String::new(),
        (held, 0) => format!("{held} objects"),
        (held, unclear) => format!("{held} objects; {unclear} not checked: {}", most(&result.not_checked)),
    }
}

/// The most frequent reason.
pub(super) fn most(reasons: &std::collections::BTreeMap<String, u64>) -> String {
    reasons.iter().max_by_key(|(_, count)| **count).map(|(reason, _)| reason.clone()).unwrap_or_default()
}

fn finding(text: &mut String, report: &Report, check: &CheckReport, result: &CheckResult, finding: &Finding) {
    let style = match finding.severity {
        Severity::Error => BAD,
        Severity::Warning => SOSO,
        Severity::Note => FAINT,
    };
    let word = word(finding.severity);
    if let Some(location) = report.location(&result.webhook) {
        let _ = writeln!(text, "{FAINT}{}:{}{FAINT:#}", location.file, location.line);
    }
    let _ = writeln!(text, "{style}{word}[{}]{style:#} {}: {}", check.id, result.webhook, finding.message);
    if let Some(examples) = examples(finding) {
        let _ = writeln!(text, "  {FAINT}{examples}{FAINT:#}");
    }
    for caveat in caveats(report, &result.webhook) {
        let _ = writeln!(text, "  {SOSO}{caveat}{SOSO:#}");
    }
    for difference in finding.differences.iter().take(MOST_DIFFERENCES) {
        self::difference(text, difference);
    }
    let hidden = finding.differences.len().saturating_sub(MOST_DIFFERENCES);
    if hidden > 0 {
        let _ = writeln!(text, "  {FAINT}and {hidden} more differences{FAINT:#}");
    }
    let _ = writeln!(text, "  {FAINT}why: {}{FAINT:#}", check.why);
    let _ = writeln!(text, "  {FAINT}source: {}{FAINT:#}", check.source);
    if let Some(proof) = &finding.proof {
        let _ = writeln!(text, "  proof: {proof}");
    }
}

fn difference(text: &mut String, difference: &Difference) {
    let _ = writeln!(text, "  {}", if difference.path.is_empty() { "." } else { &difference.path });
    for (style, sign, value) in [(BAD, '-', &difference.expected), (GOOD, '+', &difference.found)] {
        if let Some(value) = value {
            let _ = writeln!(text, "    {style}{sign} {}{style:#}", short(value));
        }
    }
}

/// A value in one line that is not too long.
pub(super) fn short(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(LONGEST_VALUE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

fn summary(text: &mut String, report: &Report) {
    for (reason, count) in &report.left_out {
        let _ = writeln!(text, "\n{count} objects were left out: {reason}");
    }
    let _ = writeln!(text, "\n{}", counts(report));
}

/// The last line.
pub(super) fn counts(report: &Report) -> String {
    let skipped = report.checks.iter().filter(|check| check.skipped.is_some()).count();
    let shard = report.shard.map(|shard| format!(" (shard {shard})")).unwrap_or_default();
    format!(
        "{} findings; {} passed, {} not checked, {} not applicable, {skipped} skipped; {} objects{shard}, {} calls",
        report.findings().count(),
        report.count(Tally::Passed),
        report.count(Tally::NotChecked),
        report.count(Tally::NotApplicable),
        report.objects,
        report.calls,
    )
}
