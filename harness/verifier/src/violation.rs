//! Defines the results of checks: violations, and the reasons why a check was not run.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use kubernetes_admission::config::WebhookId;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::call_recorder::Exchange;
use super::comparison::Difference;
use super::environment::Outcome;
use super::sample_request::SampleRequest;
use super::validity::without_positions;

/// The severity of a finding, in the order of `--fail-on`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(clippy::exhaustive_enums, reason = "reports and SARIF have these three")]
pub enum Severity {
    /// The webhook works, but the finding is useful to know.
    Note,
    /// The webhook fails under conditions that occur in practice.
    Warning,
    /// The webhook fails in its current state.
    Error,
}

/// Returns advice that begins in lower case as a sentence, as in the documentation of the checks.
pub fn sentence(advice: &str) -> String {
    let (first, rest) = advice.split_at(advice.chars().next().map_or(0, char::len_utf8));
    format!("{}{rest}.", first.to_uppercase())
}

/// A violation in an object of the manifests.
#[derive(Debug)]
pub struct Defect {
    /// The position of the object in the manifests.
    pub(super) position: usize,
    /// The violation. Its field is a path in the object.
    pub(super) violation: Violation,
}

/// The result of a probe: the violations of its assertion, or the reason why it did not test the assertion.
pub type Observed = Result<Vec<Violation>, Skipped>;

/// The observations of a probe of a conversion webhook, each about an object or about the webhook.
pub type ConversionObservations = Vec<(Option<Value>, Observed)>;

/// The reason why a probe did not test its assertion.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, thiserror::Error)]
#[expect(clippy::exhaustive_enums, reason = "there is nothing to ask, no answer, or nothing to look with")]
pub enum Skipped {
    /// The check does not apply: for example, no rule matches, or the webhook does not change an object.
    #[error("{0}")]
    NotApplicable(String),
    /// The behavior that the check judges did not occur, so no violation was possible; contains what did not occur.
    ///
    /// For example, the check judges denials, but the webhook did not deny the object.
    #[error("{0}")]
    NotExercised(String),
    /// The check applies but could not be completed; contains the reason.
    #[error("{0}")]
    NotChecked(String),
    /// Same as `NotChecked`, but counts as passed if the webhook calls the watched API server before the run ends.
    #[error("{0}")]
    Uncontacted(String),
    /// Same as `NotChecked`, but the webhook is not the reason.
    ///
    /// An option is missing, another option excludes the check, or the webhook responds too fast for the check.
    #[error("{0}")]
    Unequipped(String),
}

impl Skipped {
    /// Creates the result of a check that does not apply because of `reason`.
    pub fn not_applicable(reason: impl Into<String>) -> Self {
        Self::NotApplicable(reason.into())
    }

    /// Creates the result for a request whose match conditions cannot be evaluated.
    pub(super) fn no_conditions() -> Self {
        Self::not_applicable("the match conditions cannot be evaluated for the request: see V55")
    }

    /// Creates the result of a check whose behavior did not occur; `what` says what did not occur.
    pub fn not_exercised(what: impl Into<String>) -> Self {
        Self::NotExercised(what.into())
    }

    /// Creates the result of a check that could not be completed because of `reason`.
    pub fn not_checked(reason: impl Into<String>) -> Self {
        Self::NotChecked(reason.into())
    }

    /// Creates the result of a check that lacks the prerequisite that `reason` names.
    pub fn unequipped(reason: impl Into<String>) -> Self {
        Self::Unequipped(reason.into())
    }
}

/// A violation of an assertion that a probe found.
#[derive(Clone, Debug)]
pub struct Violation {
    /// The kind of violation, independent of the object.
    ///
    /// Violations of one check, webhook, and kind form one finding. An object is minimized as long as its kind stays
    /// the same.
    pub kind: String,
    /// A sentence with names and values that describes the violation.
    pub message: String,
    /// The object that was sent, if the check derives it from the object of the corpus.
    pub sent: Option<Value>,
    /// The differences between the expected and the actual object.
    pub differences: Vec<Difference>,
    /// The fields that are part of the finding's identity, as patterns without list positions and keys.
    pub fields: BTreeSet<String>,
    /// Whether the example must show all fields, although a smaller object shows some of them.
    pub shows_all_fields: bool,
    /// The outcomes of the requests that reproduce the violation, in order.
    pub steps: Vec<Arc<Outcome>>,
    /// The requests that reproduce the violation but are too large for a report.
    pub large: Vec<Arc<Outcome>>,
    /// The calls that reproduce the violation without an admission request through the dispatcher.
    pub exchanges: Vec<Exchange>,
    /// The requests that were derived from the configuration for the proof, but not sent.
    pub requests: Vec<SampleRequest>,
    /// The severity, if it differs from the severity of the check.
    pub severity: Option<Severity>,
    /// The reason why the violation matters, if it differs from the reason of the check.
    pub why: Option<&'static str>,
    /// The advice on how to fix the violation, if it differs from the advice of the check.
    pub help: Option<Cow<'static, str>>,
    /// The invalid field in the webhook's entry, such as `rules[0].scope`.
    ///
    /// Empty if the violation is about the whole entry, or if the check is not static.
    pub field: String,
    /// The webhook whose entry is invalid, or the first such webhook, for a check of all webhooks together.
    pub about: Option<Arc<WebhookId>>,
    /// The name of the second object, for a violation of a static check about a pair of objects.
    pub other: Option<String>,
}

impl Violation {
    /// Creates a violation without differences and requests.
    pub fn new(kind: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            kind: kind.into(),
            message: message.into(),
            sent: None,
            differences: Vec::new(),
            fields: BTreeSet::new(),
            shows_all_fields: false,
            steps: Vec::new(),
            large: Vec::new(),
            exchanges: Vec::new(),
            requests: Vec::new(),
            severity: None,
            why: None,
            help: None,
            field: String::new(),
            about: None,
            other: None,
        }
    }

    /// Sets the object that was sent. The finding shows it instead of the object of the corpus.
    #[must_use]
    pub fn with_sent(mut self, object: Option<Value>) -> Self {
        self.sent = object;
        self
    }

    /// Sets the differences between the expected and the actual object, and makes their fields part of the finding's
    /// identity.
    #[must_use]
    pub fn with_differences(mut self, differences: Vec<Difference>) -> Self {
        self = self.with_fields(differences.iter().map(|difference| difference.path.as_str()));
        self.differences = differences;
        self
    }

    /// Makes the example of the finding show all fields.
    #[must_use]
    pub fn showing_all_fields(mut self) -> Self {
        self.shows_all_fields = true;
        self
    }

    /// Sets the fields that are part of the finding's identity, as paths that may have list positions and keys.
    #[must_use]
    pub fn with_fields<'a>(mut self, paths: impl IntoIterator<Item = &'a str>) -> Self {
        let fields = paths.into_iter().map(without_positions);
        self.fields = fields.filter(|field| !field.is_empty()).collect();
        self
    }

    /// Sets the requests that reproduce the violation.
    #[must_use]
    pub fn with_steps(mut self, steps: impl IntoIterator<Item = Arc<Outcome>>) -> Self {
        self.steps = steps.into_iter().collect();
        self
    }

    /// Sets the calls that reproduce the violation without an admission request through the dispatcher.
    #[must_use]
    pub fn with_exchanges(mut self, exchanges: impl IntoIterator<Item = Exchange>) -> Self {
        self.exchanges = exchanges.into_iter().collect();
        self
    }

    /// Sets the requests that reproduce the violation but are too large for a report.
    #[must_use]
    pub fn with_large(mut self, requests: impl IntoIterator<Item = Arc<Outcome>>) -> Self {
        self.large = requests.into_iter().collect();
        self
    }

    /// Sets the requests that were derived from the configuration.
    #[must_use]
    pub fn with_requests(mut self, requests: impl IntoIterator<Item = SampleRequest>) -> Self {
        self.requests = requests.into_iter().collect();
        self
    }

    /// Sets the invalid field in the webhook's entry.
    #[must_use]
    pub fn at(mut self, field: impl Into<String>) -> Self {
        self.field = field.into();
        self
    }

    /// Sets the webhook whose entry is invalid.
    #[must_use]
    pub fn about(mut self, webhook: &Arc<WebhookId>) -> Self {
        self.about = Some(Arc::clone(webhook));
        self
    }

    /// Sets the name of the second object of a pair.
    #[must_use]
    pub fn with_other(mut self, name: impl Into<String>) -> Self {
        self.other = Some(name.into());
        self
    }

    /// Sets the reason why the violation matters. Overrides the reason of the check.
    #[must_use]
    pub fn with_why(mut self, why: &'static str) -> Self {
        self.why = Some(why);
        self
    }

    /// Sets the advice on how to fix the violation. Overrides the advice of the check.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<Cow<'static, str>>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Sets the severity. Overrides the severity of the check.
    #[must_use]
    pub fn with_severity(mut self, severity: Severity) -> Self {
        self.severity = Some(severity);
        self
    }
}
