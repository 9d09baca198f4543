//! One webhook on trial alone, while nothing else runs.

use std::time::Duration;

use super::laboratory::Laboratory;
use super::subject::Subject;
use crate::attributes::Attributes;

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
}

/// What the user decides about the checks.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How many requests there are at a time where latency is measured.
    pub concurrency: usize,
    /// How long a certificate must still be valid.
    pub horizon: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self { concurrency: 8, horizon: Duration::from_secs(30 * 24 * 3600) }
    }
}
