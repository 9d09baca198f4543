//! Remarks about a webhook call that kube-apiserver's messages do not contain.

use harness::config::{Webhook, WebhookTarget};
use harness::event::{CallResult, Called};
use harness::server::{ApiServer, UnknownField};
use harness::verify::failed_call::{self, failed_status};
use harness::verify::is_timeout;
use harness::verify::patch_advice::patch_advice;
use harness::verify::similar_name::{most_similar, suggestion};
use output::one_line;
use serde_json::Value;

use super::response_advice::denial_advice;
use super::steps::{patch_alone, shown};
use crate::diagnostic::several;

/// The maximum number of fields that are named.
const MAX_FIELDS: usize = 5;

/// The maximum number of characters of the path of a field.
const MAX_PATH: usize = 200;

/// Returns the remarks about a call to `webhook`: the path that an HTTP error belongs to, a response without `allowed`,
/// and fields that the patch sets and the API server drops.
pub(crate) fn call_notes(called: &Called, webhook: Option<&Webhook>, server: &ApiServer) -> Vec<String> {
    let mut notes = paths_without_slash(called);
    notes.extend(dropped_fields(called, server));
    notes.extend(http_error(called, webhook));
    notes.extend(webhook.and_then(|webhook| redirect(called, webhook)));
    notes.extend(missing_allowed(called));
    notes
}

/// Suggests how to change a response that the API server read but cannot use: its patch, or the fields of its denial.
pub(crate) fn response_hint(called: &Called) -> Option<String> {
    patch_advice(called).or_else(|| denial_advice(called))
}

/// Returns the HTTP status of a call that failed because of it, and the path that the API server called.
fn http_error(called: &Called, webhook: Option<&Webhook>) -> Option<String> {
    let status = failed_status(called)?;
    let path = webhook.map(|webhook| format!(" for the path {}", one_line(&configured_path(webhook))));
    Some(format!("the webhook responded with HTTP status {status}{}", path.unwrap_or_default()))
}

/// Returns the path at which the API server calls a webhook.
fn configured_path(webhook: &Webhook) -> String {
    match &webhook.client_config.target {
        WebhookTarget::Service(service) => format!("/{}", service.path.trim_start_matches('/')),
        WebhookTarget::Url(url) => path_of(url).to_owned(),
    }
}

/// Returns the path of a URL without its query.
fn path_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let path = rest.find('/').and_then(|start| rest.get(start..)).unwrap_or("/");
    path.split(['?', '#']).next().unwrap_or_default()
}

/// Explains that a call failed because the webhook redirects it: the error then names another path.
fn redirect(called: &Called, webhook: &Webhook) -> Option<String> {
    let CallResult::Failed { failure, .. } = &called.result else { return None };
    let (_, rest) = failure.reason.split_once("Post \"")?;
    let (url, _) = rest.split_once('"')?;
    let (configured, path) = (configured_path(webhook), path_of(url));
    (path != configured).then(|| {
        format!(
            "the webhook redirects {} to {path}, and the redirected request failed: set the path {path} in clientConfig",
            one_line(&configured),
            path = one_line(path)
        )
    })
}

/// Returns the start of the body as [`failed_call::error_body`] does, safe to print on a terminal.
pub(crate) fn error_body(called: &Called) -> Option<String> {
    failed_call::error_body(called).map(|body| one_line(&body).into_owned())
}

/// The fields of a response.
const RESPONSE_FIELDS: [&str; 7] =
    ["allowed", "auditAnnotations", "patch", "patchType", "status", "uid", "warnings"];

/// Explains that a response denies the request because it does not have the field `allowed`.
fn missing_allowed(called: &Called) -> Option<String> {
    let CallResult::Denied(_) = &called.result else { return None };
    let review: Value = serde_json::from_slice(&called.reply.as_ref()?.body).ok()?;
    let response = review.get("response")?.as_object()?;
    if response.contains_key("allowed") {
        return None;
    }
    let unknown = response.keys().map(String::as_str).filter(|name| !RESPONSE_FIELDS.contains(name));
    let similar = most_similar("allowed", unknown);
    let similar = similar.map(|name| {
        format!("; response.{} is not a field of the response (did you mean allowed?)", one_line(name))
    });
    let similar = similar.unwrap_or_default();
    Some(format!("response.allowed is missing, so the API server denies the request{similar}"))
}

/// Shortens the cause of a failed call for a line about the call, such as `connection refused` or `HTTP status 404`.
pub(crate) fn short_cause(reason: &str, http_status: Option<u16>) -> String {
    const MAX_CAUSE: usize = 80;
    if let Some(status) = http_status.filter(|status| !(200..=206).contains(status)) {
        return format!("HTTP status {status}");
    }
    if is_timeout(reason) {
        return "timed out".to_owned();
    }
    let reason = reason.strip_prefix("failed to call webhook: ").unwrap_or(reason);
    // Go's error starts with the request, followed by the cause.
    let cause =
        reason.split_once("\": ").filter(|_| reason.starts_with("Post ")).map_or(reason, |(_, cause)| cause);
    // The text in parentheses after the error quotes another one.
    let cause = match cause.find("x509: ") {
        Some(start) => cause.get(start..).unwrap_or(cause),
        None if cause.contains("dial tcp ") => cause.rsplit(": ").next().unwrap_or(cause),
        None => cause,
    };
    cut(cause, MAX_CAUSE)
}

/// Returns `text`, or its first `max` characters and an ellipsis.
pub(crate) fn cut(text: &str, max: usize) -> String {
    let start = text.char_indices().nth(max).and_then(|(end, _)| text.get(..end));
    start.map_or_else(|| text.to_owned(), |start| format!("{start}\u{2026}"))
}

/// Returns a remark for each operation whose path does not begin with a slash: the patch changes another field.
///
/// Source: gopkg.in/evanphx/json-patch.v4 patch.go, `findObject`.
fn paths_without_slash(called: &Called) -> Vec<String> {
    let CallResult::Allowed { patch: Some(operations), .. } = &called.result else { return Vec::new() };
    let paths = operations.iter().filter_map(|operation| operation.get("path")?.as_str());
    let wrong = paths.filter(|path| !path.is_empty() && !path.starts_with('/'));
    let note = |path: &str| {
        let path = cut(path, MAX_PATH);
        format!(
            "the path `{path}` in the patch does not begin with a slash: the API server ignores the text before the first \
             slash"
        )
    };
    wrong.take(MAX_FIELDS).map(note).collect()
}

/// Returns a remark for each field of the object after the call that its kind does not have.
///
/// Only the patch can have set such a field: the object in the review does not have it. The body of a `scale` of a custom
/// resource is not an object of the kind that it names, so its fields are unknown.
fn dropped_fields(called: &Called, server: &ApiServer) -> Vec<String> {
    if !matches!(called.result, CallResult::Allowed { patch: Some(_), .. }) {
        return Vec::new();
    }
    let Some((before, after)) = shown(called).and_then(|before| {
        let after = patch_alone(called, &before)?;
        Some((before, after))
    }) else {
        return Vec::new();
    };
    let kind = after.get("kind").and_then(Value::as_str).unwrap_or_default();
    if kind == "Scale" {
        return Vec::new();
    }
    let fields = server.added_unknown_fields(&before, &after);
    let mut notes: Vec<String> =
        fields.iter().take(MAX_FIELDS).map(|field| dropped_field(field, kind)).collect();
    if let Some(more) = fields.len().checked_sub(MAX_FIELDS).filter(|more| *more > 0) {
        notes.push(format!("the API server drops {} that {kind} does not have", several(more, "more field")));
    }
    notes
}

fn dropped_field(field: &UnknownField, kind: &str) -> String {
    let similar = suggestion(most_similar(field.name(), field.known.iter().map(String::as_str)));
    let path = cut(&field.path, MAX_PATH);
    format!("{path} is not a field of {kind}: the API server drops it{similar}")
}
