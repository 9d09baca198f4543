//! Collects notes about calls and decisions. Each note is shown below the step that caused it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The notes of a scenario. The runner reads them when it prints a step.
#[derive(Clone, Debug, Default)]
pub(crate) struct Narrator {
    notes: Arc<Mutex<Vec<(usize, Note)>>>,
}

/// A line below a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) kind: NoteKind,
    pub(crate) text: String,
}

/// Where a note is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoteKind {
    /// Below the step.
    Event,
    /// Also in the error at the end of the run, because it can explain why a later step fails.
    Cause,
    /// Only if the scenario fails: below the step, and as help in the error at the end of the run.
    Help,
    /// In reports and, with `--verbose`, also in the error. The note is the whole document that a failed step checked.
    Whole,
}

impl Narrator {
    /// Adds a note to the step at `step_line` of the feature file.
    pub(crate) fn tell(&self, step_line: usize, kind: NoteKind, text: impl Into<String>) {
        lock(&self.notes).push((step_line, Note { kind, text: text.into() }));
    }

    /// Returns the notes of the step at `step_line`, oldest first.
    pub(crate) fn told(&self, step_line: usize) -> Vec<Note> {
        let notes = lock(&self.notes);
        notes.iter().filter(|(line, _)| *line == step_line).map(|(_, note)| note.clone()).collect()
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
