//! V15: a patch applies to objects without optional fields.

use std::sync::Arc;

use kubernetes_types::json;
use serde_json::Value;

use crate::check::{Audience, Check, Observed, Probe, Repeatability, Severity, Skipped, Violation};
use crate::environment::{Outcome, Verdict};
use crate::object_probe::ObjectProbe;
use crate::patch_advice::patch_advice;
use crate::shape::{self, pod_spec};
use crate::violation::sentence;

pub(super) const CHECK: Check = Check {
    id: "V15",
    title: "absent parents: the patch applies to objects without annotations, labels, volumes, env, and \
            other optional fields",
    severity: Severity::Error,
    why: "`add /metadata/annotations/x` fails on an object without annotations, and `add /spec/volumes/-` \
          fails on a Pod without volumes. A patch that does not apply fails the request regardless of \
          failurePolicy, with an internal error, although the user made no mistake.",
    help: "Add the missing parent, `{}` or `[]`, before you add to it. Change an item of a list only if the \
           list has it.",
    source: "kubernetes/kubernetes#90623; RFC 6902, add: the object to which it adds must exist",
    audience: Audience::Mutating,
    repeatability: Repeatability::Same,
    probe: Probe::Object(|object_probe| Box::pin(run(object_probe))),
};

/// The optional fields of an object's metadata.
const OF_OBJECT: [&str; 2] = ["/metadata/annotations", "/metadata/labels"];
const OF_POD: [&str; 7] = [
    "volumes",
    "initContainers",
    "securityContext",
    "nodeSelector",
    "tolerations",
    "imagePullSecrets",
    "affinity",
];
const OF_CONTAINER: [&str; 5] = ["env", "volumeMounts", "securityContext", "ports", "envFrom"];

async fn run(object_probe: &ObjectProbe<'_>) -> Observed {
    let alone = object_probe.alone();
    let whole = object_probe.outcome(&alone, object_probe.request).await;
    if whole.calls_of(&object_probe.subject.webhook.id).next().is_none() {
        object_probe.answered(&alone, object_probe.request).await?;
    }
    if let Verdict::Failed(reason) = whole.verdict() {
        return Err(Skipped::not_checked(reason));
    }
    let mut violations: Vec<Violation> = judge("as it is", &whole).into_iter().collect();
    if !object_probe.environment.removes_optional_fields {
        return Ok(violations);
    }
    let parts = optional_parts(object_probe.object());
    let mut bare = object_probe.object().clone();
    for (pointer, name) in &parts {
        shape::remove(&mut bare, pointer);
        let mut object = object_probe.object().clone();
        shape::remove(&mut object, pointer);
        violations.extend(without(object_probe, object, &format!("without {name}")).await);
    }
    if parts.len() > 1 {
        violations.extend(without(object_probe, bare, "without all optional fields").await);
    }
    Ok(violations)
}

async fn without(object_probe: &ObjectProbe<'_>, object: Value, what: &str) -> Option<Violation> {
    // Missing fields get their defaults; the service account token is added unless the Pod disables it.
    let mut object = object;
    if json::text(&object, &["kind"]) == "Pod" {
        json::set(&mut object, &["spec", "automountServiceAccountToken"], false);
    }
    let request = object_probe.environment.create(object).ok()?;
    let violation = judge(what, &object_probe.outcome(&object_probe.alone(), &request).await)?;
    Some(violation.with_sent(request.object))
}

fn judge(what: &str, outcome: &Arc<Outcome>) -> Option<Violation> {
    let (kind, message) = match outcome.verdict() {
        Verdict::ServerError(status) => (
            format!("patch does not apply {what}"),
            format!("the patch does not apply to the object {what}: {}", status.message),
        ),
        Verdict::Failed(reason) => {
            (format!("fails {what}"), format!("the webhook fails only on the object {what}: {reason}"))
        }
        Verdict::Admitted | Verdict::Denied(_) | Verdict::NoConditions(_) | Verdict::Unsupported(_) => {
            return None;
        }
    };
    let violation = Violation::new(kind, message).with_steps([Arc::clone(outcome)]);
    Some(match outcome.calls().find_map(patch_advice) {
        Some(advice) => violation.with_help(sentence(&advice)),
        None => violation,
    })
}

/// Returns JSON pointers to the optional fields of `object` with their names. Later list items come first.
fn optional_parts(object: &Value) -> Vec<(String, &'static str)> {
    let mut parts: Vec<(String, &'static str)> = OF_OBJECT
        .iter()
        .map(|pointer| ((*pointer).to_owned(), pointer.rsplit('/').next().unwrap_or("")))
        .collect();
    if let Some(spec) = pod_spec(object) {
        for list in ["containers", "initContainers"] {
            let count =
                object.pointer(&format!("{spec}/{list}")).and_then(Value::as_array).map_or(0, Vec::len);
            for index in (0..count).rev() {
                parts
                    .extend(OF_CONTAINER.iter().map(|name| (format!("{spec}/{list}/{index}/{name}"), *name)));
            }
        }
        parts.extend(OF_POD.iter().map(|name| (format!("{spec}/{name}"), *name)));
    }
    parts.retain(|(pointer, _)| object.pointer(pointer).is_some());
    parts
}
