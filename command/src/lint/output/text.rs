//! Formats the report as text: a line for each configuration, the findings, and the incomplete checks.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use harness::verify::check::CORRECT_AS_THE_MESSAGE_SAYS;
use harness::verify::{Audience, Severity};
use output::OneLine;

use super::{Finding, Report, Skipped, counts};
use crate::baseline::stale;
use crate::check_help::linted;
use crate::diagnostic::{self, BAD, Diagnostic, GOOD, WARNING, several};
use crate::style::FAINT;

/// The maximum number of checks to list by ID; any other checks are only counted.
const MAX_IDS: usize = 10;

/// Returns the report as text. If `lists_checks` is set, it includes the result of each check.
pub(super) fn text(report: &Report, lists_checks: bool) -> String {
    let mut text = String::new();
    for verdict in verdicts(report) {
        let style = match verdict.worst {
            None => GOOD,
            Some(Severity::Error) => BAD,
            Some(Severity::Warning | Severity::Note) => WARNING,
        };
        let (subject, words) = (OneLine(verdict.subject), verdict.words);
        let _ = writeln!(text, "{subject}: {style}{words}{style:#}");
    }
    let mut findings = grouped(report.new_findings());
    findings.sort_by_key(|same| std::cmp::Reverse(same.first().map(|finding| finding.severity)));
    let mut explained = BTreeSet::new();
    for same in findings {
        let Some(shown) = diagnostic(&same, &mut explained) else { continue };
        text.push('\n');
        shown.write(&mut text);
    }
    for same in grouped(report.added()) {
        let Some(mut shown) = diagnostic(&same, &mut explained) else { continue };
        text.push('\n');
        let accepted = if same.len() == 1 { "this finding" } else { "these findings" };
        shown.note("baseline", format!("accepts {accepted} from now on"));
        shown.write(&mut text);
    }
    for entry in &report.stale {
        text.push('\n');
        let stale = Diagnostic::new(Severity::Warning, stale(entry));
        stale.place(&entry.place.file, entry.place.line).write(&mut text);
    }
    let mut accepted = report.accepted().filter(|(finding, _)| !finding.added).peekable();
    if accepted.peek().is_some() {
        text.push('\n');
    }
    for (finding, reason) in accepted {
        let place = OneLine(format!("{}:{}", finding.file, finding.line));
        let sentence = OneLine(format!("{} ({reason})", finding.sentence()));
        let _ = writeln!(text, "{FAINT}accepted[{}]{FAINT:#} {place}: {sentence}", finding.check);
    }
    if lists_checks {
        text.push('\n');
        checks(&mut text, report);
    }
    summary(&mut text, report, lists_checks);
    text
}

/// The verdict on a configuration, or on all configurations without findings.
pub(super) struct Verdict {
    /// The name of the configuration, or the number of the others.
    pub(super) subject: String,
    pub(super) words: String,
    /// The highest severity of the findings, or `None` if there are none.
    pub(super) worst: Option<Severity>,
}

/// Returns a verdict for each configuration with findings, and one for all others.
pub(super) fn verdicts(report: &Report) -> Vec<Verdict> {
    let mut found: BTreeMap<&str, Vec<Severity>> = BTreeMap::new();
    for finding in report.new_findings() {
        found.entry(configuration_of(finding)).or_default().push(finding.severity);
    }
    let accepted = report.accepted().filter(|(finding, _)| !found.contains_key(configuration_of(finding)));
    let accepted = accepted.count();
    let others = report.names.iter().filter(|name| !found.contains_key(name.as_str())).count();
    let other = if found.is_empty() { "" } else { "other " };
    let found = found.into_iter().map(|(configuration, severities)| Verdict {
        subject: configuration.to_owned(),
        worst: severities.iter().max().copied(),
        words: diagnostic::counts(severities),
    });
    let mut verdicts: Vec<Verdict> = found.collect();
    if others > 0 {
        let subject = several(others, &format!("{other}{}", report.unit));
        let words = match accepted {
            0 => "no problems found".to_owned(),
            accepted => format!("no new problems; {accepted} accepted"),
        };
        verdicts.push(Verdict { subject, words, worst: None });
    }
    verdicts
}

/// Returns the name of the configuration that a finding is about.
fn configuration_of(finding: &Finding) -> &str {
    finding.webhook.split('/').next().unwrap_or_default()
}

/// Groups findings that differ only in their locations.
fn grouped<'a>(findings: impl Iterator<Item = &'a Finding>) -> Vec<Vec<&'a Finding>> {
    let mut groups: Vec<Vec<&Finding>> = Vec::new();
    let mut positions = BTreeMap::new();
    for finding in findings {
        let about_webhook = finding.webhook.contains('/');
        let key = (finding.check, finding.severity, finding.message.as_str(), &finding.help, about_webhook);
        let position = *positions.entry(key).or_insert(groups.len());
        match groups.get_mut(position) {
            Some(group) => group.push(finding),
            None => groups.push(vec![finding]),
        }
    }
    groups
}

/// Returns one diagnostic for findings that differ only in their locations.
///
/// The first diagnostic of each check explains why the check matters.
fn diagnostic(same: &[&Finding], explained: &mut BTreeSet<&'static str>) -> Option<Diagnostic> {
    let first = same.first()?;
    let mut shown = Diagnostic::new(first.severity, &first.message).code(first.check);
    let mut places = BTreeSet::new();
    for finding in same {
        if places.insert((&finding.file, finding.line)) {
            shown = shown.place(&finding.file, finding.line).source(finding.source.as_deref());
        }
    }
    let mut list = |one: &'static str, several: &'static str, values: Vec<&str>| {
        let mut distinct: Vec<&str> = Vec::new();
        for value in values.into_iter().filter(|value| !value.is_empty()) {
            if !distinct.contains(&value) {
                distinct.push(value);
            }
        }
        if !distinct.is_empty() {
            shown.note(if distinct.len() == 1 { one } else { several }, distinct.join(", "));
        }
    };
    let webhooks = same.iter().map(|finding| finding.webhook.as_str()).collect();
    let audience = linted(first.check).map(|check| check.audience);
    if audience == Some(Audience::Policies) {
        list("object", "objects", webhooks);
    } else if first.webhook.contains('/') {
        list("webhook", "webhooks", webhooks);
    } else if audience == Some(Audience::AllAndPolicies) {
        list("object", "objects", webhooks);
    } else {
        list("configuration", "configurations", webhooks);
    }
    list("field", "fields", same.iter().map(|finding| finding.field.as_str()).collect());
    if explained.insert(first.check) {
        shown.note("why", first.why);
    }
    if first.help != CORRECT_AS_THE_MESSAGE_SAYS {
        shown.note("help", &*first.help);
    }
    shown.note("docs", format!("admit lint --explain {}", first.check));
    Some(shown)
}

/// Appends the result of each check.
fn checks(text: &mut String, report: &Report) {
    for check in &report.checks {
        let findings = report.findings.iter().filter(|finding| finding.check == check.id).count();
        let unchecked: Vec<_> = report.not_checked.iter().filter(|it| it.check == check.id).collect();
        let (style, word) = match (findings, unchecked.is_empty()) {
            (0, true) if report.not_applicable.contains(check.id) => (FAINT, "not applicable".to_owned()),
            (0, true) => (GOOD, "passed".to_owned()),
            (0, false) => (WARNING, "not checked".to_owned()),
            (count, _) => (BAD, several(count, "finding")),
        };
        let _ = writeln!(text, "{style}{} {word:<14}{style:#} {}", check.id, check.title);
        for unchecked in unchecked {
            let place = match (&unchecked.file, unchecked.line) {
                (Some(file), Some(line)) => format!("{file}:{line}: "),
                _ => String::new(),
            };
            let sentence = OneLine(format!("{place}{}", unchecked.sentence()));
            let _ = writeln!(text, "{:19}{FAINT}not checked: {sentence}{FAINT:#}", "");
        }
    }
    for Skipped { check, reason } in &report.skipped {
        let _ = writeln!(text, "{FAINT}{check} {:<14} {}{FAINT:#}", "skipped", OneLine(reason));
    }
}

/// Returns the number of checks that passed, and the IDs of those that could not be completed.
pub(super) fn completed(report: &Report) -> (usize, Vec<&'static str>) {
    let has_finding = |id: &str| report.findings.iter().any(|finding| finding.check == id);
    let unchecked: BTreeSet<&'static str> =
        report.not_checked.iter().map(|unchecked| unchecked.check).collect();
    let has_passed =
        |id: &str| !has_finding(id) && !unchecked.contains(id) && !report.not_applicable.contains(id);
    let passed = report.checks.iter().filter(|check| has_passed(check.id));
    (passed.count(), unchecked.into_iter().collect())
}

/// Returns the checks that were not completed because the API server rejects a configuration, by the reason.
fn rejected(report: &Report) -> BTreeMap<String, Vec<&'static str>> {
    let mut rejected: BTreeMap<String, BTreeSet<&'static str>> = BTreeMap::new();
    for unchecked in report.not_checked.iter().filter(|unchecked| unchecked.is_rejected) {
        rejected.entry(unchecked.sentence()).or_default().insert(unchecked.check);
    }
    rejected.into_iter().map(|(sentence, checks)| (sentence, checks.into_iter().collect())).collect()
}

/// Appends the number of checks that passed, the checks that did not run, and the number of findings.
fn summary(text: &mut String, report: &Report, lists_checks: bool) {
    let (passed, unchecked) = completed(report);
    let hint = |hint: &str| if lists_checks { String::new() } else { format!(" (-v {hint})") };
    text.push('\n');
    if passed > 0 {
        let _ = writeln!(text, "{} passed{}", several(passed, "check"), hint("lists them"));
    }
    let skipped: Vec<&str> = report.skipped.iter().map(|skipped| skipped.check).collect();
    let rejected = rejected(report);
    let is_explained = |id: &&str| rejected.values().flatten().any(|explained| explained == id);
    let unchecked: Vec<&str> = unchecked.into_iter().filter(|id| !is_explained(id)).collect();
    let mut line = |ids: &[&str], what: &str, reason: &str| {
        if !ids.is_empty() {
            let count = several(ids.len(), "check");
            let list = if ids.len() > MAX_IDS { String::new() } else { format!(": {}", ids.join(", ")) };
            let _ = writeln!(text, "{WARNING}{count} {what}{WARNING:#}{list}{reason}");
        }
    };
    for (sentence, ids) in &rejected {
        line(ids, "not completed", &format!(": {}", OneLine(sentence)));
    }
    line(&unchecked, "not completed", &hint("says why"));
    line(&skipped, "skipped", &hint("says why"));
    let style = match report.new_findings().map(|finding| finding.severity).max() {
        Some(Severity::Error) => BAD,
        Some(Severity::Warning) => WARNING,
        Some(Severity::Note) | None => GOOD,
    };
    let _ = writeln!(text, "{style}{}{style:#}", counts(report));
}
