//! Creates the report for `--json`: one JSON object.
//!
//! `version` is 1; it changes when existing readers would misread a new report. New fields can be added without a new
//! version.
//!
//! - `admit`: the version of the command; `target`: `in-process`, `envtest`, or `cluster`;
//! - `seconds`: the duration, here and in the objects below;
//! - `counts`: `passed`, `flaky` (among the passed), `failed`, `unsupported` (among the failed), `skipped`, `notRun`;
//! - `auditChecksNotMade`: the number of audit annotation checks skipped on a target without an audit log;
//! - `warnings`: the warnings about the whole run, if any;
//! - `features`: each with `path`, `name`, `scenarios` (those outside of rules), and `rules` (each with `name`, `line`,
//!   `scenarios`);
//! - a scenario: `name`, `line`, `tags`, `status` (`passed`, `failed`, `skipped`, `notRun`), `flaky`, `reason` (if
//!   skipped), and `attempts`, oldest first: `status`, `seconds`, `trouble` (an error outside of the steps), and
//!   `steps`, starting with those of the backgrounds;
//! - a step: `keyword`, `text`, `line`, `argument` (the lines of the doc string or table, if any), `status` (`passed`, `failed`, `notReached`), `seconds`, `message` (if failed),
//!   and `notes`: the calls and decisions that the step made, one line each.

use serde::Serialize;

use super::Circumstances;
use crate::machine_readable::RUN_VERSION;
use crate::run::plan::PlannedStep;
use crate::run::record::{Attempt, Outcome, Record, ScenarioRecord, StepOutcome, StepRecord};

/// Returns the report as pretty-printed JSON with a trailing newline.
pub(super) fn document(record: &Record, circumstances: Circumstances<'_>) -> String {
    let report = Report::new(record, circumstances);
    match serde_json::to_string_pretty(&report) {
        Ok(text) => text + "\n",
        Err(error) => unreachable!("strings and numbers are JSON: {error}"),
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report<'a> {
    version: u32,
    admit: &'static str,
    target: &'static str,
    seconds: f64,
    counts: Counts,
    audit_checks_not_made: usize,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    warnings: &'a [String],
    features: Vec<Feature<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Counts {
    passed: usize,
    flaky: usize,
    failed: usize,
    unsupported: usize,
    skipped: usize,
    not_run: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Feature<'a> {
    path: &'a str,
    name: &'a str,
    scenarios: Vec<Scenario<'a>>,
    rules: Vec<Rule<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Rule<'a> {
    name: &'a str,
    line: usize,
    scenarios: Vec<Scenario<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Scenario<'a> {
    name: &'a str,
    line: usize,
    tags: &'a [String],
    status: &'static str,
    flaky: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    attempts: Vec<AttemptReport<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AttemptReport<'a> {
    status: &'static str,
    seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    trouble: Option<&'a str>,
    steps: Vec<Step<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Step<'a> {
    keyword: &'a str,
    text: &'a str,
    line: usize,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    argument: &'a [String],
    status: &'static str,
    seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    notes: Vec<&'a str>,
}

impl<'a> Report<'a> {
    fn new(record: &'a Record, circumstances: Circumstances<'a>) -> Self {
        let counts = record.counts();
        let mut features: Vec<Feature<'a>> = Vec::new();
        for scenario in record.scenarios() {
            let planned = &scenario.planned;
            if features.last().is_none_or(|feature| feature.path != planned.key.path) {
                features.push(Feature {
                    path: &planned.key.path,
                    name: &planned.feature,
                    scenarios: Vec::new(),
                    rules: Vec::new(),
                });
            }
            if let Some(feature) = features.last_mut() {
                feature.add(scenario);
            }
        }
        Self {
            version: RUN_VERSION,
            admit: env!("CARGO_PKG_VERSION"),
            target: circumstances.target.name(),
            seconds: record.elapsed().as_secs_f64(),
            counts: Counts {
                passed: counts.passed,
                flaky: counts.flaky,
                failed: counts.failed,
                unsupported: counts.unsupported,
                skipped: counts.skipped,
                not_run: counts.not_run,
            },
            audit_checks_not_made: circumstances.unchecked_audits,
            warnings: circumstances.warnings,
            features,
        }
    }
}

impl<'a> Feature<'a> {
    fn add(&mut self, record: &'a ScenarioRecord) {
        let scenario = Scenario::new(record);
        let Some(rule) = &record.planned.rule else {
            self.scenarios.push(scenario);
            return;
        };
        match self.rules.last_mut() {
            Some(open) if open.line == rule.line => open.scenarios.push(scenario),
            Some(_) | None => {
                self.rules.push(Rule { name: &rule.name, line: rule.line, scenarios: vec![scenario] });
            }
        }
    }
}

impl<'a> Scenario<'a> {
    fn new(record: &'a ScenarioRecord) -> Self {
        let (status, reason) = match &record.outcome {
            Outcome::NotRun => ("notRun", None),
            Outcome::Skipped(reason) => ("skipped", Some(reason.as_str())),
            Outcome::Passed => ("passed", None),
            Outcome::Failed => ("failed", None),
        };
        let planned = &record.planned;
        Self {
            name: &planned.name,
            line: planned.key.line,
            tags: &planned.tags,
            status,
            flaky: record.is_flaky(),
            reason,
            attempts: record
                .attempts
                .iter()
                .map(|attempt| AttemptReport::new(attempt, &planned.steps))
                .collect(),
        }
    }
}

impl<'a> AttemptReport<'a> {
    fn new(attempt: &'a Attempt, planned: &'a [PlannedStep]) -> Self {
        Self {
            status: if attempt.failed() { "failed" } else { "passed" },
            seconds: attempt.duration.as_secs_f64(),
            trouble: attempt.trouble.as_deref(),
            steps: planned
                .iter()
                .zip(&attempt.steps)
                .map(|(planned, step)| Step::new(planned, step))
                .collect(),
        }
    }
}

impl<'a> Step<'a> {
    fn new(planned: &'a PlannedStep, record: &'a StepRecord) -> Self {
        let status = match &record.outcome {
            StepOutcome::NotReached => "notReached",
            StepOutcome::Passed => "passed",
            StepOutcome::Failed(_) => "failed",
        };
        Self {
            keyword: &planned.keyword,
            text: &planned.text,
            line: planned.line,
            argument: &planned.argument,
            status,
            seconds: record.duration.as_secs_f64(),
            message: record.message(),
            notes: record.lines().collect(),
        }
    }
}
