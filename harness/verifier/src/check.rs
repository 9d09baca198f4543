//! Defines checks and their findings.

use futures::future::BoxFuture;
use kubernetes_admission::event::Phase;
use kubernetes_api_server::ClusterFixture;

use super::converter::ConverterProbe;
use super::manifests::{About, Manifests};
use super::object_probe::ObjectProbe;
use super::subject::Subject;
pub use super::violation::{ConversionObservations, Defect, Observed, Severity, Skipped, Violation};
use super::webhook_probe::{ConfigurationSet, WebhookProbe};

/// The help of a check whose messages already name the field to correct. Text reports omit it.
pub const CORRECT_AS_THE_MESSAGE_SAYS: &str = "Correct the field that the message names.";

/// A check: an assertion, the reason for it, and the probe that tests it.
#[derive(Debug)]
pub struct Check {
    /// The stable ID, such as `V01`.
    pub id: &'static str,
    /// The name of the check and its assertion, as `NAME: STATEMENT`.
    pub title: &'static str,
    /// The severity of the check's findings, unless a finding overrides it.
    pub severity: Severity,
    /// The reason why the check exists, as one paragraph.
    pub why: &'static str,
    /// The advice on how to fix a finding, as an imperative sentence.
    pub help: &'static str,
    /// The source of the rule that the check tests.
    pub source: &'static str,
    /// The webhooks that the check applies to.
    pub audience: Audience,
    /// Whether the check has the same result in every run.
    pub repeatability: Repeatability,
    /// The function that tests the assertion.
    pub probe: Probe,
}

/// Whether a check has the same result in every run on an unchanged webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a result can differ between runs or not")]
pub enum Repeatability {
    /// The result depends only on the configuration and on the webhook's responses.
    Same,
    /// The result depends on timing or chance.
    ///
    /// A run without the finding does not show that the finding no longer exists. The fields of a finding are not part
    /// of its identity.
    Varies,
}

/// The webhooks or policies that a check applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "admission has two phases, conversions, and policies")]
pub enum Audience {
    /// All webhooks.
    All,
    /// Webhooks of a `MutatingWebhookConfiguration`.
    Mutating,
    /// Webhooks of a `ValidatingWebhookConfiguration`.
    Validating,
    /// Webhooks that convert the objects of a `CustomResourceDefinition`.
    Conversion,
    /// Admission policies and their bindings, which do not have webhooks.
    Policies,
    /// All webhooks, and admission policies and their bindings.
    AllAndPolicies,
}

impl Audience {
    /// Returns whether the audience includes webhooks of `phase`.
    pub fn includes(self, phase: Phase) -> bool {
        match self {
            Self::All | Self::AllAndPolicies => true,
            Self::Mutating => phase == Phase::Mutating,
            Self::Validating => phase == Phase::Validating,
            Self::Conversion | Self::Policies => false,
        }
    }
}

/// The function of a check, classified by what it examines.
///
/// A probe is a plain function, so that a check is data. An asynchronous function is written as
/// `Probe::Object(|object_probe| Box::pin(run(object_probe)))`.
#[derive(Clone, Copy)]
#[expect(clippy::exhaustive_enums, reason = "the driver has a way to run each of them")]
pub enum Probe {
    /// Examines a configuration without calling the webhook.
    Configuration(fn(&Subject, &ClusterFixture) -> Observed),
    /// Examines a configuration by itself, and then with each object of the corpus, without calling the webhook.
    ///
    /// [`super::lint`] does not have a corpus. If the first function does not find an error, it calls the second
    /// function, which examines the configuration with example objects.
    ConfigurationAndObject(
        fn(&Subject, &ClusterFixture) -> Observed,
        fn(&Subject, &ClusterFixture) -> Vec<Violation>,
        for<'a> fn(&'a ObjectProbe<'a>) -> BoxFuture<'a, Observed>,
    ),
    /// Examines the configurations of all webhooks in the audience together, without calling webhooks.
    Configurations(fn(&ConfigurationSet<'_>) -> Observed),
    /// Examines the writes of a webhook before any other call, because clients rate-limit events and drop the excess.
    Effects(for<'a> fn(&'a WebhookProbe<'a>) -> BoxFuture<'a, Observed>),
    /// Examines a webhook while nothing else runs, for example its latency or its certificate.
    Webhook(for<'a> fn(&'a WebhookProbe<'a>) -> BoxFuture<'a, Observed>),
    /// Examines how a webhook handles an object. Runs concurrently for the objects of the corpus.
    Object(for<'a> fn(&'a ObjectProbe<'a>) -> BoxFuture<'a, Observed>),
    /// Examines how all webhooks together handle an object. `object_probe.subject` is the first of the webhooks.
    Collection(for<'a> fn(&'a ObjectProbe<'a>) -> BoxFuture<'a, Observed>),
    /// Examines all webhooks in the audience during a disruption after all other probes. Returns a result for each.
    Intervention(Disruption, for<'a> fn(&'a [WebhookProbe<'a>]) -> BoxFuture<'a, Vec<Observed>>),
    /// Examines a conversion webhook with objects of its definition.
    Conversion(for<'a> fn(&'a ConverterProbe<'a>) -> BoxFuture<'a, ConversionObservations>),
    /// Examines manifests, including configurations that the API server rejects, without calling webhooks.
    ///
    /// Only [`super::lint`] runs such a probe. It does not apply to manifests without the objects that it is about.
    Manifests(About, fn(&Manifests<'_>) -> Vec<Defect>),
}

/// A disruption of the webhooks. Disruptions run in the order of the variants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the driver has an order for them")]
pub enum Disruption {
    /// The certificates of the webhooks are renewed.
    Rotation,
    /// The webhooks are stopped, so that all later calls fail.
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
            Self::Manifests(..) => "Manifests",
        })
    }
}
