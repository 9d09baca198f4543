//! Collects the notes of all scenarios in a run.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use super::record::ScenarioKey;
use crate::narrator::{Narrator, lock};

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
