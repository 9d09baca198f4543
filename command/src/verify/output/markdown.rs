//! Creates the report of `--summary`: Markdown for the page of a workflow run.

use std::fmt::Write as _;

use harness::verify::Difference;
use harness::verify::report::{CheckReport, CheckResult, Report, Tally};
use output::OneLine;

use super::text::{self as people, MAX_DIFFERENCES};
use super::{details, table, word};
use crate::baseline::stale;
use crate::markdown::{cell, fence, line};
use crate::verdict::{brief, most};
use crate::verify::SKIPPED_BY_QUICK;

/// Returns the summary of a report as Markdown.
pub(super) fn summary(report: &Report) -> String {
    let mut text = format!("## admit verify\n\n{}\n", people::counts(report));
    for (webhook, reason) in report.unanswered() {
        let cause = brief(report, webhook, reason);
        let what = format!("the webhook did not return a valid response to any call: {cause}");
        let _ = writeln!(text, "\n> **Unanswered** {}: {}", line(webhook), line(&what));
    }
    for (webhook, what) in report.unseen() {
        let _ = writeln!(text, "\n> **Unseen** {}: {}", line(webhook), line(&what));
    }
    for (webhook, caveat) in &report.caveats {
        let _ = writeln!(text, "\n> **Caveat** {}: {}", line(webhook), line(caveat));
    }
    for (reason, webhooks) in &report.unreached {
        let _ = writeln!(text, "\n> **Unreached** {}: {}", line(&webhooks.join(", ")), line(reason));
    }
    for request in &report.unserved {
        let _ = writeln!(
            text,
            "\n> **Unserved** by the API server behind the webhooks: {}",
            line(&request.to_string())
        );
    }
    text.push_str("\n| check | webhook | result |\n|---|---|---|\n");
    for check in &report.checks {
        let title = cell(check.title.as_str());
        let check_cell = format!("{} {title}", check.id);
        if let Some(reason) = check.skipped.as_ref().filter(|reason| *reason != SKIPPED_BY_QUICK) {
            let _ = writeln!(text, "| {check_cell} | | skipped: {} |", cell(reason));
        }
        for result in &check.results {
            let _ = writeln!(
                text,
                "| {check_cell} | {} | {} |",
                cell(&result.webhook),
                cell(&outcome(report, check, result))
            );
        }
    }
    for (check, finding) in report.new_findings() {
        let (severity, webhook) = (word(finding.severity), finding.webhook());
        let _ = writeln!(text, "\n### {} {severity}: {}\n", check.id, line(webhook));
        let _ = writeln!(text, "{}", line(&finding.message));
        for detail in details(report, finding) {
            let _ = writeln!(text, "\n{}", line(&detail));
        }
        if !finding.differences.is_empty() {
            let differences = differences(&finding.differences);
            let fence = fence(&differences);
            let _ = writeln!(text, "\n{fence}diff\n{differences}{fence}");
        }
        let _ = writeln!(text, "\n{}", line(check.why_of(finding)));
        if let Some(proof) = &finding.proof {
            let _ = writeln!(text, "\nProof: {}", line(proof));
        }
    }
    let mut accepted = report
        .findings()
        .filter_map(|(check, finding)| Some((check, finding, finding.accepted.as_ref()?)))
        .peekable();
    if accepted.peek().is_some() {
        text.push_str(
            "\n### Accepted by the baseline\n\n| check | webhooks | finding | reason |\n|---|---|---|---|\n",
        );
    }
    for (check, finding, reason) in accepted {
        let webhooks: Vec<&str> = finding.webhooks.keys().map(String::as_str).collect();
        let (webhooks, kind, reason) = (cell(&webhooks.join(", ")), cell(&finding.kind), cell(reason));
        let _ = writeln!(text, "| {} | {webhooks} | {kind} | {reason} |", check.id);
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
    for (webhook, denials) in people::denials(report) {
        let _ = writeln!(text, "\n{} {}:\n", line(webhook), denials.sum);
        for (count, reason) in denials.reasons {
            let _ = writeln!(text, "* {count}: {}", line(reason));
        }
    }
    for (reason, count) in &report.left_out {
        let _ = writeln!(text, "\n{count} objects were skipped: {}", line(reason));
    }
    text
}

fn outcome(report: &Report, check: &CheckReport, result: &CheckResult) -> String {
    let with = |word: &str, detail: String| {
        if detail.is_empty() { word.to_owned() } else { format!("{word}: {detail}") }
    };
    match result.verdict {
        Tally::Found => {
            let new = check.findings_of(&result.webhook).filter(|finding| finding.accepted.is_none()).count();
            let accepted = check.findings_of(&result.webhook).count() - new;
            match (new, accepted) {
                (0, 0) => match report.cause_of(check, &result.webhook) {
                    Some((cause, _)) => format!("❌ see {}", cause.id),
                    None => "❌ found".to_owned(),
                },
                (0, accepted) => format!("{accepted} accepted"),
                (new, 0) => format!("❌ {new} found"),
                (new, accepted) => format!("❌ {new} found, {accepted} accepted"),
            }
        }
        Tally::Passed => with("✅ passed", table::held(result)),
        Tally::NotChecked => with("❓ not checked", most(&result.not_checked)),
        Tally::NotApplicable => with("not applicable", table::reasons(&result.not_applicable)),
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
