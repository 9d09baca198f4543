//! What a scenario tells beside its steps: each call and decision, shown under the step that made it.

use std::sync::{Arc, Mutex};

/// Collects what a scenario tells. The runner reads it when it prints the step.
#[derive(Clone, Debug, Default)]
pub(crate) struct Narrator {
    lines: Arc<Mutex<Vec<(usize, String)>>>,
}

impl Narrator {
    /// Tells one line about the step that stands at `step_line` of the feature file.
    pub(crate) fn tell(&self, step_line: usize, line: impl Into<String>) {
        self.lines.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((step_line, line.into()));
    }

    /// What was told about the step at `step_line`, oldest first.
    pub(crate) fn told(&self, step_line: usize) -> Vec<String> {
        let lines = self.lines.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        lines.iter().filter(|(line, _)| *line == step_line).map(|(_, text)| text.clone()).collect()
    }
}
