//! Creates the report for `--summary`: Markdown for the page of a workflow run.
//!
//! The verdict on each configuration and the findings come first; the results of all checks are in a collapsed table.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use harness::verify::Severity;

use super::text::{completed, verdicts};
use super::{Finding, Report, Skipped, counts};
use crate::baseline::stale;
use crate::check_help;
use crate::diagnostic::several;
use crate::markdown::{cell, line};
use crate::verify::output::word;

/// Returns the summary of a report as Markdown.
pub(crate) fn summary(report: &Report) -> String {
    let mut text = "## admit lint\n\n".to_owned();
    for verdict in verdicts(report) {
        let symbol = match verdict.worst {
            None => "✅",
            Some(Severity::Error) => "❌",
            Some(Severity::Warning | Severity::Note) => "⚠️",
        };
        let _ = writeln!(text, "- {symbol} **{}**: {}", line(&verdict.subject), verdict.words);
    }
    let _ = writeln!(text, "\n{}", counts(report));
    let mut findings: Vec<&Finding> = report.new_findings().collect();
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    let mut explained = BTreeSet::new();
    for found in findings {
        finding(&mut text, found, explained.insert(found.check));
    }
    accepted(&mut text, report);
    checks(&mut text, report);
    text
}

/// Appends a finding: its line, the message, how to fix it, and, if `explains` is set, why it matters.
fn finding(text: &mut String, finding: &Finding, explains: bool) {
    let Finding { check, file, line: number, page, help, why, .. } = finding;
    let _ = writeln!(text, "\n### [{check}]({page}) {}: {}:{number}\n", word(finding.severity), line(file));
    let _ = writeln!(text, "{}\n\n**Help:** {}", line(&finding.sentence()), line(help));
    if explains {
        let _ = writeln!(text, "\nWhy: {}", line(why));
    }
}

/// Appends the findings that the baseline accepts, and the baseline entries without a finding.
fn accepted(text: &mut String, report: &Report) {
    if report.accepted().next().is_some() {
        text.push_str(
            "\n### Accepted by the baseline\n\n| place | check | finding | reason |\n|---|---|---|---|\n",
        );
    }
    for (finding, reason) in report.accepted() {
        let place = cell(&format!("{}:{}", finding.file, finding.line));
        let (check, page, told) = (finding.check, finding.page, cell(&finding.sentence()));
        let _ = writeln!(text, "| {place} | [{check}]({page}) | {told} | {} |", cell(reason));
    }
    for entry in &report.stale {
        let (file, at, told) = (line(&entry.place.file), entry.place.line, line(&stale(entry)));
        let _ = writeln!(text, "\n> **Stale** {file}:{at}: {told}");
    }
}

/// Appends the results of all checks as a collapsed table.
fn checks(text: &mut String, report: &Report) {
    let (passed, incomplete) = completed(report);
    let mut summary = format!("{} passed", several(passed, "check"));
    for (count, what) in [(incomplete.len(), "not completed"), (report.skipped.len(), "skipped")] {
        if count > 0 {
            let _ = write!(summary, ", {count} {what}");
        }
    }
    let _ = writeln!(text, "\n<details>\n<summary>{summary}</summary>\n");
    text.push_str("| check | result |\n|---|---|\n");
    for check in &report.checks {
        let mut results = Vec::new();
        match report.findings.iter().filter(|finding| finding.check == check.id).count() {
            0 => {}
            count => results.push(several(count, "finding")),
        }
        let unchecked = report.not_checked.iter().filter(|unchecked| unchecked.check == check.id);
        results.extend(unchecked.map(|unchecked| format!("❓ not checked: {}", unchecked.sentence())));
        let result = if results.is_empty() { "✅ passed".to_owned() } else { results.join("; ") };
        let title = check_help::subject(check.title);
        let _ = writeln!(text, "| {} {} | {} |", check.id, cell(title), cell(&result));
    }
    for Skipped { check, reason } in &report.skipped {
        let _ = writeln!(text, "| {check} | skipped: {} |", cell(reason));
    }
    text.push_str("\n</details>\n");
}
