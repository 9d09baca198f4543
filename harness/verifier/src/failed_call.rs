//! Describes the HTTP response of a failed call, because kube-apiserver's message often contains neither its status nor
//! its body.

use kubernetes_admission::attributes::Attributes;
use kubernetes_admission::caller::Reply;
use kubernetes_admission::event::{CallResult, Called, Event, Record};
use serde::de::IgnoredAny;

/// The maximum number of characters of a response body in a remark about a single request.
const MAX_BODY: usize = 300;

/// The maximum number of characters of a response body in a finding, which is compared with findings of other runs.
///
/// The rest of the body is often a stack trace.
const MAX_BODY_IN_FINDING: usize = 100;

/// Returns the HTTP status of a failed call, unless the status is successful.
pub fn failed_status(called: &Called) -> Option<u16> {
    let is_failed = matches!(called.result, CallResult::Failed { .. });
    called.http_status.filter(|status| is_failed && !is_success(*status))
}

/// Returns the start of the body of an HTTP error, or of a response that is not JSON, without control characters.
///
/// Returns `None` if the message of the failure contains the body.
///
/// kube-apiserver's message contains only bodies whose content type is text, and not for every status.
pub fn error_body(called: &Called) -> Option<String> {
    let CallResult::Failed { failure, .. } = &called.result else { return None };
    body_start(called.reply.as_ref()?, &failure.reason, MAX_BODY)
}

/// Returns the start of the body of an HTTP error as the end of a message; empty without a body, and for a Secret.
pub(super) fn response_start(reply: &Reply, request: &Attributes) -> String {
    if is_secret(request) { String::new() } else { reply_start(reply) }
}

/// Returns the start of a body that is not JSON, or of an HTTP error, as the end of a message; empty without a body.
pub(super) fn reply_start(reply: &Reply) -> String {
    let body = body_start(reply, "", MAX_BODY_IN_FINDING);
    body.map(|body| format!("; the response begins with: {body}")).unwrap_or_default()
}

/// Returns at most `max` characters of the body as [`error_body`] does, for a reply to a call that failed with `message`.
fn body_start(reply: &Reply, message: &str, max: usize) -> Option<String> {
    let body = &reply.body;
    if is_success(reply.status) && serde_json::from_slice::<IgnoredAny>(body).is_ok() {
        return None;
    }
    let text = String::from_utf8_lossy(body.get(..4 * max).unwrap_or(body));
    let text = text.trim();
    let start: String = text.chars().take(max).collect();
    let escaped = without_control_characters(&start);
    // The message contains the body as a quoted string.
    let quoted = escaped.replace('"', "\\\"");
    if start.is_empty() || [&start, &escaped, &quoted].iter().any(|text| message.contains(*text)) {
        return None;
    }
    Some(if start.len() < text.len() || text.len() < body.len() && body.len() > 4 * max {
        escaped + "\u{2026}"
    } else {
        escaped
    })
}

/// Returns whether the request is about a Secret. A response may quote its values.
fn is_secret(request: &Attributes) -> bool {
    request.resource.resource == "secrets"
}

/// Adds the HTTP status and the start of the body to the reasons of the failed calls in `record`.
///
/// Omits the body if `request` is about a Secret.
pub(super) fn add_responses(record: &mut Record, request: &Attributes) {
    for event in &mut record.events {
        let Event::Called(called) = event else { continue };
        let status = failed_status(called).map(|status| format!("HTTP status {status}"));
        let reply = called.reply.as_ref().filter(|_| !is_secret(request));
        let CallResult::Failed { failure, .. } = &mut called.result else { continue };
        let body = reply.and_then(|reply| body_start(reply, &failure.reason, MAX_BODY_IN_FINDING));
        let body = body.map(|body| format!("the response begins with: {body}"));
        let parts: Vec<String> = [status, body].into_iter().flatten().collect();
        if !parts.is_empty() {
            failure.reason = format!("{} ({})", failure.reason, parts.join(", "));
        }
    }
}

/// Returns whether kube-apiserver reads the body of a response with this status as a review.
///
/// Source: client-go rest/request.go, `transformResponse`.
fn is_success(status: u16) -> bool {
    (200..=206).contains(&status)
}

/// Escapes control characters.
fn without_control_characters(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() {
            escaped.extend(character.escape_default());
        } else {
            escaped.push(character);
        }
    }
    escaped
}
