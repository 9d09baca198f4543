//! The context of probes of webhooks, and the settings of the checks.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use kubernetes_admission::attributes::Attributes;
use kubernetes_admission::config::Webhook;
use kubernetes_api_server::ClusterFixture;

use super::check::Skipped;
use super::environment::{Environment, WebhookSet};
use super::object_probe::{Memory, ObjectProbe};
use super::recorder::Recorder;
use super::subject::Subject;

/// The context of a probe of one webhook.
#[derive(Debug)]
pub struct WebhookProbe<'a> {
    /// The environment of the requests.
    pub environment: &'a Environment,
    /// The webhook.
    pub subject: &'a Subject,
    /// All verified webhooks, in dispatch order.
    pub subjects: &'a [Subject],
    /// Requests that the webhook answered, for as many kinds as the corpus contains.
    pub samples: &'a [Attributes],
    /// The settings of the checks.
    pub settings: &'a Settings,
    /// Measurements for the report.
    pub notes: Notes,
}

/// The configurations of all webhooks, for probes without calls.
#[derive(Debug)]
pub struct ConfigurationSet<'a> {
    /// The webhooks.
    pub subjects: &'a [&'a Subject],
    /// Namespaces and served resources.
    pub cluster_fixture: &'a ClusterFixture,
    /// Limitations for the report.
    pub notes: Notes,
}

/// Sentences that appear in the report even without a finding.
#[derive(Debug, Default)]
pub struct Notes(Mutex<Vec<String>>);

impl Notes {
    /// Adds a sentence.
    pub fn add(&self, sentence: impl Into<String>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(sentence.into());
    }

    /// Returns all sentences.
    pub(super) fn into_inner(self) -> Vec<String> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WebhookProbe<'_> {
    /// Returns a set with only this webhook.
    pub fn alone(&self) -> WebhookSet {
        self.subject.alone()
    }

    /// Creates the probe of the webhook with one request.
    pub fn object_probe<'b>(&'b self, request: &'b Attributes, memory: &'b Memory) -> ObjectProbe<'b> {
        let Self { environment, subject, subjects, .. } = *self;
        ObjectProbe { environment, subject, subjects, request, memory }
    }

    /// Adds a sentence to the report, such as a measurement.
    pub fn note(&self, sentence: impl Into<String>) {
        self.notes.add(sentence);
    }

    /// Returns whether a new CA bundle is expected but does not exist yet.
    pub(super) fn lacks_new_bundle(&self) -> bool {
        let rotation = self.settings.rotation.as_ref();
        rotation
            .and_then(|rotation| rotation.ca_bundle.as_ref())
            .is_some_and(|bundle| bundle.read().is_none())
    }

    /// Returns the webhook with a `caBundle` that contains both the old and the new CA.
    ///
    /// # Errors
    /// There is a new bundle but no old one to extend.
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

/// The user's settings of the checks.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The number of concurrent requests when latency is measured.
    pub concurrency: usize,
    /// The number of concurrent requests in the overload check.
    pub overload: usize,
    /// A local webhook that responds immediately, whose latency shows how busy the machine is.
    ///
    /// If `None`, the machine is assumed to be idle.
    pub control: Option<Arc<Webhook>>,
    /// The minimum remaining validity of certificates; by default 30 days, or a third of the lifetime if that
    /// is less.
    pub horizon: Option<Duration>,
    /// Records the requests of the webhooks to their API server, if admit serves one.
    pub recorder: Option<Recorder>,
    /// How the webhooks' certificates are renewed, if possible.
    pub rotation: Option<Rotation>,
    /// How the webhooks are stopped, if possible.
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

/// How the webhooks' certificates are renewed.
#[derive(Clone, Debug)]
pub struct Rotation {
    /// The command that renews them.
    pub command: Intervention,
    /// The CA of the new certificates; `None` if the `caBundle` already contains it.
    pub ca_bundle: Option<Bundle>,
    /// The time limit of the command, and the time limit for a webhook to present the new certificate afterward.
    pub patience: Duration,
}

/// How the webhooks are stopped.
#[derive(Clone, Debug)]
pub struct Stop {
    /// The command that stops them.
    pub command: Intervention,
    /// How long calls still arrive after the command starts, while endpoints are updated.
    pub drain: Duration,
    /// The time limit for the command and the webhooks to finish after [`Self::drain`].
    pub patience: Duration,
}

/// Certificates (PEM) that may not exist until the verification runs.
#[derive(Clone)]
pub struct Bundle(Arc<dyn Fn() -> Option<Vec<u8>> + Send + Sync>);

impl Bundle {
    /// Creates a bundle that calls `read` repeatedly; `read` returns `None` until the file exists.
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
    /// Creates an intervention from a function that returns the reason if it fails.
    pub fn new<F>(intervene: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<(), String>> + Send + 'static,
    {
        Self(Arc::new(move || Box::pin(intervene())))
    }

    /// Runs the intervention, which fails if it takes longer than `patience`.
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
