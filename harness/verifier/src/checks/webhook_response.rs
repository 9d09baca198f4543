//! Provides the raw response of a webhook, before the dispatcher validates or completes it.

use std::sync::Arc;

use kubernetes_admission::attributes::Attributes;
use kubernetes_admission::caller::Reply;
use kubernetes_admission::event::CallResult;
use kubernetes_admission::patch::{self, Patch};
use kubernetes_types::go_base64;
use kubernetes_types::json::at;
use serde_json::Value;

use crate::call_recorder::Exchange;
use crate::check::Skipped;
use crate::comparison::{Difference, Order};
use crate::environment::{Outcome, Verdict};
use crate::exercised::NEVER_CHANGED;
use crate::object_probe::ObjectProbe;

/// A response of a webhook, with its request and outcome.
pub(super) struct WebhookResponse {
    /// The outcome of the request.
    pub(super) outcome: Arc<Outcome>,
    /// The `request` of the review.
    pub(super) request: Value,
    /// The `response` of the reply; null if the reply does not contain a response.
    pub(super) response: Value,
    operations: Option<Vec<Value>>,
}

/// The effect of a response on the object, before the server's defaults.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Effect {
    /// The object is admitted with this content.
    Admitted(Value),
    /// The object is denied, with the given message.
    Denied(String),
    /// The webhook did not respond, or its patch does not apply; contains the error.
    Broken(String),
}

impl WebhookResponse {
    /// Returns the webhook's response to the creation of the object.
    ///
    /// # Errors
    /// Returns [`Skipped`] if the webhook is not called, or if its response is not JSON with HTTP status 200.
    pub(super) async fn to_creation(object_probe: &ObjectProbe<'_>) -> Result<Self, Skipped> {
        Self::to_request(object_probe, object_probe.request).await
    }

    /// Returns the webhook's response to `request`.
    ///
    /// # Errors
    /// Returns the errors of [`Self::to_creation`].
    pub(super) async fn to_request(
        object_probe: &ObjectProbe<'_>,
        request: &Attributes,
    ) -> Result<Self, Skipped> {
        let id = &object_probe.subject.webhook.id;
        let outcome = object_probe.outcome(&object_probe.alone(), request).await;
        let Some(called) = outcome.calls_of(id).next() else {
            // Returns the reason why the webhook was not called.
            object_probe.answered(&object_probe.alone(), request).await?;
            return Err(Skipped::not_checked(outcome.verdict().to_string()));
        };
        let operations = match &called.result {
            CallResult::Allowed { patch, .. } | CallResult::ServerError { patch, .. } => {
                patch.as_deref().map(<[Value]>::to_vec)
            }
            CallResult::Denied(_) | CallResult::Failed { .. } | CallResult::Unknown => None,
        };
        let exchange = outcome.exchanges_of(id).next();
        let response = exchange.and_then(|exchange| response(exchange.reply.as_ref().ok()?));
        let review: Option<Value> =
            exchange.and_then(|exchange| serde_json::from_slice(&exchange.review).ok());
        let (Some(response), Some(mut review)) = (response, review) else {
            return Err(Skipped::not_checked(outcome.verdict().to_string()));
        };
        let request = review.get_mut("request").map(Value::take).unwrap_or_default();
        Ok(Self { outcome: Arc::clone(&outcome), request, response, operations })
    }

    /// Returns the webhook's response to the creation of the object if the API server accepts the response.
    ///
    /// # Errors
    /// Returns the errors of [`Self::to_creation`], or the server's reason for rejecting the response.
    pub(super) async fn accepted(object_probe: &ObjectProbe<'_>) -> Result<Self, Skipped> {
        let webhook_response = Self::to_creation(object_probe).await?;
        match webhook_response.outcome.verdict() {
            Verdict::Failed(reason) => Err(Skipped::not_checked(reason)),
            Verdict::Admitted
            | Verdict::Denied(_)
            | Verdict::ServerError(_)
            | Verdict::NoConditions(_)
            | Verdict::Unsupported(_) => Ok(webhook_response),
        }
    }

    /// Returns the object that the webhook received in `request.object`.
    pub(super) fn object(&self) -> &Value {
        at(&self.request, &["object"])
    }

    /// Returns the patch in a response that allows the object. The patch has at least one operation.
    ///
    /// # Errors
    /// Returns [`Skipped`] if the response is a denial, or if its patch is missing or cannot be decoded.
    pub(super) fn patch(&self) -> Result<Patch, Skipped> {
        if *at(&self.response, &["allowed"]) != true {
            return Err(Skipped::not_applicable("the webhook denies the object"));
        }
        let patch = match &self.operations {
            Some(operations) => Patch::decode(Value::from(operations.clone()).to_string().as_bytes()).ok(),
            None => decoded(&self.response),
        };
        match patch {
            Some(patch) if patch.is_empty() => Err(Skipped::not_exercised(NEVER_CHANGED)),
            Some(patch) => Ok(patch),
            None if self.response.get("patch").is_none_or(Value::is_null) => {
                Err(Skipped::not_exercised(NEVER_CHANGED))
            }
            None => Err(Skipped::not_checked("the patch cannot be decoded")),
        }
    }

    /// Returns the object after the patch, before any changes by the server.
    ///
    /// # Errors
    /// Returns the errors of [`Self::patch`], or [`Skipped`] if the patch does not apply.
    pub(super) fn patched(&self) -> Result<Value, Skipped> {
        let patched = self.patch()?.apply(self.object());
        patched.map_err(|error| Skipped::not_checked(format!("the patch does not apply: {error}")))
    }

    /// Returns the effect of the response on the object.
    pub(super) fn effect(&self) -> Effect {
        effect(&self.response, self.object())
    }
}

/// Returns the `response` of a reply with HTTP status 200, or `None` for other replies.
pub(super) fn response(reply: &Reply) -> Option<Value> {
    if reply.status != 200 {
        return None;
    }
    let mut answer: Value = serde_json::from_slice(&reply.body).ok()?;
    answer.get_mut("response").map(Value::take)
}

/// Returns the effect on `object` of a reply to a request that bypassed the dispatcher.
pub(super) fn effect_of(exchange: &Exchange, object: &Value) -> Effect {
    match &exchange.reply {
        Err(error) => Effect::Broken(error.to_string()),
        Ok(reply) => match response(reply) {
            Some(response) => effect(&response, object),
            None => Effect::Broken(format!("HTTP status {} without a review", reply.status)),
        },
    }
}

impl Effect {
    /// Describes the difference between this effect and `expected`, or returns `None` if they are equivalent.
    pub(super) fn difference_from(
        &self,
        expected: &Self,
        object_probe: &ObjectProbe<'_>,
    ) -> Option<(String, Vec<Difference>)> {
        match (expected, self) {
            (Self::Admitted(expected), Self::Admitted(found)) => {
                let differences = object_probe.differences(expected, found, Order::Counts);
                let fields = super::fields(&differences);
                (!differences.is_empty()).then(|| (format!("the result differs in {fields}"), differences))
            }
            (Self::Denied(_), Self::Denied(_)) | (Self::Broken(_), Self::Broken(_)) => None,
            _ => Some((format!("the response differs: {expected}; {self}"), Vec::new())),
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
        None => Effect::Broken("the patch cannot be decoded".to_owned()),
        Some(patch) => match patch.apply(object) {
            Ok(object) => Effect::Admitted(object),
            Err(error) => Effect::Broken(format!("the patch does not apply: {error}")),
        },
    }
}

/// Decodes the patch of a response as the API server does, from base64 or from a list of numbers.
fn decoded(response: &Value) -> Option<Patch> {
    let patch = response.get("patch").filter(|patch| !patch.is_null())?;
    let bytes = go_base64::bytes(patch).ok()?;
    patch::check_size(&bytes).ok()?;
    Patch::decode(&bytes).ok()
}

/// Formats the effect for reports.
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
    fn patch_is_decoded_in_every_form_that_the_api_server_accepts() {
        let patched = Effect::Admitted(json!({"a": 1}));
        let operations = json!([{"op": "add", "path": "/a", "value": 1}]).to_string();
        let text = "W3sib3AiOiJhZGQiLCJwYXRoIjoiL2EiLCJ2YWx1ZSI6MX1d";
        for patch in [json!(text), json!(text.replace("IiwicG", "IiwicG\n")), json!(operations.as_bytes())] {
            assert_eq!(effect(&json!({"allowed": true, "patch": patch}), &json!({})), patched, "{patch}");
        }
        let unread = Effect::Broken("the patch cannot be decoded".to_owned());
        for patch in [json!("no base64"), json!([91, 256]), json!([{"op": "add"}]), json!("")] {
            assert_eq!(effect(&json!({"allowed": true, "patch": patch}), &json!({})), unread, "{patch}");
        }
        assert_eq!(effect(&json!({"allowed": true, "patch": null}), &json!({})), Effect::Admitted(json!({})));
    }
}
