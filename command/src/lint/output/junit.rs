//! Creates the JUnit report: a suite for each check, with a case for each finding or one passing case.

use super::Report;
use crate::junit::{self, Failure, Status, TestCase, TestSuite};
use crate::verify::output::{FailOn, relative, word};

/// Returns the JUnit report as XML.
///
/// Only findings that `--fail-on` counts and the baseline does not accept are failures. Checks that could not be
/// completed are skipped cases.
pub(super) fn document(report: &Report, fail_on: FailOn) -> String {
    let mut junit = junit::Report { name: "admit lint", ..junit::Report::default() };
    for check in &report.checks {
        let mut cases = Vec::new();
        let mut add = |name: &str, status: Status, place: Option<(&str, u64)>, output: Option<String>| {
            let location = place.map(|(file, line)| (relative(file), line));
            let (name, class) = (name.to_owned(), check.id.to_owned());
            cases.push(TestCase { name, class, location, status, output, ..TestCase::default() });
        };
        let mut is_empty = true;
        for finding in report.findings.iter().filter(|finding| finding.check == check.id) {
            is_empty = false;
            let name = format!("{} {}", finding.webhook, finding.field);
            let place = Some((finding.file.as_str(), finding.line));
            let severity = word(finding.severity);
            if let Some(reason) = &finding.accepted {
                let told = Some(format!("{severity}: {}\naccepted: {reason}\n", finding.message));
                add(name.trim(), Status::Passed, place, told);
            } else if fail_on.includes(finding.severity) {
                let failure = Failure {
                    message: finding.message.clone(),
                    kind: Some(severity),
                    description: format!("why: {}\n{}", check.why, finding.page),
                    time: None,
                };
                add(name.trim(), Status::Failed(failure), place, None);
            } else {
                let told = Some(format!("{severity}: {}\n", finding.message));
                add(name.trim(), Status::Passed, place, told);
            }
        }
        for unchecked in report.not_checked.iter().filter(|unchecked| unchecked.check == check.id) {
            is_empty = false;
            let status = Status::Skipped(format!("not checked: {}", unchecked.reason));
            let name =
                if unchecked.webhook.is_empty() { "all webhooks together" } else { &unchecked.webhook };
            add(name, status, unchecked.file.as_deref().zip(unchecked.line), None);
        }
        if is_empty {
            add("all configurations", Status::Passed, None, None);
        }
        junit.suites.push(TestSuite { name: format!("{} {}", check.id, check.title), cases, time: None });
    }
    for skipped in &report.skipped {
        let status = Status::Skipped(skipped.reason.clone());
        let case = TestCase { name: "all configurations".to_owned(), status, ..TestCase::default() };
        junit.suites.push(TestSuite { name: skipped.check.to_owned(), cases: vec![case], time: None });
    }
    junit.document()
}
