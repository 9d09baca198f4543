//! V36: the largest object that a client may send is answered.

use std::collections::BTreeSet;
use std::sync::Arc;

use kubernetes_admission::attributes::{Attributes, Operation};
use kubernetes_admission::event::Phase;
use serde_json::json;

use super::filling::{LARGEST_SENT, LARGEST_STORED, filled};
use super::v29_delete::is_confused;
use crate::check::{Audience, Check, Observed, Obstacle, Probe, Severity, Violation};
use crate::environment::Verdict;
use crate::object_probe::Memory;
use crate::stored::update;
use crate::webhook_probe::WebhookProbe;

pub(super) const CHECK: Check = Check {
    id: "V36",
    title: "large: object and oldObject of the largest size that the API server takes are answered",
    severity: Severity::Warning,
    why: "kube-apiserver reads bodies of up to 3 MiB, and an update has the stored object, for which etcd takes 1.5 MiB, \
          beside the new one in its review: 4.5 MiB and more. Frameworks limit what they read to 1, 3 or 7 MiB, and proxies in front of them to less. Then \
          the webhook fails for some objects and no other, often with a text about something else, and with failurePolicy \
          Ignore a large object is the way around it.",
    source: "kubernetes-sigs/controller-runtime#2598; apiserver pkg/server/config.go, MaxRequestBodyBytes; etcd \
             server/embed/config.go, DefaultMaxRequestBytes",
    audience: Audience::All,
    probe: Probe::Webhook(|webhook_probe| Box::pin(run(webhook_probe))),
};

/// What became of the largest object of a kind.
enum Tried {
    /// It shows something.
    Found(Box<Violation>),
    /// The webhook answers, most when it is asked for this operation.
    Answered(Operation),
}

async fn run(webhook_probe: &WebhookProbe<'_>) -> Observed {
    let samples: Vec<&Attributes> =
        webhook_probe.samples.iter().filter(|sample| sample.object.is_some()).collect();
    if samples.is_empty() {
        return Err(Obstacle::not_applicable(match webhook_probe.samples {
            [] => "its rules and selectors pick no object of the corpus",
            _ => "it is asked about deletions only",
        }));
    }
    let mut kinds = BTreeSet::new();
    let mut obstacle = None;
    let mut answered = false;
    for sample in samples {
        if !kinds.insert(&sample.kind) {
            continue;
        }
        match tried(webhook_probe, sample).await {
            Ok(Tried::Found(violation)) => return Ok(vec![*violation]),
            // No review is larger than that of an update.
            Ok(Tried::Answered(Operation::Update)) => return Ok(Vec::new()),
            Ok(Tried::Answered(_)) => answered = true,
            Err(why) => obstacle = Some(why),
        }
    }
    obstacle.filter(|_| !answered).map_or_else(|| Ok(Vec::new()), Err)
}

async fn tried(webhook_probe: &WebhookProbe<'_>, sample: &Attributes) -> Result<Tried, Obstacle> {
    let memory = Memory::default();
    let object_probe = webhook_probe.object_probe(sample, &memory);
    let small = object_probe.answered(&object_probe.alone(), sample).await?;
    let schema = webhook_probe.environment.cluster_fixture.schema_of(&sample.kind);
    let (object, filling) = filled(object_probe.object(), schema.as_ref(), LARGEST_SENT);
    let (old, _) = filled(object_probe.object(), schema.as_ref(), LARGEST_STORED);
    // What may change of an object is looked at before the validating webhooks are called.
    let new = if webhook_probe.subject.webhook.phase == Phase::Validating { &old } else { &object };
    let stored = [object_probe.stored(&old), object_probe.stored(new)];
    let update = if let [Ok(old), Ok(new)] = stored { Some(update(sample, old, new)) } else { None };
    let create = Attributes {
        operation: Operation::Create,
        object: Some(object),
        old_object: None,
        options: Some(json!({"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"})),
        ..sample.clone()
    };
    for request in update.into_iter().chain([create]) {
        // Past the memory: nobody asks this again.
        let outcome = Arc::new(webhook_probe.environment.admit(&object_probe.alone(), &request).await);
        if outcome.mismatch(&webhook_probe.subject.webhook.id).is_some() {
            continue;
        }
        let size = request.object.as_ref().map_or(0, |object| object.to_string().len()) / 1024;
        let sent = format!("{} of a {} of {size} KiB, by {filling},", request.operation, sample.kind.kind);
        let violation = match outcome.verdict() {
            Verdict::Failed(reason) => Violation::new(
                "fails on a large object",
                format!("on {sent} it gives no valid answer: {reason}"),
            ),
            Verdict::ServerError(status) => {
                let message = format!("on {sent} its patch does not apply: {}", status.message);
                Violation::new("breaks on a large object", message)
            }
            Verdict::Denied(status) if small.refusal.is_none() => {
                let message =
                    format!("it denies {sent} and admits the same without that: {}", status.message);
                let is_failure = status.code == 413 || is_confused(status.code, &status.message);
                let severity = if is_failure { Severity::Warning } else { Severity::Note };
                Violation::new("denies a large object", message).with_severity(severity)
            }
            Verdict::Denied(_) | Verdict::Admitted => return Ok(Tried::Answered(request.operation)),
            Verdict::NoConditions(_) => return Err(Obstacle::no_conditions()),
            Verdict::Unsupported(what) => return Err(Obstacle::not_checked(what)),
        };
        return Ok(Tried::Found(Box::new(violation.with_large([Arc::clone(&outcome)]))));
    }
    Err(Obstacle::not_checked("it is no longer called for the object when that is large"))
}
