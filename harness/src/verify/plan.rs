//! What is verified, and how.

use super::check::Check;
use super::laboratory::Laboratory;
use super::progress::Progress;
use super::station::Settings;
use super::subject::Subject;

/// What is verified, and how.
pub struct Plan {
    /// Where requests are tried.
    pub laboratory: Laboratory,
    /// The webhooks, in dispatch order.
    pub subjects: Vec<Subject>,
    /// The checks by id; one with a reason is skipped.
    pub checks: Vec<(&'static Check, Option<String>)>,
    /// What the user decides.
    pub settings: Settings,
    /// How many objects the corpus has, if that is known: for the progress alone.
    pub objects: Option<u64>,
    /// How many objects are tried at a time.
    pub jobs: usize,
    /// Is told how far the run has come.
    pub progress: Box<dyn Fn(Progress) + Send + Sync>,
}

impl Plan {
    /// A plan of `checks` with the default settings, which tells nobody how far the run has come.
    pub fn new(
        laboratory: Laboratory,
        subjects: Vec<Subject>,
        checks: impl IntoIterator<Item = &'static Check>,
    ) -> Self {
        Self {
            laboratory,
            subjects,
            checks: checks.into_iter().map(|check| (check, None)).collect(),
            settings: Settings::default(),
            objects: None,
            jobs: 4,
            progress: Box::new(|_| {}),
        }
    }
}

impl std::fmt::Debug for Plan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Plan").field("checks", &self.checks).field("jobs", &self.jobs).finish_non_exhaustive()
    }
}
