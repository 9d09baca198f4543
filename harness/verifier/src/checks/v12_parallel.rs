//! V12: requests at the same time do not get in each other's way.

use std::sync::Arc;

use futures::future::join_all;
use kubernetes_admission::attributes::Attributes;
use kubernetes_types::json::set;
use serde_json::Value;

use crate::check::{Audience, Check, Observed, Obstacle, Probe, Severity, Violation};
use crate::comparison::Order;
use crate::environment::{Outcome, Verdict};
use crate::finding_log::UNSTEADY;
use crate::object_probe::Memory;
use crate::webhook_probe::WebhookProbe;

/// How many requests come at a time.
const REQUESTS: usize = 64;

pub(super) const CHECK: Check = Check {
    id: "V12",
    title: "parallel: 64 requests at a time get the answers that each of them gets alone",
    severity: Severity::Error,
    why: "kube-apiserver calls a webhook for every request that it has in hand, from several replicas. A webhook that \
          keeps the review, the patch or the logger's fields in a place that all requests share answers with the uid or \
          the object of another one as soon as two come together: one user's Pod gets another one's sidecar, token or \
          verdict, and no test that sends one request at a time ever shows it.",
    source: "Dynamic Admission Control, Response: uid is copied from the request",
    audience: Audience::All,
    probe: Probe::Webhook(|webhook_probe| Box::pin(run(webhook_probe))),
};

async fn run(webhook_probe: &WebhookProbe<'_>) -> Observed {
    if webhook_probe.samples.is_empty() {
        return Err(Obstacle::not_applicable("its rules and selectors pick no object of the corpus"));
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
            return Err(Obstacle::not_checked(reason));
        }
        expected.push(outcome);
    }
    let found =
        join_all(requests.iter().map(|request| webhook_probe.environment.admit(&alone, request))).await;
    let mut violations: Vec<Violation> = Vec::new();
    for ((request, expected), found) in requests.iter().zip(&expected).zip(found) {
        let found = Arc::new(found);
        let Some(violation) = departure(webhook_probe, request, expected, &found) else { continue };
        if violations.iter().any(|known| known.kind == violation.kind) {
            continue;
        }
        // Only what is always the same alone can be wrong in company.
        let again = webhook_probe.environment.admit(&alone, request).await;
        if departure(webhook_probe, request, expected, &again).is_some() {
            return Err(Obstacle::not_checked(UNSTEADY));
        }
        violations.push(violation.with_steps([Arc::clone(expected), found]));
    }
    Ok(violations)
}

/// A request like no other.
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

fn departure(
    webhook_probe: &WebhookProbe<'_>,
    request: &Attributes,
    expected: &Outcome,
    found: &Outcome,
) -> Option<Violation> {
    if let Verdict::Failed(reason) = found.verdict() {
        let kind = if reason.contains("expected response.uid") {
            "another request's uid"
        } else {
            "fails in company"
        };
        let message = format!("a request that it answers alone is not answered among {REQUESTS}: {reason}");
        return Some(Violation::new(kind, message));
    }
    if expected.refusal.is_some() != found.refusal.is_some() {
        let (one, other) = (expected.verdict().to_string(), found.verdict().to_string());
        let message = format!("the answer to a request is another one among {REQUESTS}: {one}; {other}");
        return Some(Violation::new("another verdict", message));
    }
    let memory = Memory::default();
    let object_probe = webhook_probe.object_probe(request, &memory);
    let differences =
        object_probe.differences(expected.object.as_ref()?, found.object.as_ref()?, Order::Counts);
    if differences.is_empty() {
        return None;
    }
    let message =
        format!("among {REQUESTS} requests, one comes out as another: {}", super::fields(&differences));
    Some(Violation::new("another object", message).with_differences(differences))
}
