//! V34: a webhook allows the removal of finalizers.

use std::collections::BTreeSet;
use std::sync::Arc;

use kubernetes_types::json::{at, set};
use serde_json::{Value, json};

use crate::check::{Audience, Check, Observed, Probe, Repeatability, Severity, Skipped, Violation};
use crate::environment::Verdict;
use crate::object_probe::ObjectProbe;
use crate::rejection;
use crate::shape;
use crate::stored::{as_deleting, update};

pub(super) const CHECK: Check = Check {
    id: "V34",
    title: "finalizer removal: the webhook allows an update that only removes a finalizer from an object \
            being deleted",
    severity: Severity::Error,
    why: "Deletion of an object with finalizers starts with an update: its deletionTimestamp is set, and \
          controllers clean up and remove their finalizers one by one. A webhook that applies its rules for \
          new objects to these updates, or adds its own finalizer again, keeps the object and its namespace \
          in Terminating forever.",
    help: "Allow updates of objects that have a deletionTimestamp, without a patch.",
    source: "red-hat-data-services/opendatahub-operator#2242; kubernetes Finalizers; API conventions, \
             metadata",
    audience: Audience::All,
    repeatability: Repeatability::Same,
    probe: Probe::Object(|object_probe| Box::pin(run(object_probe))),
};

const FINALIZER: &str = "admit.dev/cleanup";

async fn run(object_probe: &ObjectProbe<'_>) -> Observed {
    let (_, made) = object_probe.created().await?;
    let Some(made) = made else { return Ok(Vec::new()) };
    let mut stored = object_probe.stored(&made)?;
    if let Some(Value::Array(finalizers)) = stored.pointer_mut("/metadata/finalizers") {
        finalizers.push(FINALIZER.into());
    } else {
        set(&mut stored, &["metadata", "finalizers"], json!([FINALIZER]));
    }
    let stored = as_deleting(stored, &object_probe.environment.cluster_fixture);
    let others = at(&stored, &["metadata", "finalizers"]).as_array().into_iter().flatten();
    let others: Vec<&Value> = others.filter(|finalizer| **finalizer != FINALIZER).collect();
    let mut violations = removal(object_probe, stored.clone(), with_finalizers(&stored, &others)).await?;
    // The controllers of the other finalizers may finish in any order.
    if violations.is_empty() && !others.is_empty() {
        violations = removal(object_probe, stored.clone(), with_finalizers(&stored, &[])).await?;
    }
    Ok(violations)
}

/// Returns a copy of `object` with `finalizers`.
fn with_finalizers(object: &Value, finalizers: &[&Value]) -> Value {
    let mut written = object.clone();
    if finalizers.is_empty() {
        shape::remove(&mut written, "/metadata/finalizers");
    } else {
        set(&mut written, &["metadata", "finalizers"], json!(finalizers));
    }
    written
}

/// Examines an update that removes finalizers from an object that is being deleted.
async fn removal(object_probe: &ObjectProbe<'_>, stored: Value, written: Value) -> Observed {
    let request = update(object_probe.request, stored, written.clone());
    let updated = object_probe.outcome(&object_probe.alone(), &request).await;
    if updated.mismatch(&object_probe.subject.webhook.id).is_some() {
        let reason = "the webhook's rules and selectors do not match UPDATE of the object";
        return Err(Skipped::not_applicable(reason));
    }
    let steps = [Arc::clone(&updated)];
    let (kind, message) = match updated.verdict() {
        Verdict::Admitted => {
            let before = finalizers(&written);
            let added: Vec<&str> = updated
                .object
                .as_ref()
                .map(finalizers)
                .unwrap_or_default()
                .difference(&before)
                .copied()
                .collect();
            if added.is_empty() {
                let rejected =
                    rejection::rejection(object_probe.environment, "the finalizer removal", &updated, &[]);
                return Ok(rejected.into_iter().collect());
            }
            let message = format!(
                "the webhook adds finalizers to an object that is being deleted: {}",
                added.join(", ")
            );
            ("adds a finalizer", message)
        }
        Verdict::Denied(status) => {
            let message = format!("the webhook denies the removal of a finalizer: {}", status.message);
            ("denies a finalizer removal", message)
        }
        verdict @ (Verdict::Failed(_) | Verdict::ServerError(_)) => (
            "fails on a finalizer removal",
            format!(
                "the webhook fails when a finalizer is removed: \
                                                      {verdict}"
            ),
        ),
        Verdict::NoConditions(_) => return Err(Skipped::no_conditions()),
        Verdict::Unsupported(what) => return Err(Skipped::not_checked(what)),
    };
    Ok(vec![Violation::new(kind, message).with_steps(steps)])
}

fn finalizers(object: &Value) -> BTreeSet<&str> {
    at(object, &["metadata", "finalizers"])
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}
