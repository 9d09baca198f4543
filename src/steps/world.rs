//! What one scenario knows.

use std::sync::Arc;

use crate::run::narration::Narrator;
use crate::target::Target;

/// What one scenario knows.
#[derive(Debug, cucumber::World)]
#[world(init = Self::unstarted)]
pub(crate) struct World {
    /// Set by the runner's `before`, which is the only place where the chosen target is known.
    target: Option<Arc<Target>>,
    narrator: Option<Narrator>,
}

impl World {
    fn unstarted() -> Self {
        Self { target: None, narrator: None }
    }

    /// Called once before the first step of every scenario.
    pub(crate) async fn start(&mut self, target: Arc<Target>, narrator: Narrator) {
        self.target = Some(target);
        self.narrator = Some(narrator);
    }

    /// Called once after the last step, also of a failed scenario: removes from the target what the scenario made.
    pub(crate) async fn finish(&mut self) {}
}
