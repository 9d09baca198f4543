//! Runs requests through the complete dispatcher and real webhooks, without a server that stores objects.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use admission_webhook_client::{DirectRequest, Inspection, Redirects, ServiceResolver, WebhookCredentials};
use bytes::Bytes;
use kubernetes_admission::attributes::{Attributes, UserInfo};
use kubernetes_admission::caller::{Call, CallError, Reply};
use kubernetes_admission::cluster_state::ClusterState as _;
use kubernetes_admission::config::{Webhook, WebhookId};
use kubernetes_admission::dispatcher::{DispatchContext, Dispatcher, Rejection, Webhooks};
use kubernetes_admission::event::{CallResult, Called, Conditions, Event, Mismatch, Phase, Record, Round};
use kubernetes_api_server::ClusterFixture;
use kubernetes_types::status::Status;
use serde_json::Value;
use tokio::time::Instant;

use super::call_recorder::{CallRecorder, Connector, Direct, Exchange, Exchanges, RecordingCaller};
use super::turn::Turn;
use super::{failed_call, plugins, reasons, shape, stored};

/// The interval between calls of a webhook that has not recovered.
const RECOVERY_PERIOD: Duration = Duration::from_millis(100);

/// The default number of times that V11 repeats a request.
///
/// A webhook with two equally likely responses, such as one that writes a Go map of two keys in iteration order, gives
/// the same response each time in 1 of 16,384 runs.
const REPETITIONS: usize = 14;

/// An admission chain that runs requests without storing objects.
pub struct Environment {
    call_recorder: Arc<CallRecorder>,
    asked: Mutex<HashMap<(Phase, WebhookId), CallCounts>>,
    /// The namespaces and served resources.
    pub cluster_fixture: ClusterFixture,
    /// The user of the requests.
    pub user: UserInfo,
    /// The default namespace of objects.
    pub namespace: String,
    /// The number of times that V11 repeats a request, unless a response differs earlier.
    pub repetitions: usize,
    /// Whether V15 also sends each object without its optional fields.
    pub removes_optional_fields: bool,
}

impl std::fmt::Debug for Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Environment").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}

/// The number of calls that the admission chain made to a webhook, by result.
#[derive(Clone, Debug, Default)]
pub(super) struct CallCounts {
    pub(super) called: u64,
    /// The number of calls with a valid response.
    pub(super) answered: u64,
    /// The number of responses with a non-empty patch.
    pub(super) patched: u64,
    /// The number of failed calls by reason.
    pub(super) failures: BTreeMap<String, u64>,
    /// The number of responses that the API server rejected regardless of the failure policy, by reason.
    pub(super) rejected: BTreeMap<String, u64>,
    /// The first object for which a call failed without a response, by reason.
    pub(super) failed_objects: BTreeMap<String, String>,
}

/// The connection to use for a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a connection is there already, or it is made")]
pub enum Connection {
    /// A connection that was kept open after an earlier call, if any. The API server also reuses connections.
    ///
    /// If the server has closed the connection, the call is repeated on a new connection.
    Kept,
    /// Same as `Kept`, but without a second attempt if the connection ends, for webhooks that are being stopped.
    KeptWithoutRepeat,
    /// A new connection with a new handshake.
    New,
}

/// The webhooks to call for a request, in dispatch order.
#[derive(Clone, Debug, Default)]
pub struct WebhookSet {
    /// The mutating webhooks.
    pub mutating: Vec<Arc<Webhook>>,
    /// The validating webhooks.
    pub validating: Vec<Arc<Webhook>>,
}

impl PartialEq for WebhookSet {
    /// Compares the webhooks by allocation first, which is the common case, and then field by field.
    fn eq(&self, other: &Self) -> bool {
        let same = |ours: &[Arc<Webhook>], theirs: &[Arc<Webhook>]| {
            let mut pairs = ours.iter().zip(theirs);
            ours.len() == theirs.len() && pairs.all(|(a, b)| Arc::ptr_eq(a, b) || a == b)
        };
        same(&self.mutating, &other.mutating) && same(&self.validating, &other.validating)
    }
}

/// The outcome of a request and the events that led to it.
#[derive(Debug)]
pub struct Outcome {
    /// The webhooks that were available for the request.
    pub webhook_set: WebhookSet,
    /// The request before any webhook was called.
    pub request: Attributes,
    /// The object after the mutating phase, or after the last webhook that was called.
    pub object: Option<Value>,
    /// The reason why the request was rejected; `None` if it was admitted.
    pub refusal: Option<Rejection>,
    /// The events that the dispatcher recorded. The reasons of failed calls also contain the HTTP status and the start of
    /// the body.
    pub record: Record,
    /// The exchanges with webhooks, in order.
    pub exchanges: Vec<Exchange>,
}

/// The verdict on a request.
#[derive(Debug)]
#[expect(
    clippy::exhaustive_enums,
    reason = "the five ways in which a request ends, and what admit cannot say"
)]
pub enum Verdict<'a> {
    /// The request is admitted.
    Admitted,
    /// A webhook denied the request.
    Denied(&'a Status),
    /// A webhook failed; contains the reason from kube-apiserver's message, the HTTP status, and the start of the body.
    Failed(&'a str),
    /// The server failed the request regardless of `failurePolicy`, for example because a patch does not apply.
    ServerError(&'a Status),
    /// The match conditions of a webhook failed; contains the reason from kube-apiserver's message.
    NoConditions(&'a str),
    /// admit does not support the request; contains the unsupported feature.
    Unsupported(String),
}

impl Environment {
    /// Creates an environment that resolves services with `services` and follows all redirects.
    pub fn new(services: Arc<dyn ServiceResolver>, cluster_fixture: ClusterFixture, user: UserInfo) -> Self {
        let (redirects, credentials) = (Redirects::All, WebhookCredentials::default());
        let call_recorder = Arc::new(CallRecorder::new(Connector { services, redirects, credentials }));
        Self {
            call_recorder,
            asked: Mutex::default(),
            cluster_fixture,
            user,
            namespace: "default".to_owned(),
            repetitions: REPETITIONS,
            removes_optional_fields: true,
        }
    }

    /// Sets which redirects are followed. Must be called before the first call to a webhook.
    #[must_use]
    pub fn with_redirects(self, redirects: Redirects) -> Self {
        let connector = Connector { redirects, ..self.call_recorder.connector().clone() };
        Self { call_recorder: Arc::new(CallRecorder::new(connector)), ..self }
    }

    /// Sets the credentials for webhooks. Must be called before the first call to a webhook.
    #[must_use]
    pub fn with_credentials(self, credentials: WebhookCredentials) -> Self {
        let connector = Connector { credentials, ..self.call_recorder.connector().clone() };
        Self { call_recorder: Arc::new(CallRecorder::new(connector)), ..self }
    }

    /// Returns the number of calls to a webhook, by result.
    pub(super) fn asked(&self, phase: Phase, id: &WebhookId) -> CallCounts {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.get(&(phase, id.clone())).cloned().unwrap_or_default()
    }

    fn count(&self, outcome: &Outcome) {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        for called in outcome.calls() {
            let asked = asked.entry((called.phase, (*called.webhook).clone())).or_default();
            asked.called += 1;
            let patch = match &called.result {
                CallResult::Allowed { patch, .. } | CallResult::ServerError { patch, .. } => patch.as_ref(),
                CallResult::Denied(_) | CallResult::Failed { .. } | CallResult::Unknown => None,
            };
            match &called.result {
                CallResult::Failed { failure, .. } => {
                    let (reason, failed) = (&failure.reason, &mut asked.failed_objects);
                    if reasons::is_missing_response(reason) && failed.len() < reasons::MAX_KEPT {
                        failed.entry(reason.clone()).or_insert_with(|| outcome.described());
                    }
                    reasons::count(&mut asked.failures, reason.clone());
                }
                CallResult::Allowed { .. } | CallResult::ServerError { .. } | CallResult::Denied(_) => {
                    asked.answered += 1;
                }
                CallResult::Unknown => {}
            }
            if let CallResult::ServerError { status, .. } = &called.result {
                reasons::count(&mut asked.rejected, status.message.clone());
            }
            asked.patched += u64::from(patch.is_some_and(|operations| !operations.is_empty()));
        }
    }

    /// Returns the number of calls to webhooks.
    pub fn calls(&self) -> u64 {
        self.call_recorder.calls()
    }

    /// Returns the duration of a webhook's first call, including the time to connect, or `None` if it was never called.
    pub fn first_call(&self, webhook: &Webhook) -> Option<Duration> {
        self.call_recorder.first(&webhook.client_config.target)
    }

    /// Returns the request that creates `object`, as webhooks receive it.
    ///
    /// The object includes the fields that built-in admission plugins add to a Pod.
    ///
    /// # Errors
    /// Returns a `Status` if the resource is not served, a field has the wrong type, or a built-in plugin rejects the
    /// object.
    pub fn create(&self, object: Value) -> Result<Attributes, Box<Status>> {
        let mut request = self.cluster_fixture.create(object, &self.namespace, self.user.clone())?;
        plugins::complete(&mut request)?;
        Ok(request)
    }

    /// Sends `request` through the dispatcher.
    ///
    /// The dispatcher calls the mutating webhooks in both rounds, and then the validating webhooks.
    pub async fn admit(&self, webhook_set: &WebhookSet, request: &Attributes) -> Outcome {
        self.admit_in_turn(webhook_set, request, None).await
    }

    /// Sends a request as [`Self::admit`] does, but delays large responses until the object's turn.
    pub(super) async fn admit_in_turn(
        &self,
        webhook_set: &WebhookSet,
        request: &Attributes,
        turn: Option<&Arc<Turn>>,
    ) -> Outcome {
        let exchanges = Exchanges::default();
        let line = RecordingCaller::new(Arc::clone(&self.call_recorder), &exchanges, turn.map(Arc::clone));
        let dispatcher = Dispatcher::new(line);
        let chain = DispatchContext {
            mutating: Some(Webhooks::Listed(&webhook_set.mutating)),
            validating: Some(Webhooks::Listed(&webhook_set.validating)),
            mutating_policies: None,
            validating_policies: None,
            plugins: &[],
            last: &[],
            started: Instant::now(),
            deadline: None,
            trace: None,
            metrics: None,
        };
        let mut run = self.cluster_fixture.run(request.clone());
        let mut done = dispatcher.mutate(&mut run, &chain).await;
        let mut object = None;
        if done.is_ok() && !webhook_set.validating.is_empty() {
            object = run.attributes().object.clone();
            stored::prepare(run.attributes_mut(), &self.cluster_fixture);
            done = dispatcher.validate(&mut run, &chain).await;
        }
        let object = object.or_else(|| run.take_object());
        let mut record = run.record;
        failed_call::add_responses(&mut record, request);
        let outcome = Outcome {
            webhook_set: webhook_set.clone(),
            request: request.clone(),
            object,
            refusal: done.err(),
            record,
            exchanges: exchanges.take(),
        };
        self.count(&outcome);
        outcome
    }

    /// Sends `body` directly to a webhook, bypassing the dispatcher, to test reviews that no API server sends.
    pub async fn post(&self, webhook: &Webhook, body: Bytes) -> Exchange {
        let started = Instant::now();
        let (client_config, phase) = (&webhook.client_config, Some(webhook.phase));
        let call = Call { client_config, phase, body: body.clone(), timeout: webhook.timeout, trace: None };
        let mut redirects_and_retries = Vec::new();
        let reply = self.call_recorder.call(call, &mut redirects_and_retries).await;
        let direct = Some(Direct::review(webhook));
        Exchange {
            review: body,
            reply,
            took: started.elapsed(),
            redirects_and_retries,
            is_other_webhook: false,
            direct,
        }
    }

    /// Sends `body` as [`Self::post`] does, but on the given connection, and even if the webhook timed out too often.
    ///
    /// Dropping the future disconnects the caller.
    pub async fn call(&self, webhook: &Webhook, body: Bytes, connection: Connection) -> Exchange {
        self.call_recorder.count();
        self.call_control(webhook, body, connection).await
    }

    /// Sends `body` as [`Self::call`] does, to a webhook that is not verified, without counting the call.
    pub(super) async fn call_control(
        &self,
        webhook: &Webhook,
        body: Bytes,
        connection: Connection,
    ) -> Exchange {
        let started = Instant::now();
        let (client_config, phase) = (&webhook.client_config, Some(webhook.phase));
        let call = Call { client_config, phase, body: body.clone(), timeout: webhook.timeout, trace: None };
        let mut redirects_and_retries = Vec::new();
        let reply = match connection {
            Connection::Kept => self.call_recorder.send_review(call, &mut redirects_and_retries).await,
            Connection::KeptWithoutRepeat => {
                self.call_recorder.https().call_noting(call, &mut redirects_and_retries).await
            }
            Connection::New => {
                let new = self.call_recorder.connector().caller();
                new.call_noting(call, &mut redirects_and_retries).await
            }
        };
        let direct = Some(Direct::review(webhook));
        Exchange {
            review: body,
            reply,
            took: started.elapsed(),
            redirects_and_retries,
            is_other_webhook: false,
            direct,
        }
    }

    /// Waits until a webhook that failed answers `review` on a new connection, and returns how long that took.
    ///
    /// Afterward, the webhook is called again even if too many calls timed out. Returns `None` if the webhook does not
    /// answer within `limit`.
    pub(super) async fn recovery(
        &self,
        webhook: &Webhook,
        review: &Bytes,
        limit: Duration,
    ) -> Option<Duration> {
        let started = Instant::now();
        while started.elapsed() < limit {
            let exchange = self.call(webhook, review.clone(), Connection::New).await;
            if exchange.reply.is_ok() {
                self.call_recorder.forget_timeouts(&webhook.client_config.target);
                return Some(started.elapsed());
            }
            tokio::time::sleep(RECOVERY_PERIOD).await;
        }
        None
    }

    /// Sends a request directly to a webhook, to test requests that no API server sends.
    ///
    /// # Errors
    /// Returns an error if there is no reply.
    pub async fn send(&self, request: DirectRequest<'_>) -> Result<Reply, CallError> {
        self.call_recorder.count();
        self.call_recorder.send_direct(request).await
    }

    /// Performs a TLS handshake with the webhook's server, and returns the server's certificates and their problems.
    ///
    /// # Errors
    /// Returns an error if the connection fails.
    pub async fn inspect(&self, webhook: &Webhook) -> Result<Inspection, String> {
        self.call_recorder.https().inspect(&webhook.client_config, webhook.timeout).await
    }

    /// Returns whether the object's kind is built in. Absent and empty maps are equal only for built-in kinds.
    pub fn is_built_in(&self, request: &Attributes) -> bool {
        self.cluster_fixture.is_built_in(&request.kind)
    }
}

impl Outcome {
    /// Returns the kind and the name of the object, such as `Pod shop/web`.
    fn described(&self) -> String {
        let Attributes { kind, object, old_object, name, .. } = &self.request;
        let object = object.as_ref().or(old_object.as_ref());
        format!("{} {}", kind.kind, object.map_or_else(|| name.clone(), shape::object_name))
    }

    /// Returns the verdict on the request.
    pub fn verdict(&self) -> Verdict<'_> {
        let status = match &self.refusal {
            None => return Verdict::Admitted,
            Some(Rejection::Unsupported(unsupported)) => {
                return Verdict::Unsupported(unsupported.to_string());
            }
            Some(Rejection::Status(status)) => status,
        };
        let refused = self.calls().find_map(|called| match &called.result {
            CallResult::Denied(status) => Some(Verdict::Denied(status)),
            CallResult::Failed { failure, .. } => Some(Verdict::Failed(&failure.reason)),
            CallResult::ServerError { status, .. } => Some(Verdict::ServerError(status)),
            CallResult::Allowed { .. } | CallResult::Unknown => None,
        });
        refused
            .or_else(|| self.failed_conditions().map(|(_, reason)| Verdict::NoConditions(reason)).next())
            .unwrap_or(Verdict::ServerError(status))
    }

    /// Returns the reason why a webhook failed, or `None` if the [verdict](Self::verdict) is not a failure.
    pub fn failure(&self) -> Option<&str> {
        if let Verdict::Failed(reason) = self.verdict() { Some(reason) } else { None }
    }

    /// Returns the resulting object, or `None` if the request is rejected or does not have a resulting object.
    pub fn admitted(&self) -> Option<&Value> {
        self.object.as_ref().filter(|_| self.refusal.is_none())
    }

    /// Returns the webhooks whose match conditions failed, each with the reason.
    pub(super) fn failed_conditions(&self) -> impl Iterator<Item = (&Conditions, &str)> {
        self.record.events.iter().filter_map(|event| {
            let Event::Conditions(conditions) = event else { return None };
            Some((&**conditions, conditions.evaluation.error()?))
        })
    }

    /// Returns all calls in order.
    pub fn calls(&self) -> impl Iterator<Item = &Called> {
        self.record
            .events
            .iter()
            .filter_map(|event| if let Event::Called(called) = event { Some(&**called) } else { None })
    }

    /// Returns the calls to the webhook `id`.
    pub fn calls_of<'a>(&'a self, id: &'a WebhookId) -> impl Iterator<Item = &'a Called> {
        self.calls().filter(move |called| *called.webhook == *id)
    }

    /// Returns whether the webhook `id` was called in `round`.
    pub fn was_called(&self, id: &WebhookId, round: Round) -> bool {
        self.calls_of(id).any(|called| called.round == round)
    }

    /// Returns whether the webhook `id` changed the object in `round`.
    pub fn was_changed(&self, id: &WebhookId, round: Round) -> bool {
        let changes = |called: &Called| matches!(called.result, CallResult::Allowed { changed: true, .. });
        self.calls_of(id).any(|called| called.round == round && changes(called))
    }

    /// Returns the reason why the webhook `id` was not called in the first round, including failed match conditions.
    pub fn mismatch(&self, id: &WebhookId) -> Option<&Mismatch> {
        let has_failed =
            |(failed, _): (&Conditions, _)| *failed.webhook == *id && failed.round == Round::First;
        if self.failed_conditions().any(has_failed) {
            return Some(&Mismatch::Conditions);
        }
        self.record.events.iter().find_map(|event| {
            if let Event::Skipped { webhook, round: Round::First, mismatch, .. } = event
                && **webhook == *id
            {
                Some(mismatch)
            } else {
                None
            }
        })
    }

    /// Returns the exchanges with the webhook `id`, oldest first.
    pub fn exchanges_of<'a>(&'a self, id: &'a WebhookId) -> impl Iterator<Item = &'a Exchange> {
        self.exchanges
            .iter()
            .filter(move |exchange| self.calls_of(id).any(|called| called.review == exchange.review))
    }
}

/// Formats the verdict for reports.
impl std::fmt::Display for Verdict<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Admitted => f.write_str("admitted"),
            Self::Denied(status) | Self::ServerError(status) => f.write_str(&status.message),
            Self::Failed(reason) | Self::NoConditions(reason) => f.write_str(reason),
            Self::Unsupported(what) => f.write_str(what),
        }
    }
}
