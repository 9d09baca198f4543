//! V32: a webhook handles an object without a name.

use kubernetes_admission::attributes::Attributes;
use kubernetes_types::json;
use serde_json::Value;

use crate::check::{Audience, Check, Observed, Probe, Repeatability, Severity, Skipped, Violation};
use crate::environment::{Outcome, Verdict};
use crate::object_probe::ObjectProbe;
use crate::shape;

pub(super) const CHECK: Check = Check {
    id: "V32",
    title: "generateName: the webhook handles an object without a name",
    severity: Severity::Error,
    why: "A Pod of a ReplicaSet has generateName and does not have a name yet: the API server generates the \
          name after the mutating webhooks. A webhook that reads the name from the object denies what every \
          controller creates.",
    help: "Do not require metadata.name on CREATE.",
    source: "apiserver pkg/registry/rest/create.go, BeforeCreate; istio/istio#8636",
    audience: Audience::Mutating,
    repeatability: Repeatability::Same,
    probe: Probe::Object(|object_probe| Box::pin(run(object_probe))),
};

async fn run(object_probe: &ObjectProbe<'_>) -> Observed {
    object_probe.admitted(&object_probe.alone(), object_probe.request).await?;
    let Some(unnamed) = unnamed(object_probe.request) else {
        return Err(Skipped::not_applicable("the object has no name that can be replaced with generateName"));
    };
    let outcome = object_probe.outcome(&object_probe.alone(), &unnamed).await;
    let Some(why) = refused(&outcome) else { return Ok(Vec::new()) };
    let message = format!("the webhook does not allow an object with generateName and without a name: {why}");
    let violation = Violation::new("requires metadata.name", message);
    Ok(vec![violation.with_sent(unnamed.object).with_steps([outcome])])
}

/// Returns the request with `generateName`, as a controller sends it, or `None` if the object does not have a name.
pub(super) fn unnamed(request: &Attributes) -> Option<Attributes> {
    // The body of a subresource request has the name of its parent.
    let mut object = request.object.clone().filter(|_| request.subresource.is_empty())?;
    let name = object.pointer("/metadata/name").and_then(Value::as_str)?.to_owned();
    shape::remove(&mut object, "/metadata/name");
    json::set(&mut object, &["metadata", "generateName"], format!("{name}-"));
    let mut unnamed = Attributes { name: String::new(), object: Some(object), ..request.clone() };
    if unnamed.resource.group_resource() == "namespaces" {
        unnamed.namespace.clear();
    }
    Some(unnamed)
}

/// Returns the reason why the webhook does not admit the request, if any.
fn refused(outcome: &Outcome) -> Option<String> {
    match outcome.verdict() {
        Verdict::Admitted | Verdict::NoConditions(_) | Verdict::Unsupported(_) => None,
        verdict @ (Verdict::Denied(_) | Verdict::Failed(_) | Verdict::ServerError(_)) => {
            Some(verdict.to_string())
        }
    }
}
