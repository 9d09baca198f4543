//! What became of every scenario: the one record that display and reports are views of.

use std::collections::HashMap;
use std::time::Duration;

use harness::status::UNSUPPORTED_PREFIX;
use tokio::time::Instant;

use super::plan::PlannedScenario;

/// Every scenario that was selected, in the order of the files.
#[derive(Debug)]
pub(crate) struct Record {
    scenarios: Vec<ScenarioRecord>,
    index: HashMap<ScenarioKey, usize>,
    started: Instant,
}

/// Where a scenario stands: the path of its file and its line (of an outline: the line of its row).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ScenarioKey {
    /// The path as it was given.
    pub(crate) path: String,
    /// Counted from 1.
    pub(crate) line: usize,
}

/// One scenario and what became of it.
#[derive(Debug)]
pub(crate) struct ScenarioRecord {
    /// What the file says.
    pub(crate) planned: PlannedScenario,
    /// Every time that it was run, oldest first.
    pub(crate) attempts: Vec<Attempt>,
    /// What became of it.
    pub(crate) outcome: Outcome,
}

/// What became of a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Its turn did not come: the run was stopped before.
    NotRun,
    /// It is not for this target.
    Skipped(String),
    /// The last attempt passed.
    Passed,
    /// The last attempt failed.
    Failed,
}

/// One run of a scenario.
#[derive(Debug)]
pub(crate) struct Attempt {
    started: Instant,
    /// How long it took.
    pub(crate) duration: Duration,
    /// One for every planned step, in that order.
    pub(crate) steps: Vec<StepRecord>,
    /// What went wrong outside of the steps: before the first or after the last.
    pub(crate) trouble: Option<String>,
}

/// One step of one attempt.
#[derive(Clone, Debug)]
pub(crate) struct StepRecord {
    started: Option<Instant>,
    /// How long it took.
    pub(crate) duration: Duration,
    /// What became of it.
    pub(crate) outcome: StepOutcome,
    /// What the step told: calls and decisions.
    pub(crate) told: Vec<String>,
}

/// What became of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StepOutcome {
    /// An earlier step failed.
    NotReached,
    /// It holds.
    Passed,
    /// It does not hold, with the message.
    Failed(String),
}

/// How many scenarios ended how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Passed, at the last attempt.
    pub(crate) passed: usize,
    /// Passed, but not at the first attempt (they are among the passed).
    pub(crate) flaky: usize,
    /// Failed at every attempt.
    pub(crate) failed: usize,
    /// Failed because admit does not imitate what they need (they are among the failed).
    pub(crate) unsupported: usize,
    /// Not for this target.
    pub(crate) skipped: usize,
    /// Their turn did not come.
    pub(crate) not_run: usize,
}

impl Record {
    /// A record in which nothing has run yet.
    pub(crate) fn new(planned: Vec<(PlannedScenario, Option<String>)>, started: Instant) -> Self {
        let scenarios: Vec<_> = planned
            .into_iter()
            .map(|(planned, skipped)| ScenarioRecord {
                planned,
                attempts: Vec::new(),
                outcome: skipped.map_or(Outcome::NotRun, Outcome::Skipped),
            })
            .collect();
        let index =
            scenarios.iter().enumerate().map(|(at, scenario)| (scenario.planned.key.clone(), at)).collect();
        Self { scenarios, index, started }
    }

    /// Every scenario, in the order of the files.
    pub(crate) fn scenarios(&self) -> &[ScenarioRecord] {
        &self.scenarios
    }

    /// How long ago the run started.
    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Where the scenario stands in [`Self::scenarios`].
    pub(crate) fn position(&self, key: &ScenarioKey) -> Option<usize> {
        self.index.get(key).copied()
    }

    /// The scenario at `position`.
    pub(crate) fn scenario_mut(&mut self, position: usize) -> Option<&mut ScenarioRecord> {
        self.scenarios.get_mut(position)
    }

    /// How many scenarios ended how.
    pub(crate) fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for scenario in &self.scenarios {
            match scenario.outcome {
                Outcome::Passed => {
                    counts.passed += 1;
                    counts.flaky += usize::from(scenario.is_flaky());
                }
                Outcome::Failed => {
                    counts.failed += 1;
                    counts.unsupported += usize::from(scenario.is_unsupported());
                }
                Outcome::Skipped(_) => counts.skipped += 1,
                Outcome::NotRun => counts.not_run += 1,
            }
        }
        counts
    }
}

impl ScenarioRecord {
    /// Passed, but not at the first attempt.
    pub(crate) fn is_flaky(&self) -> bool {
        self.outcome == Outcome::Passed && self.attempts.len() > 1
    }

    /// Failed, the last time because admit does not imitate what it needs.
    pub(crate) fn is_unsupported(&self) -> bool {
        let last = self.attempts.last().and_then(Attempt::failed_step);
        self.outcome == Outcome::Failed
            && last.is_some_and(|(_, message)| message.contains(UNSUPPORTED_PREFIX))
    }

    /// The time of all attempts.
    pub(crate) fn duration(&self) -> Duration {
        self.attempts.iter().map(|attempt| attempt.duration).sum()
    }

    /// The step that the file has at `line`.
    pub(crate) fn step_position(&self, line: usize) -> Option<usize> {
        self.planned.steps.iter().position(|step| step.line == line)
    }

    /// An attempt has begun.
    pub(crate) fn begin(&mut self) {
        let step = StepRecord {
            started: None,
            duration: Duration::ZERO,
            outcome: StepOutcome::NotReached,
            told: Vec::new(),
        };
        self.attempts.push(Attempt {
            started: Instant::now(),
            duration: Duration::ZERO,
            steps: vec![step; self.planned.steps.len()],
            trouble: None,
        });
    }

    /// The attempt that runs or ran last.
    pub(crate) fn attempt_mut(&mut self) -> Option<&mut Attempt> {
        self.attempts.last_mut()
    }

    /// The attempt that runs has ended; its outcome is the scenario's, unless another attempt follows.
    pub(crate) fn end(&mut self) {
        if let Some(attempt) = self.attempts.last_mut() {
            attempt.duration = attempt.started.elapsed();
            self.outcome = if attempt.failed() { Outcome::Failed } else { Outcome::Passed };
        }
    }
}

impl Attempt {
    /// Whether a step failed or something around the steps went wrong.
    pub(crate) fn failed(&self) -> bool {
        self.trouble.is_some() || self.failed_step().is_some()
    }

    /// The position of the step that failed, with its message.
    pub(crate) fn failed_step(&self) -> Option<(usize, &str)> {
        self.steps.iter().enumerate().find_map(|(position, step)| match &step.outcome {
            StepOutcome::Failed(message) => Some((position, message.as_str())),
            StepOutcome::NotReached | StepOutcome::Passed => None,
        })
    }

    /// The step at `position` has begun.
    pub(crate) fn begin_step(&mut self, position: usize) {
        if let Some(step) = self.steps.get_mut(position) {
            step.started = Some(Instant::now());
        }
    }

    /// The step at `position` has ended.
    pub(crate) fn end_step(&mut self, position: usize, outcome: StepOutcome, told: Vec<String>) {
        if let Some(step) = self.steps.get_mut(position) {
            step.duration = step.started.map_or(Duration::ZERO, |started| started.elapsed());
            step.outcome = outcome;
            step.told = told;
        }
    }
}
