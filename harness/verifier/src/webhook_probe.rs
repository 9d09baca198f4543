//! What a probe gets that looks at webhooks and not at objects, and what the user decides about it.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use kubernetes_admission::attributes::Attributes;
use kubernetes_admission::config::Webhook;
use kubernetes_api_server::ClusterFixture;

use super::check::Obstacle;
use super::environment::{Environment, WebhookSet};
use super::object_probe::{Memory, ObjectProbe};
use super::recorder::Recorder;
use super::subject::Subject;

/// Everything that a probe of a webhook needs.
#[derive(Debug)]
pub struct WebhookProbe<'a> {
    /// Where requests are tried.
    pub environment: &'a Environment,
    /// The webhook.
    pub subject: &'a Subject,
    /// All webhooks that are verified, in dispatch order.
    pub subjects: &'a [Subject],
    /// Requests that the webhook answered, of as many kinds as the corpus has.
    pub samples: &'a [Attributes],
    /// What the user decides.
    pub settings: &'a Settings,
    /// What was measured, for the report.
    pub notes: Notes,
}

/// The configurations of all webhooks, for probes that make no call.
#[derive(Debug)]
pub struct ConfigurationSet<'a> {
    /// The webhooks.
    pub subjects: &'a [&'a Subject],
    /// Namespaces and served resources.
    pub cluster_fixture: &'a ClusterFixture,
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

impl WebhookProbe<'_> {
    /// The webhook alone.
    pub fn alone(&self) -> WebhookSet {
        self.subject.alone()
    }

    /// The webhook on trial with one request.
    pub fn object_probe<'b>(&'b self, request: &'b Attributes, memory: &'b Memory) -> ObjectProbe<'b> {
        let Self { environment, subject, subjects, .. } = *self;
        ObjectProbe { environment, subject, subjects, request, memory }
    }

    /// Puts a sentence into the report, also where nothing is wrong: what was measured.
    pub fn note(&self, sentence: impl Into<String>) {
        self.notes.add(sentence);
    }

    /// Whether a new bundle is announced and has not come to be.
    pub(super) fn lacks_new_bundle(&self) -> bool {
        let rotation = self.settings.rotation.as_ref();
        rotation
            .and_then(|rotation| rotation.ca_bundle.as_ref())
            .is_some_and(|bundle| bundle.read().is_none())
    }

    /// The webhook as it is trusted once its certificates are renewed: by the old bundle and the new one.
    ///
    /// # Errors
    /// There is a new bundle, and none that it could stand beside.
    pub(super) fn renewed(&self) -> Result<Subject, Obstacle> {
        let new = self.settings.rotation.as_ref().and_then(|rotation| rotation.ca_bundle.as_ref()?.read());
        let Some(new) = new else { return Ok(self.subject.clone()) };
        let mut called = (*self.subject.called).clone();
        let bundle = &mut called.client_config.ca_bundle;
        if bundle.is_empty() {
            let reason =
                "the configuration has no caBundle that the new one could stand beside: see --ca-file";
            return Err(Obstacle::not_checked(reason));
        }
        bundle.push(b'\n');
        bundle.extend(new);
        Ok(Subject { called: Arc::new(called), ..self.subject.clone() })
    }
}

/// What the user decides about the checks.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How many requests there are at a time where latency is measured.
    pub concurrency: usize,
    /// How many requests there are at a time where the webhook gets more than it can do.
    pub overload: usize,
    /// A webhook on this machine that answers at once: how long it takes says how busy the machine is. None if there is none,
    /// and the machine is taken for idle.
    pub control: Option<Arc<Webhook>>,
    /// How long a certificate must still be valid; none is 30 days, or a third of its whole time if that is less.
    pub horizon: Option<Duration>,
    /// The API server that stands behind the webhooks and writes down what they do; none if there is none.
    pub recorder: Option<Recorder>,
    /// How the certificates of the webhooks are renewed; none if they cannot be.
    pub rotation: Option<Rotation>,
    /// How the webhooks are ended; none if they cannot be.
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

/// How the certificates of the webhooks are renewed.
#[derive(Clone, Debug)]
pub struct Rotation {
    /// What renews them.
    pub command: Intervention,
    /// What the new certificates are signed by; none if the caBundle has it already.
    pub ca_bundle: Option<Bundle>,
    /// How long the command may take, and a webhook after it to show the new certificate.
    pub patience: Duration,
}

/// How the webhooks are ended.
#[derive(Clone, Debug)]
pub struct Stop {
    /// What ends them.
    pub command: Intervention,
    /// How long after the beginning of the command calls still come: as long as endpoints take to be updated.
    pub drain: Duration,
    /// How long after that the command, and a webhook, may take to end.
    pub patience: Duration,
}

/// Certificates (PEM) that may come to be only while the verification runs.
#[derive(Clone)]
pub struct Bundle(Arc<dyn Fn() -> Option<Vec<u8>> + Send + Sync>);

impl Bundle {
    /// What `read` finds; it is asked again and again, and says none as long as there are none.
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

/// Something that is done to the webhooks while they are called.
#[derive(Clone)]
pub struct Intervention(Arc<Intervene>);

type Intervene = dyn Fn() -> BoxFuture<'static, Result<(), String>> + Send + Sync;

impl Intervention {
    /// Does what `intervene` does; an error says why that could not be done.
    pub fn new<F>(intervene: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<(), String>> + Send + 'static,
    {
        Self(Arc::new(move || Box::pin(intervene())))
    }

    /// Does it, unless that takes longer than `patience`.
    pub(super) fn within(&self, patience: Duration) -> BoxFuture<'static, Result<(), String>> {
        let done = tokio::time::timeout(patience, (self.0)());
        Box::pin(async move {
            let late = |_| format!("it did not end within {} s", patience.as_secs());
            done.await.map_err(late)?
        })
    }
}

impl fmt::Debug for Intervention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Intervention(..)")
    }
}
