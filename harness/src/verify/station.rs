//! What a probe gets that looks at webhooks and not at objects, and what the user decides about it.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::laboratory::{Laboratory, Lineup};
use super::recorder::Recorder;
use super::subject::Subject;
use super::trial::{Memory, Trial};
use crate::attributes::Attributes;
use crate::server::Surroundings;

/// Everything that a probe of a webhook needs.
#[derive(Debug)]
pub struct Station<'a> {
    /// Where requests are tried.
    pub laboratory: &'a Laboratory,
    /// The webhook.
    pub subject: &'a Subject,
    /// Requests that the webhook answered, of as many kinds as the corpus has.
    pub samples: &'a [Attributes],
    /// What the user decides.
    pub settings: &'a Settings,
    /// What was measured, for the report.
    pub notes: Notes,
}

/// The configurations of all webhooks, for probes that make no call.
#[derive(Debug)]
pub struct Scene<'a> {
    /// The webhooks.
    pub subjects: &'a [&'a Subject],
    /// Namespaces and served resources.
    pub surroundings: &'a Surroundings,
    /// What cannot be told, for the report.
    pub notes: Notes,
}

/// Sentences that stand in the report also where nothing is wrong.
#[derive(Debug, Default)]
pub struct Notes(Mutex<Vec<String>>);

impl Notes {
    /// One more sentence.
    pub fn add(&self, sentence: impl Into<String>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(sentence.into());
    }

    /// All of them.
    pub(super) fn into_inner(self) -> Vec<String> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Station<'_> {
    /// The webhook alone.
    pub fn alone(&self) -> Lineup {
        self.subject.alone()
    }

    /// The webhook on trial with one request.
    pub fn trial<'b>(&'b self, request: &'b Attributes, memory: &'b Memory) -> Trial<'b> {
        let subjects = std::slice::from_ref(self.subject);
        Trial { laboratory: self.laboratory, subject: self.subject, subjects, request, memory }
    }

    /// Puts a sentence into the report, also where nothing is wrong: what was measured.
    pub fn note(&self, sentence: impl Into<String>) {
        self.notes.add(sentence);
    }
}

/// What the user decides about the checks.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How many requests there are at a time where latency is measured.
    pub concurrency: usize,
    /// How many requests there are at a time where the webhook gets more than it can do.
    pub overload: usize,
    /// How long a certificate must still be valid.
    pub horizon: Duration,
    /// The API server that stands behind the webhooks and writes down what they do; none if there is none.
    pub recorder: Option<Recorder>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            concurrency: 8,
            overload: 200,
            horizon: Duration::from_secs(30 * 24 * 3600),
            recorder: None,
        }
    }
}
