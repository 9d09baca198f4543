//! Records the outcome of each scenario for the display and the reports.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;
use std::time::Duration;

use harness::status::UNSUPPORTED_PREFIX;
use regex::Regex;
use tokio::time::Instant;

use super::plan::{PlannedScenario, PlannedStep};
use crate::narrator::{Note, NoteKind};

/// The record of all selected scenarios, in file order.
#[derive(Debug)]
pub(crate) struct Record {
    scenarios: Vec<ScenarioRecord>,
    index: HashMap<ScenarioKey, usize>,
    started: Instant,
}

/// Identifies a scenario by the path of its file and its line (for an outline, the line of its row).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ScenarioKey {
    /// The path as specified by the user.
    pub(crate) path: String,
    /// The line, counted from 1.
    pub(crate) line: usize,
}

/// A scenario, its attempts, and its outcome.
#[derive(Debug)]
pub(crate) struct ScenarioRecord {
    /// The scenario as written in its file.
    pub(crate) planned: PlannedScenario,
    /// All attempts, oldest first.
    pub(crate) attempts: Vec<Attempt>,
    /// The outcome of the last attempt, if it ran.
    pub(crate) outcome: Outcome,
}

/// The failure of a scenario, as reports describe it.
#[derive(Debug)]
pub(crate) struct ScenarioFailure<'a> {
    /// The failed step; `None` if the error occurred outside of the steps.
    pub(crate) step: Option<&'a PlannedStep>,
    /// The line of the step or, if `step` is `None`, of the scenario.
    pub(crate) line: usize,
    pub(crate) message: Option<&'a str>,
    /// The notes that can explain the failure and that the message does not contain.
    pub(crate) notes: Vec<&'a Note>,
    /// All notes of the last request about what happened, such as its calls, in order.
    pub(crate) events: Vec<&'a Note>,
    /// The whole documents that the failed step checked.
    pub(crate) documents: Vec<&'a Note>,
}

impl ScenarioFailure<'_> {
    /// Returns whether the error at the end of the run contains `note`, which belongs to the failed attempt.
    pub(crate) fn shows(&self, note: &Note) -> bool {
        self.notes.iter().any(|shown| std::ptr::eq(*shown, note))
            || self.message.is_some_and(|message| repeats(message, note))
    }
}

/// Replaces UIDs, which are random.
fn without_uids(text: &str) -> Cow<'_, str> {
    static UID: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
            .unwrap_or_else(|error| unreachable!("{error}"))
    });
    UID.replace_all(text, "UID")
}

/// Returns whether a message contains the text of a note, or the note's reason why a webhook was not called.
fn repeats(message: &str, note: &Note) -> bool {
    let reason = note.text.split_once(": not called: ").map_or(&*note.text, |(_, reason)| reason);
    message.contains(reason)
}

/// The outcome of a scenario after its last attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The run stopped before the scenario started.
    NotRun,
    /// The scenario does not apply to this target; contains the reason.
    Skipped(String),
    /// The last attempt passed.
    Passed,
    /// The last attempt failed.
    Failed,
}

/// One attempt at a scenario.
#[derive(Debug)]
pub(crate) struct Attempt {
    started: Instant,
    /// The duration of the attempt.
    pub(crate) duration: Duration,
    /// The records of the planned steps, in the same order.
    pub(crate) steps: Vec<StepRecord>,
    /// An error that occurred before the first step or after the last step.
    pub(crate) trouble: Option<String>,
}

/// The outcome of a step in an attempt.
#[derive(Clone, Debug)]
pub(crate) struct StepRecord {
    started: Option<Instant>,
    /// The duration of the step.
    pub(crate) duration: Duration,
    /// The outcome of the step.
    pub(crate) outcome: StepOutcome,
    /// The notes of the step: its calls and decisions.
    pub(crate) told: Vec<Note>,
}

/// The outcome of a step and, if it failed, the message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StepOutcome {
    /// The step did not run because an earlier step failed.
    NotReached,
    /// The step passed.
    Passed,
    /// The step failed, with this message.
    Failed(String),
}

/// The number of scenarios with each outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// The number of scenarios whose last attempt passed.
    pub(crate) passed: usize,
    /// The number of scenarios that passed, but not in the first attempt (included in `passed`).
    pub(crate) flaky: usize,
    /// The number of scenarios that failed in every attempt.
    pub(crate) failed: usize,
    /// The number of scenarios that failed because admit does not support a feature (included in `failed`).
    pub(crate) unsupported: usize,
    /// The number of scenarios that do not apply to the target.
    pub(crate) skipped: usize,
    /// The number of scenarios that did not start before the run stopped.
    pub(crate) not_run: usize,
}

impl Record {
    /// Creates a record of a run that started at `started`, in which no scenario has run yet.
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

    /// Returns all scenarios, in file order.
    pub(crate) fn scenarios(&self) -> &[ScenarioRecord] {
        &self.scenarios
    }

    /// Returns the scenarios whose last attempt failed, in file order.
    pub(crate) fn failures(&self) -> impl Iterator<Item = &ScenarioRecord> {
        self.scenarios.iter().filter(|scenario| scenario.outcome == Outcome::Failed)
    }

    /// Returns the scenarios whose last attempt failed. Those with the same text of the failed step, the same message, and
    /// the same notes form a group, apart from the UIDs of objects and requests.
    pub(crate) fn failure_groups(&self) -> Vec<Vec<&ScenarioRecord>> {
        let mut groups: Vec<Vec<&ScenarioRecord>> = Vec::new();
        let mut positions = HashMap::new();
        for scenario in self.failures() {
            let failure = scenario.failure();
            let notes: Vec<_> = failure.notes.iter().map(|note| without_uids(&note.text)).collect();
            let key = failure.step.map(|step| (step.text.as_str(), failure.message.map(without_uids), notes));
            let position = key.map_or(groups.len(), |key| *positions.entry(key).or_insert(groups.len()));
            match groups.get_mut(position) {
                Some(group) => group.push(scenario),
                None => groups.push(vec![scenario]),
            }
        }
        groups
    }

    /// Returns the time since the run started.
    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Returns the index of the scenario `key` in [`Self::scenarios`].
    pub(crate) fn position(&self, key: &ScenarioKey) -> Option<usize> {
        self.index.get(key).copied()
    }

    /// Returns the scenario at `position`.
    pub(crate) fn scenario_mut(&mut self, position: usize) -> Option<&mut ScenarioRecord> {
        self.scenarios.get_mut(position)
    }

    /// Returns the number of scenarios with each outcome.
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
    /// Returns whether the scenario passed, but not in the first attempt.
    pub(crate) fn is_flaky(&self) -> bool {
        self.outcome == Outcome::Passed && self.attempts.len() > 1
    }

    /// Returns whether the last attempt failed because admit does not support a feature that the scenario requires.
    pub(crate) fn is_unsupported(&self) -> bool {
        let last = self.attempts.last().and_then(Attempt::failed_step);
        self.outcome == Outcome::Failed
            && last.is_some_and(|(_, message)| message.contains(UNSUPPORTED_PREFIX))
    }

    /// Returns the failed step of an attempt at this scenario, and the message.
    pub(crate) fn failed_step<'a>(&'a self, attempt: &'a Attempt) -> Option<(&'a PlannedStep, &'a str)> {
        let (position, message) = attempt.failed_step()?;
        Some((self.planned.steps.get(position)?, message))
    }

    /// Returns the step that is running, if any.
    pub(crate) fn running_step(&self) -> Option<&PlannedStep> {
        let steps = &self.attempts.last()?.steps;
        let is_running =
            |step: &StepRecord| step.started.is_some() && step.outcome == StepOutcome::NotReached;
        self.planned.steps.get(steps.iter().position(is_running)?)
    }

    /// Returns the failure of the last attempt, for reports.
    pub(crate) fn failure(&self) -> ScenarioFailure<'_> {
        self.failure_of(self.attempts.last())
    }

    /// Returns the failure of `attempt`, for reports.
    pub(crate) fn failure_of<'a>(&'a self, attempt: Option<&'a Attempt>) -> ScenarioFailure<'a> {
        let failed = attempt.and_then(|attempt| self.failed_step(attempt));
        let message = failed.map(|(_, message)| message).or_else(|| attempt?.trouble.as_deref());
        let is_new = |note: &&Note| message.is_none_or(|message| !repeats(message, note));
        let documents = attempt.and_then(Attempt::failed_record).map_or(&[][..], |step| &step.told);
        ScenarioFailure {
            step: failed.map(|(step, _)| step),
            line: failed.map_or(self.planned.key.line, |(step, _)| step.line),
            message,
            notes: attempt.into_iter().flat_map(Attempt::causes).filter(is_new).collect(),
            events: attempt.into_iter().flat_map(Attempt::events).filter(is_new).collect(),
            documents: documents.iter().filter(|note| note.kind == NoteKind::Whole).collect(),
        }
    }

    /// Returns the total duration of all attempts.
    pub(crate) fn duration(&self) -> Duration {
        self.attempts.iter().map(|attempt| attempt.duration).sum()
    }

    /// Returns the index of the step at `line` of the file.
    pub(crate) fn step_position(&self, line: usize) -> Option<usize> {
        self.planned.steps.iter().position(|step| step.line == line)
    }

    /// Records that an attempt has begun.
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

    /// Returns the current or last attempt.
    pub(crate) fn attempt_mut(&mut self) -> Option<&mut Attempt> {
        self.attempts.last_mut()
    }

    /// Records that the current attempt has ended.
    ///
    /// The outcome of the attempt becomes the outcome of the scenario, unless another attempt follows.
    pub(crate) fn end(&mut self) {
        if let Some(attempt) = self.attempts.last_mut() {
            attempt.duration = attempt.started.elapsed();
            self.outcome = if attempt.failed() { Outcome::Failed } else { Outcome::Passed };
        }
    }
}

impl StepRecord {
    /// Returns the message of the failed step for reports, with the whole document that the step checked.
    pub(crate) fn message(&self) -> Option<String> {
        let StepOutcome::Failed(message) = &self.outcome else { return None };
        let documents = self.told.iter().filter(|note| note.kind == NoteKind::Whole);
        Some(documents.fold(message.clone(), |text, note| format!("{text}\n{}", note.text)))
    }

    /// Returns the calls and decisions of the step, one line each.
    pub(crate) fn lines(&self) -> impl Iterator<Item = &str> {
        let notes = self.told.iter().filter(|note| note.kind != NoteKind::Whole);
        notes.map(|note| note.text.as_str())
    }
}

impl Attempt {
    /// Returns whether a step failed or an error occurred outside of the steps.
    pub(crate) fn failed(&self) -> bool {
        self.trouble.is_some() || self.failed_step().is_some()
    }

    /// Returns the index and the message of the failed step.
    pub(crate) fn failed_step(&self) -> Option<(usize, &str)> {
        self.steps.iter().enumerate().find_map(|(position, step)| match &step.outcome {
            StepOutcome::Failed(message) => Some((position, message.as_str())),
            StepOutcome::NotReached | StepOutcome::Passed => None,
        })
    }

    /// Returns the record of the failed step.
    fn failed_record(&self) -> Option<&StepRecord> {
        self.failed_step().and_then(|(position, _)| self.steps.get(position))
    }

    /// Returns the notes of the last request up to the failed step that can explain the failure.
    pub(crate) fn causes(&self) -> impl Iterator<Item = &Note> {
        self.last_told().filter(|note| matches!(note.kind, NoteKind::Cause | NoteKind::Help))
    }

    /// Returns the notes of the last request up to the failed step about what happened, such as its calls.
    fn events(&self) -> impl Iterator<Item = &Note> {
        self.last_told().filter(|note| matches!(note.kind, NoteKind::Event | NoteKind::Cause))
    }

    /// Returns the notes of the last step up to the failed step that has notes about a request.
    fn last_told(&self) -> impl Iterator<Item = &Note> {
        let end = self.failed_step().map_or(self.steps.len(), |(position, _)| position + 1);
        let has_notes = |told: &&Vec<Note>| told.iter().any(|note| note.kind != NoteKind::Whole);
        self.steps.iter().take(end).rev().map(|step| &step.told).find(has_notes).into_iter().flatten()
    }

    /// Records that the step at `position` has begun.
    pub(crate) fn begin_step(&mut self, position: usize) {
        if let Some(step) = self.steps.get_mut(position) {
            step.started = Some(Instant::now());
        }
    }

    /// Records that the step at `position` has ended.
    pub(crate) fn end_step(&mut self, position: usize, outcome: StepOutcome, told: Vec<Note>) {
        if let Some(step) = self.steps.get_mut(position) {
            step.duration = step.started.map_or(Duration::ZERO, |started| started.elapsed());
            step.outcome = outcome;
            step.told = told;
        }
    }
}
