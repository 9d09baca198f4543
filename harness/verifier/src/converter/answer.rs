//! What a conversion webhook answered, read as strictly as the API demands.

use kubernetes_types::json::{at, text};
use serde_json::Value;

use super::super::line::Exchange;

/// What a conversion webhook answered.
#[derive(Clone, Debug)]
pub(in super::super) enum Answer {
    /// As many objects as were sent, in the version that was asked for.
    Converted(Vec<Value>),
    /// That it could not convert them, and why.
    Failed(String),
    /// Something else.
    Invalid(Fault),
}

/// Why an answer is not valid.
#[derive(Clone, Debug)]
pub(in super::super) struct Fault {
    /// In words that do not depend on the objects.
    pub(in super::super) kind: &'static str,
    pub(in super::super) message: String,
}

/// What `exchange` says to a review of `version` with this uid.
///
/// Source: apiextensions-apiserver `pkg/apiserver/conversion/webhook_converter.go`.
pub(super) fn read(exchange: &Exchange, version: &str, uid: &str, sent: &[Value], to: &str) -> Answer {
    match valid(exchange, version, uid, sent, to) {
        Ok(answer) => answer,
        Err((kind, message)) => Answer::Invalid(Fault { kind, message }),
    }
}

fn valid(
    exchange: &Exchange,
    version: &str,
    uid: &str,
    sent: &[Value],
    to: &str,
) -> Result<Answer, (&'static str, String)> {
    let reply =
        exchange.reply.as_ref().map_err(|error| ("no answer", format!("there is no answer: {error}")))?;
    if !(200..300).contains(&reply.status) {
        return Err(("HTTP status", format!("it answers with HTTP {} instead of a review", reply.status)));
    }
    let review: Value = serde_json::from_slice(&reply.body)
        .map_err(|error| ("not JSON", format!("the answer is not JSON: {error}")))?;
    let claimed = (text(&review, &["apiVersion"]), text(&review, &["kind"]));
    let expected = format!("apiextensions.k8s.io/{version}");
    if claimed != (&*expected, "ConversionReview") {
        let message =
            format!("the answer is of {} {}, not of {expected} ConversionReview", claimed.0, claimed.1);
        return Err(("another review", message));
    }
    let response = at(&review, &["response"]);
    if !response.is_object() {
        return Err(("no response", "the review has no response".to_owned()));
    }
    let answered = text(response, &["uid"]);
    if answered != uid {
        return Err(("uid", format!("response.uid is `{answered}`, and request.uid is `{uid}`")));
    }
    let message = text(response, &["result", "message"]);
    match text(response, &["result", "status"]) {
        "Success" => {}
        "Failure" if !message.is_empty() => return Ok(Answer::Failed(message.to_owned())),
        "Failure" => {
            return Err(("no message", "the result is Failure, without a message that says why".to_owned()));
        }
        other => {
            return Err(("result", format!("response.result.status is `{other}`, not Success or Failure")));
        }
    }
    let objects = at(response, &["convertedObjects"]).as_array().cloned().unwrap_or_default();
    if objects.len() != sent.len() {
        return Err(("count", format!("{} objects came back for {}", objects.len(), sent.len())));
    }
    for (object, sent) in objects.iter().zip(sent) {
        let found = text(object, &["apiVersion"]);
        if found != to {
            return Err(("version", format!("an object came back as `{found}`, and {to} was asked for")));
        }
        let (before, after) = (text(sent, &["kind"]), text(object, &["kind"]));
        if before != after {
            return Err(("kind", format!("a {before} came back as `{after}`")));
        }
    }
    let name = |object: &Value| text(object, &["metadata", "name"]).to_owned();
    let (names, before): (Vec<String>, Vec<String>) =
        (objects.iter().map(name).collect(), sent.iter().map(name).collect());
    if names != before {
        let (mut sorted, mut others) = (names.clone(), before.clone());
        sorted.sort_unstable();
        others.sort_unstable();
        if sorted == others {
            return Err(("order", "objects came back in another order than they were sent in".to_owned()));
        }
    }
    Ok(Answer::Converted(objects))
}
