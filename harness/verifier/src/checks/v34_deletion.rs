//! V34: an object that is being deleted may lose its finalizers.

use std::collections::BTreeSet;
use std::sync::Arc;

use kubernetes_types::json::{at, set};
use serde_json::{Value, json};

use crate::check::{Audience, Check, Observed, Obstacle, Probe, Severity, Violation};
use crate::environment::Verdict;
use crate::object_probe::ObjectProbe;
use crate::shape;
use crate::stored::{as_deleting, update};

pub(super) const CHECK: Check = Check {
    id: "V34",
    title: "deletion: an update that only takes a finalizer off an object that is being deleted goes through",
    severity: Severity::Error,
    why: "Deleting an object with finalizers is an update first: its deletionTimestamp is set, controllers clean up and \
          take their finalizers away one by one. A webhook that holds these updates to its rules for new objects, or \
          adds a finalizer of its own again, keeps the object, and the namespace around it, in Terminating for ever.",
    source: "red-hat-data-services/opendatahub-operator#2242; kubernetes Finalizers; API conventions, metadata",
    audience: Audience::All,
    probe: Probe::Object(|object_probe| Box::pin(run(object_probe))),
};

const FINALIZER: &str = "admit.dev/cleanup";

async fn run(object_probe: &ObjectProbe<'_>) -> Observed {
    let created = object_probe.admitted(&object_probe.alone(), object_probe.request).await?;
    let Some(made) = &created.object else { return Ok(Vec::new()) };
    let mut stored = object_probe.stored(made)?;
    if let Some(Value::Array(finalizers)) = stored.pointer_mut("/metadata/finalizers") {
        finalizers.push(FINALIZER.into());
    } else {
        set(&mut stored, &["metadata", "finalizers"], json!([FINALIZER]));
    }
    let stored = as_deleting(stored, &object_probe.environment.cluster_fixture);
    let mut written = stored.clone();
    if let Some(Value::Array(finalizers)) = written.pointer_mut("/metadata/finalizers") {
        finalizers.pop();
        if finalizers.is_empty() {
            shape::remove(&mut written, "/metadata/finalizers");
        }
    }
    let request = update(object_probe.request, stored, written.clone());
    let updated = object_probe.outcome(&object_probe.alone(), &request).await;
    if updated.mismatch(&object_probe.subject.webhook.id).is_some() {
        let reason = "its rules and selectors do not pick UPDATE of the object";
        return Err(Obstacle::not_applicable(reason));
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
                return Ok(Vec::new());
            }
            let message =
                format!("it adds finalizers to an object that is being deleted: {}", added.join(", "));
            ("adds a finalizer", message)
        }
        Verdict::Denied(status) => {
            let message = format!("it denies that a finalizer is taken off: {}", status.message);
            ("denies the end of a deletion", message)
        }
        verdict @ (Verdict::Failed(_) | Verdict::ServerError(_)) => {
            ("fails at the end of a deletion", format!("it fails when a finalizer is taken off: {verdict}"))
        }
        Verdict::NoConditions(_) => return Err(Obstacle::no_conditions()),
        Verdict::Unsupported(what) => return Err(Obstacle::not_checked(what)),
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
