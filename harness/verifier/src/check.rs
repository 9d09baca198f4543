//! Defines checks and their findings.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::future::BoxFuture;
use kubernetes_admission::config::WebhookId;
use kubernetes_admission::event::Phase;
use kubernetes_api_server::ClusterFixture;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::call_recorder::Exchange;
use super::comparison::Difference;
use super::converter::ConverterProbe;
use super::environment::Outcome;
use super::lint::{Defect, Manifests};
use super::object_probe::ObjectProbe;
use super::sample_request::SampleRequest;
use super::subject::Subject;
use super::validity::without_positions;
use super::webhook_probe::{ConfigurationSet, WebhookProbe};

/// A check: an assertion, the reason for it, and the probe that tests it.
#[derive(Debug)]
pub struct Check {
    /// The stable id, such as `V01`.
    pub id: &'static str,
    /// The name of the check and what must hold, as `NAME: STATEMENT`.
    pub title: &'static str,
    /// The severity of the check's findings, unless a finding overrides it.
    pub severity: Severity,
    /// The reason for the check, as one paragraph.
    pub why: &'static str,
    /// The change that fixes a finding, as one imperative sentence.
    pub help: &'static str,
    /// The source of the rule.
    pub source: &'static str,
    /// The webhooks that the check applies to.
    pub audience: Audience,
    /// The function that tests the webhook.
    pub probe: Probe,
}

/// The severity of a finding. The order is that of `--fail-on`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(clippy::exhaustive_enums, reason = "reports and SARIF have these three")]
pub enum Severity {
    /// The webhook works, but the finding is useful to know.
    Note,
    /// The webhook fails under conditions that occur in practice.
    Warning,
    /// The webhook fails now.
    Error,
}

/// The webhooks that a check applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "admission has two phases, and there are conversions")]
pub enum Audience {
    /// All webhooks.
    All,
    /// Webhooks of a `MutatingWebhookConfiguration`.
    Mutating,
    /// Webhooks of a `ValidatingWebhookConfiguration`.
    Validating,
    /// Webhooks that convert the objects of a `CustomResourceDefinition`.
    Conversion,
}

impl Audience {
    /// Returns whether the audience includes webhooks of `phase`.
    pub fn includes(self, phase: Phase) -> bool {
        match self {
            Self::All => true,
            Self::Mutating => phase == Phase::Mutating,
            Self::Validating => phase == Phase::Validating,
            Self::Conversion => false,
        }
    }
}

/// The function of a check, classified by what it examines.
///
/// A probe is a plain function, so that a check is data. An async one is written as
/// `Probe::Object(|object_probe| Box::pin(run(object_probe)))`.
#[derive(Clone, Copy)]
#[expect(clippy::exhaustive_enums, reason = "the driver has a way to run each of them")]
pub enum Probe {
    /// Examines one configuration, without a call.
    Configuration(fn(&Subject, &ClusterFixture) -> Observed),
    /// Examines one configuration, alone and then with each object of the corpus, without a call.
    ConfigurationAndObject(
        fn(&Subject, &ClusterFixture) -> Observed,
        for<'a> fn(&'a ObjectProbe<'a>) -> BoxFuture<'a, Observed>,
    ),
    /// Examines the configurations of all webhooks of the audience together, without a call.
    Configurations(fn(&ConfigurationSet<'_>) -> Observed),
    /// Examines what one webhook writes, before any other call: clients rate-limit events and drop the
    /// excess.
    Effects(for<'a> fn(&'a WebhookProbe<'a>) -> BoxFuture<'a, Observed>),
    /// Examines one webhook while nothing else runs: latency, certificate.
    Webhook(for<'a> fn(&'a WebhookProbe<'a>) -> BoxFuture<'a, Observed>),
    /// Examines what one webhook does to one object. Runs for each object of the corpus, concurrently.
    Object(for<'a> fn(&'a ObjectProbe<'a>) -> BoxFuture<'a, Observed>),
    /// Examines what all webhooks together do to one object. `object_probe.subject` is the first of them.
    Collection(for<'a> fn(&'a ObjectProbe<'a>) -> BoxFuture<'a, Observed>),
    /// Examines all webhooks of the audience during a disruption, and returns one result for each. Runs last.
    Intervention(Disruption, for<'a> fn(&'a [WebhookProbe<'a>]) -> BoxFuture<'a, Vec<Observed>>),
    /// Examines one conversion webhook with objects of its definition.
    Conversion(for<'a> fn(&'a ConverterProbe<'a>) -> BoxFuture<'a, ConversionObservations>),
    /// Examines manifests, including configurations that the API server rejects, without a call. Only
    /// [`super::lint`] runs it.
    Manifests(fn(&Manifests<'_>) -> Vec<Defect>),
}

/// The observations of a probe of a conversion webhook, each about an object or about the webhook.
pub type ConversionObservations = Vec<(Option<Value>, Observed)>;

/// A disruption of the webhooks. Disruptions run in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the driver has an order for them")]
pub enum Disruption {
    /// Renews the certificates of the webhooks.
    Rotation,
    /// Stops the webhooks, so that all later calls fail.
    Stop,
}

impl Disruption {
    /// All disruptions, in order.
    pub const ALL: [Self; 2] = [Self::Rotation, Self::Stop];
}

impl std::fmt::Debug for Probe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Configuration(_) => "Configuration",
            Self::ConfigurationAndObject(..) => "ConfigurationAndObject",
            Self::Configurations(_) => "Configurations",
            Self::Effects(_) => "Effects",
            Self::Webhook(_) => "Webhook",
            Self::Object(_) => "Object",
            Self::Collection(_) => "Collection",
            Self::Intervention(..) => "Intervention",
            Self::Conversion(_) => "Conversion",
            Self::Manifests(_) => "Manifests",
        })
    }
}

/// The result of a probe: its violations (empty if the assertion holds), or the reason why it tested nothing.
pub type Observed = Result<Vec<Violation>, Skipped>;

/// The reason why a probe did not test its assertion.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, thiserror::Error)]
#[expect(clippy::exhaustive_enums, reason = "there is nothing to ask, no answer, or nothing to look with")]
pub enum Skipped {
    /// The check does not apply: for example, no rule matches, or the webhook changes nothing.
    #[error("{0}")]
    NotApplicable(String),
    /// The check applies but could not be run. The text names the cause.
    #[error("{0}")]
    NotChecked(String),
    /// Like `NotChecked`, but counts as passed if the webhook calls the watched API server by the end of the run.
    #[error("{0}")]
    Uncontacted(String),
    /// Like `NotChecked`, but not because of the webhook: an option is missing, another option rules the
    /// check out, or the webhook responds too fast for the check. The text says which.
    #[error("{0}")]
    Unequipped(String),
}

impl Skipped {
    /// Creates a result for a check that does not apply because of `reason`.
    pub fn not_applicable(reason: impl Into<String>) -> Self {
        Self::NotApplicable(reason.into())
    }

    /// Creates a result for a request for which a match condition of the webhook failed.
    pub(super) fn no_conditions() -> Self {
        Self::not_applicable("match conditions have no value for the request: see V55")
    }

    /// Creates a result for a check that could not be run because of `reason`.
    pub fn not_checked(reason: impl Into<String>) -> Self {
        Self::NotChecked(reason.into())
    }

    /// Creates a result for a check that lacks what `reason` names.
    pub fn unequipped(reason: impl Into<String>) -> Self {
        Self::Unequipped(reason.into())
    }
}

/// One violation of an assertion, as a probe found it.
#[derive(Clone, Debug)]
pub struct Violation {
    /// The kind of violation, independent of the object. Violations of one check, webhook, and kind form one
    /// finding, and an object is minimized as long as its kind stays the same.
    pub kind: String,
    /// One sentence with names and values.
    pub message: String,
    /// The differences between the expected and the actual object.
    pub differences: Vec<Difference>,
    /// The fields that are part of the finding's identity, as patterns without list positions and keys.
    pub fields: BTreeSet<String>,
    /// The outcomes of the requests that reproduce the violation, in order.
    pub steps: Vec<Arc<Outcome>>,
    /// Requests that reproduce the violation but are too large for a report.
    pub large: Vec<Arc<Outcome>>,
    /// Calls that reproduce the violation and do not belong to a request.
    pub exchanges: Vec<Exchange>,
    /// Requests derived from the configuration, for the proof; they were not sent.
    pub requests: Vec<SampleRequest>,
    /// The severity, if it differs from the check's.
    pub severity: Option<Severity>,
    /// For a static check, the invalid field as a path in the webhook's entry, such as `rules[0].scope`;
    /// empty for the whole entry.
    pub field: String,
    /// For a check of all webhooks together, the webhook whose entry is invalid, or the first such webhook.
    pub about: Option<Arc<WebhookId>>,
}

impl Violation {
    /// Creates a violation without differences and requests.
    pub fn new(kind: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            kind: kind.into(),
            message: message.into(),
            differences: Vec::new(),
            fields: BTreeSet::new(),
            steps: Vec::new(),
            large: Vec::new(),
            exchanges: Vec::new(),
            requests: Vec::new(),
            severity: None,
            field: String::new(),
            about: None,
        }
    }

    /// Sets the differences.
    #[must_use]
    pub fn with_differences(mut self, differences: Vec<Difference>) -> Self {
        self.differences = differences;
        self
    }

    /// Sets the differences, and makes their fields part of the finding's identity.
    #[must_use]
    pub fn with_fields(mut self, differences: Vec<Difference>) -> Self {
        self.fields = differences.iter().map(|difference| without_positions(&difference.path)).collect();
        self.with_differences(differences)
    }

    /// Sets the requests that reproduce the violation.
    #[must_use]
    pub fn with_steps(mut self, steps: impl IntoIterator<Item = Arc<Outcome>>) -> Self {
        self.steps = steps.into_iter().collect();
        self
    }

    /// Sets the calls that do not belong to a request.
    #[must_use]
    pub fn with_exchanges(mut self, exchanges: impl IntoIterator<Item = Exchange>) -> Self {
        self.exchanges = exchanges.into_iter().collect();
        self
    }

    /// Sets the requests that are too large for a report.
    #[must_use]
    pub fn with_large(mut self, requests: impl IntoIterator<Item = Arc<Outcome>>) -> Self {
        self.large = requests.into_iter().collect();
        self
    }

    /// Sets the requests derived from the configuration.
    #[must_use]
    pub fn with_requests(mut self, requests: impl IntoIterator<Item = SampleRequest>) -> Self {
        self.requests = requests.into_iter().collect();
        self
    }

    /// Sets the invalid field.
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

    /// Overrides the severity of the check.
    #[must_use]
    pub fn with_severity(mut self, severity: Severity) -> Self {
        self.severity = Some(severity);
        self
    }
}
