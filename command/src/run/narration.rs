//! Collects notes about calls and decisions, which are shown below the step that caused them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::record::ScenarioKey;

/// Collects the notes of a scenario; the runner reads them when it prints a step.
#[derive(Clone, Debug, Default)]
pub(crate) struct Narrator {
    lines: Arc<Mutex<Vec<(usize, String)>>>,
}

impl Narrator {
    /// Adds a line to the notes of the step at `step_line` of the feature file.
    pub(crate) fn tell(&self, step_line: usize, line: impl Into<String>) {
        lock(&self.lines).push((step_line, line.into()));
    }

    /// Returns the notes of the step at `step_line`, oldest first.
    pub(crate) fn told(&self, step_line: usize) -> Vec<String> {
        let lines = lock(&self.lines);
        lines.iter().filter(|(line, _)| *line == step_line).map(|(_, text)| text.clone()).collect()
    }
}

/// The narrators of all scenarios, one for each attempt.
#[derive(Clone, Debug, Default)]
pub(crate) struct Narrators {
    attempts: Arc<Mutex<HashMap<ScenarioKey, Vec<Narrator>>>>,
}

impl Narrators {
    /// Creates the narrator of a new attempt at the scenario `key`.
    pub(crate) fn begin(&self, key: ScenarioKey) -> Narrator {
        let narrator = Narrator::default();
        lock(&self.attempts).entry(key).or_default().push(narrator.clone());
        narrator
    }

    /// Returns the narrator of an attempt; `attempt` is counted from 0.
    pub(crate) fn find(&self, key: &ScenarioKey, attempt: usize) -> Option<Narrator> {
        lock(&self.attempts).get(key)?.get(attempt).cloned()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
