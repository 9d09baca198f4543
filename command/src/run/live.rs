//! The record of the run that goes on, and what of it stands on the terminal.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::display::Display;
use super::order::Order;
use super::record::{Outcome, Record, ScenarioKey, StepOutcome};

/// The record of the run that goes on. Clones share it.
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
    /// A record in which nothing has run yet.
    pub(crate) fn new(record: Record, display: Display) -> Self {
        let mut order = Order::new(record.scenarios().iter().map(|scenario| {
            let planned = &scenario.planned;
            (planned.key.path.clone(), planned.rule.as_ref().map(|rule| rule.line))
        }));
        for (position, scenario) in record.scenarios().iter().enumerate() {
            match scenario.outcome {
                Outcome::Skipped(_) => order.leave_out(position),
                Outcome::NotRun | Outcome::Passed | Outcome::Failed => {}
            }
        }
        Self { state: Arc::new(Mutex::new(State { record, order, display, running: Vec::new() })) }
    }

    /// An attempt at the scenario begins.
    pub(crate) fn begin(&self, key: &ScenarioKey) {
        self.with(key, |state, position| {
            state.running.push(position);
            if let Some(scenario) = state.record.scenario_mut(position) {
                scenario.begin();
            }
        });
    }

    /// The attempt that has just begun does not count: the run was stopped.
    pub(crate) fn withdraw(&self, key: &ScenarioKey) {
        self.with(key, |state, position| {
            if let Some(scenario) = state.record.scenario_mut(position) {
                scenario.attempts.pop();
            }
        });
    }

    /// Something outside of the steps went wrong.
    pub(crate) fn trouble(&self, key: &ScenarioKey, message: String) {
        self.with(key, |state, position| {
            if let Some(attempt) =
                state.record.scenario_mut(position).and_then(|scenario| scenario.attempt_mut())
            {
                attempt.trouble.get_or_insert(message);
            }
        });
    }

    /// The step at `line` begins.
    pub(crate) fn begin_step(&self, key: &ScenarioKey, line: usize) {
        self.with(key, |state, position| {
            let Some(scenario) = state.record.scenario_mut(position) else { return };
            if let (Some(step), Some(attempt)) = (scenario.step_position(line), scenario.attempts.last_mut())
            {
                attempt.begin_step(step);
            }
        });
    }

    /// The step at `line` has ended.
    pub(crate) fn end_step(&self, key: &ScenarioKey, line: usize, outcome: StepOutcome, told: Vec<String>) {
        self.with(key, |state, position| {
            let Some(scenario) = state.record.scenario_mut(position) else { return };
            if let (Some(step), Some(attempt)) = (scenario.step_position(line), scenario.attempts.last_mut())
            {
                attempt.end_step(step, outcome, told);
            }
        });
    }

    /// The attempt has ended; `left` others follow if it failed.
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

    /// How many scenarios run now.
    pub(crate) fn running(&self) -> usize {
        self.lock().running.len()
    }

    /// Reports the progress.
    pub(crate) fn tick(&self) {
        let mut state = self.lock();
        let State { record, display, running, .. } = &mut *state;
        display.progress(record, running);
    }

    /// Nothing runs any more: shows what was held back, and hands the record and the display to `finish`.
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
