//! Creates the report for `--junit`: a test suite for each check and a test case for each webhook.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use harness::verify::report::{CheckReport, CheckResult, Finding, Report as Verification, Tally};
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use super::{FailOn, details, differences, help, table, word};
use crate::Failure;
use crate::github::relative;
use crate::verdict::most;
use crate::verify::SKIPPED_BY_QUICK;

/// Returns the JUnit report as XML.
///
/// Checks that are not applicable, were skipped, or need another option become skipped cases with a reason; those that
/// `--quick` skips are omitted. Other checks that were not completed are errors. Only findings that `--fail-on` counts
/// are failures.
pub(super) fn document(verification: &Verification, fail_on: FailOn) -> Result<String, Failure> {
    let mut report = Report::new("admit verify");
    let is_left_out = |check: &&CheckReport| check.skipped.as_deref() == Some(SKIPPED_BY_QUICK);
    for check in verification.checks.iter().filter(|check| !is_left_out(check)) {
        let mut suite = TestSuite::new(format!("{} {}", check.id, check.title));
        if let Some(reason) = &check.skipped {
            let mut status = TestCaseStatus::skipped();
            status.set_message(reason.as_str());
            suite.add_test_case(case(check, "all webhooks", status));
        }
        for result in &check.results {
            let mut case = case(check, &result.webhook, status(verification, check, result, fail_on));
            let found = check.findings_of(&result.webhook).flat_map(|finding| verification.places(finding));
            let mut found = found.filter(|(webhook, _)| *webhook == result.webhook).map(|(_, place)| place);
            if let Some(location) = found.next().or_else(|| verification.location_of(&result.webhook)) {
                case.extra.insert("file".into(), relative(&location.file).into());
                case.extra.insert("line".into(), location.line.to_string().into());
            }
            let is_failure = fails(check, result, fail_on).is_some();
            let mut told = if is_failure { String::new() } else { findings(verification, check, result) };
            for note in &result.notes {
                let _ = writeln!(told, "{note}");
            }
            if !told.is_empty() {
                case.set_system_out(told);
            }
            suite.add_test_case(case);
        }
        report.add_test_suite(suite);
    }
    crate::junit::document(&report)
}

fn case(check: &CheckReport, name: &str, status: TestCaseStatus) -> TestCase {
    let mut case = TestCase::new(name, status);
    case.set_classname(check.id.as_str());
    case
}

fn status(
    verification: &Verification,
    check: &CheckReport,
    result: &CheckResult,
    fail_on: FailOn,
) -> TestCaseStatus {
    let skipped = |word: &str, reason: String| {
        let mut status = TestCaseStatus::skipped();
        status.set_message(format!("{word}: {reason}"));
        status
    };
    match result.verdict {
        Tally::NotChecked
            if verification.incomplete().any(|(_, incomplete)| std::ptr::eq(incomplete, result)) =>
        {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
            status.set_message(format!("not checked: {}", most(&result.not_checked)));
            status
        }
        Tally::NotChecked => skipped("not checked", most(&result.not_checked)),
        Tally::NotExercised => skipped("not exercised", table::reasons(&result.not_exercised)),
        Tally::NotApplicable => skipped("not applicable", table::reasons(&result.not_applicable)),
        Tally::Passed | Tally::Found => {
            if let Some((cause, finding)) = verification.cause_of(check, &result.webhook) {
                return skipped("fails for the same reason", format!("{}: {}", cause.id, finding.message));
            }
            let Some(worst) = fails(check, result, fail_on) else { return TestCaseStatus::success() };
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            status.set_type(word(worst.severity)).set_message(worst.message.as_str());
            status.set_description(format!(
                "{}\nwhy: {}\nsource: {}",
                findings(verification, check, result),
                check.why_of(worst),
                check.source
            ));
            status
        }
    }
}

/// Returns the first finding that is not accepted and that `--fail-on` counts as a failure.
fn fails<'a>(check: &'a CheckReport, result: &'a CheckResult, fail_on: FailOn) -> Option<&'a Finding> {
    check
        .findings_of(&result.webhook)
        .find(|finding| finding.accepted.is_none() && fail_on.includes(finding.severity))
}

/// Formats every finding with its differences and the advice on how to fix it.
///
/// If several webhooks share a finding, only the case of the first webhook contains the differences.
fn findings(verification: &Verification, check: &CheckReport, result: &CheckResult) -> String {
    let mut text = String::new();
    let mut advised = BTreeSet::new();
    for finding in check.findings_of(&result.webhook) {
        let _ = writeln!(text, "{}: {}", word(finding.severity), finding.message);
        if let Some(reason) = &finding.accepted {
            let _ = writeln!(text, "accepted: {reason}");
        }
        if let Some(help) = help(check, finding).filter(|help| advised.insert(help.clone())) {
            let _ = writeln!(text, "{help}");
        }
        if finding.webhook() != result.webhook {
            let _ = writeln!(text, "the same finding as that of {}", finding.webhook());
            continue;
        }
        for more in details(verification, check, finding) {
            let _ = writeln!(text, "{more}");
        }
        text.push_str(&differences(&finding.differences));
    }
    text
}
