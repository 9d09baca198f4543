//! Formats the report as text: the result for each webhook, the findings, and the incomplete checks.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use harness::verify::check::CORRECT_AS_THE_MESSAGE_SAYS;
use harness::verify::report::{CheckReport, Finding, Remark, Report, TOGETHER, Tally};
use harness::verify::{Severity, checks};
use output::{OneLine, one_line};
use serde_json::Value;

use super::order;
use super::remarks::{self, MAX_IDS};
use super::table;
use super::{AcceptedFinding, caveats, consequences, examples, locations, other_fields, same_check};
use crate::ExitCode;
use crate::baseline::{self, stale};
use crate::diagnostic::{self, BAD, Diagnostic, GOOD, WARNING, several};
use crate::style::FAINT;
use crate::verdict::{Outcome, verdicts};
use crate::verify::SKIPPED_BY_QUICK;

/// The maximum number of differences to show for a finding; any other differences are only counted.
pub(super) const MAX_DIFFERENCES: usize = 12;
/// The maximum length of a value; longer values are truncated.
const MAX_VALUE_LENGTH: usize = 160;
/// The maximum length of an object, about 50 lines of YAML. Of a longer object, only the start is shown; the proof contains
/// the complete object.
const MAX_OBJECT_LENGTH: usize = 2000;
/// The length of the start of an object that is too long.
const OBJECT_START_LENGTH: usize = 400;

/// Returns the report as text. If `lists_checks` is set, it includes the result of each check.
///
/// The text explains the exit status `code` if no finding does. `hidden_notes` is the number of notes that only `-v`
/// shows.
pub(crate) fn text(report: &Report, lists_checks: bool, code: ExitCode, hidden_notes: usize) -> String {
    let mut text = String::new();
    if let Some(interrupted) = remarks::interrupted(report) {
        remark(&mut text, &interrupted, "note");
        text.push('\n');
    }
    for (webhook, verdict) in verdicts(report) {
        let style = match verdict.outcome {
            Outcome::Good if verdict.findings.contains(&Severity::Warning) => WARNING,
            Outcome::Good => GOOD,
            Outcome::Bad => BAD,
            Outcome::Unknown => WARNING,
        };
        let (words, counts) = verdict.parts();
        let passed = verdict.passed.map(|passed| format!("; {}", OneLine(passed))).unwrap_or_default();
        let (webhook, words) = (OneLine(webhook), OneLine(words));
        let _ = writeln!(text, "{webhook}: {style}{words}{style:#}{counts}{passed}");
    }
    if let Some(shared) = shared(report) {
        let _ = writeln!(text, "{FAINT}{shared}{FAINT:#}");
    }
    let left_out = remarks::left_out(report).filter(|it| lists_checks || it.severity == Severity::Warning);
    let (notes, warnings): (Vec<Remark>, Vec<Remark>) =
        remarks::limits(report).into_iter().chain(left_out).partition(|it| it.severity == Severity::Note);
    let (minor, grave) = findings(report).into_iter().partition(|(_, it)| it.severity == Severity::Note);
    let mut explained = BTreeSet::new();
    write_findings(&mut text, report, grave, &mut explained);
    write_remarks(&mut text, &warnings);
    write_findings(&mut text, report, minor, &mut explained);
    added(&mut text, report);
    write_remarks(&mut text, &notes);
    accepted(&mut text, report);
    for (webhook, denials) in denials(report) {
        let _ = writeln!(text, "\n{} {}", OneLine(webhook), denials.sum);
        for (count, reason) in denials.reasons {
            let _ = writeln!(text, "{count:>7}  {}", OneLine(reason));
        }
    }
    if lists_checks {
        order::lines(&mut text, report);
        let _ = write!(text, "\n{}", table::table(report));
    }
    summary(&mut text, report, lists_checks, hidden_notes);
    if code == ExitCode::NotChecked {
        incomplete(&mut text, report, lists_checks);
    }
    text
}

/// Explains why the lines of the webhooks count more findings than the report lists, or returns `None` if they do not.
pub(super) fn shared(report: &Report) -> Option<String> {
    let shared = report.new_findings().filter(|(_, finding)| finding.webhooks.len() > 1).count();
    match shared {
        0 => None,
        1 => Some("1 finding applies to several webhooks and is listed once".to_owned()),
        _ => Some(format!("{shared} findings apply to several webhooks and are listed once")),
    }
}

/// Returns the findings by descending severity, and those of the same severity by check. Nondeterminism comes first,
/// because it can cause findings of other checks.
fn findings(report: &Report) -> Vec<(&CheckReport, &Finding)> {
    let mut findings: Vec<(&CheckReport, &Finding)> = report.new_findings().collect();
    // A finding of several webhooks is listed once, and findings about all webhooks together come last.
    findings.sort_by_key(|(check, finding)| {
        let webhooks: Vec<&String> = finding.webhooks.keys().collect();
        (
            std::cmp::Reverse(finding.severity),
            finding.webhook() == TOGETHER,
            check.id != checks::DETERMINISM,
            &check.id,
            webhooks,
        )
    });
    findings
}

/// Appends `findings`. The first finding of each check explains why the check matters; `explained` are the checks that an
/// earlier finding explained.
fn write_findings<'a>(
    text: &mut String,
    report: &Report,
    findings: Vec<(&'a CheckReport, &Finding)>,
    explained: &mut BTreeSet<&'a str>,
) {
    for (check, found) in findings {
        text.push('\n');
        finding(report, check, found, explained.insert(&check.id)).write(text);
    }
}

fn write_remarks(text: &mut String, remarks: &[Remark]) {
    for limit in remarks {
        text.push('\n');
        remark(text, limit, "help");
    }
}

fn finding(report: &Report, check: &CheckReport, finding: &Finding, explains: bool) -> Diagnostic {
    let mut shown = Diagnostic::new(finding.severity, &finding.message).code(&check.id);
    for location in locations(report, finding) {
        shown = shown.place(&location.file, location.line);
    }
    let differences = || finding.differences.iter().take(MAX_DIFFERENCES);
    if differences().any(|difference| difference.expected.is_some()) {
        shown.line(None, "(- expected, + found)");
    }
    for difference in differences() {
        shown.line(None, if difference.path.is_empty() { "." } else { &difference.path });
        for (sign, value) in [('-', &difference.expected), ('+', &difference.found)] {
            if let Some(value) = value {
                shown.line(Some(sign), short(value));
            }
        }
    }
    let hidden = finding.differences.len().saturating_sub(MAX_DIFFERENCES);
    if hidden > 0 {
        shown.line(None, format!("and {hidden} more differences"));
    }
    let webhooks: Vec<&str> = finding.webhooks.keys().map(String::as_str).collect();
    shown.note(if webhooks.len() == 1 { "webhook" } else { "webhooks" }, webhooks.join(", "));
    if let Some(examples) = examples(finding) {
        shown.note("objects", examples);
    }
    if let Some(others) = other_fields(finding) {
        shown.note("other fields", format!("{others} (in other objects)"));
    }
    if let Some(request) = &finding.request {
        shown.note("request", request);
    }
    if let Some(object) = &finding.object {
        let label = if report.interrupted { "object" } else { "smallest object" };
        if object.to_string().len() <= MAX_OBJECT_LENGTH {
            shown.note(label, object.to_string());
        } else {
            let start = cut(object, OBJECT_START_LENGTH);
            shown.note(label, format!("{start} (-o json prints all of it)"));
        }
    }
    if let Some(kinds) = same_check(check, finding) {
        shown.note("same cause", kinds);
    }
    if let Some(consequences) = consequences(check, finding) {
        shown.note("also fails", consequences);
    }
    for caveat in caveats(report, finding) {
        shown.note("caveat", caveat);
    }
    if explains {
        shown.note("why", check.why_of(finding));
    } else if let Some(why) = &finding.why {
        shown.note("why", why);
    }
    let help = check.help_of(finding);
    if !help.is_empty() && help != CORRECT_AS_THE_MESSAGE_SAYS {
        shown.note("help", help);
    }
    shown.note("docs", format!("admit verify --explain {}", check.id));
    if let Some(proof) = &finding.proof {
        shown.note("proof", proof);
    }
    shown
}

/// Appends a remark. `label` is the label of its advice.
fn remark(text: &mut String, remark: &Remark, label: &'static str) {
    let mut shown = Diagnostic::new(remark.severity, remark.message.as_str());
    for help in &remark.help {
        shown.note(label, help);
    }
    shown.write(text);
}

/// Appends the reasons why the run is incomplete. They determine the exit status.
fn incomplete(text: &mut String, report: &Report, lists_checks: bool) {
    const MAX_REASONS: usize = 3;
    let reasons = remarks::incomplete(report);
    let most = if lists_checks { reasons.len() } else { MAX_REASONS };
    for (checks, webhook, reason) in reasons.iter().take(most) {
        let ids = remarks::listed(checks);
        let _ = writeln!(
            text,
            "{WARNING}exit status 6{WARNING:#}: {ids} could not be completed for {}",
            OneLine(format!("{webhook}: {reason}"))
        );
    }
    let more = reasons.len().saturating_sub(most);
    if more > 0 {
        let _ = writeln!(text, "and {more} more (-v lists them)");
    }
}

pub(super) fn several_objects(count: u64) -> String {
    if count == 1 { "1 object was".to_owned() } else { format!("{count} objects were") }
}

/// Appends the findings that this run adds to the baseline, so that the user sees what the baseline will accept.
fn added(text: &mut String, report: &Report) {
    let mut explained = BTreeSet::new();
    for (check, found) in report.findings().filter(|(_, finding)| finding.added) {
        text.push('\n');
        let mut shown = finding(report, check, found, explained.insert(&check.id));
        shown.note("baseline", "accepts this finding from now on");
        shown.write(text);
    }
}

/// Appends the findings that the baseline already accepts, and the baseline entries without a finding.
fn accepted(text: &mut String, report: &Report) {
    let accepted = super::accepted(report).into_iter().filter(|finding| !finding.added);
    for (index, AcceptedFinding { check, webhooks, what, reason, .. }) in accepted.enumerate() {
        if index == 0 {
            text.push('\n');
        }
        let what = OneLine(format!("{webhooks}: {what} ({reason})"));
        let _ = writeln!(text, "{FAINT}accepted[{}]{FAINT:#} {what}", OneLine(check));
    }
    for entry in &report.stale {
        text.push('\n');
        let stale = Diagnostic::new(Severity::Warning, stale(entry));
        stale.place(&entry.place.file, entry.place.line).write(text);
    }
}

/// Appends the number of checks that passed, the checks that were not completed, and the number of findings.
fn summary(text: &mut String, report: &Report, lists_checks: bool, hidden_notes: usize) {
    let CheckCounts { passed, not_applicable, incomplete, unexercised, skipped } =
        CheckCounts::new(report, lists_checks);
    let hint = |hint: &str| if lists_checks { String::new() } else { format!(" (-v {hint})") };
    let counts = match (passed, not_applicable) {
        (0, 0) => None,
        (0, others) => Some(format!("{} not applicable", several(others, "check"))),
        (passed, 0) => Some(format!("{} passed", several(passed, "check"))),
        (passed, others) => Some(format!("{} passed, {others} not applicable", several(passed, "check"))),
    };
    text.push('\n');
    if let Some(counts) = counts {
        let _ = writeln!(text, "{counts}{}", hint("lists them"));
    }
    for (ids, what) in [(incomplete, "not completed"), (skipped, "skipped")] {
        if !ids.is_empty() {
            let count = several(ids.len(), "check");
            let list = if ids.len() > MAX_IDS { String::new() } else { format!(": {}", ids.join(", ")) };
            let _ = writeln!(text, "{WARNING}{count} {what}{WARNING:#}{list}{}", hint("says why"));
        }
    }
    if !unexercised.is_empty() {
        let count = several(unexercised.len(), "check");
        let list =
            if unexercised.len() > MAX_IDS { String::new() } else { format!(": {}", unexercised.join(", ")) };
        let why = remarks::unexercised_reason(report, &unexercised);
        let _ = writeln!(text, "{WARNING}{count} not exercised{WARNING:#}{list}: {why}");
    }
    let style = match report.new_findings().map(|(_, finding)| finding.severity).max() {
        Some(Severity::Error) => BAD,
        Some(Severity::Warning) => WARNING,
        Some(Severity::Note) | None => GOOD,
    };
    let findings = findings_by_severity(report);
    let hidden = diagnostic::hidden_notes(hidden_notes);
    let _ = writeln!(text, "{style}{findings}{style:#}; {}{hidden}", effort(report));
    if report.new_findings().any(|(_, finding)| finding.proof.is_none() && !finding.steps.is_empty()) {
        let _ = writeln!(
            text,
            "{FAINT}--proofs DIR writes the reviews of each finding, and commands that send them{FAINT:#}"
        );
    }
}

/// Formats a value on one line and truncates it.
///
/// JSON escapes most characters that control a terminal, but not all.
pub(super) fn short(value: &Value) -> String {
    cut(value, MAX_VALUE_LENGTH)
}

fn cut(value: &Value, longest: usize) -> String {
    let text = value.to_string();
    let text = one_line(&text);
    match text.char_indices().nth(longest).and_then(|(end, _)| text.get(..end)) {
        Some(begin) => format!("{begin}..."),
        None => text.into_owned(),
    }
}

/// The denials of a webhook and their reasons.
pub(super) struct Denials<'a> {
    /// A summary, such as `denied 12 of 216 objects`.
    pub(super) sum: String,
    /// The reasons with their counts, the most frequent first.
    pub(super) reasons: Vec<(u64, &'a str)>,
}

/// Returns the webhooks that denied at least one object.
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

/// Returns the number of findings by severity, such as `3 findings (1 error, 2 notes), 4 accepted`.
fn findings_by_severity(report: &Report) -> String {
    let counts = diagnostic::counts(report.new_findings().map(|(_, finding)| finding.severity));
    let new = report.new_findings().count();
    let findings = several(new, "finding");
    let findings = if counts.is_empty() { findings } else { format!("{findings} ({counts})") };
    let added = report.findings().filter(|(_, finding)| finding.added).count();
    format!("{findings}{}", baseline::counts(super::accepted(report).len(), added))
}

/// Returns the number of objects and calls, such as `12 objects (shard 1/4), 96 calls`.
fn effort(report: &Report) -> String {
    let shard = report.shard.map(|shard| format!(" (shard {shard})")).unwrap_or_default();
    format!("{}{shard}, {}", several(report.objects, "object"), several(report.calls, "call"))
}

/// Returns the number of findings, objects, and calls in one line.
pub(super) fn totals(report: &Report) -> String {
    format!("{}; {}", findings_by_severity(report), effort(report))
}

/// The number of checks by result. Checks with a finding are not counted, even if the finding is accepted.
pub(super) struct CheckCounts<'a> {
    pub(super) passed: usize,
    pub(super) not_applicable: usize,
    /// The IDs of the checks that could not be completed.
    pub(super) incomplete: Vec<&'a str>,
    /// The IDs of the checks whose behavior did not occur.
    pub(super) unexercised: Vec<&'a str>,
    /// The IDs of the checks that were skipped.
    pub(super) skipped: Vec<&'a str>,
}

impl<'a> CheckCounts<'a> {
    /// Counts the checks. Checks that `--quick` skips are counted only if `with_quick` is set.
    pub(super) fn new(report: &'a Report, with_quick: bool) -> Self {
        let mut counts = Self {
            passed: 0,
            not_applicable: 0,
            incomplete: Vec::new(),
            unexercised: Vec::new(),
            skipped: Vec::new(),
        };
        for check in &report.checks {
            let any = |tally: Tally| check.results.iter().any(|result| result.verdict == tally);
            if let Some(reason) = &check.skipped {
                if with_quick || reason != SKIPPED_BY_QUICK {
                    counts.skipped.push(&check.id);
                }
            } else if any(Tally::NotChecked) {
                counts.incomplete.push(&check.id);
            } else if any(Tally::Found) {
                // Findings are counted on their own.
            } else if any(Tally::Passed) {
                counts.passed += 1;
            } else if any(Tally::NotExercised) {
                counts.unexercised.push(&check.id);
            } else {
                counts.not_applicable += 1;
            }
        }
        counts
    }
}
