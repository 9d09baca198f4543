//! V33: the version in which a request comes makes no difference.

use std::sync::Arc;

use kubernetes_admission::attributes::Attributes;
use kubernetes_admission::cluster_state::{ClusterState as _, EquivalentResource};
use kubernetes_admission::event::Mismatch;

use crate::check::{Audience, Check, Observed, Obstacle, Probe, Severity, Violation};
use crate::comparison::Order;
use crate::environment::Verdict;
use crate::object_probe::ObjectProbe;

pub(super) const CHECK: Check = Check {
    id: "V33",
    title: "equivalent: an object meets the same verdict and mutation in every version in which it is served",
    severity: Severity::Error,
    why: "The same object can be written as autoscaling/v1 or v2, or in any served version of a custom resource. A \
          webhook with matchPolicy Exact is not called for versions that its rules do not name, and one that decodes \
          only the version of its day, or compares `requestKind`, decides otherwise for the others: whoever is refused \
          in one version is served in the next.",
    source: "admissionregistration.k8s.io/v1 types, matchPolicy; Dynamic Admission Control, Matching requests: matchPolicy",
    audience: Audience::All,
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
        return Err(Obstacle::not_applicable("the kind is served in one version only"));
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
) -> Result<Option<Violation>, Obstacle> {
    let cluster_fixture = &object_probe.environment.cluster_fixture;
    let Some(kind) = &other.kind else { return Ok(None) };
    let cannot = |error: kubernetes_admission::cluster_state::ConversionError| {
        Obstacle::not_checked(error.to_string())
    };
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
                "it is not called for the same object in {version}: name that version in the rules, or leave \
                 matchPolicy at Equivalent"
            );
            let violation = Violation::new(format!("not called in {version}"), message);
            return Ok(Some(violation.with_severity(Severity::Warning).with_steps(steps)));
        }
        Some(_) => return Ok(None),
        None => {}
    }
    if let verdict @ (Verdict::Failed(_) | Verdict::ServerError(_)) = found.verdict() {
        let message = format!("it fails for the same object in {version}: {verdict}");
        return Ok(Some(Violation::new(format!("fails in {version}"), message).with_steps(steps)));
    }
    if expected.refusal.is_some() != found.refusal.is_some() {
        let (one, other) = (expected.verdict(), found.verdict());
        let message = format!("the answer is another one for the same object in {version}: {one}; {other}");
        return Ok(Some(Violation::new(format!("another verdict in {version}"), message).with_steps(steps)));
    }
    let (Some(wanted), Some(object), None) = (&expected.object, &found.object, &found.refusal) else {
        return Ok(None);
    };
    let object = cluster_fixture.convert(object, &object_probe.request.kind).map_err(cannot)?;
    // A conversion there and back may itself leave something behind.
    let unchanged =
        request.object.as_ref().map(|object| cluster_fixture.convert(object, &object_probe.request.kind));
    if let Some(Ok(unchanged)) = unchanged
        && !object_probe.differences(object_probe.object(), &unchanged, Order::Counts).is_empty()
    {
        return Err(Obstacle::not_checked(format!(
            "the object is another one after a conversion to {version} and back"
        )));
    }
    let differences = object_probe.differences(wanted, &object, Order::Counts);
    if differences.is_empty() {
        return Ok(None);
    }
    let message =
        format!("it makes another object of the same in {version}: {}", super::fields(&differences));
    let violation = Violation::new(format!("another result in {version}"), message);
    Ok(Some(violation.with_differences(differences).with_steps(steps)))
}
