//! V29: DELETE has no object.

use std::iter;
use std::sync::Arc;

use kubernetes_admission::attributes::Attributes;
use serde_json::json;

use crate::check::{Audience, Check, Observed, Obstacle, Probe, Severity, Violation};
use crate::environment::{Outcome, Verdict};
use crate::object_probe::ObjectProbe;
use crate::stored;

pub(super) const CHECK: Check = Check {
    id: "V29",
    title: "DELETE: it reads oldObject, since object is null, and answers without a patch",
    severity: Severity::Error,
    why: "On DELETE, `object` is null and what is deleted stands in `oldObject`; in the deletion of a collection the \
          request has no name either. A webhook that decodes `object` all the same crashes or denies, namespaces hang \
          in Terminating, and a patch fails the request whatever the failurePolicy says.",
    source: "Dynamic Admission Control, Request; KEP-492; kubernetes/kubernetes#96715, #66425; slok/kubewebhook#63",
    audience: Audience::All,
    probe: Probe::Object(|object_probe| Box::pin(run(object_probe))),
};

/// What a webhook says that looked for an object and found none, or another one: the words of runtimes and libraries, and
/// none that the author of a rule would choose.
const SIGNS: [&str; 9] = [
    "no content to decode",
    "unexpected end of json",
    "nil pointer",
    "nullpointer",
    "cannot invoke",
    "properties of",
    "decode",
    "unmarshal",
    "nonetype",
];

async fn run(object_probe: &ObjectProbe<'_>) -> Observed {
    let stored = object_probe.stored(object_probe.object())?;
    let delete = stored::delete(object_probe.request, stored);
    // Of some resources, such as namespaces, no collection can be deleted.
    let resource = object_probe.environment.cluster_fixture.resource(&delete.resource);
    let has_collection =
        resource.is_some_and(|resource| resource.verbs.iter().any(|verb| verb == "deletecollection"));
    let collection = has_collection.then(|| {
        let options = Some(json!({"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"}));
        (Attributes { name: String::new(), options, ..delete.clone() }, "the deletion of a collection")
    });
    let mut violations = Vec::new();
    for (request, what) in iter::once((delete, "DELETE")).chain(collection) {
        let outcome = object_probe.outcome(&object_probe.alone(), &request).await;
        if outcome.mismatch(&object_probe.subject.webhook.id).is_some() {
            return Err(Obstacle::not_applicable("its rules and selectors do not pick DELETE of the object"));
        }
        violations.extend(judge(&outcome, what));
    }
    Ok(violations)
}

fn judge(outcome: &Arc<Outcome>, what: &str) -> Option<Violation> {
    let (kind, message) = match outcome.verdict() {
        Verdict::Failed(reason) => ("fails", format!("on {what} it gives no valid answer: {reason}")),
        Verdict::ServerError(status) => ("sends a patch", format!("on {what}: {}", status.message)),
        Verdict::Denied(status) if is_confused(status.code, &status.message) => (
            "misses the object",
            format!("on {what} it denies, since it looks for an object: {}", status.message),
        ),
        Verdict::Denied(_) | Verdict::Admitted | Verdict::NoConditions(_) | Verdict::Unsupported(_) => {
            return None;
        }
    };
    Some(Violation::new(format!("{kind} on {what}"), message).with_steps([Arc::clone(outcome)]))
}

/// Whether a denial is about the request itself rather than about what it asks for.
pub(super) fn is_confused(code: i32, message: &str) -> bool {
    let message = message.to_lowercase();
    (code == 400 || code >= 500) && SIGNS.iter().any(|sign| message.contains(sign))
}
