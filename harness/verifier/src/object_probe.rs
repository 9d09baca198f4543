//! One object of the corpus, and one webhook.

use std::sync::{Arc, Mutex, PoisonError};

use kubernetes_admission::attributes::Attributes;
use kubernetes_admission::config::Webhook;
use kubernetes_admission::event::{Mismatch, Phase};
use serde_json::Value;

use super::check::Obstacle;
use super::comparison::{self, Difference, Order};
use super::environment::{Environment, Outcome, Verdict, WebhookSet};
use super::stored::as_stored;
use super::subject::Subject;
use super::turn::Turn;

/// Everything that a probe of an object needs.
#[derive(Debug)]
pub struct ObjectProbe<'a> {
    /// Where requests are tried.
    pub environment: &'a Environment,
    /// The webhook.
    pub subject: &'a Subject,
    /// All webhooks that are verified, in dispatch order.
    pub subjects: &'a [Subject],
    /// The creation of the object, with its defaults: `x` in the catalog.
    pub request: &'a Attributes,
    /// What is known already about this object.
    pub memory: &'a Memory,
}

/// The outcomes for one object, so that no two checks ask the same.
#[derive(Debug, Default)]
pub struct Memory {
    outcomes: Mutex<Vec<Arc<Outcome>>>,
    /// When it may keep large ones; none where nothing else is tried meanwhile.
    turn: Option<Arc<Turn>>,
}

impl Memory {
    /// The memory of an object that has its turn.
    pub(super) fn with_turn(turn: &Arc<Turn>) -> Self {
        Self { outcomes: Mutex::default(), turn: Some(Arc::clone(turn)) }
    }

    /// Whether anything was asked of these webhooks.
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
    /// The object as it is created.
    pub fn object(&self) -> &Value {
        self.request.object.as_ref().unwrap_or(&Value::Null)
    }

    /// The webhook alone, called as its phase asks for.
    pub fn alone(&self) -> WebhookSet {
        self.subject.alone()
    }

    /// Mutating webhooks in this order.
    pub fn in_order(webhooks: impl IntoIterator<Item = Arc<Webhook>>) -> WebhookSet {
        WebhookSet { mutating: webhooks.into_iter().collect(), validating: Vec::new() }
    }

    /// The request with another object.
    pub fn with_object(&self, object: Value) -> Attributes {
        Attributes { object: Some(object), ..self.request.clone() }
    }

    /// A request of another kind than this one, such as of another user, as the webhook sees it: a validating one after
    /// the mutating ones, which may write down who asks. As it is if they refuse it.
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

    /// What becomes of a request; asked once, remembered for all checks.
    pub async fn outcome(&self, webhook_set: &WebhookSet, request: &Attributes) -> Arc<Outcome> {
        if let Some(known) = self.memory.find(webhook_set, request) {
            return known;
        }
        let outcome = self.outcome_anew(webhook_set, request).await;
        self.memory.keep(&outcome);
        outcome
    }

    /// What becomes of a request, asked again, with a new uid.
    pub async fn outcome_anew(&self, webhook_set: &WebhookSet, request: &Attributes) -> Arc<Outcome> {
        Arc::new(self.environment.admit_in_turn(webhook_set, request, self.memory.turn.as_ref()).await)
    }

    /// What becomes of a request, if the subject is called and answers.
    ///
    /// # Errors
    /// [`Obstacle`] if it is not called, or gives no valid answer. A denial is no obstacle.
    pub async fn answered(
        &self,
        webhook_set: &WebhookSet,
        request: &Attributes,
    ) -> Result<Arc<Outcome>, Obstacle> {
        let outcome = self.outcome(webhook_set, request).await;
        match outcome.mismatch(&self.subject.webhook.id) {
            Some(Mismatch::Exempt) => {
                return Err(Obstacle::not_applicable("the API server calls no webhook for the kind"));
            }
            Some(mismatch) => {
                let part = match mismatch {
                    Mismatch::NamespaceSelector => "the namespace selector does",
                    Mismatch::ObjectSelector => "the object selector does",
                    Mismatch::Conditions if matches!(outcome.verdict(), Verdict::NoConditions(_)) => {
                        return Err(Obstacle::no_conditions());
                    }
                    Mismatch::Conditions => "the match conditions do",
                    Mismatch::Rules | Mismatch::Exempt | Mismatch::NotReinvoked => "the rules do",
                };
                return Err(Obstacle::not_applicable(format!("{part} not pick the request")));
            }
            None => {}
        }
        match outcome.verdict() {
            Verdict::Admitted | Verdict::Denied(_) => Ok(outcome),
            Verdict::NoConditions(_) => Err(Obstacle::no_conditions()),
            verdict @ (Verdict::Failed(_) | Verdict::ServerError(_) | Verdict::Unsupported(_)) => {
                Err(Obstacle::not_checked(verdict.to_string()))
            }
        }
    }

    /// As [`Self::answered`], if the request is admitted as well: the object is then there.
    ///
    /// # Errors
    /// [`Obstacle`] also if the request is denied.
    pub async fn admitted(
        &self,
        webhook_set: &WebhookSet,
        request: &Attributes,
    ) -> Result<Arc<Outcome>, Obstacle> {
        let outcome = self.answered(webhook_set, request).await?;
        if outcome.refusal.is_some() {
            return Err(Obstacle::not_applicable("the webhook denies the object"));
        }
        Ok(outcome)
    }

    /// What the webhook alone makes of the object: `W(x)`.
    ///
    /// # Errors
    /// [`Obstacle`] as for [`Self::admitted`].
    pub async fn first(&self) -> Result<Arc<Outcome>, Obstacle> {
        self.admitted(&self.alone(), self.request).await
    }

    /// An object of the request as the server stores it.
    ///
    /// # Errors
    /// [`Obstacle`] if it stores none: what is sent to a subresource, such as an `Eviction`.
    pub fn stored(&self, object: &Value) -> Result<Value, Obstacle> {
        if self.request.subresource.is_empty() {
            return Ok(as_stored(object, &self.request.user, &self.environment.cluster_fixture));
        }
        Err(Obstacle::not_applicable("what is sent to a subresource is not stored"))
    }

    /// Where two objects of the request's kind differ.
    pub fn differences(&self, expected: &Value, found: &Value, order: Order) -> Vec<Difference> {
        comparison::differences(expected, found, &self.request.kind, order)
    }
}
