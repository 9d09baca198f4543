//! Creates the report for `--junit`: a test suite for each feature file and a test case for each scenario.

use std::fmt::Write as _;

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestRerun, TestSuite};

use crate::Failure;
use crate::narrator::NoteKind;
use crate::run::record::{Attempt, Outcome, Record, ScenarioRecord, StepOutcome};
use crate::steps::{HELP, NOTE};

/// Returns the report as XML. A scenario that failed before it passed is a passed case with flaky failures.
pub(super) fn document(record: &Record) -> Result<String, Failure> {
    let mut report = Report::new("admit run");
    report.set_time(record.elapsed());
    let mut scenarios = record.scenarios();
    while let Some(first) = scenarios.first() {
        let path = &first.planned.key.path;
        let (own, others) = scenarios
            .split_at(scenarios.iter().take_while(|scenario| scenario.planned.key.path == *path).count());
        let mut suite = TestSuite::new(path.as_str());
        suite.set_time(own.iter().map(ScenarioRecord::duration).sum());
        suite.add_test_cases(own.iter().map(test_case));
        report.add_test_suite(suite);
        scenarios = others;
    }
    crate::junit::document(&report)
}

fn test_case(scenario: &ScenarioRecord) -> TestCase {
    let planned = &scenario.planned;
    let name = match &planned.rule {
        Some(rule) => format!("{} / {}", rule.name, planned.name),
        None => planned.name.clone(),
    };
    let mut case = TestCase::new(name, status(scenario));
    case.set_classname(planned.feature.as_str());
    case.extra.insert("file".into(), planned.key.path.as_str().into());
    case.extra.insert("line".into(), planned.key.line.to_string().into());
    if let Some(attempt) = scenario.attempts.last() {
        case.set_time(attempt.duration);
        case.set_system_out(transcript(scenario, attempt));
    }
    case
}

fn status(scenario: &ScenarioRecord) -> TestCaseStatus {
    let mut earlier = scenario.attempts.iter().rev().skip(1).rev().map(|attempt| rerun(scenario, attempt));
    match &scenario.outcome {
        Outcome::Passed => {
            let mut status = TestCaseStatus::success();
            status.add_reruns(earlier);
            status
        }
        Outcome::Failed => {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            if let Some(attempt) = scenario.attempts.last() {
                let (sentence, message) = failure(scenario, attempt);
                status.set_message(sentence).set_description(message);
            }
            status.add_reruns(&mut earlier);
            status
        }
        Outcome::Skipped(reason) => skipped(reason),
        Outcome::NotRun => skipped("the run was stopped before"),
    }
}

fn skipped(reason: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::skipped();
    status.set_message(reason);
    status
}

fn rerun(scenario: &ScenarioRecord, attempt: &Attempt) -> TestRerun {
    let (sentence, message) = failure(scenario, attempt);
    let mut rerun = TestRerun::new(NonSuccessKind::Failure);
    rerun.set_time(attempt.duration).set_message(sentence).set_description(message);
    rerun
}

/// Returns the failed step, and its location with the message, the notes that can explain the failure, and the document.
fn failure(scenario: &ScenarioRecord, attempt: &Attempt) -> (String, String) {
    let planned = &scenario.planned;
    let failure = scenario.failure_of(Some(attempt));
    let mut text = format!("{}:{}\n{}", planned.key.path, failure.line, failure.message.unwrap_or_default());
    for note in failure.notes {
        let prefix = if note.kind == NoteKind::Help { HELP } else { NOTE };
        let _ = write!(text, "\n{prefix}{}", note.text);
    }
    for document in failure.documents {
        let _ = write!(text, "\n{}", document.text);
    }
    let sentence = match failure.step {
        Some(step) => format!("{} {}", step.keyword, step.text),
        None => planned.name.clone(),
    };
    (sentence, text)
}

/// Returns the steps of an attempt and their notes in the format of the terminal output.
fn transcript(scenario: &ScenarioRecord, attempt: &Attempt) -> String {
    let mut text = String::new();
    for (planned, step) in scenario.planned.steps.iter().zip(&attempt.steps) {
        let mark = match step.outcome {
            StepOutcome::Passed => '\u{2714}',
            StepOutcome::Failed(_) => '\u{2718}',
            StepOutcome::NotReached => '-',
        };
        let _ = writeln!(text, "{mark} {} {}", planned.keyword, planned.text);
        for line in step.lines() {
            let _ = writeln!(text, "    {line}");
        }
    }
    text
}
