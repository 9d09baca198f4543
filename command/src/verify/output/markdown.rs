//! Creates the report for `--summary`: Markdown for the page of a workflow run.
//!
//! The verdict on each webhook and the findings come first; the results of all checks are in a collapsed table.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use harness::verify::report::{CheckReport, Finding, Remark, Report, Tally};
use harness::verify::{Difference, checks};
use output::OneLine;

use super::order;
use super::remarks;
use super::table::{self, Line};
use super::text::{self as people, CheckCounts, MAX_DIFFERENCES};
use super::{AcceptedFinding, FailOn, details, word};
use crate::baseline::stale;
use crate::check_help;
use crate::diagnostic::several;
use crate::markdown::{cell, fence, line};
use crate::verdict::{Outcome, verdicts};
use crate::verify::SKIPPED_BY_QUICK;

/// Returns the summary of a report as Markdown. A webhook with a finding that `fail_on` includes gets a cross.
pub(super) fn summary(report: &Report, fail_on: FailOn) -> String {
    let mut text = "## admit verify\n\n".to_owned();
    for (webhook, verdict) in verdicts(report) {
        let symbol = match verdict.outcome_in_run(|severity| fail_on.includes(severity)) {
            Outcome::Good => "✅",
            Outcome::Bad => "❌",
            Outcome::Unknown => "❓",
        };
        let _ = writeln!(text, "- {symbol} **{}**: {}", line(webhook), line(&verdict.sentence()));
    }
    let _ = writeln!(text, "\n{}", people::totals(report));
    if report.interrupted {
        text.push_str("\n> **Interrupted** this report contains only the findings so far\n");
    }
    let mut findings: Vec<(&CheckReport, &Finding)> = report.new_findings().collect();
    findings.sort_by_key(|(check, finding)| {
        (std::cmp::Reverse(finding.severity), check.id != checks::DETERMINISM)
    });
    let mut explained = BTreeSet::new();
    for (check, found) in findings {
        finding(&mut text, report, check, found, explained.insert(&check.id));
    }
    order::graph(&mut text, report);
    remarks(&mut text, report);
    accepted(&mut text, report);
    for (webhook, denials) in people::denials(report) {
        let _ = writeln!(text, "\n{} {}:\n", line(webhook), denials.sum);
        for (count, reason) in denials.reasons {
            let _ = writeln!(text, "* {count}: {}", line(reason));
        }
    }
    for (reason, count) in &report.left_out {
        let _ = writeln!(text, "\n{} skipped: {}", people::several_objects(*count), line(reason));
    }
    checks(&mut text, report);
    text
}

/// Appends a finding: the message, how to fix it, the details, and, if `explains` is set, why it matters.
fn finding(text: &mut String, report: &Report, check: &CheckReport, finding: &Finding, explains: bool) {
    let (severity, webhook) = (word(finding.severity), finding.webhook());
    let _ = writeln!(text, "\n### {} {severity}: {}\n", check.id, line(webhook));
    let _ = writeln!(text, "{}", line(&finding.message));
    let help = check.help_of(finding);
    if !help.is_empty() {
        let _ = writeln!(text, "\n**Help:** {}", line(help));
    }
    for detail in details(report, check, finding) {
        let _ = writeln!(text, "\n{}", line(&detail));
    }
    if !finding.differences.is_empty() {
        let differences = differences(&finding.differences);
        let fence = fence(&differences);
        let _ = writeln!(text, "\n{fence}diff\n{differences}{fence}");
    }
    if explains || finding.why.is_some() {
        let _ = writeln!(text, "\nWhy: {}", line(check.why_of(finding)));
    }
    if let Some(proof) = &finding.proof {
        let _ = writeln!(text, "\nProof: {}", line(proof));
    }
    if explains {
        let _ = writeln!(text, "\n[Documentation of {}]({})", check.id, check_help::url(&check.id));
    }
}

/// Appends remarks about conditions that limit the whole report.
fn remarks(text: &mut String, report: &Report) {
    for Remark { severity, message, help } in remarks::limits(report) {
        let words = [message].into_iter().chain(help).collect::<Vec<_>>().join("; ");
        let _ = writeln!(text, "\n> **{}** {}", word(severity), line(&words));
    }
}

/// Appends the findings that the baseline accepts, and the baseline entries without a finding.
fn accepted(text: &mut String, report: &Report) {
    let accepted = super::accepted(report);
    if !accepted.is_empty() {
        text.push_str(
            "\n### Accepted by the baseline\n\n| check | webhooks | finding | reason |\n|---|---|---|---|\n",
        );
    }
    for AcceptedFinding { check, webhooks, what, reason, .. } in accepted {
        let cells = [check, &webhooks, &what, &reason].map(cell);
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
    for entry in &report.stale {
        let _ = writeln!(
            text,
            "\n> **Stale** {}:{}: {}",
            line(&entry.place.file),
            entry.place.line,
            line(&stale(entry))
        );
    }
}

/// Appends the results of all checks as a collapsed table.
fn checks(text: &mut String, report: &Report) {
    let CheckCounts { passed, not_applicable, incomplete, unexercised, skipped } =
        CheckCounts::new(report, false);
    let mut counts = vec![format!("{} passed", several(passed, "check"))];
    for (count, what) in [
        (incomplete.len(), "not completed"),
        (unexercised.len(), "not exercised"),
        (not_applicable, "not applicable"),
        (skipped.len(), "skipped"),
    ] {
        if count > 0 {
            counts.push(format!("{count} {what}"));
        }
    }
    let _ = writeln!(text, "\n<details>\n<summary>{}</summary>\n", counts.join(", "));
    text.push_str("| check | webhooks | result |\n|---|---|---|\n");
    let lines = table::lines(report);
    let is_needless = |line: &&Line<'_>| line.verdict.is_none() && line.reason == SKIPPED_BY_QUICK;
    let is_last = |line: &&Line<'_>| matches!(line.verdict, None | Some(Tally::NotApplicable));
    let first = lines.iter().filter(|line| !is_last(line));
    let last = lines.iter().filter(|line| is_last(line) && !is_needless(line));
    for row in first.chain(last) {
        let checks = match row.checks.as_slice() {
            [check] => format!("{} {}", check.id, row.title()),
            checks => checks.iter().map(|check| check.id.as_str()).collect::<Vec<_>>().join(", "),
        };
        let (webhooks, result) = (cell(&row.webhooks.join(", ")), cell(&outcome(row)));
        let _ = writeln!(text, "| {} | {webhooks} | {result} |", cell(&checks));
    }
    text.push_str("\n</details>\n");
}

fn outcome(row: &Line<'_>) -> String {
    let with = |word: &str, detail: &str| {
        if detail.is_empty() { word.to_owned() } else { format!("{word}: {detail}") }
    };
    match row.verdict {
        None => with("skipped", &row.reason),
        Some(Tally::Found) => {
            let new = row.findings.iter().filter(|finding| finding.accepted.is_none()).count();
            let accepted = row.findings.len() - new;
            match (new, accepted) {
                (0, 0) => with("❌ found", &row.reason),
                (0, accepted) => format!("{accepted} accepted"),
                (new, 0) => format!("❌ {new} found"),
                (new, accepted) => format!("❌ {new} found, {accepted} accepted"),
            }
        }
        Some(Tally::Passed) => with("✅ passed", &row.notes.join("; ")),
        Some(Tally::NotChecked) => with("❓ not checked", &row.reason),
        Some(Tally::NotExercised) => with("❔ not exercised", &row.reason),
        Some(Tally::NotApplicable) => with("not applicable", &row.reason),
    }
}

/// Formats the differences as lines of a diff.
pub(super) fn differences(differences: &[Difference]) -> String {
    let mut text = String::new();
    for difference in differences.iter().take(MAX_DIFFERENCES) {
        let path = if difference.path.is_empty() { "." } else { &difference.path };
        let _ = writeln!(text, "  {}", OneLine(path));
        for (sign, value) in [('-', &difference.expected), ('+', &difference.found)] {
            if let Some(value) = value {
                let _ = writeln!(text, "{sign} {}", people::short(value));
            }
        }
    }
    let hidden = differences.len().saturating_sub(MAX_DIFFERENCES);
    if hidden > 0 {
        let _ = writeln!(text, "  and {hidden} more differences");
    }
    text
}
