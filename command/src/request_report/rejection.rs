//! Formats the rejection of a request by a webhook or an admission policy as a diagnostic.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use harness::chain::Verdict;
use harness::event::Phase;
use harness::verify::report::Location;
use harness::verify::{Severity, with_phase};
use serde_json::Value;

use super::policies::{PolicyReport, PolicyVerdict};
use super::webhooks::{CallReport, Outcome, WebhookReport};
use super::{Report, RequestReport};
use crate::diagnostic::Diagnostic;
use crate::explain_error::{self, Advice, WebhookPlace};

/// The locations of webhooks and policies in the files of the user.
#[derive(Debug, Default)]
pub(crate) struct Places {
    /// The webhooks, by `CONFIGURATION/WEBHOOK`.
    pub(crate) webhooks: BTreeMap<String, Location>,
    /// The admission policies, by `PHASE/NAME`, such as `validating/no-latest`.
    pub(crate) policies: BTreeMap<String, Location>,
}

/// Returns the call that rejected the request.
///
/// If several calls of validating webhooks failed, the message of the server names the call that decided.
pub(super) fn decisive_call(report: &Report) -> Option<&CallReport> {
    if matches!(report.verdict(), Verdict::Admitted | Verdict::Conditional) {
        return None;
    }
    let message = message(report);
    let is_rejection = |call: &&CallReport| {
        matches!(call.outcome, Outcome::Denied | Outcome::FailedClosed | Outcome::Refused)
    };
    let rejections = || report.calls.iter().filter(is_rejection);
    rejections()
        .find(|call| message.contains(&format!("\"{}\"", call.webhook)))
        .or_else(|| rejections().next())
}

/// Returns a diagnostic about a request that a webhook or a policy denied, or that failed because of one.
///
/// The first line is the message of the API server. Returns `None` if the request was admitted or rejected for another
/// reason.
pub(super) fn diagnostic(report: &Report, places: &Places) -> Option<Diagnostic> {
    let call = decisive_call(report);
    let message = message(report);
    let advice = explain_error::advice(message, WebhookPlace::Unknown);
    let is_conversion = report.verdict() != Verdict::Admitted
        && advice.as_ref().is_some_and(|advice| advice.is_about_conversion);
    let policy = advice.as_ref().and_then(|advice| advice.policy.as_deref());
    let policy = policy.filter(|_| report.verdict() != Verdict::Admitted);
    let unmatched = unmatched(report).filter(|_| call.is_none());
    if call.is_none() && policy.is_none() && !is_conversion && unmatched.is_none() {
        return None;
    }
    let mut shown = Diagnostic::new(Severity::Error, message);
    let of_call = call.map(|call| (call.phase.as_ref(), &call.configuration, &call.webhook));
    let of_webhook = unmatched.map(|(webhook, _)| (webhook.phase(), &webhook.configuration, &webhook.name));
    if let Some((phase, configuration, name)) = of_call.or(of_webhook) {
        let id = format!("{configuration}/{name}");
        let phase = if phase == "mutating" { Phase::Mutating } else { Phase::Validating };
        if let Some(place) = place(&id, phase, places) {
            shown = shown.place(&place.file, place.line);
        }
        shown.note("webhook", id);
    }
    if let Some((_, reason)) = unmatched {
        shown.note("note", format!("the webhook was not called: {reason}"));
    }
    if let Some(policy) = policy {
        if let Some(place) = denying_policy(report).and_then(|policy| places.policies.get(&policy.id())) {
            shown = shown.place(&place.file, place.line);
        }
        shown.note("policy", policy);
    }
    shown.note("request", request(report));
    let reason = status(report, "reason");
    shown.note("status", format!("{} {reason}", report.decision.code).trim_end());
    if let Some(Advice { why, .. }) = &advice {
        shown.note("why", why);
    }
    for note in call.into_iter().flat_map(|call| &call.notes) {
        shown.note("note", note);
    }
    if let Some(body) = call.map(|call| &*call.error_body).filter(|body| !body.is_empty()) {
        shown.note("response", body);
    }
    let hint = call.map(|call| call.hint.as_str()).filter(|hint| !hint.is_empty());
    let help = hint.map(str::to_owned).or_else(|| advice.as_ref().map(Advice::help));
    if let Some(help) = help {
        shown.note("help", help);
    }
    if advice.is_some() {
        shown.note("docs", "admit explain-error MESSAGE");
    }
    Some(shown)
}

/// Returns the policy that the API server's message names.
fn denying_policy(report: &Report) -> Option<&PolicyReport> {
    let named = |policy: &&PolicyReport| message(report).contains(&format!("'{}'", policy.policy));
    let mut denials = report.policies.iter().filter(|policy| policy.outcome == PolicyVerdict::Denied);
    denials.find(named)
}

/// Returns the message of the API server.
pub(super) fn message(report: &Report) -> &str {
    match status(report, "message") {
        "" => &report.decision.message,
        message => message,
    }
}

fn status<'a>(report: &'a Report, field: &str) -> &'a str {
    let status = report.decision.status.as_ref();
    status.and_then(|status| status.get(field)).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the webhook that rejected the request because the server could not decide whether it matches, and the reason.
fn unmatched(report: &Report) -> Option<(&WebhookReport, &str)> {
    report
        .webhooks
        .iter()
        .filter(|_| report.verdict() != Verdict::Admitted)
        .find_map(|webhook| Some((webhook, webhook.match_failure()?.reason.as_str())))
}

/// Returns the location of the webhook `id`, as `CONFIGURATION/WEBHOOK`.
pub(super) fn place<'a>(id: &str, phase: Phase, places: &'a Places) -> Option<&'a Location> {
    places.webhooks.get(id).or_else(|| places.webhooks.get(&with_phase(id, phase)))
}

/// Formats a request, such as `CREATE Pod shop/web (pod.yaml:1)`.
pub(super) fn request(report: &Report) -> String {
    let RequestReport { operation, kind, subresource, namespace, name, .. } = &report.request;
    let mut text = format!("{operation} {}", kind.kind);
    if !subresource.is_empty() {
        text.push('/');
        text.push_str(subresource);
    }
    let object: Vec<&str> =
        [namespace.as_str(), name.as_str()].into_iter().filter(|part| !part.is_empty()).collect();
    if !object.is_empty() {
        text.push(' ');
        text.push_str(&object.join("/"));
    }
    if !report.source.file.is_empty() {
        let _ = write!(text, " ({}:{})", report.source.file, report.source.line);
    }
    text
}
