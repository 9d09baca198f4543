//! Creates the JUnit report: a suite for each check, with a case for each finding or one passing case.

use quick_junit::{NonSuccessKind, Report as Junit, TestCase, TestCaseStatus, TestSuite};

use super::Report;
use crate::Failure;
use crate::github::relative;
use crate::verify::output::{FailOn, word};

/// Returns the JUnit report as XML.
///
/// Only findings that `--fail-on` counts and the baseline does not accept are failures. Checks that could not be
/// completed are skipped cases.
pub(super) fn document(report: &Report, fail_on: FailOn) -> Result<String, Failure> {
    let mut junit = Junit::new("admit lint");
    for check in &report.checks {
        let mut suite = TestSuite::new(format!("{} {}", check.id, check.title));
        let mut add =
            |name: &str, status: TestCaseStatus, place: Option<(&str, u64)>, told: Option<String>| {
                let mut case = TestCase::new(name, status);
                case.set_classname(check.id);
                if let Some((file, line)) = place {
                    case.extra.insert("file".into(), relative(file).into());
                    case.extra.insert("line".into(), line.to_string().into());
                }
                if let Some(told) = told {
                    case.set_system_out(told);
                }
                suite.add_test_case(case);
            };
        let mut is_empty = true;
        for finding in report.findings.iter().filter(|finding| finding.check == check.id) {
            is_empty = false;
            let name = format!("{} {}", finding.webhook, finding.field);
            let place = Some((finding.file.as_str(), finding.line));
            let severity = word(finding.severity);
            if let Some(reason) = &finding.accepted {
                let told =
                    format!("{severity}: {}\naccepted: {reason}\nhelp: {}\n", finding.message, finding.help);
                let told = Some(told);
                add(name.trim(), TestCaseStatus::success(), place, told);
            } else if fail_on.includes(finding.severity) {
                let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
                status.set_type(severity).set_message(finding.message.as_str());
                status.set_description(format!(
                    "help: {}\nwhy: {}\n{}",
                    finding.help, finding.why, finding.page
                ));
                add(name.trim(), status, place, None);
            } else {
                let told = Some(format!("{severity}: {}\nhelp: {}\n", finding.message, finding.help));
                add(name.trim(), TestCaseStatus::success(), place, told);
            }
        }
        for unchecked in report.not_checked.iter().filter(|unchecked| unchecked.check == check.id) {
            is_empty = false;
            let mut status = TestCaseStatus::skipped();
            status.set_message(format!("not checked: {}", unchecked.reason));
            let name =
                if unchecked.webhook.is_empty() { "all webhooks together" } else { &unchecked.webhook };
            add(name, status, unchecked.file.as_deref().zip(unchecked.line), None);
        }
        if is_empty {
            add("all configurations", TestCaseStatus::success(), None, None);
        }
        junit.add_test_suite(suite);
    }
    for skipped in &report.skipped {
        let mut suite = TestSuite::new(skipped.check);
        let mut status = TestCaseStatus::skipped();
        status.set_message(skipped.reason.as_str());
        suite.add_test_case(TestCase::new("all configurations", status));
        junit.add_test_suite(suite);
    }
    crate::junit::document(&junit)
}
