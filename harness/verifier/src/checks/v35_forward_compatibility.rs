//! V35: a webhook accepts reviews with new fields.

use std::sync::Arc;

use bytes::Bytes;
use kubernetes_types::json::set;
use serde_json::{Value, json};

use super::v22_envelope::with_exchange;
use super::webhook_response::{WebhookResponse, effect_of};
use crate::check::{Audience, Check, Observed, Probe, Repeatability, Severity, Skipped, Violation};
use crate::comparison::Difference;
use crate::finding_log::NOT_DETERMINISTIC;
use crate::object_probe::{Memory, ObjectProbe};
use crate::webhook_probe::WebhookProbe;

pub(super) const CHECK: Check = Check {
    id: "V35",
    title: "forward compatibility: new fields of the review, of userInfo, and of options do not change the \
            response",
    severity: Severity::Error,
    why: "The API may add fields to AdmissionReview without a new version, as it did with requestKind and \
          options. Authenticators add arbitrary keys to userInfo.extra. A webhook that decodes the review \
          strictly rejects every request after an upgrade of the cluster. A webhook that copies what it \
          receives into the object, such as the user's name, is reported as a note.",
    help: "Ignore unknown fields when you decode the review.",
    source: "Dynamic Admission Control, Request; kubernetes API conventions: adding fields is compatible",
    audience: Audience::All,
    repeatability: Repeatability::Same,
    probe: Probe::Webhook(|webhook_probe| Box::pin(run(webhook_probe))),
};

/// The number of requests to try.
const SAMPLES: usize = 4;

/// The description of a field that a review may contain in the future, and a function that adds the field.
type Addition = (&'static str, fn(&mut Value));

/// A key of `userInfo.extra` that authenticators do not use.
const EXTRA: &str = "authentication.example.com/admit-unknown";
const NEW_KEYS: &str = "new keys of userInfo";

const ADDITIONS: [Addition; 3] = [
    ("new fields of the review", |review| {
        set(review, &["admitUnknown"], json!({"nested": ["value"]}));
        set(review, &["request", "admitUnknown"], json!({"nested": ["value"]}));
        set(review, &["request", "kind", "admitUnknown"], "value");
    }),
    (NEW_KEYS, |review| {
        set(review, &["request", "userInfo", "extra", EXTRA], json!(["value"]));
        set(review, &["request", "userInfo", "admitUnknown"], json!(["value"]));
    }),
    ("a new kind of options", |review| {
        let options = json!({"apiVersion": "meta.k8s.io/v2", "kind": "FutureOptions", "admitUnknown": true});
        set(review, &["request", "options"], options);
    }),
];

async fn run(webhook_probe: &WebhookProbe<'_>) -> Observed {
    let mut violations: Vec<Violation> = Vec::new();
    let mut reason = Skipped::not_applicable(
        "no object in the corpus matches the webhook's rules and \
                                               selectors",
    );
    let mut tested = false;
    for sample in webhook_probe.samples.iter().take(SAMPLES) {
        let memory = Memory::default();
        let object_probe = webhook_probe.object_probe(sample, &memory);
        let webhook_response = match WebhookResponse::to_creation(&object_probe).await {
            Ok(webhook_response) => webhook_response,
            Err(skip) => {
                reason = skip;
                continue;
            }
        };
        let Some(exchange) = webhook_response.outcome.exchanges.first() else { continue };
        let Ok(review) = serde_json::from_slice::<Value>(&exchange.review) else { continue };
        tested = true;
        let ask = async |review: &Value| {
            let body = Bytes::from(review.to_string());
            webhook_probe.environment.post(&webhook_probe.subject.called, body).await
        };
        for (what, add) in ADDITIONS {
            let written_down = if what == NEW_KEYS { written_down(&object_probe).await } else { None };
            let mut more = written_down.unwrap_or_else(|| review.clone());
            add(&mut more);
            let exchange = ask(&more).await;
            let departure = effect_of(&exchange, webhook_response.object())
                .difference_from(&webhook_response.effect(), &object_probe);
            let Some((how, differences)) = departure else { continue };
            let mut departs = Vec::new();
            for asked in [&review, &review, &more] {
                let again = effect_of(&ask(asked).await, webhook_response.object());
                departs.push(again.difference_from(&webhook_response.effect(), &object_probe).is_some());
            }
            if departs != [false, false, true] {
                return Err(Skipped::not_checked(NOT_DETERMINISTIC));
            }
            let kind = format!("depends on {what}");
            if violations.iter().all(|known| known.kind != kind) {
                let steps = [
                    Arc::clone(&webhook_response.outcome),
                    with_exchange(&webhook_response.outcome, exchange),
                ];
                let severity = if is_copied(&differences) { Severity::Note } else { CHECK.severity };
                let violation = Violation::new(kind, format!("with {what}, {how}")).with_severity(severity);
                violations.push(violation.with_differences(differences).with_steps(steps));
            }
        }
    }
    if tested { Ok(violations) } else { Err(reason) }
}

/// Returns the review for a user with a new `extra` key, or `None` if no mutating webhook writes the key to the object.
async fn written_down(object_probe: &ObjectProbe<'_>) -> Option<Value> {
    let mut request = object_probe.request.clone();
    request.user.extra.insert(EXTRA.to_owned(), vec!["value".to_owned()]);
    let shown = object_probe.shown(request).await;
    if shown.object == object_probe.request.object {
        return None;
    }
    let outcome = object_probe.outcome(&object_probe.alone(), &shown).await;
    serde_json::from_slice(&outcome.exchanges.first()?.review).ok()
}

/// Returns whether all differences are copies of the new field, as written by a webhook that records the user.
fn is_copied(differences: &[Difference]) -> bool {
    let is_added = |difference: &Difference| {
        let found = difference.found.as_ref().map(Value::to_string).unwrap_or_default();
        found.contains("admit-unknown") || found.contains("admitUnknown")
    };
    !differences.is_empty() && differences.iter().all(is_added)
}
