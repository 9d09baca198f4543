//! Decodes the response of a conversion webhook as strictly as the API requires.

use kubernetes_types::json::{at, text};
use serde_json::Value;

use super::super::call_recorder::Exchange;
use super::super::failed_call::reply_start;

/// The response of a conversion webhook.
#[derive(Clone, Debug)]
pub(in super::super) enum Answer {
    /// The converted objects, one for each object that was sent, in the requested version.
    Converted(Vec<Value>),
    /// The webhook reported that the conversion failed; contains the reason.
    Failed(String),
    /// The response is invalid; contains the error.
    Invalid(Fault),
}

/// The reason why a response is invalid.
#[derive(Clone, Debug)]
pub(in super::super) struct Fault {
    /// The kind of error. It does not depend on the objects.
    pub(in super::super) kind: &'static str,
    pub(in super::super) message: String,
}

/// Decodes the response in `exchange` to the review with the given `version` and `uid`.
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
    let reply = exchange
        .reply
        .as_ref()
        .map_err(|error| ("no answer", format!("the webhook does not respond: {error}")))?;
    if !(200..300).contains(&reply.status) {
        let message = format!("the webhook returns HTTP {} instead of a review", reply.status);
        return Err(("HTTP status", message + &reply_start(reply)));
    }
    let review: Value = serde_json::from_slice(&reply.body)
        .map_err(|error| ("not JSON", format!("the response is not JSON: {error}{}", reply_start(reply))))?;
    let claimed = (text(&review, &["apiVersion"]), text(&review, &["kind"]));
    let expected = format!("apiextensions.k8s.io/{version}");
    if claimed != (&*expected, "ConversionReview") {
        let message = format!("the response is {} {}, not {expected} ConversionReview", claimed.0, claimed.1);
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
            return Err(("no message", "the result is Failure without a message".to_owned()));
        }
        other => {
            return Err(("result", format!("response.result.status is `{other}`, not Success or Failure")));
        }
    }
    let objects = at(response, &["convertedObjects"]).as_array().cloned().unwrap_or_default();
    if objects.len() != sent.len() {
        return Err((
            "count",
            format!("the response has {} objects, expected {}", objects.len(), sent.len()),
        ));
    }
    for (object, sent) in objects.iter().zip(sent) {
        let found = text(object, &["apiVersion"]);
        if found != to {
            return Err(("version", format!("a converted object has apiVersion `{found}`, not {to}")));
        }
        let (before, after) = (text(sent, &["kind"]), text(object, &["kind"]));
        if before != after {
            return Err(("kind", format!("a {before} is returned as `{after}`")));
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
            return Err(("order", "the objects are not returned in the order of the request".to_owned()));
        }
    }
    Ok(Answer::Converted(objects))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kubernetes_admission::caller::Reply;

    use super::*;

    #[test]
    fn errors_about_a_response_that_is_not_a_review_have_its_start() {
        for (status, body, expected) in [
            (
                500,
                "panic: no such version",
                "the webhook returns HTTP 500 instead of a review; the response begins with: panic: no such version",
            ),
            (500, "", "the webhook returns HTTP 500 instead of a review"),
            (
                200,
                "<html>",
                "the response is not JSON: expected value at line 1 column 1; the response begins with: <html>",
            ),
        ] {
            let reply = Reply { status, content_type: None, body: body.into() };
            let exchange = Exchange {
                review: "{}".into(),
                reply: Ok(reply),
                took: Duration::ZERO,
                redirects_and_retries: Vec::new(),
                is_other_webhook: false,
                direct: None,
            };
            let Answer::Invalid(fault) = read(&exchange, "v1", "1", &[], "example.com/v2") else {
                panic!("{status} {body} is valid");
            };
            assert_eq!(fault.message, expected);
        }
    }
}
