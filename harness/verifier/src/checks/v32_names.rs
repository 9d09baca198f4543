//! V32: an object may have no name yet.

use kubernetes_admission::attributes::Attributes;
use kubernetes_types::json;
use serde_json::Value;

use crate::check::{Audience, Check, Observed, Obstacle, Probe, Severity, Violation};
use crate::environment::{Outcome, Verdict};
use crate::object_probe::ObjectProbe;
use crate::shape;

pub(super) const CHECK: Check = Check {
    id: "V32",
    title: "names: it does without a name where there is generateName",
    severity: Severity::Error,
    why: "A Pod of a ReplicaSet has generateName and no name yet: the API server makes the name after the mutating \
          webhooks. A webhook that reads the name from the object denies what every controller creates.",
    source: "apiserver pkg/registry/rest/create.go, BeforeCreate; istio/istio#8636",
    audience: Audience::Mutating,
    probe: Probe::Object(|object_probe| Box::pin(run(object_probe))),
};

async fn run(object_probe: &ObjectProbe<'_>) -> Observed {
    object_probe.admitted(&object_probe.alone(), object_probe.request).await?;
    let Some(unnamed) = unnamed(object_probe.request) else {
        return Err(Obstacle::not_applicable("the object has no name that it could do without"));
    };
    let outcome = object_probe.outcome(&object_probe.alone(), &unnamed).await;
    let Some(why) = refused(&outcome) else { return Ok(Vec::new()) };
    let message = format!("it does not admit an object with generateName and no name: {why}");
    Ok(vec![Violation::new("needs metadata.name", message).with_steps([outcome])])
}

/// The request as a controller makes it; none if it is like that already.
pub(super) fn unnamed(request: &Attributes) -> Option<Attributes> {
    // What is sent to a subresource has the name of what it belongs to.
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

/// Why the request is not admitted by the webhook.
fn refused(outcome: &Outcome) -> Option<String> {
    match outcome.verdict() {
        Verdict::Admitted | Verdict::NoConditions(_) | Verdict::Unsupported(_) => None,
        verdict @ (Verdict::Denied(_) | Verdict::Failed(_) | Verdict::ServerError(_)) => {
            Some(verdict.to_string())
        }
    }
}
