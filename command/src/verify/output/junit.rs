//! Creates the report of `--junit`: a test suite for each check and a test case for each webhook.

use std::fmt::Write as _;

use harness::verify::report::{CheckReport, CheckResult, Finding, Report as Verification, Tally};

use super::{FailOn, details, differences, relative, table, word};
use crate::junit::{Failure, Report, Status, TestCase, TestSuite};

/// Returns the JUnit report as XML.
///
/// Checks that were not completed, are not applicable, or were skipped are skipped cases with a reason. Only findings
/// that `--fail-on` counts are failures.
pub(super) fn document(verification: &Verification, fail_on: FailOn) -> String {
    let mut report = Report { name: "admit verify", ..Report::default() };
    for check in &verification.checks {
        let mut cases = Vec::new();
        if let Some(reason) = &check.skipped {
            cases.push(case(check, "all webhooks", Status::Skipped(reason.clone())));
        }
        for result in &check.results {
            let mut case = case(check, &result.webhook, status(verification, check, result, fail_on));
            let found = check.findings_of(&result.webhook).flat_map(|finding| verification.places(finding));
            let mut found = found.filter(|(webhook, _)| *webhook == result.webhook).map(|(_, place)| place);
            if let Some(location) = found.next().or_else(|| verification.location_of(&result.webhook)) {
                case.location = Some((relative(&location.file), location.line));
            }
            let is_failure = fails(check, result, fail_on).is_some();
            let mut told = if is_failure { String::new() } else { findings(verification, check, result) };
            for note in &result.notes {
                let _ = writeln!(told, "{note}");
            }
            if !told.is_empty() {
                case.output = Some(told);
            }
            cases.push(case);
        }
        report.suites.push(TestSuite { name: format!("{} {}", check.id, check.title), cases, time: None });
    }
    report.document()
}

fn case(check: &CheckReport, name: &str, status: Status) -> TestCase {
    TestCase { name: name.to_owned(), class: check.id.clone(), status, ..TestCase::default() }
}

fn status(verification: &Verification, check: &CheckReport, result: &CheckResult, fail_on: FailOn) -> Status {
    let skipped = |word: &str, reason: String| Status::Skipped(format!("{word}: {reason}"));
    match result.verdict {
        Tally::NotChecked => skipped("not checked", table::most(&result.not_checked)),
        Tally::NotApplicable => skipped("not applicable", table::reasons(&result.not_applicable)),
        Tally::Passed | Tally::Found => {
            if let Some((cause, finding)) = verification.cause_of(check, &result.webhook) {
                return skipped("fails for the same reason", format!("{}: {}", cause.id, finding.message));
            }
            let Some(worst) = fails(check, result, fail_on) else { return Status::Passed };
            let findings = findings(verification, check, result);
            Status::Failed(Failure {
                message: worst.message.clone(),
                kind: Some(word(worst.severity)),
                description: format!("{findings}\nwhy: {}\nsource: {}", check.why, check.source),
                time: None,
            })
        }
    }
}

/// Returns the first finding that is not accepted and that `--fail-on` counts as a failure.
fn fails<'a>(check: &'a CheckReport, result: &'a CheckResult, fail_on: FailOn) -> Option<&'a Finding> {
    check
        .findings_of(&result.webhook)
        .find(|finding| finding.accepted.is_none() && fail_on.includes(finding.severity))
}

/// Formats every finding with its differences.
///
/// If several webhooks share a finding, only the case of the first webhook contains the differences.
fn findings(verification: &Verification, check: &CheckReport, result: &CheckResult) -> String {
    let mut text = String::new();
    for finding in check.findings_of(&result.webhook) {
        let _ = writeln!(text, "{}: {}", word(finding.severity), finding.message);
        if let Some(reason) = &finding.accepted {
            let _ = writeln!(text, "accepted: {reason}");
        }
        if finding.webhook() != result.webhook {
            let _ = writeln!(text, "the same finding as that of {}", finding.webhook());
            continue;
        }
        for more in details(verification, finding) {
            let _ = writeln!(text, "{more}");
        }
        text.push_str(&differences(&finding.differences));
    }
    text
}
