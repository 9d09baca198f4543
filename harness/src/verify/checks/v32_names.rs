//! V32: namespace and name may stand in the request alone.

use std::sync::Arc;

use serde_json::Value;

use crate::attributes::Attributes;
use crate::verify::check::{Audience, Check, Observed, Obstacle, Probe, Severity, Violation};
use crate::verify::comparison::Order;
use crate::verify::laboratory::{Outcome, Verdict};
use crate::verify::shape;
use crate::verify::trial::Trial;

pub(super) const CHECK: Check = Check {
    id: "V32",
    title: "names: it takes the namespace from the request, and does without a name where there is generateName",
    severity: Severity::Error,
    why: "Objects that clients send without metadata.namespace reach webhooks of some server versions that way: only \
          request.namespace is always right. A Pod of a ReplicaSet has generateName and no name yet. A webhook that \
          reads either from the object looks up settings in no namespace, or denies what every controller creates.",
    source: "kubernetes/kubernetes#88282; kubernetes-sigs/controller-runtime#1991; istio/istio#8636",
    audience: Audience::All,
    probe: Probe::Object(|trial| Box::pin(run(trial))),
};

async fn run(trial: &Trial<'_>) -> Observed {
    let whole = trial.admitted(&trial.alone(), trial.request).await?;
    let mut violations = Vec::new();
    let mut looked = false;
    if !trial.request.namespace.is_empty() {
        let mut object = trial.object().clone();
        if shape::remove(&mut object, "/metadata/namespace") {
            looked = true;
            let outcome = trial.outcome(&trial.alone(), &trial.with_object(object)).await;
            violations.extend(namespace(trial, &whole, &outcome));
        }
    }
    if let Some(unnamed) = unnamed(trial.request) {
        looked = true;
        let outcome = trial.outcome(&trial.alone(), &unnamed).await;
        if let Some(why) = refused(&outcome) {
            let message = format!("it does not admit an object with generateName and no name: {why}");
            violations.push(Violation::new("needs metadata.name", message).with_steps([outcome]));
        }
    }
    if looked { Ok(violations) } else { Err(Obstacle::not_applicable("the object has neither")) }
}

fn namespace(trial: &Trial<'_>, whole: &Arc<Outcome>, outcome: &Arc<Outcome>) -> Option<Violation> {
    let steps = [Arc::clone(whole), Arc::clone(outcome)];
    if let Some(why) = refused(outcome) {
        let message =
            format!("it does not admit an object whose namespace stands in the request alone: {why}");
        return Some(Violation::new("needs metadata.namespace", message).with_steps(steps));
    }
    let without = |object: &Option<Value>| {
        let mut object = object.clone()?;
        shape::remove(&mut object, "/metadata/namespace");
        Some(object)
    };
    let (expected, found) = (without(&whole.object)?, without(&outcome.object)?);
    let differences = trial.differences(&expected, &found, Order::Counts);
    if differences.is_empty() {
        return None;
    }
    let message = format!(
        "what it does depends on whether metadata.namespace is there: {}",
        super::fields(&differences)
    );
    let violation = Violation::new("depends on metadata.namespace", message);
    Some(violation.with_differences(differences).with_steps(steps))
}

/// The request as a controller makes it; none if it is like that already.
fn unnamed(request: &Attributes) -> Option<Attributes> {
    let mut object = request.object.clone()?;
    let name = object.pointer("/metadata/name").and_then(Value::as_str)?.to_owned();
    shape::remove(&mut object, "/metadata/name");
    object["metadata"]["generateName"] = format!("{name}-").into();
    Some(Attributes { name: String::new(), object: Some(object), ..request.clone() })
}

/// Why the request is not admitted by the webhook.
fn refused(outcome: &Outcome) -> Option<String> {
    match outcome.verdict() {
        Verdict::Admitted | Verdict::NoConditions(_) | Verdict::Unsupported(_) => None,
        verdict @ (Verdict::Denied(_) | Verdict::Failed(_) | Verdict::ServerError(_)) => {
            Some(verdict.to_string())
        }
    }
}
