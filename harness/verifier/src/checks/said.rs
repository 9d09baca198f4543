//! What a webhook said, in its own words: before the dispatcher judged or repaired it.

use std::sync::Arc;

use kubernetes_admission::attributes::Attributes;
use kubernetes_admission::caller::Reply;
use kubernetes_admission::event::CallResult;
use kubernetes_admission::patch::{self, Patch};
use kubernetes_types::go_base64;
use kubernetes_types::json::at;
use serde_json::Value;

use crate::check::Obstacle;
use crate::comparison::{Difference, Order};
use crate::environment::{Outcome, Verdict};
use crate::line::Exchange;
use crate::object_probe::ObjectProbe;

/// One answer of a webhook.
pub(super) struct Said {
    /// What became of the request.
    pub(super) outcome: Arc<Outcome>,
    /// `request` of the review.
    pub(super) request: Value,
    /// `response` of the answer; null if there is none.
    pub(super) response: Value,
    operations: Option<Vec<Value>>,
}

/// What an answer does to the object, without the server's defaults.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Effect {
    /// It is admitted, and looks like this.
    Admitted(Value),
    /// It is denied, with this message.
    Denied(String),
    /// There is no answer, or its patch does not apply.
    Broken(String),
}

impl Said {
    /// What the webhook says to the creation of the object.
    ///
    /// # Errors
    /// [`Obstacle`] if it is not called, or its answer is no JSON with HTTP status 200.
    pub(super) async fn of(object_probe: &ObjectProbe<'_>) -> Result<Self, Obstacle> {
        Self::to(object_probe, object_probe.request).await
    }

    /// The same for another request.
    ///
    /// # Errors
    /// As for [`Self::of`].
    pub(super) async fn to(object_probe: &ObjectProbe<'_>, request: &Attributes) -> Result<Self, Obstacle> {
        let id = &object_probe.subject.webhook.id;
        let outcome = object_probe.outcome(&object_probe.alone(), request).await;
        let Some(called) = outcome.calls_of(id).next() else {
            // Says why it was not called.
            object_probe.answered(&object_probe.alone(), request).await?;
            return Err(Obstacle::not_checked(outcome.verdict().to_string()));
        };
        let operations = match &called.result {
            CallResult::Allowed { patch, .. } | CallResult::ServerError { patch, .. } => {
                patch.as_deref().map(<[Value]>::to_vec)
            }
            CallResult::Denied(_) | CallResult::Failed { .. } => None,
        };
        let exchange = outcome.exchanges_of(id).next();
        let response = exchange.and_then(|exchange| response(exchange.reply.as_ref().ok()?));
        let review: Option<Value> =
            exchange.and_then(|exchange| serde_json::from_slice(&exchange.review).ok());
        let (Some(response), Some(mut review)) = (response, review) else {
            return Err(Obstacle::not_checked(outcome.verdict().to_string()));
        };
        let request = review.get_mut("request").map(Value::take).unwrap_or_default();
        Ok(Self { outcome: Arc::clone(&outcome), request, response, operations })
    }

    /// The same, if the API server takes the answer: else the client gets nothing of what it says.
    ///
    /// # Errors
    /// As for [`Self::of`]; the server's reason if it refuses the answer.
    pub(super) async fn accepted(object_probe: &ObjectProbe<'_>) -> Result<Self, Obstacle> {
        let said = Self::of(object_probe).await?;
        match said.outcome.verdict() {
            Verdict::Failed(reason) => Err(Obstacle::not_checked(reason)),
            Verdict::Admitted
            | Verdict::Denied(_)
            | Verdict::ServerError(_)
            | Verdict::NoConditions(_)
            | Verdict::Unsupported(_) => Ok(said),
        }
    }

    /// `request.object`: the object as the webhook saw it.
    pub(super) fn object(&self) -> &Value {
        at(&self.request, &["object"])
    }

    /// The patch with which it allows: at least one operation.
    ///
    /// # Errors
    /// [`Obstacle`] if it denies, sends none, or sends one that nobody can read.
    pub(super) fn patch(&self) -> Result<Patch, Obstacle> {
        if *at(&self.response, &["allowed"]) != true {
            return Err(Obstacle::not_applicable("the webhook denies the object"));
        }
        let patch = match &self.operations {
            Some(operations) => Patch::decode(Value::from(operations.clone()).to_string().as_bytes()).ok(),
            None => decoded(&self.response),
        };
        match patch {
            Some(patch) if patch.is_empty() => Err(Obstacle::not_applicable("its patch is empty")),
            Some(patch) => Ok(patch),
            None if self.response.get("patch").is_none_or(Value::is_null) => {
                Err(Obstacle::not_applicable("it sends no patch"))
            }
            None => Err(Obstacle::not_checked("its patch cannot be read")),
        }
    }

    /// The object with the patch, and nothing that the server does beside.
    ///
    /// # Errors
    /// As for [`Self::patch`], and if the patch does not apply.
    pub(super) fn patched(&self) -> Result<Value, Obstacle> {
        let patched = self.patch()?.apply(self.object());
        patched.map_err(|error| Obstacle::not_checked(format!("its patch does not apply: {error}")))
    }

    /// What the answer does to the object.
    pub(super) fn effect(&self) -> Effect {
        effect(&self.response, self.object())
    }
}

/// `response` of a review that came with HTTP status 200.
pub(super) fn response(reply: &Reply) -> Option<Value> {
    if reply.status != 200 {
        return None;
    }
    let mut answer: Value = serde_json::from_slice(&reply.body).ok()?;
    answer.get_mut("response").map(Value::take)
}

/// What an answer that came past the dispatcher does to `object`.
pub(super) fn effect_of(exchange: &Exchange, object: &Value) -> Effect {
    match &exchange.reply {
        Err(error) => Effect::Broken(error.to_string()),
        Ok(reply) => match response(reply) {
            Some(response) => effect(&response, object),
            None => Effect::Broken(format!("HTTP status {} and no review", reply.status)),
        },
    }
}

impl Effect {
    /// What is another one than `expected`, for people, and where; none if they mean the same.
    pub(super) fn departure(
        &self,
        expected: &Self,
        object_probe: &ObjectProbe<'_>,
    ) -> Option<(String, Vec<Difference>)> {
        match (expected, self) {
            (Self::Admitted(expected), Self::Admitted(found)) => {
                let differences = object_probe.differences(expected, found, Order::Counts);
                let fields = super::fields(&differences);
                (!differences.is_empty()).then(|| (format!("it makes another {fields}"), differences))
            }
            (Self::Denied(_), Self::Denied(_)) | (Self::Broken(_), Self::Broken(_)) => None,
            _ => Some((format!("the answer is another one: {expected}; {self}"), Vec::new())),
        }
    }
}

fn effect(response: &Value, object: &Value) -> Effect {
    if response["allowed"] != true {
        let message = response.pointer("/status/message").and_then(Value::as_str).unwrap_or_default();
        return Effect::Denied(message.to_owned());
    }
    match decoded(response) {
        None if response.get("patch").is_none_or(Value::is_null) => Effect::Admitted(object.clone()),
        None => Effect::Broken("its patch cannot be read".to_owned()),
        Some(patch) => match patch.apply(object) {
            Ok(object) => Effect::Admitted(object),
            Err(error) => Effect::Broken(format!("its patch does not apply: {error}")),
        },
    }
}

/// The patch of a response as the API server reads it: base64, or a list of numbers.
fn decoded(response: &Value) -> Option<Patch> {
    let patch = response.get("patch").filter(|patch| !patch.is_null())?;
    let bytes = go_base64::bytes(patch).ok()?;
    patch::check_size(&bytes).ok()?;
    Patch::decode(&bytes).ok()
}

/// How an effect is told to people.
impl std::fmt::Display for Effect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Admitted(_) => f.write_str("admitted"),
            Self::Denied(message) => write!(f, "denied: {message}"),
            Self::Broken(what) => f.write_str(what),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_patch_is_read_in_every_form_that_the_api_server_reads() {
        let patched = Effect::Admitted(json!({"a": 1}));
        let operations = json!([{"op": "add", "path": "/a", "value": 1}]).to_string();
        let text = "W3sib3AiOiJhZGQiLCJwYXRoIjoiL2EiLCJ2YWx1ZSI6MX1d";
        for patch in [json!(text), json!(text.replace("IiwicG", "IiwicG\n")), json!(operations.as_bytes())] {
            assert_eq!(effect(&json!({"allowed": true, "patch": patch}), &json!({})), patched, "{patch}");
        }
        let unread = Effect::Broken("its patch cannot be read".to_owned());
        for patch in [json!("no base64"), json!([91, 256]), json!([{"op": "add"}]), json!("")] {
            assert_eq!(effect(&json!({"allowed": true, "patch": patch}), &json!({})), unread, "{patch}");
        }
        assert_eq!(effect(&json!({"allowed": true, "patch": null}), &json!({})), Effect::Admitted(json!({})));
    }
}
