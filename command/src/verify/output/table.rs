//! The report for people: a table, then each finding with its difference.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use harness::verify::report::{CheckReport, CheckResult, Finding, Report, Tally};
use harness::verify::{Difference, Severity};
use output::{OneLine, one_line};
use serde_json::Value;

use super::{caveats, examples, others, word};
use crate::baseline::stale;

const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default().bold();
const SOSO: Style = AnsiColor::Yellow.on_default();
const FAINT: Style = Style::new().dimmed();

/// More differences of one finding than this are counted.
pub(super) const MOST_DIFFERENCES: usize = 12;
/// A longer value is cut.
const LONGEST_VALUE: usize = 160;
/// A longer object, too: the folder of proof has all of it.
const LONGEST_OBJECT: usize = 400;

/// The whole report.
pub(crate) fn text(report: &Report) -> String {
    let mut text = String::new();
    for (webhook, caveat) in &report.caveats {
        let _ = writeln!(text, "{SOSO}caveat:{SOSO:#} {}: {}", OneLine(webhook), OneLine(caveat));
    }
    let unseen = report.unseen();
    for (webhook, what) in &unseen {
        let _ = writeln!(text, "{SOSO}unseen:{SOSO:#} {}: {}", OneLine(webhook), OneLine(what));
    }
    for (reason, webhooks) in &report.unreached {
        let (webhooks, reason) = (OneLine(webhooks.join(", ")), OneLine(reason));
        let _ = writeln!(text, "{SOSO}unreached:{SOSO:#} {webhooks}: {reason}");
    }
    for request in &report.unserved {
        let _ = writeln!(
            text,
            "{SOSO}unserved:{SOSO:#} by the API server behind the webhooks: {}",
            OneLine(request)
        );
    }
    if !text.is_empty() {
        text.push('\n');
    }
    for line in lines(report) {
        line.write(&mut text);
    }
    for check in &report.checks {
        findings(&mut text, report, check);
    }
    summary(&mut text, report);
    text
}

/// One line of the table: what came of one check for some webhooks, or of several checks for the same reason.
struct Line<'a> {
    verdict: Option<Tally>,
    checks: Vec<&'a CheckReport>,
    webhooks: Vec<String>,
    reason: String,
    findings: Vec<&'a Finding>,
    notes: &'a [String],
}

/// The table: what is the same for several webhooks, or for the same reason not told by several checks, is one line.
fn lines(report: &Report) -> Vec<Line<'_>> {
    let mut lines: Vec<Line<'_>> = Vec::new();
    for check in &report.checks {
        let begin = lines.len();
        if let Some(reason) = &check.skipped {
            lines.push(Line::skipped(check, reason));
        }
        for result in &check.results {
            let line = Line::of(check, result);
            let same = lines.iter_mut().skip(begin).find(|other| other.takes_webhook(&line));
            match same {
                Some(other) => other.webhooks.extend(line.webhooks),
                None => lines.push(line),
            }
        }
        for line in lines.split_off(begin) {
            match lines.iter_mut().find(|other| other.takes_check(&line)) {
                Some(other) => other.checks.extend(line.checks),
                None => lines.push(line),
            }
        }
    }
    lines
}

impl<'a> Line<'a> {
    fn skipped(check: &'a CheckReport, reason: &str) -> Self {
        Self {
            verdict: None,
            checks: vec![check],
            webhooks: Vec::new(),
            reason: reason.to_owned(),
            findings: Vec::new(),
            notes: &[],
        }
    }

    fn of(check: &'a CheckReport, result: &'a CheckResult) -> Self {
        let (webhook, reason) = match result.verdict {
            Tally::Passed => (named(&result.webhook, &held(result)), String::new()),
            Tally::NotChecked => (result.webhook.clone(), most(&result.not_checked)),
            Tally::NotApplicable => (result.webhook.clone(), reasons(&result.not_applicable)),
            Tally::Found => (result.webhook.clone(), String::new()),
        };
        Self {
            verdict: Some(result.verdict),
            checks: vec![check],
            webhooks: vec![webhook],
            reason,
            findings: check.findings_of(&result.webhook).collect(),
            notes: &result.notes,
        }
    }

    /// Whether a line of the same check is this one with another webhook. What was measured stands beside its own.
    fn takes_webhook(&self, other: &Self) -> bool {
        self.verdict == other.verdict
            && self.findings == other.findings
            && self.reason == other.reason
            && self.notes.is_empty()
            && other.notes.is_empty()
    }

    /// Whether a line of another check is this one, for the same reason.
    fn takes_check(&self, other: &Self) -> bool {
        matches!(self.verdict, None | Some(Tally::NotChecked | Tally::NotApplicable))
            && self.verdict == other.verdict
            && self.webhooks == other.webhooks
            && self.reason == other.reason
            && self.notes.is_empty()
            && other.notes.is_empty()
    }

    fn write(&self, text: &mut String) {
        let Some((check, others)) = self.checks.split_first() else { return };
        let (style, mark, word) = match self.verdict {
            None => (FAINT, "-", "skipped"),
            Some(Tally::Found) if self.findings.iter().all(|found| found.accepted.is_some()) => {
                (FAINT, "-", "accepted")
            }
            Some(Tally::Found) if self.findings.iter().any(|found| found.severity == Severity::Error) => {
                (BAD, "✘", "found")
            }
            Some(Tally::Found) => (SOSO, "✘", "found"),
            Some(Tally::Passed) => (GOOD, "✔", "passed"),
            Some(Tally::NotChecked) => (SOSO, "?", "not checked"),
            Some(Tally::NotApplicable) => (FAINT, "-", "not applicable"),
        };
        let findings = match self.findings.len() {
            0 => String::new(),
            1 => "1 finding".to_owned(),
            count => format!("{count} findings"),
        };
        let webhooks = named(&one_line(&self.webhooks.join(", ")), &findings);
        let reason = OneLine(&self.reason);
        let title = match self.verdict {
            Some(Tally::Found) => &check.title,
            // Its name will do where there is nothing to be done.
            _ => check.title.split(": ").next().unwrap_or_default(),
        };
        let what = match (others.is_empty(), self.reason.is_empty()) {
            (true, true) => title.to_owned(),
            (true, false) => format!("{title} {FAINT}({reason}){FAINT:#}"),
            (false, _) => reason.to_string(),
        };
        let colon = if webhooks.is_empty() { "" } else { ": " };
        let _ = writeln!(text, "{style}{} {mark} {word:<15}{style:#} {webhooks}{colon}{what}", check.id);
        if !others.is_empty() {
            let ids: Vec<&str> = others.iter().map(|check| check.id.as_str()).collect();
            let _ = writeln!(text, "{:21}{FAINT}the same for {}{FAINT:#}", "", ids.join(", "));
        }
        for note in self.notes {
            let _ = writeln!(text, "{:21}{FAINT}{}{FAINT:#}", "", OneLine(note));
        }
    }
}

fn named(webhook: &str, detail: &str) -> String {
    if detail.is_empty() { webhook.to_owned() } else { format!("{webhook} ({detail})") }
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

/// Every reason, with how often where there are several: the most frequent need not be the one that matters.
pub(super) fn reasons(reasons: &std::collections::BTreeMap<String, u64>) -> String {
    if let (1, Some(only)) = (reasons.len(), reasons.keys().next()) {
        return only.clone();
    }
    let mut all: Vec<(&String, &u64)> = reasons.iter().collect();
    all.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let all: Vec<String> = all.iter().map(|(reason, count)| format!("{reason}: {count} objects")).collect();
    all.join("; ")
}

/// The most frequent reason.
pub(super) fn most(reasons: &std::collections::BTreeMap<String, u64>) -> String {
    reasons.iter().max_by_key(|(_, count)| **count).map(|(reason, _)| reason.clone()).unwrap_or_default()
}

/// The findings of one check, and once for all of them why it matters.
fn findings(text: &mut String, report: &Report, check: &CheckReport) {
    let new = || check.findings.iter().filter(|finding| finding.accepted.is_none());
    for found in new() {
        text.push('\n');
        finding(text, report, check, found);
    }
    if new().next().is_some() {
        let _ = writeln!(text, "  {FAINT}why: {}{FAINT:#}", check.why);
        let _ = writeln!(text, "  {FAINT}source: {}{FAINT:#}", check.source);
    }
}

fn finding(text: &mut String, report: &Report, check: &CheckReport, finding: &Finding) {
    let style = match finding.severity {
        Severity::Error => BAD,
        Severity::Warning => SOSO,
        Severity::Note => FAINT,
    };
    let word = word(finding.severity);
    if let Some((_, location)) = report.places(finding).next() {
        let _ = writeln!(text, "{FAINT}{}:{}{FAINT:#}", OneLine(&location.file), location.line);
    }
    let (webhook, message) = (OneLine(finding.webhook()), OneLine(&finding.message));
    let _ = writeln!(text, "{style}{word}[{}]{style:#} {webhook}: {message}", check.id);
    if let Some(others) = others(finding) {
        let _ = writeln!(text, "  {}", OneLine(others));
    }
    if let Some(examples) = examples(finding) {
        let _ = writeln!(text, "  {FAINT}{}{FAINT:#}", OneLine(examples));
    }
    for caveat in caveats(report, finding) {
        let _ = writeln!(text, "  {SOSO}{}{SOSO:#}", OneLine(caveat));
    }
    for difference in finding.differences.iter().take(MOST_DIFFERENCES) {
        self::difference(text, difference);
    }
    let hidden = finding.differences.len().saturating_sub(MOST_DIFFERENCES);
    if hidden > 0 {
        let _ = writeln!(text, "  {FAINT}and {hidden} more differences{FAINT:#}");
    }
    if let Some(object) = &finding.object {
        let _ = writeln!(text, "  {FAINT}smallest object: {}{FAINT:#}", cut(object, LONGEST_OBJECT));
    }
    if let Some(proof) = &finding.proof {
        let _ = writeln!(text, "  proof: {}", OneLine(proof));
    }
}

fn difference(text: &mut String, difference: &Difference) {
    let path = if difference.path.is_empty() { "." } else { &difference.path };
    let _ = writeln!(text, "  {}", OneLine(path));
    for (style, sign, value) in [(BAD, '-', &difference.expected), (GOOD, '+', &difference.found)] {
        if let Some(value) = value {
            let _ = writeln!(text, "    {style}{sign} {}{style:#}", short(value));
        }
    }
}

/// A value in one line that is not too long. JSON escapes most of what steers a terminal, but not all of it.
pub(super) fn short(value: &Value) -> String {
    cut(value, LONGEST_VALUE)
}

fn cut(value: &Value, longest: usize) -> String {
    let text = value.to_string();
    let text = one_line(&text);
    match text.char_indices().nth(longest).and_then(|(end, _)| text.get(..end)) {
        Some(begin) => format!("{begin}…"),
        None => text.into_owned(),
    }
}

fn summary(text: &mut String, report: &Report) {
    accepted(text, report);
    for (webhook, denials) in denials(report) {
        let _ = writeln!(text, "\n{} {}", OneLine(webhook), denials.sum);
        for (count, reason) in denials.reasons {
            let _ = writeln!(text, "{count:>7}  {}", OneLine(reason));
        }
    }
    for (reason, count) in &report.left_out {
        let _ = writeln!(text, "\n{count} objects were left out: {}", OneLine(reason));
    }
    let _ = writeln!(text, "\n{}", counts(report));
    if report.new_findings().any(|(_, finding)| finding.proof.is_none() && !finding.steps.is_empty()) {
        let _ = writeln!(
            text,
            "{FAINT}--proofs FOLDER writes the reviews of each finding, and commands that send them{FAINT:#}"
        );
    }
}

/// What the baseline accepts, and what it accepts for nothing.
fn accepted(text: &mut String, report: &Report) {
    let accepted =
        report.findings().filter_map(|(check, finding)| Some((check, finding, finding.accepted.as_ref()?)));
    for (index, (check, finding, reason)) in accepted.enumerate() {
        if index == 0 {
            text.push('\n');
        }
        let webhooks: Vec<&str> = finding.webhooks.keys().map(String::as_str).collect();
        let _ = writeln!(
            text,
            "{FAINT}accepted[{}]{FAINT:#} {}",
            check.id,
            OneLine(format!("{}: {} ({reason})", webhooks.join(", "), finding.kind))
        );
    }
    for entry in &report.stale {
        let _ = writeln!(
            text,
            "\n{SOSO}stale:{SOSO:#} {}",
            OneLine(format!("{}:{}: {}", entry.place.file, entry.place.line, stale(entry)))
        );
    }
}

/// What a webhook denied.
pub(super) struct Denials<'a> {
    /// `denied 12 of 216 objects`.
    pub(super) sum: String,
    /// The reasons, the most frequent first.
    pub(super) reasons: Vec<(u64, &'a str)>,
}

/// The webhooks that denied anything.
pub(super) fn denials(report: &Report) -> impl Iterator<Item = (&str, Denials<'_>)> {
    report.webhooks.iter().filter(|(_, tried)| !tried.denied.is_empty()).map(|(webhook, tried)| {
        let denied: u64 = tried.denied.values().sum();
        let sum = format!("denied {denied} of {} objects", tried.objects);
        let mut reasons: Vec<(u64, &str)> =
            tried.denied.iter().map(|(reason, count)| (*count, reason.as_str())).collect();
        reasons.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
        (webhook.as_str(), Denials { sum, reasons })
    })
}

/// `3 findings (1 error, 2 notes), 4 accepted`.
fn findings_by_severity(report: &Report) -> String {
    let several = |count: usize, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
    let severities = [Severity::Error, Severity::Warning, Severity::Note];
    let as_bad = |severity| report.new_findings().filter(|(_, finding)| finding.severity == severity).count();
    let counts = severities.map(|severity| (as_bad(severity), word(severity)));
    let parts: Vec<String> =
        counts.iter().filter(|(count, _)| *count > 0).map(|(count, word)| several(*count, word)).collect();
    let new = report.new_findings().count();
    let findings = several(new, "finding");
    let findings = if parts.is_empty() { findings } else { format!("{findings} ({})", parts.join(", ")) };
    match report.findings().count() - new {
        0 => findings,
        accepted => format!("{findings}, {accepted} accepted"),
    }
}

/// The last line.
pub(super) fn counts(report: &Report) -> String {
    let skipped = report.checks.iter().filter(|check| check.skipped.is_some()).count();
    let shard = report.shard.map(|shard| format!(" (shard {shard})")).unwrap_or_default();
    format!(
        "{}; {} passed, {} not checked, {} not applicable, {skipped} skipped; {} objects{shard}, {} calls",
        findings_by_severity(report),
        report.count(Tally::Passed),
        report.count(Tally::NotChecked),
        report.count(Tally::NotApplicable),
        report.objects,
        report.calls,
    )
}
