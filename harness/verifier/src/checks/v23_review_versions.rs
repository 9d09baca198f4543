//! V23: a webhook answers a review in every version that it lists.

use std::sync::Arc;

use bytes::Bytes;
use kubernetes_admission::config::Webhook;
use kubernetes_types::json::{at, set};
use serde_json::Value;

use super::v22_envelope::with_exchange;
use super::webhook_response::{Effect, effect_of};
use crate::check::{Audience, Check, Observed, Probe, Repeatability, Severity, Skipped, Violation};
use crate::environment::{Outcome, Verdict};
use crate::object_probe::Memory;
use crate::subject::Subject;
use crate::webhook_probe::WebhookProbe;

pub(super) const CHECK: Check = Check {
    id: "V23",
    title: "review versions: the webhook answers every listed version in that version and denies unknown \
            versions",
    severity: Severity::Error,
    why: "kube-apiserver sends the first listed version that it knows and rejects a response in another \
          version; which versions it knows changes between releases. A listed version that was copied from \
          an example and never tested fails every request on the day of an upgrade or a rollback. A webhook \
          that allows a review in an unknown version allows what it has not read. Because kube-apiserver sends \
          only listed versions, this finding is a note; if the webhook does not respond, it is a warning.",
    help: "List only versions that the webhook supports, and respond in the version of the request.",
    source: "Dynamic Admission Control, Response; KEP-492, AdmissionReview v1; \
             admissionregistration.k8s.io/v1 types, \
             admissionReviewVersions",
    audience: Audience::All,
    repeatability: Repeatability::Same,
    probe: Probe::Webhook(|webhook_probe| Box::pin(run(webhook_probe))),
};

/// The review versions that API servers support.
const KNOWN: [&str; 2] = ["v1", "v1beta1"];
/// A review version that API servers do not support.
const UNKNOWN: &str = "v9";
/// The number of requests to try.
const SAMPLES: usize = 4;

async fn run(webhook_probe: &WebhookProbe<'_>) -> Observed {
    if webhook_probe.samples.is_empty() {
        return Err(Skipped::not_applicable(
            "no object in the corpus matches the webhook's rules and \
                                             selectors",
        ));
    }
    let listed = &webhook_probe.subject.webhook.admission_review_versions;
    let versions: Vec<&str> =
        KNOWN.into_iter().filter(|known| listed.iter().any(|version| version == known)).collect();
    let mut violations: Vec<Violation> = Vec::new();
    let mut note = |violation: Violation| {
        if violations.iter().all(|known| known.kind != violation.kind) {
            violations.push(violation);
        }
    };
    // The first request that the webhook answers.
    let mut first = None;
    let mut failure = None;
    for sample in webhook_probe.samples.iter().take(SAMPLES) {
        let memory = Memory::default();
        let object_probe = webhook_probe.object_probe(sample, &memory);
        let mut expected: Option<(&str, Arc<Outcome>, Effect)> = None;
        let mut failed = Vec::new();
        for version in &versions {
            let outcome = Arc::new(
                webhook_probe.environment.admit(&only(webhook_probe.subject, version), sample).await,
            );
            let Some(exchange) = outcome.exchanges.first() else { continue };
            if let Verdict::Failed(reason) = outcome.verdict() {
                failure = Some(reason.to_owned());
                failed.push(fails(version, reason, &outcome));
                continue;
            }
            envelope(version, &outcome).into_iter().for_each(&mut note);
            first.get_or_insert_with(|| Arc::clone(&outcome));
            let found = effect_of(exchange, object_probe.object());
            if let Some((other, before, effect)) = &expected
                && let Some((what, differences)) = found.difference_from(effect, &object_probe)
            {
                let kind = format!("different response in {version}");
                let message = format!(
                    "the webhook responds differently to a {version} review than to a {other} review: {what}"
                );
                let steps = [Arc::clone(before), Arc::clone(&outcome)];
                note(Violation::new(kind, message).with_differences(differences).with_steps(steps));
            }
            expected.get_or_insert((version, outcome, found));
        }
        // If the webhook fails in every version, the cause is not the version: V22 examines the response.
        if expected.is_some() {
            failed.into_iter().for_each(&mut note);
        } else if let Some(reason) = &failure {
            webhook_probe.leave_unjudged(reason);
        }
    }
    let Some(first) = first else {
        // A webhook that answers no request at all does not have a problem with versions.
        return Err(failure.map_or_else(
            || {
                Skipped::not_applicable(
                    "admissionReviewVersions lists no version that kube-apiserver supports",
                )
            },
            Skipped::not_checked,
        ));
    };
    unlisted(webhook_probe, &first).await.into_iter().for_each(&mut note);
    Ok(violations)
}

/// Returns a set with only the webhook, and with `version` as the only entry of its `admissionReviewVersions`.
fn only(subject: &Subject, version: &str) -> crate::environment::WebhookSet {
    let webhook =
        Webhook { admission_review_versions: vec![version.to_owned()], ..(*subject.called).clone() };
    Subject { called: Arc::new(webhook), ..subject.clone() }.alone()
}

/// Creates the violation by a webhook that fails on a review of `version`.
fn fails(version: &str, reason: &str, outcome: &Arc<Outcome>) -> Violation {
    let message = format!("the webhook lists {version} but fails on a review in that version: {reason}");
    Violation::new(format!("fails in {version}"), message).with_steps([Arc::clone(outcome)])
}

/// Returns the errors in a response to a review of `version`.
///
/// The API server only checks that a v1beta1 response can be decoded.
fn envelope(version: &str, outcome: &Arc<Outcome>) -> Vec<Violation> {
    let steps = || [Arc::clone(outcome)];
    let Some(exchange) = outcome.exchanges.first() else { return Vec::new() };
    let Ok(reply) = &exchange.reply else { return Vec::new() };
    let (Ok(asked), Ok(answer)) =
        (serde_json::from_slice::<Value>(&exchange.review), serde_json::from_slice::<Value>(&reply.body))
    else {
        return Vec::new();
    };
    ["/apiVersion", "/kind", "/response/uid"]
        .into_iter()
        .filter_map(|pointer| {
            let place = if pointer == "/response/uid" { "/request/uid" } else { pointer };
            let (wanted, found) = (asked.pointer(place), answer.pointer(pointer));
            (wanted != found).then(|| {
                let field = pointer.trim_start_matches('/').replace('/', ".");
                let message = format!(
                    "the response to a {version} review has {field} {}, expected {}",
                    found.unwrap_or(&Value::Null),
                    wanted.unwrap_or(&Value::Null)
                );
                let violation = Violation::new(format!("{field} in {version}"), message).with_steps(steps());
                violation.with_severity(Severity::Warning)
            })
        })
        .collect()
}

/// Sends a review in a version that the webhook does not list.
async fn unlisted(webhook_probe: &WebhookProbe<'_>, outcome: &Arc<Outcome>) -> Option<Violation> {
    let mut review: Value = serde_json::from_slice(&outcome.exchanges.first()?.review).ok()?;
    set(&mut review, &["apiVersion"], format!("admission.k8s.io/{UNKNOWN}"));
    let body = Bytes::from(serde_json::to_vec(&review).ok()?);
    let exchange = webhook_probe.environment.post(&webhook_probe.subject.called, body).await;
    let unknown = format!("an AdmissionReview in the unknown version {UNKNOWN}");
    let (kind, message, severity) = match &exchange.reply {
        Err(error) => {
            ("no answer", format!("the webhook does not respond to {unknown}: {error}"), Severity::Warning)
        }
        Ok(reply) if reply.status >= 500 => {
            let message = format!(
                "the webhook returns HTTP status {} for {unknown} instead of a 4xx or a denial",
                reply.status
            );
            ("HTTP status", message, Severity::Note)
        }
        Ok(reply) if reply.status >= 300 => return None,
        Ok(_) => match effect_of(&exchange, at(&review, &["request", "object"])) {
            Effect::Denied(_) => return None,
            Effect::Admitted(_) => {
                ("admits", format!("the webhook allows {unknown} instead of denying it"), Severity::Note)
            }
            Effect::Broken(what) => {
                ("no review", format!("the response to {unknown} is not valid: {what}"), Severity::Note)
            }
        },
    };
    let violation = Violation::new(format!("{kind} in an unsupported version"), message);
    Some(violation.with_severity(severity).with_steps([with_exchange(outcome, exchange)]))
}
