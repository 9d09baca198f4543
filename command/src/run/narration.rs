//! What a scenario tells beside its steps: each call and decision, shown under the step that made it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::record::ScenarioKey;

/// Collects what a scenario tells. The runner reads it when it prints the step.
#[derive(Clone, Debug, Default)]
pub(crate) struct Narrator {
    lines: Arc<Mutex<Vec<(usize, String)>>>,
}

impl Narrator {
    /// Tells one line about the step that stands at `step_line` of the feature file.
    pub(crate) fn tell(&self, step_line: usize, line: impl Into<String>) {
        lock(&self.lines).push((step_line, line.into()));
    }

    /// What was told about the step at `step_line`, oldest first.
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
    /// The narrator of a new attempt at the scenario.
    pub(crate) fn begin(&self, key: ScenarioKey) -> Narrator {
        let narrator = Narrator::default();
        lock(&self.attempts).entry(key).or_default().push(narrator.clone());
        narrator
    }

    /// The narrator of the attempt with this number, counted from 0.
    pub(crate) fn find(&self, key: &ScenarioKey, attempt: usize) -> Option<Narrator> {
        lock(&self.attempts).get(key)?.get(attempt).cloned()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
