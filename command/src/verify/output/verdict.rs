//! The result for each webhook, in a few words.

use harness::verify::report::{CheckResult, Report, Tally};
use harness::verify::{Probe, Severity, checks};

use super::table::most;

/// The checks with a verdict of their own on mutating webhooks, which is shown if they report an error.
const HEADLINES: [(&str, &str); 3] =
    [("V01", "NOT idempotent"), ("V02", "NOT safe to reinvoke"), ("V38", "has side effects in dry runs")];

/// The verdict on a webhook.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    /// The verdict, such as `NOT idempotent`; empty if only the findings matter.
    pub(super) words: String,
    pub(super) outcome: Outcome,
    /// The severities of its findings.
    pub(super) findings: Vec<Severity>,
}

/// Whether a verdict is good or bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Good,
    Bad,
    /// The checks do not allow a verdict.
    Unknown,
}

/// Returns the webhooks of the report with their verdicts, sorted by name; findings about all webhooks together come
/// last.
pub(super) fn verdicts(report: &Report) -> Vec<(&str, Verdict)> {
    let mut names: Vec<&str> = Vec::new();
    let results = report.checks.iter().flat_map(|check| &check.results);
    for name in
        report.webhooks.keys().map(String::as_str).chain(results.map(|result| result.webhook.as_str()))
    {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let together = harness::verify::report::TOGETHER;
    names.retain(|name| *name != together || findings(report, together).next().is_some());
    names.sort_by_key(|name| (*name == together, *name));
    names.into_iter().map(|name| (name, verdict(report, name))).collect()
}

fn findings<'a>(report: &'a Report, webhook: &'a str) -> impl Iterator<Item = (&'a str, Severity)> {
    let findings = report.new_findings().filter(|(_, finding)| finding.webhooks.contains_key(webhook));
    findings.map(|(check, finding)| (check.id.as_str(), finding.severity))
}

fn verdict(report: &Report, webhook: &str) -> Verdict {
    let found: Vec<(&str, Severity)> = findings(report, webhook).collect();
    let severities: Vec<Severity> = found.iter().map(|(_, severity)| *severity).collect();
    let bad: Vec<&str> = HEADLINES
        .iter()
        .filter(|(id, _)| found.contains(&(*id, Severity::Error)))
        .map(|(_, words)| *words)
        .collect();
    let (words, outcome) = if !bad.is_empty() {
        (bad.join(", "), Outcome::Bad)
    } else if let Some(reason) = unknown(report, webhook) {
        (reason, Outcome::Unknown)
    } else {
        let nothing = if severities.is_empty() { "no problems found" } else { "" };
        let words = said(report, webhook).unwrap_or(nothing);
        let so_far = if report.interrupted && !words.is_empty() { " so far" } else { "" };
        let words = format!("{words}{so_far}");
        (words, if severities.contains(&Severity::Error) { Outcome::Bad } else { Outcome::Good })
    };
    Verdict { words, outcome, findings: severities }
}

/// Returns `idempotent` if that was checked.
fn said(report: &Report, webhook: &str) -> Option<&'static str> {
    let check = report.checks.iter().find(|check| check.id == "V01")?;
    let result = check.results.iter().find(|result| result.webhook == webhook)?;
    match result.verdict {
        Tally::Passed => Some("idempotent"),
        Tally::Found if check.findings_of(webhook).all(|finding| finding.accepted.is_some()) => {
            Some("not idempotent (accepted)")
        }
        Tally::Found | Tally::NotChecked | Tally::NotApplicable => None,
    }
}

/// Returns why there is no verdict on the webhook.
fn unknown(report: &Report, webhook: &str) -> Option<String> {
    let unreached = report.unreached.iter().find(|(_, webhooks)| webhooks.iter().any(|name| name == webhook));
    if let Some((reason, _)) = unreached {
        return Some(format!("could not be checked: {}", brief(reason)));
    }
    if let Some(tried) = report.webhooks.get(webhook) {
        if tried.called == 0 {
            return Some("never called".to_owned());
        }
        if tried.mutating && tried.patched == 0 && said(report, webhook) == Some("idempotent") {
            return Some("never changed an object".to_owned());
        }
    }
    let results = || {
        let results = report.checks.iter().map(|check| (check, &check.results));
        results.filter_map(|(check, results)| {
            Some((check.id.as_str(), results.iter().find(|result| result.webhook == webhook)?))
        })
    };
    let idempotence = results().find(|(id, result)| *id == "V01" && result.verdict == Tally::NotChecked);
    if let Some((_, result)) = idempotence {
        return Some(format!("could not be checked: {}", brief(&most(&result.not_checked))));
    }
    let has = |tally: Tally| move |(_, result): &(&str, &CheckResult)| result.verdict == tally;
    let by_calls = || results().filter(|(id, _)| calls(id));
    if let Some((_, result)) = by_calls().find(has(Tally::NotChecked))
        && !by_calls().any(|(_, result)| matches!(result.verdict, Tally::Passed | Tally::Found))
    {
        return Some(format!("could not be checked: {}", brief(&most(&result.not_checked))));
    }
    if results().any(|(_, result)| matches!(result.verdict, Tally::Passed | Tally::Found)) {
        return None;
    }
    Some(match results().find(has(Tally::NotChecked)) {
        Some((_, result)) => format!("could not be checked: {}", brief(&most(&result.not_checked))),
        None => "no check applies".to_owned(),
    })
}

/// Returns whether a check sends objects to the webhook.
fn calls(id: &str) -> bool {
    let probe = checks::find(id).map(|check| check.probe);
    matches!(probe, Some(Probe::Object(_) | Probe::Collection(_) | Probe::Conversion(_)))
}

/// Shortens the cause of a failed call to a few words; returns other reasons unchanged.
fn brief(reason: &str) -> String {
    let Some((_, error)) = reason.split_once("failed to call webhook: ") else { return reason.to_owned() };
    if error.contains("context deadline exceeded") || error.contains("Client.Timeout exceeded") {
        let timeout = error.split_once("timeout=").and_then(|(_, rest)| rest.split(['s', 'm', '"']).next());
        return timeout.map_or("times out".to_owned(), |timeout| format!("times out after {timeout} s"));
    }
    // Go's error starts with the request, followed by the cause.
    error.split_once("\": ").map_or(error, |(_, cause)| cause).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cause_of_a_failed_call_is_brief() {
        let called = "failed calling webhook \"a.example.com\": failed to call webhook: Post \"https://a.b.svc:443/?timeout=1s\": ";
        for (cause, expected) in [
            ("context deadline exceeded", "times out after 1 s"),
            (
                "dial tcp 127.0.0.1:1: connect: connection refused",
                "dial tcp 127.0.0.1:1: connect: connection refused",
            ),
            ("EOF", "EOF"),
        ] {
            assert_eq!(brief(&format!("{called}{cause}")), expected);
        }
        assert_eq!(brief("see V11"), "see V11");
    }
}
