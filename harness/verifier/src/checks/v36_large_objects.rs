//! V36: a webhook handles the largest objects that the API server accepts.

use std::collections::BTreeSet;
use std::sync::Arc;

use kubernetes_admission::attributes::{Attributes, Operation};
use kubernetes_admission::event::Phase;
use serde_json::json;

use super::large_object::{MAX_ETCD_REQUEST_BYTES, MAX_REQUEST_BODY_BYTES, filled};
use super::v29_delete::is_decoding_error;
use crate::check::{Audience, Check, Observed, Probe, Repeatability, Severity, Skipped, Violation};
use crate::environment::Verdict;
use crate::object_probe::Memory;
use crate::stored::update;
use crate::webhook_probe::WebhookProbe;

pub(super) const CHECK: Check = Check {
    id: "V36",
    title: "large objects: the webhook handles object and oldObject of the maximum size",
    severity: Severity::Warning,
    why: "kube-apiserver accepts bodies of up to 3 MiB, and the review of an update also holds the stored \
          object, for which etcd allows 1.5 MiB: 4.5 MiB and more. Frameworks limit bodies to 1, 3, or 7 \
          MiB, and proxies often have lower limits. The webhook then fails for some objects only, often \
          with a misleading message, and with failurePolicy Ignore a large object bypasses it.",
    help: "Raise the body limit of the framework, and of every proxy in front of it, to 7 MiB or more.",
    source: "kubernetes-sigs/controller-runtime#2598; apiserver pkg/server/config.go, MaxRequestBodyBytes; \
             etcd \
             server/embed/config.go, DefaultMaxRequestBytes",
    audience: Audience::All,
    repeatability: Repeatability::Same,
    probe: Probe::Webhook(|webhook_probe| Box::pin(run(webhook_probe))),
};

/// The result of sending the largest object of a kind to a webhook.
enum LargeObjectResult {
    /// The webhook violates the check.
    Found(Box<Violation>),
    /// The webhook answers the largest request; contains the operation of the request.
    Answered(Operation),
}

async fn run(webhook_probe: &WebhookProbe<'_>) -> Observed {
    // The body of an update of a subresource, such as a Scale, is derived from the stored object.
    let is_enlarged = |sample: &&Attributes| match sample.operation {
        Operation::Create => true,
        Operation::Update => sample.subresource.is_empty(),
        Operation::Delete | Operation::Connect => false,
    };
    let samples: Vec<&Attributes> = webhook_probe.samples.iter().filter(is_enlarged).collect();
    if samples.is_empty() {
        return Err(Skipped::not_applicable(match webhook_probe.samples {
            [] => "no object in the corpus matches the webhook's rules and selectors",
            _ => "the webhook is called only for deletions, connections, or updates of subresources",
        }));
    }
    let mut kinds = BTreeSet::new();
    let mut skip = None;
    let mut answered = false;
    for sample in samples {
        if !kinds.insert(&sample.kind) {
            continue;
        }
        match tried(webhook_probe, sample).await {
            Ok(LargeObjectResult::Found(violation)) => return Ok(vec![*violation]),
            // The review of an update is the largest.
            Ok(LargeObjectResult::Answered(Operation::Update)) => return Ok(Vec::new()),
            Ok(LargeObjectResult::Answered(_)) => answered = true,
            Err(why) => skip = Some(why),
        }
    }
    skip.filter(|_| !answered).map_or_else(|| Ok(Vec::new()), Err)
}

async fn tried(webhook_probe: &WebhookProbe<'_>, sample: &Attributes) -> Result<LargeObjectResult, Skipped> {
    let memory = Memory::default();
    let object_probe = webhook_probe.object_probe(sample, &memory);
    let small = object_probe.answered(&object_probe.alone(), sample).await?;
    let schema = webhook_probe.environment.cluster_fixture.schema_of(&sample.kind);
    let (object, filling) = filled(object_probe.object(), schema.as_ref(), MAX_REQUEST_BODY_BYTES);
    let (old, _) = filled(object_probe.object(), schema.as_ref(), MAX_ETCD_REQUEST_BYTES);
    // The API server rejects forbidden changes before it calls the validating webhooks.
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
        // Not cached, because no other check needs it.
        let outcome = Arc::new(webhook_probe.environment.admit(&object_probe.alone(), &request).await);
        if outcome.mismatch(&webhook_probe.subject.webhook.id).is_some() {
            continue;
        }
        let size = request.object.as_ref().map_or(0, |object| object.to_string().len()) / 1024;
        let sent =
            format!("{} of a {} of {size} KiB, enlarged by {filling},", request.operation, sample.kind.kind);
        let violation = match outcome.verdict() {
            Verdict::Failed(reason) => Violation::new(
                "fails on a large object",
                format!("on {sent} the webhook does not return a valid response: {reason}"),
            ),
            Verdict::ServerError(status) => {
                let message =
                    format!("on {sent} the webhook returns a patch that does not apply: {}", status.message);
                Violation::new("patch fails on a large object", message)
            }
            Verdict::Denied(status) if small.refusal.is_none() => {
                let message = format!(
                    "the webhook denies {sent} and allows the same object without that: {}",
                    status.message
                );
                let is_failure = status.code == 413 || is_decoding_error(status.code, &status.message);
                let severity = if is_failure { Severity::Warning } else { Severity::Note };
                Violation::new("denies a large object", message).with_severity(severity)
            }
            Verdict::Denied(_) | Verdict::Admitted => {
                return Ok(LargeObjectResult::Answered(request.operation));
            }
            Verdict::NoConditions(_) => return Err(Skipped::no_conditions()),
            Verdict::Unsupported(what) => return Err(Skipped::not_checked(what)),
        };
        return Ok(LargeObjectResult::Found(Box::new(violation.with_large([Arc::clone(&outcome)]))));
    }
    Err(Skipped::not_checked("the webhook is not called for the enlarged object"))
}
