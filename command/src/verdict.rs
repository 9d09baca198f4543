//! Summarizes the result for each webhook in a few words.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use harness::verify::report::{CheckResult, Finding, Report, Tally, Tried};
use harness::verify::{Probe, Severity, checks};
use serde::Serialize;

use crate::diagnostic::{self, several};
use crate::failure_cause::brief;

/// The errors that determine a verdict: the check, the kind of the finding (`None` for any kind), and the verdict.
const HEADLINES: [(&str, Option<&str>, &str); 9] = [
    ("V15", Some("patch does not apply as it is"), "patches do NOT apply"),
    ("V11", Some("not deterministic"), "NOT deterministic"),
    ("V11", Some("verdict varies"), "NOT deterministic"),
    ("V01", None, "NOT idempotent"),
    ("V02", None, "NOT safe to reinvoke"),
    ("V03", None, "removes what other webhooks add"),
    ("V38", Some("writes on dry runs"), "has side effects in dry runs"),
    ("V38", Some("different result on dry runs"), "changes objects differently in dry runs"),
    ("V38", Some("different verdict on dry runs"), "allows or denies differently in dry runs"),
];

/// The verdict on a webhook, and the severities of its findings.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct WebhookVerdict {
    /// The passed checks and the gaps, if other findings determine the outcome: `idempotent; dry runs not checked`.
    pub(crate) passed: Option<String>,
    /// The verdict, such as `NOT idempotent`; empty if only the findings determine the outcome.
    pub(crate) words: String,
    pub(crate) outcome: Outcome,
    /// The severities of the webhook's findings.
    pub(crate) findings: Vec<Severity>,
}

/// The verdict on a webhook in formats other than text.
#[derive(Debug, Serialize)]
pub(crate) struct VerdictSummary {
    pub(crate) webhook: String,
    /// The verdict in a few words, such as `NOT idempotent` or `idempotent, but has errors`.
    pub(crate) words: String,
    outcome: Outcome,
    /// The severities of the webhook's findings.
    pub(crate) findings: Vec<Severity>,
}

/// Returns the webhooks of a report with their verdicts, sorted by name.
pub(crate) fn verdict_summaries(report: &Report) -> Vec<VerdictSummary> {
    let named = |(webhook, verdict): (&str, WebhookVerdict)| VerdictSummary {
        webhook: webhook.to_owned(),
        words: match verdict.passed {
            Some(passed) if verdict.words.is_empty() => format!("{passed}, but has errors"),
            Some(_) | None => verdict.words,
        },
        outcome: verdict.outcome,
        findings: verdict.findings,
    };
    verdicts(report).into_iter().map(named).collect()
}

impl WebhookVerdict {
    /// Returns how to display the verdict in a run that fails for findings whose severity `fails` includes.
    pub(crate) fn outcome_in_run(&self, fails: impl Fn(Severity) -> bool) -> Outcome {
        match self.outcome {
            Outcome::Good if self.findings.iter().copied().any(fails) => Outcome::Bad,
            outcome @ (Outcome::Good | Outcome::Bad | Outcome::Unknown) => outcome,
        }
    }

    /// Returns the verdict without styles, such as `NOT safe to reinvoke (2 errors); idempotent`.
    pub(crate) fn sentence(&self) -> String {
        let passed = self.passed.as_ref().map(|passed| format!("; {passed}")).unwrap_or_default();
        let (words, counts) = self.parts();
        format!("{words}{counts}{passed}")
    }

    /// Returns the verdict and the number of findings in parentheses; only the numbers if there are no words.
    pub(crate) fn parts(&self) -> (String, String) {
        let counts = diagnostic::counts(self.findings.iter().copied());
        match (self.words.is_empty(), counts.is_empty()) {
            (true, _) => (counts, String::new()),
            (false, true) => (self.words.clone(), counts),
            (false, false) => (self.words.clone(), format!(" ({counts})")),
        }
    }
}

/// The way in which a verdict is displayed: as good, bad, or unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Outcome {
    Good,
    Bad,
    /// The checks were not sufficient for a verdict.
    Unknown,
}

/// Returns the webhooks of the report with their verdicts, sorted by name.
///
/// Findings about all webhooks together come last.
pub(crate) fn verdicts(report: &Report) -> Vec<(&str, WebhookVerdict)> {
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

fn findings<'a>(report: &'a Report, webhook: &'a str) -> impl Iterator<Item = (&'a str, &'a Finding)> {
    let findings = report.new_findings().filter(|(_, finding)| finding.webhooks.contains_key(webhook));
    findings.map(|(check, finding)| (check.id.as_str(), finding))
}

fn verdict(report: &Report, webhook: &str) -> WebhookVerdict {
    let found: Vec<(&str, &Finding)> = findings(report, webhook).collect();
    let severities: Vec<Severity> = found.iter().map(|(_, finding)| finding.severity).collect();
    let is_error = |id: &str, kind: Option<&str>| {
        found.iter().any(|(found, finding)| {
            *found == id
                && finding.severity == Severity::Error
                && kind.is_none_or(|kind| finding.kind == kind)
        })
    };
    let mut bad: Vec<&str> =
        HEADLINES.iter().filter(|(id, kind, _)| is_error(id, *kind)).map(|(_, _, words)| *words).collect();
    bad.dedup();
    let accepted = report
        .findings()
        .filter(|(_, finding)| finding.accepted.is_some() && finding.webhooks.contains_key(webhook));
    let accepted = accepted.count();
    let mut passed = None;
    let (words, outcome) = if !bad.is_empty() {
        (bad.join(", "), Outcome::Bad)
    } else if let Some(reason) = unknown(report, webhook).filter(|_| !is_nondeterministic(report, webhook)) {
        (reason, Outcome::Unknown)
    } else if severities.contains(&Severity::Error) {
        // The number of findings is the verdict.
        passed = claims(report, webhook).map(|words| with_gaps(report, webhook, &words));
        (String::new(), Outcome::Bad)
    } else {
        let words = match (claims(report, webhook), accepted) {
            (Some(words), 0) => words,
            (Some(words), accepted) => format!("{words}; {accepted} accepted"),
            (None, _) if severities.contains(&Severity::Warning) => "no errors".to_owned(),
            (None, _) if !severities.is_empty() => "no errors or warnings".to_owned(),
            (None, 0) => "no problems found".to_owned(),
            (None, accepted) => format!("no new problems; {accepted} accepted"),
        };
        let words = with_gaps(report, webhook, &words);
        let so_far = if report.interrupted { " so far" } else { "" };
        let has_all_responses =
            report.invalid_responses_of(webhook).is_none() && report.failed_calls_of(webhook).is_none();
        (format!("{words}{so_far}"), if has_all_responses { Outcome::Good } else { Outcome::Unknown })
    };
    WebhookVerdict { passed, words, outcome, findings: severities }
}

/// Returns the most frequent reason, or an empty string if there are no reasons.
pub(crate) fn most(reasons: &BTreeMap<String, u64>) -> String {
    reasons.iter().max_by_key(|(_, count)| **count).map(|(reason, _)| reason.clone()).unwrap_or_default()
}

/// Appends the gaps in the checks to `words`: unchecked reinvocations and dry runs, and failed calls.
fn with_gaps(report: &Report, webhook: &str, words: &str) -> String {
    let mut words = words.to_owned();
    if let Some((count, _)) = report.invalid_responses_of(webhook) {
        let _ = write!(words, "; {} invalid", several(count, "response"));
    }
    if let Some((count, _)) = report.failed_calls_of(webhook) {
        let _ = write!(words, "; {} failed", several(count, "call"));
    }
    if said(report, webhook) == Some("idempotent") && tally(report, "V02", webhook) == Some(Tally::NotChecked)
    {
        words.push_str("; reinvocation not checked");
    }
    if let Some((_, reason)) = unobserved_dry_runs(report).find(|(name, _)| *name == webhook) {
        words.push_str("; dry runs not checked");
        if reason.contains(checks::NOT_OBSERVED) {
            words.push_str(" (needs --api-server-out)");
        }
    }
    words
}

/// Returns what the checks established about a webhook, such as `idempotent, safe to reinvoke, honest about dry runs`.
///
/// Returns `None` if the check for idempotence was not run or does not apply.
fn claims(report: &Report, webhook: &str) -> Option<String> {
    if is_nondeterministic(report, webhook) {
        return Some("not deterministic".to_owned());
    }
    let mut claims = vec![said(report, webhook)?];
    let has_passed = |id: &str| tally(report, id, webhook) == Some(Tally::Passed);
    // V03 also passes for a webhook that is not called again.
    if has_passed("V02") && has_passed("V03") {
        claims.push("safe to reinvoke");
    }
    if has_passed("V38") {
        claims.push("honest about dry runs");
    }
    Some(claims.join(", "))
}

/// Returns whether the webhook gives different responses to the same request, even if a baseline accepts that.
///
/// Passed checks that compare responses then say nothing: their requests may have had the same response by chance.
fn is_nondeterministic(report: &Report, webhook: &str) -> bool {
    let check = report.checks.iter().find(|check| check.id == checks::DETERMINISM);
    let mut findings = check.into_iter().flat_map(|check| check.findings_of(webhook));
    findings.any(|finding| {
        HEADLINES.iter().any(|(id, kind, _)| *id == checks::DETERMINISM && *kind == Some(&finding.kind))
    })
}

fn tally(report: &Report, id: &str, webhook: &str) -> Option<Tally> {
    let check = report.checks.iter().find(|check| check.id == id)?;
    Some(check.results.iter().find(|result| result.webhook == webhook)?.verdict)
}

/// Returns the webhooks that responded but whose dry runs were not checked, each with the reason.
pub(crate) fn unobserved_dry_runs(report: &Report) -> impl Iterator<Item = (&str, String)> {
    let check = report.checks.iter().filter(|check| check.id == "V38");
    let results = check.flat_map(|check| &check.results);
    results
        .filter(|result| result.verdict == Tally::NotChecked)
        .filter(|result| unknown(report, &result.webhook).is_none())
        .map(|result| (result.webhook.as_str(), most(&result.not_checked)))
}

/// Returns `idempotent` if the check passed, or `not idempotent` if the baseline accepts the findings.
fn said(report: &Report, webhook: &str) -> Option<&'static str> {
    let check = report.checks.iter().find(|check| check.id == "V01")?;
    let result = check.results.iter().find(|result| result.webhook == webhook)?;
    match result.verdict {
        Tally::Passed => Some("idempotent"),
        Tally::Found if check.findings_of(webhook).all(|finding| finding.accepted.is_some()) => {
            Some("not idempotent")
        }
        Tally::Found | Tally::NotChecked | Tally::NotExercised | Tally::NotApplicable => None,
    }
}

/// Returns the reason why there is no verdict on the webhook.
fn unknown(report: &Report, webhook: &str) -> Option<String> {
    let unchecked = |reason: &str| Some(format!("could not be checked: {}", brief(report, webhook, reason)));
    let unreached = report.unreached.iter().find(|(_, webhooks)| webhooks.iter().any(|name| name == webhook));
    if let Some((reason, _)) = unreached {
        return unchecked(reason);
    }
    if let Some((_, reason)) = report.unanswered().find(|(name, _)| *name == webhook) {
        return unchecked(reason);
    }
    if report.is_untried(webhook) {
        return Some("never called".to_owned());
    }
    let results = || {
        let results = report.checks.iter().map(|check| (check, &check.results));
        results.filter_map(|(check, results)| {
            Some((check.id.as_str(), results.iter().find(|result| result.webhook == webhook)?))
        })
    };
    let is_unchanged = report.webhooks.get(webhook).is_some_and(Tried::never_changed);
    let is_harmless = |(id, result): (&str, &CheckResult)| {
        id == "V01" && matches!(result.verdict, Tally::Passed | Tally::NotExercised)
    };
    if is_unchanged && results().any(is_harmless) {
        return Some("never changed an object".to_owned());
    }
    let idempotence = results().find(|(id, result)| *id == "V01" && result.verdict == Tally::NotChecked);
    if let Some((_, result)) = idempotence {
        return unchecked(&most(&result.not_checked));
    }
    let has = |tally: Tally| move |(_, result): &(&str, &CheckResult)| result.verdict == tally;
    let by_calls = || results().filter(|(id, _)| calls(id));
    if let Some((_, result)) = by_calls().find(has(Tally::NotChecked))
        && !by_calls().any(|(_, result)| matches!(result.verdict, Tally::Passed | Tally::Found))
    {
        return unchecked(&most(&result.not_checked));
    }
    if results().any(|(_, result)| matches!(result.verdict, Tally::Passed | Tally::Found)) {
        return None;
    }
    if let Some((_, result)) = results().find(has(Tally::NotChecked)) {
        return unchecked(&most(&result.not_checked));
    }
    Some(match results().find(has(Tally::NotExercised)) {
        Some((_, result)) => format!("not exercised: {}", most(&result.not_exercised)),
        None => "no check applies".to_owned(),
    })
}

/// Returns whether a check sends objects to the webhook.
fn calls(id: &str) -> bool {
    let probe = checks::find(id).map(|check| check.probe);
    matches!(probe, Some(Probe::Object(_) | Probe::Collection(_) | Probe::Conversion(_)))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn report() -> Report {
        with(&json!([]))
    }

    /// Returns a report about one webhook in which V01 passed and V17 has `findings`.
    fn with(findings: &Value) -> Report {
        let result = |verdict: &str| json!({"webhook": "c/a", "verdict": verdict, "held": 1, "notChecked": {}, "notApplicable": {}});
        let check = |id: &str, verdict: &str, findings: &Value| {
            json!({"id": id, "title": "t", "severity": "error", "why": "w", "source": "s",
                "results": [result(verdict)], "findings": findings})
        };
        let report = json!({"version": 2, "objects": 1, "calls": 1, "leftOut": {},
            "addresses": {"c/a": "https://127.0.0.1:9443/mutate"},
            "webhooks": {"c/a": {"mutating": true, "called": 1, "answered": 1, "patched": 1}},
            "checks": [check("V01", "passed", &json!([])), check("V17", "found", findings)]});
        serde_json::from_value(report).unwrap()
    }

    fn finding(severity: &str, accepted: Option<&str>) -> Value {
        json!({"kind": "removes fields", "severity": severity, "message": "m", "webhooks": {"c/a": 1},
            "examples": [], "differences": [], "steps": [], "accepted": accepted})
    }

    #[test]
    fn an_error_of_another_check_determines_the_outcome_of_an_idempotent_webhook() {
        let words = |findings: &Value| verdict(&with(findings), "c/a").words;
        assert_eq!(words(&json!([])), "idempotent");
        assert_eq!(words(&json!([finding("warning", None)])), "idempotent");
        assert_eq!(words(&json!([finding("error", None)])), "");
        let bad = verdict(&with(&json!([finding("error", None)])), "c/a");
        assert_eq!((bad.passed.as_deref(), bad.outcome), (Some("idempotent"), Outcome::Bad));
        let summaries = verdict_summaries(&with(&json!([finding("error", None)])));
        let summary = summaries.iter().find(|summary| summary.webhook == "c/a").unwrap();
        assert_eq!((&*summary.words, summary.outcome), ("idempotent, but has errors", Outcome::Bad));
        assert_eq!(words(&json!([finding("error", Some("known"))])), "idempotent; 1 accepted");
        let mut without = with(&json!([finding("warning", Some("known")), finding("note", Some("known"))]));
        without.checks.remove(0);
        assert_eq!(verdict(&without, "c/a").words, "no new problems; 2 accepted");
    }

    #[test]
    fn unobserved_dry_runs_are_part_of_the_verdict() {
        let mut report = report();
        report.checks[1].id = "V38".to_owned();
        report.checks[1].results[0].verdict = Tally::NotChecked;
        report.checks[1].results[0].unequipped = true;
        report.checks[1].results[0].not_checked.insert("the response differs".to_owned(), 1);
        assert_eq!(verdict(&report, "c/a").words, "idempotent; dry runs not checked");
        report.checks[1].results[0].not_checked.clear();
        let never = "the webhook never sent a request to the API server of --api-server-out".to_owned();
        report.checks[1].results[0].not_checked.insert(never, 1);
        // The user has already passed the option.
        assert_eq!(verdict(&report, "c/a").words, "idempotent; dry runs not checked");
        report.checks[1].results[0].not_checked.clear();
        report.checks[1].results[0].not_checked.insert(checks::NOT_OBSERVED.to_owned(), 1);
        let expected = "; dry runs not checked (needs --api-server-out)";
        assert_eq!(verdict(&report, "c/a").words, format!("idempotent{expected}"));
        // A validating webhook is called on dry runs, too.
        report.checks.remove(0);
        report.webhooks.get_mut("c/a").unwrap().mutating = false;
        report.checks.push(report.checks[0].clone());
        report.checks[1].id = "V22".to_owned();
        report.checks[1].results[0].verdict = Tally::Passed;
        assert_eq!(verdict(&report, "c/a").words, format!("no problems found{expected}"));
    }

    #[test]
    fn verdict_says_whether_the_webhook_is_idempotent_reinvocable_and_honest() {
        let mut report = report();
        report.checks.truncate(1);
        for id in ["V02", "V03", "V38"] {
            report.checks.push(report.checks[0].clone());
            report.checks.last_mut().unwrap().id = id.to_owned();
        }
        let words = |report: &Report| verdict(report, "c/a").words;
        assert_eq!(words(&report), "idempotent, safe to reinvoke, honest about dry runs");
        report.checks[1].results[0].verdict = Tally::NotApplicable;
        assert_eq!(words(&report), "idempotent, honest about dry runs");
        report.checks[1].results[0].verdict = Tally::NotChecked;
        assert_eq!(words(&report), "idempotent, honest about dry runs; reinvocation not checked");
        report.checks[1].results[0].verdict = Tally::Passed;
        report.checks[2] = with(&json!([finding("error", None)])).checks.remove(1);
        report.checks[2].id = "V03".to_owned();
        assert_eq!(words(&report), "removes what other webhooks add");
    }

    #[test]
    fn findings_without_errors_are_said_to_be_none() {
        let mut report = with(&json!([finding("note", None)]));
        report.checks.remove(0);
        assert_eq!(verdict(&report, "c/a").sentence(), "no errors or warnings (1 note)");
        let mut report = with(&json!([finding("note", None), finding("warning", None)]));
        report.checks.remove(0);
        assert_eq!(verdict(&report, "c/a").sentence(), "no errors (1 warning, 1 note)");
    }

    #[test]
    fn invalid_responses_are_part_of_the_verdict_unless_a_finding_explains_them() {
        let mut report = report();
        let reason = "received invalid webhook response: expected response.uid=\"UID\", got \"\"";
        report.webhooks.get_mut("c/a").unwrap().failures.insert(reason.to_owned(), 2);
        report.checks[0].results[0].not_checked.insert(reason.to_owned(), 1);
        let found = verdict(&report, "c/a");
        assert_eq!((&*found.words, found.outcome), ("idempotent; 2 responses invalid", Outcome::Unknown));
        let incomplete: Vec<_> = report.incomplete().map(|(check, _)| check.id.as_str()).collect();
        assert_eq!(incomplete, ["V01"]);
        report.checks[1] = with(&json!([finding("error", None)])).checks.remove(1);
        report.checks[1].id = "V22".to_owned();
        assert_eq!(verdict(&report, "c/a").passed.as_deref(), Some("idempotent"));
        assert_eq!(report.incomplete().count(), 0);
    }

    #[test]
    fn failed_calls_are_part_of_the_verdict_if_a_check_lacks_them() {
        let mut report = report();
        let reason = "failed calling webhook \"a\": failed to call webhook: Post \"https://a:443/\": EOF";
        report.webhooks.get_mut("c/a").unwrap().failures.insert(reason.to_owned(), 2);
        // No check needed these calls, such as those of a burst.
        let found = verdict(&report, "c/a");
        assert_eq!((&*found.words, found.outcome), ("idempotent", Outcome::Good));
        report.checks[0].results[0].not_checked.insert(reason.to_owned(), 1);
        let found = verdict(&report, "c/a");
        assert_eq!((&*found.words, found.outcome), ("idempotent; 2 calls failed", Outcome::Unknown));
        let incomplete: Vec<_> = report.incomplete().map(|(check, _)| check.id.as_str()).collect();
        assert_eq!(incomplete, ["V01"]);
    }

    #[test]
    fn a_dry_run_with_another_patch_is_not_called_a_side_effect() {
        let mut report = with(&json!([finding("error", None)]));
        report.checks[1].id = "V38".to_owned();
        for (kind, expected) in [
            ("writes on dry runs", "has side effects in dry runs"),
            ("different result on dry runs", "changes objects differently in dry runs"),
        ] {
            report.checks[1].findings[0].kind = kind.to_owned();
            assert_eq!(verdict(&report, "c/a").words, expected);
        }
    }

    #[test]
    fn a_webhook_that_never_answers_could_not_be_checked() {
        let mut report = report();
        let tried = report.webhooks.get_mut("c/a").unwrap();
        (tried.answered, tried.patched) = (Some(0), 0);
        let failed = "failed calling webhook \"a\": failed to call webhook: Post \"https://a.b.svc:443/\": \
                      dial tcp a.b.svc:443: connect: connection refused";
        tried.failures.insert(failed.to_owned(), 1);
        assert_eq!(
            verdict(&report, "c/a").words,
            "could not be checked: connection refused at https://127.0.0.1:9443/mutate"
        );
        assert_eq!(report.unseen(), []);
        report.unreached.insert("no TLS server at 127.0.0.1:1".to_owned(), vec!["c/a".to_owned()]);
        assert_eq!(verdict(&report, "c/a").words, "could not be checked: no TLS server at 127.0.0.1:1");
    }
}
