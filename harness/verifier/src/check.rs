//! What a check is, and what it finds.

use std::sync::Arc;

use futures::future::BoxFuture;
use kubernetes_admission::config::WebhookId;
use kubernetes_admission::event::Phase;
use kubernetes_api_server::ClusterFixture;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::comparison::Difference;
use super::converter::ConverterProbe;
use super::environment::Outcome;
use super::line::Exchange;
use super::lint::{Defect, Manifests};
use super::object_probe::ObjectProbe;
use super::shown::ShownRequest;
use super::subject::Subject;
use super::webhook_probe::{ConfigurationSet, WebhookProbe};

/// A check: what is asserted, why, and the probe that looks.
#[derive(Debug)]
pub struct Check {
    /// The stable id, such as `V01`.
    pub id: &'static str,
    /// What must hold, in a few words.
    pub title: &'static str,
    /// How bad it is if it does not.
    pub severity: Severity,
    /// Why it matters: one paragraph for people.
    pub why: &'static str,
    /// Where the rule comes from.
    pub source: &'static str,
    /// Which webhooks it is for.
    pub audience: Audience,
    /// What looks.
    pub probe: Probe,
}

/// How bad a finding is. The order is that of `--fail-on`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(clippy::exhaustive_enums, reason = "reports and SARIF have these three")]
pub enum Severity {
    /// Good to know.
    Note,
    /// Wrong under circumstances that will come.
    Warning,
    /// Wrong now.
    Error,
}

/// Which webhooks a check is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "admission has two phases, and there are conversions")]
pub enum Audience {
    /// All webhooks.
    All,
    /// Those of a `MutatingWebhookConfiguration`.
    Mutating,
    /// Those of a `ValidatingWebhookConfiguration`.
    Validating,
    /// Those that convert the objects of a `CustomResourceDefinition`.
    Conversion,
}

impl Audience {
    /// Whether a webhook that is called in `phase` belongs to it.
    pub fn includes(self, phase: Phase) -> bool {
        match self {
            Self::All => true,
            Self::Mutating => phase == Phase::Mutating,
            Self::Validating => phase == Phase::Validating,
            Self::Conversion => false,
        }
    }
}

/// What looks, and at what.
///
/// A probe is a plain function, so that a check is data. An async one is written as
/// `Probe::Object(|object_probe| Box::pin(run(object_probe)))`.
#[derive(Clone, Copy)]
#[expect(clippy::exhaustive_enums, reason = "the driver has a way to run each of them")]
pub enum Probe {
    /// Looks at the configuration alone: no call is made.
    Configuration(fn(&Subject, &ClusterFixture) -> Observed),
    /// Looks at the configuration alone, and then with each object of the corpus: no call is made.
    ConfigurationAndObject(
        fn(&Subject, &ClusterFixture) -> Observed,
        for<'a> fn(&'a ObjectProbe<'a>) -> BoxFuture<'a, Observed>,
    ),
    /// Looks at the configurations of all webhooks of the audience together: no call is made.
    Configurations(fn(&ConfigurationSet<'_>) -> Observed),
    /// Looks at what one webhook writes, alone and before anything else is asked of it: clients limit how often they write,
    /// and drop what goes beyond.
    Effects(for<'a> fn(&'a WebhookProbe<'a>) -> BoxFuture<'a, Observed>),
    /// Looks at one webhook, alone and while nothing else runs: latency, certificate.
    Webhook(for<'a> fn(&'a WebhookProbe<'a>) -> BoxFuture<'a, Observed>),
    /// Looks at what one webhook does to one object. Runs for each object of the corpus, many at a time.
    Object(for<'a> fn(&'a ObjectProbe<'a>) -> BoxFuture<'a, Observed>),
    /// Looks at what all webhooks together do to one object. `object_probe.subject` is then the first of them.
    Collection(for<'a> fn(&'a ObjectProbe<'a>) -> BoxFuture<'a, Observed>),
    /// Looks at all webhooks of the audience at once while something is done to them, and says what it saw of each. Runs
    /// after everything else.
    Intervention(Occasion, for<'a> fn(&'a [WebhookProbe<'a>]) -> BoxFuture<'a, Vec<Observed>>),
    /// Looks at one conversion webhook and the objects that it converts.
    Conversion(for<'a> fn(&'a ConverterProbe<'a>) -> BoxFuture<'a, Seen>),
    /// Looks at manifests, also those of configurations that no API server takes: no call is made. Only [`super::lint`]
    /// runs it.
    Manifests(fn(&Manifests<'_>) -> Vec<Defect>),
}

/// What a probe of a conversion webhook saw: of an object, or of the webhook.
pub type Seen = Vec<(Option<Value>, Observed)>;

/// What is done to the webhooks. The order is the order in which it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the driver has an order for them")]
pub enum Occasion {
    /// Their certificates are renewed.
    Rotation,
    /// They are ended: nothing can be asked after it.
    Stop,
}

impl Occasion {
    /// All of them, in order.
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

/// What a probe saw: nothing wrong (an empty list), what is wrong, or why it could not look.
pub type Observed = Result<Vec<Violation>, Obstacle>;

/// Why a probe could not look.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, thiserror::Error)]
#[expect(clippy::exhaustive_enums, reason = "there is nothing to ask, no answer, or nothing to look with")]
pub enum Obstacle {
    /// There is nothing that the check could be about: no rule matches, the webhook changes nothing.
    #[error("{0}")]
    NotApplicable(String),
    /// It could be about something, and cannot be told from here. The text says what is missing.
    #[error("{0}")]
    NotChecked(String),
    /// As `NotChecked`, unless the webhook turns out, by the end of the run, to use the API server that is watched: then
    /// what was asserted held.
    #[error("{0}")]
    Uncontacted(String),
    /// As `NotChecked`, but nothing is wrong with the webhook: an option is missing that would make it possible, one is
    /// given that rules it out, or there is nothing to be seen as long as it is not under strain. The text says which.
    #[error("{0}")]
    Unequipped(String),
}

impl Obstacle {
    /// There is nothing that the check could be about, since `reason`.
    pub fn not_applicable(reason: impl Into<String>) -> Self {
        Self::NotApplicable(reason.into())
    }

    /// Whether webhooks are called for it nobody knows.
    pub(super) fn no_conditions() -> Self {
        Self::not_applicable("match conditions have no value for the request: see V55")
    }

    /// It cannot be told from here, since `reason`.
    pub fn not_checked(reason: impl Into<String>) -> Self {
        Self::NotChecked(reason.into())
    }

    /// It cannot be told without what `reason` names.
    pub fn unequipped(reason: impl Into<String>) -> Self {
        Self::Unequipped(reason.into())
    }
}

/// One thing that is wrong, as a probe saw it.
#[derive(Clone, Debug)]
pub struct Violation {
    /// What is wrong, in words that do not depend on the object: findings of one check, webhook and kind are one
    /// finding, and an object may shrink for as long as the kind stays.
    pub kind: String,
    /// What is wrong, with names and values: one sentence.
    pub message: String,
    /// What differs between what should be and what is.
    pub differences: Vec<Difference>,
    /// The requests that show it, in order.
    pub steps: Vec<Arc<Outcome>>,
    /// Further requests that show it, which are too large for a report.
    pub large: Vec<Arc<Outcome>>,
    /// Calls that show it and belong to no request.
    pub exchanges: Vec<Exchange>,
    /// Requests that show it and were not made: what follows from the configuration, for its proof.
    pub requests: Vec<ShownRequest>,
    /// How bad it is, if that differs from the check's severity.
    pub severity: Option<Severity>,
    /// Of a static check, the field that is wrong, as a path in the entry of the webhook, such as `rules[0].scope`. Empty
    /// for all of the entry.
    pub field: String,
    /// Of a check of all webhooks together, the one whose entry is wrong, or the first of them.
    pub about: Option<Arc<WebhookId>>,
}

impl Violation {
    /// A violation without differences and requests.
    pub fn new(kind: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            kind: kind.into(),
            message: message.into(),
            differences: Vec::new(),
            steps: Vec::new(),
            large: Vec::new(),
            exchanges: Vec::new(),
            requests: Vec::new(),
            severity: None,
            field: String::new(),
            about: None,
        }
    }

    /// With what differs.
    #[must_use]
    pub fn with_differences(mut self, differences: Vec<Difference>) -> Self {
        self.differences = differences;
        self
    }

    /// With the requests that show it.
    #[must_use]
    pub fn with_steps(mut self, steps: impl IntoIterator<Item = Arc<Outcome>>) -> Self {
        self.steps = steps.into_iter().collect();
        self
    }

    /// With calls that show it and belong to no request.
    #[must_use]
    pub fn with_exchanges(mut self, exchanges: impl IntoIterator<Item = Exchange>) -> Self {
        self.exchanges = exchanges.into_iter().collect();
        self
    }

    /// With requests that show it and are too large for a report.
    #[must_use]
    pub fn with_large(mut self, requests: impl IntoIterator<Item = Arc<Outcome>>) -> Self {
        self.large = requests.into_iter().collect();
        self
    }

    /// With requests that follow from the configuration.
    #[must_use]
    pub fn with_requests(mut self, requests: impl IntoIterator<Item = ShownRequest>) -> Self {
        self.requests = requests.into_iter().collect();
        self
    }

    /// With the field that is wrong.
    #[must_use]
    pub fn at(mut self, field: impl Into<String>) -> Self {
        self.field = field.into();
        self
    }

    /// With the webhook whose entry is wrong.
    #[must_use]
    pub fn about(mut self, webhook: &Arc<WebhookId>) -> Self {
        self.about = Some(Arc::clone(webhook));
        self
    }

    /// With another severity than the check's.
    #[must_use]
    pub fn with_severity(mut self, severity: Severity) -> Self {
        self.severity = Some(severity);
        self
    }
}
