//! Keeps the record of a run in progress and updates its display.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::display::Display;
use super::order::{Order, Sequence};
use super::record::{Outcome, Record, ScenarioKey, StepOutcome};
use crate::narrator::Note;

/// The record of a run in progress. All clones share the record.
#[derive(Clone, Debug)]
pub(crate) struct Live {
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    record: Record,
    order: Order,
    display: Display,
    running: Vec<usize>,
}

impl Live {
    /// Creates a record in which no scenario has run yet.
    pub(crate) fn new(record: Record, display: Display, sequence: Sequence) -> Self {
        let mut order = Order::new(
            sequence,
            record.scenarios().iter().map(|scenario| {
                let planned = &scenario.planned;
                (planned.key.path.clone(), planned.rule.as_ref().map(|rule| rule.line))
            }),
        );
        for (position, scenario) in record.scenarios().iter().enumerate() {
            match scenario.outcome {
                Outcome::Skipped(_) => order.leave_out(position),
                Outcome::NotRun | Outcome::Passed | Outcome::Failed => {}
            }
        }
        Self { state: Arc::new(Mutex::new(State { record, order, display, running: Vec::new() })) }
    }

    /// Records that an attempt at the scenario begins.
    pub(crate) fn begin(&self, key: &ScenarioKey) {
        self.with(key, |state, position| {
            state.running.push(position);
            if let Some(scenario) = state.record.scenario_mut(position) {
                scenario.begin();
            }
        });
    }

    /// Removes the attempt that just began, because the run was stopped before its first step.
    pub(crate) fn withdraw(&self, key: &ScenarioKey) {
        self.with(key, |state, position| {
            if let Some(scenario) = state.record.scenario_mut(position) {
                scenario.attempts.pop();
            }
        });
    }

    /// Records an error that occurred outside of the steps.
    pub(crate) fn trouble(&self, key: &ScenarioKey, message: String) {
        self.with(key, |state, position| {
            if let Some(attempt) =
                state.record.scenario_mut(position).and_then(|scenario| scenario.attempt_mut())
            {
                attempt.trouble.get_or_insert(message);
            }
        });
    }

    /// Records that the step at `line` begins.
    pub(crate) fn begin_step(&self, key: &ScenarioKey, line: usize) {
        self.with(key, |state, position| {
            let Some(scenario) = state.record.scenario_mut(position) else { return };
            if let (Some(step), Some(attempt)) = (scenario.step_position(line), scenario.attempts.last_mut())
            {
                attempt.begin_step(step);
            }
        });
    }

    /// Records that the step at `line` has ended.
    pub(crate) fn end_step(&self, key: &ScenarioKey, line: usize, outcome: StepOutcome, told: Vec<Note>) {
        self.with(key, |state, position| {
            let Some(scenario) = state.record.scenario_mut(position) else { return };
            if let (Some(step), Some(attempt)) = (scenario.step_position(line), scenario.attempts.last_mut())
            {
                attempt.end_step(step, outcome, told);
            }
        });
    }

    /// Records that the attempt has ended. If the attempt failed, `left` more attempts follow.
    pub(crate) fn end(&self, key: &ScenarioKey, left: usize) {
        self.with(key, |state, position| {
            state.running.retain(|running| *running != position);
            let Some(scenario) = state.record.scenario_mut(position) else { return };
            if scenario.attempts.is_empty() {
                return;
            }
            scenario.end();
            if scenario.outcome == Outcome::Failed && left > 0 {
                return;
            }
            for position in state.order.done(position) {
                state.display.scenario(&state.record, position);
            }
        });
    }

    /// Returns the number of scenarios that are running.
    pub(crate) fn running(&self) -> usize {
        self.lock().running.len()
    }

    /// Returns whether a scenario has failed.
    pub(crate) fn has_failures(&self) -> bool {
        self.lock().record.counts().failed > 0
    }

    /// Displays the current progress.
    pub(crate) fn tick(&self) {
        let mut state = self.lock();
        let State { record, display, running, .. } = &mut *state;
        display.progress(record, running);
    }

    /// Displays the remaining scenarios after the run has ended, and passes the record and the display to `finish`.
    pub(crate) fn finish<T>(&self, finish: impl FnOnce(&Record, &mut Display) -> T) -> T {
        let mut state = self.lock();
        let rest = state.order.rest();
        let State { record, display, .. } = &mut *state;
        for position in rest {
            display.scenario(record, position);
        }
        display.end_progress();
        finish(record, display)
    }

    fn with(&self, key: &ScenarioKey, change: impl FnOnce(&mut State, usize)) {
        let mut state = self.lock();
        if let Some(position) = state.record.position(key) {
            change(&mut state, position);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
