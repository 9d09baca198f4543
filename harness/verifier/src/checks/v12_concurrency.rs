//! V12: concurrent requests do not affect each other.

use std::sync::Arc;

use futures::future::join_all;
use kubernetes_admission::attributes::Attributes;
use kubernetes_types::json::set;
use serde_json::Value;

use crate::check::{Audience, Check, Observed, Probe, Severity, Skipped, Violation};
use crate::comparison::Order;
use crate::environment::{Outcome, Verdict};
use crate::finding_log::NOT_DETERMINISTIC;
use crate::object_probe::Memory;
use crate::webhook_probe::WebhookProbe;

/// The number of concurrent requests.
const REQUESTS: usize = 64;

pub(super) const CHECK: Check = Check {
    id: "V12",
    title: "concurrency: 64 concurrent requests get the same responses as single requests",
    severity: Severity::Error,
    why: "kube-apiserver calls a webhook for every request in flight, from several replicas. A webhook that \
          stores the review, the patch, or the logger's fields in shared state responds with the uid or the \
          object of another request as soon as two requests overlap: one user's Pod gets another user's \
          sidecar, token, or verdict. Tests that send one request at a time never show it.",
    help: "Keep all state of a request in local variables.",
    source: "Dynamic Admission Control, Response: uid is copied from the request",
    audience: Audience::All,
    probe: Probe::Webhook(|webhook_probe| Box::pin(run(webhook_probe))),
};

async fn run(webhook_probe: &WebhookProbe<'_>) -> Observed {
    if webhook_probe.samples.is_empty() {
        return Err(Skipped::not_applicable(
            "no object in the corpus matches the webhook's rules and \
                                             selectors",
        ));
    }
    let requests: Vec<Attributes> = webhook_probe
        .samples
        .iter()
        .cycle()
        .take(REQUESTS)
        .enumerate()
        .map(|(n, sample)| distinct(sample, n))
        .collect();
    let alone = webhook_probe.alone();
    let mut expected = Vec::with_capacity(requests.len());
    for request in &requests {
        let outcome = Arc::new(webhook_probe.environment.admit(&alone, request).await);
        if let Verdict::Failed(reason) = outcome.verdict() {
            return Err(Skipped::not_checked(reason));
        }
        expected.push(outcome);
    }
    let found =
        join_all(requests.iter().map(|request| webhook_probe.environment.admit(&alone, request))).await;
    let mut violations: Vec<Violation> = Vec::new();
    for ((request, expected), found) in requests.iter().zip(&expected).zip(found) {
        let found = Arc::new(found);
        let Some(violation) = difference(webhook_probe, request, expected, &found) else { continue };
        if violations.iter().any(|known| known.kind == violation.kind) {
            continue;
        }
        // The difference counts only if the response to the request alone is stable.
        let again = webhook_probe.environment.admit(&alone, request).await;
        if difference(webhook_probe, request, expected, &again).is_some() {
            return Err(Skipped::not_checked(NOT_DETERMINISTIC));
        }
        violations.push(violation.with_steps([Arc::clone(expected), found]));
    }
    Ok(violations)
}

/// Returns a copy of the request for an object whose name contains `number`, so that all copies are different.
pub(super) fn distinct(sample: &Attributes, number: usize) -> Attributes {
    let name = format!("admit-parallel-{number}");
    let is_namespace = sample.resource.group_resource() == "namespaces";
    let distinct = |object: &Option<Value>| {
        let mut object = object.clone()?;
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("name".to_owned(), name.clone().into());
            metadata.remove("generateName");
        }
        if is_namespace {
            set(&mut object, &["metadata", "labels", "kubernetes.io/metadata.name"], name.clone());
        }
        set(&mut object, &["metadata", "annotations", "admit.dev/parallel"], number.to_string());
        Some(object)
    };
    let (object, old_object) = (distinct(&sample.object), distinct(&sample.old_object));
    let namespace = if is_namespace { name.clone() } else { sample.namespace.clone() };
    Attributes { namespace, name, object, old_object, ..sample.clone() }
}

fn difference(
    webhook_probe: &WebhookProbe<'_>,
    request: &Attributes,
    expected: &Outcome,
    found: &Outcome,
) -> Option<Violation> {
    if let Verdict::Failed(reason) = found.verdict() {
        let kind = if reason.contains("expected response.uid") {
            "another request's uid"
        } else {
            "fails under concurrency"
        };
        let message = format!(
            "a request that succeeds alone fails among {REQUESTS} concurrent requests: \
                               {reason}"
        );
        return Some(Violation::new(kind, message));
    }
    if expected.refusal.is_some() != found.refusal.is_some() {
        let (one, other) = (expected.verdict().to_string(), found.verdict().to_string());
        let message = format!(
            "the response to a request differs among {REQUESTS} concurrent requests: \
                               {one}; {other}"
        );
        return Some(Violation::new("different verdict", message));
    }
    let memory = Memory::default();
    let object_probe = webhook_probe.object_probe(request, &memory);
    let differences =
        object_probe.differences(expected.object.as_ref()?, found.object.as_ref()?, Order::Counts);
    if differences.is_empty() {
        return None;
    }
    let message = format!(
        "among {REQUESTS} concurrent requests, one gives a different object: {}",
        super::fields(&differences)
    );
    Some(Violation::new("different object", message).with_differences(differences))
}
