//! V29: a webhook handles DELETE requests, which have no object.

use std::iter;
use std::sync::Arc;

use kubernetes_admission::attributes::Attributes;
use serde_json::json;

use crate::check::{Audience, Check, Observed, Probe, Repeatability, Severity, Skipped, Violation};
use crate::environment::{Outcome, Verdict};
use crate::object_probe::ObjectProbe;
use crate::stored;

pub(super) const CHECK: Check = Check {
    id: "V29",
    title: "DELETE requests: the webhook reads oldObject, because object is null, and returns no patch",
    severity: Severity::Error,
    why: "On DELETE, `object` is null and `oldObject` holds the object to be deleted; when a collection is \
          deleted, the request does not have a name either. A webhook that decodes `object` anyway crashes \
          or denies, namespaces hang in Terminating, and a patch fails the request regardless of \
          failurePolicy.",
    help: "On DELETE, read request.oldObject and return no patch.",
    source: "Dynamic Admission Control, Request; KEP-492; kubernetes/kubernetes#96715, #66425; \
             slok/kubewebhook#63",
    audience: Audience::All,
    repeatability: Repeatability::Same,
    probe: Probe::Object(|object_probe| Box::pin(run(object_probe))),
};

/// Phrases that runtimes and libraries use to report that the expected object is missing.
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
    // Some resources, such as namespaces, do not support deletecollection.
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
            return Err(Skipped::not_applicable(
                "the webhook's rules and selectors do not match DELETE of \
                                                 the object",
            ));
        }
        violations.extend(judge(&outcome, what));
    }
    Ok(violations)
}

fn judge(outcome: &Arc<Outcome>, what: &str) -> Option<Violation> {
    let (kind, message) = match outcome.verdict() {
        Verdict::Failed(reason) => (
            "fails",
            format!(
                "on {what}, the webhook does not return a valid \
                                                      response: {reason}"
            ),
        ),
        Verdict::ServerError(status) => {
            ("sends a patch", format!("on {what}, the patch fails: {}", status.message))
        }
        Verdict::Denied(status) if is_decoding_error(status.code, &status.message) => (
            "misses the object",
            format!("on {what}, the webhook denies because it does not find an object: {}", status.message),
        ),
        Verdict::Denied(_) | Verdict::Admitted | Verdict::NoConditions(_) | Verdict::Unsupported(_) => {
            return None;
        }
    };
    Some(Violation::new(format!("{kind} on {what}"), message).with_steps([Arc::clone(outcome)]))
}

/// Returns whether the form of the request, rather than its content, caused a denial.
pub(super) fn is_decoding_error(code: i32, message: &str) -> bool {
    let message = message.to_lowercase();
    (code == 400 || code >= 500) && SIGNS.iter().any(|sign| message.contains(sign))
}
