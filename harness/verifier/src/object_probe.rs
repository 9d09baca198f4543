//! Provides the context for probes that send an object of the corpus to a webhook.

use std::sync::{Arc, Mutex, PoisonError};

use kubernetes_admission::attributes::Attributes;
use kubernetes_admission::config::Webhook;
use kubernetes_admission::event::{Mismatch, Phase};
use serde_json::Value;

use super::comparison::{self, Difference, Order};
use super::environment::{Environment, Outcome, Verdict, WebhookSet};
use super::stored::{as_stored, update};
use super::subject::Subject;
use super::turn::Turn;
use super::violation::Skipped;

/// The context for probes that send one object to a webhook.
#[derive(Debug)]
pub struct ObjectProbe<'a> {
    /// The environment of the requests.
    pub environment: &'a Environment,
    /// The webhook that the probe examines.
    pub subject: &'a Subject,
    /// All verified webhooks, in dispatch order.
    pub subjects: &'a [Subject],
    /// The request that creates the object with its defaults.
    pub request: &'a Attributes,
    /// The cached outcomes of requests about the object.
    pub memory: &'a Memory,
}

/// Caches the outcomes of requests about one object, so that checks do not repeat requests.
#[derive(Debug, Default)]
pub struct Memory {
    outcomes: Mutex<Vec<Arc<Outcome>>>,
    /// The object's turn for large exchanges; `None` if no other object is checked at the same time.
    turn: Option<Arc<Turn>>,
}

impl Memory {
    /// Creates a cache for an object whose large exchanges wait for `turn`.
    pub(super) fn with_turn(turn: &Arc<Turn>) -> Self {
        Self { outcomes: Mutex::default(), turn: Some(Arc::clone(turn)) }
    }

    /// Returns whether a request was sent to exactly these webhooks.
    pub(super) fn knows(&self, webhook_set: &WebhookSet) -> bool {
        let known = self.outcomes.lock().unwrap_or_else(PoisonError::into_inner);
        known.iter().any(|known| known.webhook_set == *webhook_set)
    }

    pub(super) fn find(&self, webhook_set: &WebhookSet, request: &Attributes) -> Option<Arc<Outcome>> {
        let known = self.outcomes.lock().unwrap_or_else(PoisonError::into_inner);
        known.iter().find(|known| known.webhook_set == *webhook_set && known.request == *request).cloned()
    }

    fn keep(&self, outcome: &Arc<Outcome>) {
        self.outcomes.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(outcome));
    }
}

impl ObjectProbe<'_> {
    /// Returns the object of the request.
    pub fn object(&self) -> &Value {
        self.request.object.as_ref().unwrap_or(&Value::Null)
    }

    /// Returns a set with only the webhook that the probe examines, in its phase.
    pub fn alone(&self) -> WebhookSet {
        self.subject.alone()
    }

    /// Returns a set of mutating webhooks in the given order.
    pub fn in_order(webhooks: impl IntoIterator<Item = Arc<Webhook>>) -> WebhookSet {
        WebhookSet { mutating: webhooks.into_iter().collect(), validating: Vec::new() }
    }

    /// Returns a copy of the request with `object` as its object.
    pub fn with_object(&self, object: Value) -> Attributes {
        Attributes { object: Some(object), ..self.request.clone() }
    }

    /// Returns `request` as the webhook receives it.
    ///
    /// A validating webhook receives the object that the mutating webhooks return, because they may record the user. If
    /// they deny the object, the webhook receives the unchanged object.
    pub async fn shown(&self, request: Attributes) -> Attributes {
        let mutating = self.subjects.iter().filter(|subject| subject.webhook.phase == Phase::Mutating);
        let webhook_set = Self::in_order(mutating.map(|subject| Arc::clone(&subject.called)));
        if self.subject.webhook.phase == Phase::Mutating || webhook_set.mutating.is_empty() {
            return request;
        }
        let outcome = self.outcome(&webhook_set, &request).await;
        match (&outcome.refusal, &outcome.object) {
            (None, Some(object)) => Attributes { object: Some(object.clone()), ..request },
            _ => request,
        }
    }

    /// Returns the outcome of a request. Outcomes are cached across checks.
    pub async fn outcome(&self, webhook_set: &WebhookSet, request: &Attributes) -> Arc<Outcome> {
        if let Some(known) = self.memory.find(webhook_set, request) {
            return known;
        }
        let outcome = self.outcome_again(webhook_set, request).await;
        self.memory.keep(&outcome);
        outcome
    }

    /// Sends a request with a new UID, regardless of the cache, and returns the outcome.
    pub async fn outcome_again(&self, webhook_set: &WebhookSet, request: &Attributes) -> Arc<Outcome> {
        Arc::new(self.environment.admit_in_turn(webhook_set, request, self.memory.turn.as_ref()).await)
    }

    /// Returns the outcome of a request if the webhook is called and responds.
    ///
    /// # Errors
    /// Returns [`Skipped`] if the webhook is not called or fails. A denial is a response.
    pub async fn answered(
        &self,
        webhook_set: &WebhookSet,
        request: &Attributes,
    ) -> Result<Arc<Outcome>, Skipped> {
        let outcome = self.outcome(webhook_set, request).await;
        match outcome.mismatch(&self.subject.webhook.id) {
            Some(Mismatch::Exempt) => {
                return Err(Skipped::not_applicable("the API server does not call webhooks for the kind"));
            }
            Some(mismatch) => {
                let part = match mismatch {
                    Mismatch::NamespaceSelector => "the namespace selector does",
                    Mismatch::ObjectSelector => "the object selector does",
                    Mismatch::Conditions if matches!(outcome.verdict(), Verdict::NoConditions(_)) => {
                        return Err(Skipped::no_conditions());
                    }
                    Mismatch::Conditions => "the match conditions do",
                    Mismatch::Rules | Mismatch::Exempt | Mismatch::NotReinvoked => "the rules do",
                };
                return Err(Skipped::not_applicable(format!("{part} not match the request")));
            }
            None => {}
        }
        match outcome.verdict() {
            Verdict::Admitted | Verdict::Denied(_) => Ok(outcome),
            Verdict::NoConditions(_) => Err(Skipped::no_conditions()),
            Verdict::ServerError(status) => Err(Skipped::not_checked(format!("{}: see V15", status.message))),
            verdict @ (Verdict::Failed(_) | Verdict::Unsupported(_)) => {
                Err(Skipped::not_checked(verdict.to_string()))
            }
        }
    }

    /// Returns the outcome of a request as [`Self::answered`] does, and requires that the request is admitted.
    ///
    /// # Errors
    /// Returns the errors of [`Self::answered`], and [`Skipped`] if the request is denied.
    pub async fn admitted(
        &self,
        webhook_set: &WebhookSet,
        request: &Attributes,
    ) -> Result<Arc<Outcome>, Skipped> {
        let outcome = self.answered(webhook_set, request).await?;
        if outcome.refusal.is_some() {
            return Err(Skipped::not_applicable("the webhook denies the object"));
        }
        Ok(outcome)
    }

    /// Returns the outcome of the creation when only the webhook that the probe examines is called.
    ///
    /// # Errors
    /// Returns the errors of [`Self::admitted`].
    pub async fn first(&self) -> Result<Arc<Outcome>, Skipped> {
        self.admitted(&self.alone(), self.request).await
    }

    /// Returns the object that exists before an update, and the creation if the webhook's rules match creations.
    ///
    /// # Errors
    /// Returns the errors of [`Self::first`] if the rules match creations.
    pub async fn created(&self) -> Result<(Option<Arc<Outcome>>, Option<Value>), Skipped> {
        let is_matched = |request| self.subject.asks_for(request, &self.environment.cluster_fixture);
        if self.request.subresource.is_empty() && !is_matched(self.request) {
            let stored = self.stored(self.object())?;
            if is_matched(&update(self.request, stored.clone(), stored)) {
                return Ok((None, Some(self.object().clone())));
            }
        }
        let created = self.first().await?;
        let object = created.object.clone();
        Ok((Some(created), object))
    }

    /// Returns `object` as the server stores it. The object must have the request's kind.
    ///
    /// # Errors
    /// Returns [`Skipped`] if the object is not stored, such as the `Eviction` in a subresource request.
    pub fn stored(&self, object: &Value) -> Result<Value, Skipped> {
        if self.request.subresource.is_empty() {
            return Ok(as_stored(object, &self.request.user, &self.environment.cluster_fixture));
        }
        Err(Skipped::not_applicable("the body of a subresource request is not stored"))
    }

    /// Returns the differences between two objects of the request's kind.
    pub fn differences(&self, expected: &Value, found: &Value, order: Order) -> Vec<Difference> {
        comparison::differences(expected, found, &self.request.kind, order)
    }
}
