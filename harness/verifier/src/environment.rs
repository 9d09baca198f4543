//! Where requests are tried: the whole dispatcher, real webhooks, and no server that stores anything.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use admission_webhook_client::{
    DirectRequest, HttpsCaller, Inspection, Redirects, ServiceResolver, WebhookCredentials,
};
use bytes::Bytes;
use kubernetes_admission::attributes::{Attributes, UserInfo};
use kubernetes_admission::caller::{Call, CallError, Reply};
use kubernetes_admission::cluster_state::ClusterState as _;
use kubernetes_admission::config::{Webhook, WebhookId};
use kubernetes_admission::dispatcher::{DispatchContext, Dispatcher, Refusal, Webhooks};
use kubernetes_admission::event::{CallResult, Called, Conditions, Event, Mismatch, Phase, Record, Round};
use kubernetes_api_server::ClusterFixture;
use kubernetes_types::status::Status;
use serde_json::Value;
use tokio::time::Instant;

use super::line::{CallRecorder, Direct, Exchange, Exchanges, Line};
use super::turn::Turn;
use super::{plugins, stored};

/// Where requests are tried.
pub struct Environment {
    services: Arc<dyn ServiceResolver>,
    redirects: Redirects,
    credentials: WebhookCredentials,
    call_recorder: Arc<CallRecorder>,
    asked: Mutex<HashMap<(Phase, WebhookId), Asked>>,
    /// Namespaces and served resources.
    pub cluster_fixture: ClusterFixture,
    /// Who makes the requests.
    pub user: UserInfo,
    /// Where an object without a namespace goes.
    pub namespace: String,
}

impl std::fmt::Debug for Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Environment").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}

/// How often a webhook was asked something that an API server asks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Asked {
    pub(super) called: u64,
    /// How often it answered with a patch that is not empty.
    pub(super) patched: u64,
}

/// Which connection a call takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a connection is there already, or it is made")]
pub enum Connection {
    /// One that is kept from an earlier call, if there is any, as the API server does.
    Kept,
    /// A new one, with a handshake of its own.
    New,
}

/// The webhooks that a request meets, in dispatch order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WebhookSet {
    /// Those that may change the object.
    pub mutating: Vec<Arc<Webhook>>,
    /// Those that may only refuse it.
    pub validating: Vec<Arc<Webhook>>,
}

/// What became of a request.
#[derive(Debug)]
pub struct Outcome {
    /// Whom it met.
    pub webhook_set: WebhookSet,
    /// The request as it came.
    pub request: Attributes,
    /// The object after the mutating phase, or as far as it came.
    pub object: Option<Value>,
    /// Why the request is not admitted.
    pub refusal: Option<Refusal>,
    /// What happened.
    pub record: Record,
    /// What was sent and what came back, in order.
    pub exchanges: Vec<Exchange>,
}

/// What a request was told.
#[derive(Debug)]
#[expect(
    clippy::exhaustive_enums,
    reason = "the five ways in which a request ends, and what admit cannot say"
)]
pub enum Verdict<'a> {
    /// It is admitted.
    Admitted,
    /// A webhook said no.
    Denied(&'a Status),
    /// A webhook gave no valid answer: the reason in kube-apiserver's words.
    Failed(&'a str),
    /// The server could not go on, whatever the failure policy: a patch that does not apply, for instance.
    ServerError(&'a Status),
    /// The match conditions of a webhook have no value, so that nobody knows whether it is called: the reason in
    /// kube-apiserver's words.
    NoConditions(&'a str),
    /// admit does not imitate what would happen.
    Unsupported(String),
}

impl Environment {
    /// An environment that finds services by `services`, and follows all redirects.
    pub fn new(services: Arc<dyn ServiceResolver>, cluster_fixture: ClusterFixture, user: UserInfo) -> Self {
        let call_recorder = Arc::new(CallRecorder::new(HttpsCaller::new(Arc::clone(&services))));
        Self {
            services,
            redirects: Redirects::All,
            credentials: WebhookCredentials::default(),
            call_recorder,
            asked: Mutex::default(),
            cluster_fixture,
            user,
            namespace: "default".to_owned(),
        }
    }

    /// The same environment with other redirects; nothing may have been called yet.
    #[must_use]
    pub fn with_redirects(self, redirects: Redirects) -> Self {
        Self { redirects, ..self }.with_new_caller()
    }

    /// The same environment with credentials; nothing may have been called yet.
    #[must_use]
    pub fn with_credentials(self, credentials: WebhookCredentials) -> Self {
        Self { credentials, ..self }.with_new_caller()
    }

    fn with_new_caller(self) -> Self {
        Self { call_recorder: Arc::new(CallRecorder::new(self.new_caller())), ..self }
    }

    /// A caller without connections.
    fn new_caller(&self) -> HttpsCaller {
        HttpsCaller::new(Arc::clone(&self.services))
            .with_redirects(self.redirects)
            .with_credentials(self.credentials.clone())
    }

    /// How often a webhook was asked.
    pub(super) fn asked(&self, phase: Phase, id: &WebhookId) -> Asked {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.get(&(phase, id.clone())).copied().unwrap_or_default()
    }

    fn count(&self, outcome: &Outcome) {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        for called in outcome.calls() {
            let asked = asked.entry((called.phase, (*called.webhook).clone())).or_default();
            asked.called += 1;
            let patch = match &called.result {
                CallResult::Allowed { patch, .. } | CallResult::ServerError { patch, .. } => patch.as_ref(),
                CallResult::Denied(_) | CallResult::Failed { .. } => None,
            };
            asked.patched += u64::from(patch.is_some_and(|operations| !operations.is_empty()));
        }
    }

    /// How many calls were made to webhooks.
    pub fn calls(&self) -> u64 {
        self.call_recorder.calls()
    }

    /// How long the first call of a webhook took, which had to connect; none if it was never called.
    pub fn first_call(&self, webhook: &Webhook) -> Option<Duration> {
        self.call_recorder.first(&webhook.client_config.target)
    }

    /// The request that creates `object`, as webhooks see it: a Pod also has what the server's own plugins gave it.
    ///
    /// # Errors
    /// No such resource is served, the object has fields of wrong types, or a plugin of the server refuses it.
    pub fn create(&self, object: Value) -> Result<Attributes, Box<Status>> {
        let mut request = self.cluster_fixture.create(object, &self.namespace, self.user.clone())?;
        plugins::complete(&mut request)?;
        Ok(request)
    }

    /// Sends `request` through the dispatcher: both rounds of the mutating webhooks, then the validating ones.
    pub async fn admit(&self, webhook_set: &WebhookSet, request: &Attributes) -> Outcome {
        self.admit_in_turn(webhook_set, request, None).await
    }

    /// As [`Self::admit`], and waits with large responses for the turn of the object.
    pub(super) async fn admit_in_turn(
        &self,
        webhook_set: &WebhookSet,
        request: &Attributes,
        turn: Option<&Arc<Turn>>,
    ) -> Outcome {
        let exchanges = Exchanges::default();
        let line = Line::new(Arc::clone(&self.call_recorder), &exchanges, turn.map(Arc::clone));
        let dispatcher = Dispatcher::new(line);
        let chain = DispatchContext {
            mutating: Some(Webhooks::Listed(&webhook_set.mutating)),
            validating: Some(Webhooks::Listed(&webhook_set.validating)),
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
        let outcome = Outcome {
            webhook_set: webhook_set.clone(),
            request: request.clone(),
            object: object.or_else(|| run.take_object()),
            refusal: done.err(),
            record: run.record,
            exchanges: exchanges.take(),
        };
        self.count(&outcome);
        outcome
    }

    /// Sends `body` to a webhook as it is, past the dispatcher: for reviews that no API server sends.
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

    /// As [`Self::post`], and also if the webhook was silent so often that nothing else calls it any more. To drop the
    /// future is to go away before the answer.
    pub async fn call(&self, webhook: &Webhook, body: Bytes, connection: Connection) -> Exchange {
        self.call_recorder.count();
        self.call_control(webhook, body, connection).await
    }

    /// As [`Self::call`], of a webhook that is not verified: the call is not counted.
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
            Connection::Kept => {
                self.call_recorder.https().call_noting(call, &mut redirects_and_retries).await
            }
            Connection::New => self.new_caller().call_noting(call, &mut redirects_and_retries).await,
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

    /// Sends a request that no API server would make.
    ///
    /// # Errors
    /// Why there is no reply.
    pub async fn send(&self, request: DirectRequest<'_>) -> Result<Reply, CallError> {
        self.call_recorder.count();
        self.call_recorder.https().send(request).await
    }

    /// What the webhook's server shows in the TLS handshake.
    ///
    /// # Errors
    /// Why no connection came to be.
    pub async fn inspect(&self, webhook: &Webhook) -> Result<Inspection, String> {
        self.call_recorder.https().inspect(&webhook.client_config, webhook.timeout).await
    }

    /// Whether the kind of the request's object is the server's own: only then an absent and an empty map are the same.
    pub fn is_built_in(&self, request: &Attributes) -> bool {
        self.cluster_fixture.is_built_in(&request.kind)
    }
}

impl Outcome {
    /// What the request was told.
    pub fn verdict(&self) -> Verdict<'_> {
        let status = match &self.refusal {
            None => return Verdict::Admitted,
            Some(Refusal::Unsupported(unsupported)) => return Verdict::Unsupported(unsupported.to_string()),
            Some(Refusal::Status(status)) => status,
        };
        let refused = self.calls().find_map(|called| match &called.result {
            CallResult::Denied(status) => Some(Verdict::Denied(status)),
            CallResult::Failed { failure, .. } => Some(Verdict::Failed(&failure.reason)),
            CallResult::ServerError { status, .. } => Some(Verdict::ServerError(status)),
            CallResult::Allowed { .. } => None,
        });
        refused
            .or_else(|| self.failed_conditions().map(|(_, reason)| Verdict::NoConditions(reason)).next())
            .unwrap_or(Verdict::ServerError(status))
    }

    /// The object that the request made; none if it is not admitted, or makes none.
    pub fn admitted(&self) -> Option<&Value> {
        self.object.as_ref().filter(|_| self.refusal.is_none())
    }

    /// The webhooks whose match conditions have no value, and the reasons.
    pub(super) fn failed_conditions(&self) -> impl Iterator<Item = (&Conditions, &str)> {
        self.record.events.iter().filter_map(|event| {
            let Event::Conditions(conditions) = event else { return None };
            Some((&**conditions, conditions.evaluation.error()?))
        })
    }

    /// Every call, in order.
    pub fn calls(&self) -> impl Iterator<Item = &Called> {
        self.record
            .events
            .iter()
            .filter_map(|event| if let Event::Called(called) = event { Some(&**called) } else { None })
    }

    /// The calls of one webhook.
    pub fn calls_of<'a>(&'a self, id: &'a WebhookId) -> impl Iterator<Item = &'a Called> {
        self.calls().filter(move |called| *called.webhook == *id)
    }

    /// Whether a webhook was called in a round.
    pub fn was_called(&self, id: &WebhookId, round: Round) -> bool {
        self.calls_of(id).any(|called| called.round == round)
    }

    /// Why a webhook was not called in the first round; conditions without a value are a reason, too.
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

    /// The exchanges of one webhook, oldest first.
    pub fn exchanges_of<'a>(&'a self, id: &'a WebhookId) -> impl Iterator<Item = &'a Exchange> {
        self.exchanges
            .iter()
            .filter(move |exchange| self.calls_of(id).any(|called| called.review == exchange.review))
    }
}

/// How a verdict is told to people.
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
