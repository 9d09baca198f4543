//! Creates the report of `--junit`: a test suite for each feature file and a test case for each scenario.

use std::fmt::Write as _;

use crate::junit::{Failure, Report, Status, TestCase, TestSuite};
use crate::run::record::{Attempt, Outcome, Record, ScenarioRecord, StepOutcome};

/// Returns the report as XML. A scenario that failed before it passed is a passed case with flaky failures.
pub(super) fn document(record: &Record) -> String {
    let mut report = Report { name: "admit run", time: Some(record.elapsed()), suites: Vec::new() };
    let mut scenarios = record.scenarios();
    while let Some(first) = scenarios.first() {
        let path = &first.planned.key.path;
        let (own, others) = scenarios
            .split_at(scenarios.iter().take_while(|scenario| scenario.planned.key.path == *path).count());
        report.suites.push(TestSuite {
            name: path.clone(),
            time: Some(own.iter().map(ScenarioRecord::duration).sum()),
            cases: own.iter().map(test_case).collect(),
        });
        scenarios = others;
    }
    report.document()
}

fn test_case(scenario: &ScenarioRecord) -> TestCase {
    let planned = &scenario.planned;
    let name = match &planned.rule {
        Some(rule) => format!("{} / {}", rule.name, planned.name),
        None => planned.name.clone(),
    };
    let last = scenario.attempts.split_last();
    let (status, earlier) = match (&scenario.outcome, last) {
        (Outcome::Passed, Some((_, earlier))) => (Status::Passed, earlier),
        (Outcome::Failed, Some((last, earlier))) => {
            let failure = Failure { time: None, ..failure(scenario, last) };
            (Status::Failed(failure), earlier)
        }
        (Outcome::Passed, None) => (Status::Passed, [].as_slice()),
        (Outcome::Failed, None) => (Status::Failed(Failure::default()), [].as_slice()),
        (Outcome::Skipped(reason), _) => (Status::Skipped(reason.clone()), [].as_slice()),
        (Outcome::NotRun, _) => (Status::Skipped("the run was stopped before".to_owned()), [].as_slice()),
    };
    TestCase {
        name,
        class: planned.feature.clone(),
        time: last.map(|(attempt, _)| attempt.duration),
        location: Some((planned.key.path.clone(), planned.key.line as u64)),
        status,
        earlier: earlier.iter().map(|attempt| failure(scenario, attempt)).collect(),
        output: last.map(|(attempt, _)| transcript(scenario, attempt)),
    }
}

/// Returns the failed step, its location with the message, and the duration of the attempt.
fn failure(scenario: &ScenarioRecord, attempt: &Attempt) -> Failure {
    let planned = &scenario.planned;
    let step = attempt.failed_step().and_then(|(at, message)| Some((planned.steps.get(at)?, message)));
    let (message, line, reason) = match step {
        Some((step, message)) => (format!("{} {}", step.keyword, step.text), step.line, message),
        None => (planned.name.clone(), planned.key.line, attempt.trouble.as_deref().unwrap_or_default()),
    };
    let description = format!("{}:{line}\n{reason}", planned.key.path);
    Failure { message, kind: None, time: Some(attempt.duration), description }
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
        for note in &step.told {
            let _ = writeln!(text, "    {}", note.text);
        }
    }
    text
}
