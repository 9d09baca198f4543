//! V33: the version of a request does not change the response.

use std::sync::Arc;

use kubernetes_admission::attributes::Attributes;
use kubernetes_admission::cluster_state::{ClusterState as _, EquivalentResource};
use kubernetes_admission::event::Mismatch;

use crate::check::{Audience, Check, Observed, Probe, Repeatability, Severity, Skipped, Violation};
use crate::comparison::Order;
use crate::environment::Verdict;
use crate::object_probe::ObjectProbe;

pub(super) const CHECK: Check = Check {
    id: "V33",
    title: "equivalent versions: an object gets the same verdict and mutation in every served version",
    severity: Severity::Error,
    why: "The same object can be written as autoscaling/v1 or v2, or in any served version of a custom \
          resource. A webhook with matchPolicy Exact is not called for versions that its rules do not name. \
          A webhook that decodes only one version, or compares `requestKind`, decides differently for the \
          others: a user who is denied in one version succeeds in another.",
    help: "Set matchPolicy: Equivalent, and use request.kind instead of request.requestKind.",
    source: "admissionregistration.k8s.io/v1 types, matchPolicy; Dynamic Admission Control, Matching \
             requests: matchPolicy",
    audience: Audience::All,
    repeatability: Repeatability::Same,
    probe: Probe::Object(|object_probe| Box::pin(run(object_probe))),
};

async fn run(object_probe: &ObjectProbe<'_>) -> Observed {
    let cluster_fixture = &object_probe.environment.cluster_fixture;
    let equivalents = cluster_fixture
        .equivalent_resources(&object_probe.request.resource, &object_probe.request.subresource);
    let is_other = |other: &&EquivalentResource| {
        *other.resource != object_probe.request.resource && other.kind.is_some()
    };
    let others: Vec<_> = equivalents.iter().filter(is_other).collect();
    if others.is_empty() {
        return Err(Skipped::not_applicable("the kind is served in only one version"));
    }
    object_probe.answered(&object_probe.alone(), object_probe.request).await?;
    let mut violations = Vec::new();
    for other in others {
        violations.extend(in_version(object_probe, other).await?);
    }
    Ok(violations)
}

async fn in_version(
    object_probe: &ObjectProbe<'_>,
    other: &EquivalentResource,
) -> Result<Option<Violation>, Skipped> {
    let cluster_fixture = &object_probe.environment.cluster_fixture;
    let Some(kind) = &other.kind else { return Ok(None) };
    let cannot =
        |error: kubernetes_admission::cluster_state::ConversionError| Skipped::not_checked(error.to_string());
    let version = kind.api_version();
    let expected = object_probe.outcome(&object_probe.alone(), object_probe.request).await;
    let request = Attributes {
        resource: (*other.resource).clone(),
        kind: (**kind).clone(),
        object: Some(cluster_fixture.convert(object_probe.object(), kind).map_err(cannot)?),
        ..object_probe.request.clone()
    };
    let found = object_probe.outcome(&object_probe.alone(), &request).await;
    let steps = [Arc::clone(&expected), Arc::clone(&found)];
    match found.mismatch(&object_probe.subject.webhook.id) {
        Some(Mismatch::Rules) => {
            let message = format!(
                "the webhook is not called for the same object in {version}: add that version to the rules, \
                 or set matchPolicy to Equivalent"
            );
            let violation = Violation::new(format!("not called in {version}"), message);
            return Ok(Some(violation.with_severity(Severity::Warning).with_steps(steps)));
        }
        Some(_) => return Ok(None),
        None => {}
    }
    if let verdict @ (Verdict::Failed(_) | Verdict::ServerError(_)) = found.verdict() {
        let message = format!("the webhook fails on the same object in {version}: {verdict}");
        return Ok(Some(Violation::new(format!("fails in {version}"), message).with_steps(steps)));
    }
    if expected.refusal.is_some() != found.refusal.is_some() {
        let (one, other) = (expected.verdict(), found.verdict());
        let message = format!("the response differs for the same object in {version}: {one}; {other}");
        return Ok(Some(
            Violation::new(format!("different verdict in {version}"), message).with_steps(steps),
        ));
    }
    let (Some(wanted), Some(object), None) = (&expected.object, &found.object, &found.refusal) else {
        return Ok(None);
    };
    let object = cluster_fixture.convert(object, &object_probe.request.kind).map_err(cannot)?;
    // The round-trip conversion itself may change the object.
    let unchanged =
        request.object.as_ref().map(|object| cluster_fixture.convert(object, &object_probe.request.kind));
    if let Some(Ok(unchanged)) = unchanged
        && !object_probe.differences(object_probe.object(), &unchanged, Order::Counts).is_empty()
    {
        return Err(Skipped::not_checked(format!(
            "the object changes when it is converted to {version} and back"
        )));
    }
    let differences = object_probe.differences(wanted, &object, Order::Counts);
    if differences.is_empty() {
        return Ok(None);
    }
    let message =
        format!("the result differs for the same object in {version}: {}", super::fields(&differences));
    let violation = Violation::new(format!("different result in {version}"), message);
    Ok(Some(violation.with_differences(differences).with_steps(steps)))
}
