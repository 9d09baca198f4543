//! Provides the context for probes of webhooks, and the settings of the checks.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use kubernetes_admission::attributes::Attributes;
use kubernetes_admission::config::Webhook;
use kubernetes_api_server::ClusterFixture;

use super::environment::{Environment, WebhookSet};
use super::object_probe::{Memory, ObjectProbe};
use super::recorder::Recorder;
use super::subject::Subject;
use super::violation::Skipped;

/// The context of a probe of one webhook.
#[derive(Debug)]
pub struct WebhookProbe<'a> {
    /// The environment of the requests.
    pub environment: &'a Environment,
    /// The webhook that the probe examines.
    pub subject: &'a Subject,
    /// All verified webhooks, in dispatch order.
    pub subjects: &'a [Subject],
    /// The requests to send, for as many kinds as the corpus contains.
    pub samples: &'a [Attributes],
    /// The settings of the checks.
    pub settings: &'a Settings,
    /// Notes for the report, such as measurements.
    pub notes: Notes,
    /// The reasons why single requests could not be judged. The result is about the other requests.
    pub unjudged: Notes,
}

/// The configurations of all webhooks, for probes that do not call webhooks.
#[derive(Debug)]
pub struct ConfigurationSet<'a> {
    /// The webhooks of the configurations.
    pub subjects: &'a [&'a Subject],
    /// The namespaces and served resources.
    pub cluster_fixture: &'a ClusterFixture,
    /// Notes for the report about limitations.
    pub notes: Notes,
}

/// Sentences that the report contains even if there is no finding.
#[derive(Debug, Default)]
pub struct Notes(Mutex<Vec<String>>);

impl Notes {
    /// Adds a sentence to the notes.
    pub fn add(&self, sentence: impl Into<String>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(sentence.into());
    }

    /// Returns the notes.
    pub(super) fn into_inner(self) -> Vec<String> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WebhookProbe<'_> {
    /// Returns a set with only the webhook that the probe examines.
    pub fn alone(&self) -> WebhookSet {
        self.subject.alone()
    }

    /// Creates the context for a probe of the webhook with `request`.
    pub fn object_probe<'b>(&'b self, request: &'b Attributes, memory: &'b Memory) -> ObjectProbe<'b> {
        let Self { environment, subject, subjects, .. } = *self;
        ObjectProbe { environment, subject, subjects, request, memory }
    }

    /// Adds a sentence to the notes for the report, such as a measurement.
    pub fn note(&self, sentence: impl Into<String>) {
        self.notes.add(sentence);
    }

    /// Records that a request could not be judged because of `reason`.
    pub fn leave_unjudged(&self, reason: impl Into<String>) {
        self.unjudged.add(reason);
    }

    /// Returns whether the user specified a new CA bundle that does not exist yet.
    pub(super) fn lacks_new_bundle(&self) -> bool {
        let rotation = self.settings.rotation.as_ref();
        rotation
            .and_then(|rotation| rotation.ca_bundle.as_ref())
            .is_some_and(|bundle| bundle.read().is_none())
    }

    /// Returns the webhook with the new CA, if any, added to its `caBundle`.
    ///
    /// # Errors
    /// Returns [`Skipped`] if there is a new bundle, but no old bundle to extend.
    pub(super) fn renewed(&self) -> Result<Subject, Skipped> {
        let new = self.settings.rotation.as_ref().and_then(|rotation| rotation.ca_bundle.as_ref()?.read());
        let Some(new) = new else { return Ok(self.subject.clone()) };
        let mut called = (*self.subject.called).clone();
        let bundle = &mut called.client_config.ca_bundle;
        if bundle.is_empty() {
            let reason = "the configuration has no caBundle to extend with the new one: see --ca-file";
            return Err(Skipped::not_checked(reason));
        }
        bundle.push(b'\n');
        bundle.extend(new);
        Ok(Subject { called: Arc::new(called), ..self.subject.clone() })
    }
}

/// The user-specified settings for the checks.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The number of concurrent requests while latency is measured.
    pub concurrency: usize,
    /// The number of concurrent requests during the overload check.
    pub overload: usize,
    /// A local webhook that responds immediately. Its latency shows how busy the machine is.
    ///
    /// If `None`, the machine is assumed to be idle.
    pub control: Option<Arc<Webhook>>,
    /// The minimum remaining validity of certificates.
    ///
    /// The default is 30 days, or a third of the lifetime if that is less.
    pub horizon: Option<Duration>,
    /// The recorder of the webhooks' requests to their API server, if admit runs this server.
    pub recorder: Option<Recorder>,
    /// How to renew the webhooks' certificates, if the user specified a command.
    pub rotation: Option<Rotation>,
    /// How to stop the webhooks, if the user specified a command.
    pub stop: Option<Stop>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            concurrency: 8,
            overload: 200,
            control: None,
            horizon: None,
            recorder: None,
            rotation: None,
            stop: None,
        }
    }
}

/// How to renew the webhooks' certificates.
#[derive(Clone, Debug)]
pub struct Rotation {
    /// The command that renews the certificates.
    pub command: Intervention,
    /// The CA of the new certificates, or `None` if the `caBundle` already contains it.
    pub ca_bundle: Option<Bundle>,
    /// The time limit for the command, and then for a webhook to present the new certificate.
    pub patience: Duration,
}

/// How to stop the webhooks.
#[derive(Clone, Debug)]
pub struct Stop {
    /// The command that stops the webhooks.
    pub command: Intervention,
    /// The time after the start of the command during which calls still arrive, while endpoints are updated.
    pub drain: Duration,
    /// The time limit for the command and the webhooks to finish after `drain`.
    pub patience: Duration,
}

/// PEM certificates that may not exist before the verification starts.
#[derive(Clone)]
pub struct Bundle(Arc<dyn Fn() -> Option<Vec<u8>> + Send + Sync>);

impl Bundle {
    /// Creates a bundle from a function that returns `None` until the file exists. It is called repeatedly.
    pub fn new(read: impl Fn() -> Option<Vec<u8>> + Send + Sync + 'static) -> Self {
        Self(Arc::new(read))
    }

    fn read(&self) -> Option<Vec<u8>> {
        (self.0)()
    }
}

impl fmt::Debug for Bundle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Bundle(..)")
    }
}

/// A command that runs while the webhooks are called.
#[derive(Clone)]
pub struct Intervention(Arc<Intervene>);

type Intervene = dyn Fn() -> BoxFuture<'static, Result<(), String>> + Send + Sync;

impl Intervention {
    /// Creates an intervention from a function. If the intervention fails, the function returns the reason.
    pub fn new<F>(intervene: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<(), String>> + Send + 'static,
    {
        Self(Arc::new(move || Box::pin(intervene())))
    }

    /// Runs the intervention, and fails if it takes longer than `patience`.
    pub(super) fn within(&self, patience: Duration) -> BoxFuture<'static, Result<(), String>> {
        let done = tokio::time::timeout(patience, (self.0)());
        Box::pin(async move {
            let late = |_| format!("it did not finish within {} s", patience.as_secs());
            done.await.map_err(late)?
        })
    }
}

impl fmt::Debug for Intervention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Intervention(..)")
    }
}
