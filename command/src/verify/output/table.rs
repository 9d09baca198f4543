//! Formats the table of `-v` with the result of each check.

use std::fmt::Write as _;

use harness::verify::Severity;
use harness::verify::report::{CheckReport, CheckResult, Finding, Report, Tally};
use output::{OneLine, one_line};

use crate::check_help;
use crate::diagnostic::{BAD, GOOD, WARNING, several};
use crate::style::FAINT;
use crate::verdict::most;

/// Returns the table that contains the result of each check for each webhook.
pub(super) fn table(report: &Report) -> String {
    let mut text = String::new();
    for line in lines(report) {
        line.write(&mut text);
    }
    text
}

/// A line of the table: the result of one check for some webhooks, or of several checks with the same reason.
pub(super) struct Line<'a> {
    /// The result, or `None` for a skipped check.
    pub(super) verdict: Option<Tally>,
    pub(super) checks: Vec<&'a CheckReport>,
    /// The webhooks, each with the number of objects if it passed.
    pub(super) webhooks: Vec<String>,
    /// The reason for a missing result, or the place where the cause of a finding is reported.
    pub(super) reason: String,
    pub(super) findings: Vec<&'a Finding>,
    pub(super) notes: &'a [String],
}

/// Returns the lines of the table.
///
/// Equal results for several webhooks share a line. Checks without a result for the same reason also share a line.
pub(super) fn lines(report: &Report) -> Vec<Line<'_>> {
    let mut lines: Vec<Line<'_>> = Vec::new();
    for check in &report.checks {
        let begin = lines.len();
        if let Some(reason) = &check.skipped {
            lines.push(Line::skipped(check, reason));
        }
        for result in &check.results {
            let line = Line::new(report, check, result);
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

    fn new(report: &Report, check: &'a CheckReport, result: &'a CheckResult) -> Self {
        let (webhook, reason) = match result.verdict {
            Tally::Passed => (named(&result.webhook, &held(result)), String::new()),
            Tally::NotChecked => (result.webhook.clone(), most(&result.not_checked)),
            Tally::NotExercised => (result.webhook.clone(), reasons(&result.not_exercised)),
            Tally::NotApplicable => (result.webhook.clone(), reasons(&result.not_applicable)),
            Tally::Found => {
                let cause = report.cause_of(check, &result.webhook);
                let reason = cause.map(|(cause, _)| format!("the cause is a finding of {}", cause.id));
                (result.webhook.clone(), reason.unwrap_or_default())
            }
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

    /// Returns whether `other`, a line of the same check, can be merged into this line.
    ///
    /// Lines with measurements are not merged.
    fn takes_webhook(&self, other: &Self) -> bool {
        self.verdict == other.verdict
            && self.findings == other.findings
            && self.reason == other.reason
            && self.notes.is_empty()
            && other.notes.is_empty()
    }

    /// Returns whether `other`, a line of another check, has the same reason, so that it can be merged into this line.
    fn takes_check(&self, other: &Self) -> bool {
        matches!(self.verdict, None | Some(Tally::NotChecked | Tally::NotExercised | Tally::NotApplicable))
            && self.verdict == other.verdict
            && self.webhooks == other.webhooks
            && self.reason == other.reason
            && self.notes.is_empty()
            && other.notes.is_empty()
    }

    /// Returns the title of the first check; the short title if the user does not need to act.
    pub(super) fn title(&self) -> &'a str {
        let title = self.checks.first().map_or("", |check| check.title.as_str());
        match self.verdict {
            Some(Tally::Found) => title,
            _ => check_help::subject(title),
        }
    }

    fn write(&self, text: &mut String) {
        let Some((check, others)) = self.checks.split_first() else { return };
        let (style, word) = match self.verdict {
            None => (FAINT, "skipped"),
            Some(Tally::Found)
                if !self.findings.is_empty()
                    && self.findings.iter().all(|found| found.accepted.is_some()) =>
            {
                (FAINT, "accepted")
            }
            Some(Tally::Found) if self.findings.iter().any(|found| found.severity == Severity::Error) => {
                (BAD, "found")
            }
            Some(Tally::Found) => (WARNING, "found"),
            Some(Tally::Passed) => (GOOD, "passed"),
            Some(Tally::NotChecked) => (WARNING, "not checked"),
            Some(Tally::NotExercised) => (WARNING, "not exercised"),
            Some(Tally::NotApplicable) => (FAINT, "not applicable"),
        };
        let findings = match self.findings.len() {
            0 => String::new(),
            1 => "1 finding".to_owned(),
            count => format!("{count} findings"),
        };
        let webhooks = named(&one_line(&self.webhooks.join(", ")), &findings);
        let reason = OneLine(&self.reason);
        let title = self.title();
        let what = match (others.is_empty(), self.reason.is_empty()) {
            (true, true) => title.to_owned(),
            (true, false) => format!("{title} {FAINT}({reason}){FAINT:#}"),
            (false, _) => reason.to_string(),
        };
        let colon = if webhooks.is_empty() { "" } else { ": " };
        let _ = writeln!(text, "{style}{} {word:<15}{style:#} {webhooks}{colon}{what}", check.id);
        if !others.is_empty() {
            let ids: Vec<&str> = others.iter().map(|check| check.id.as_str()).collect();
            let _ = writeln!(text, "{:20}{FAINT}the same for {}{FAINT:#}", "", ids.join(", "));
        }
        for note in self.notes {
            let _ = writeln!(text, "{:20}{FAINT}{}{FAINT:#}", "", OneLine(note));
        }
    }
}

fn named(webhook: &str, detail: &str) -> String {
    if detail.is_empty() { webhook.to_owned() } else { format!("{webhook} ({detail})") }
}

/// Returns the number of objects that passed, and the number of objects that were not checked.
pub(super) fn held(result: &CheckResult) -> String {
    let unclear: u64 = result.not_checked.values().sum();
    match (result.held, unclear) {
        // Checks of the configuration do not have objects.
        (0 | 1, 0) => String::new(),
        (held, 0) => several(held, "object"),
        (held, unclear) => {
            format!("{}; {unclear} not checked: {}", several(held, "object"), most(&result.not_checked))
        }
    }
}

/// Returns all reasons with counts, or the only reason. The most frequent reason may not be the most important one.
pub(super) fn reasons(reasons: &std::collections::BTreeMap<String, u64>) -> String {
    if let (1, Some(only)) = (reasons.len(), reasons.keys().next()) {
        return only.clone();
    }
    let mut all: Vec<(&String, &u64)> = reasons.iter().collect();
    all.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let all: Vec<String> =
        all.iter().map(|(reason, count)| format!("{reason}: {}", several(**count, "object"))).collect();
    all.join("; ")
}
