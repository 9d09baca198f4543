//! Collects notes about calls and decisions, which are shown below the step that caused them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
