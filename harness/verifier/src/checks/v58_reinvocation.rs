//! V58: a webhook that changes Pods is called again when a later one changes them.

use std::sync::Arc;

use kubernetes_admission::config::ReinvocationPolicy;

use crate::check::{Audience, Check, Observed, Obstacle, Probe, Severity, Violation};
use crate::comparison::Order;
use crate::object_probe::ObjectProbe;
use crate::other_webhooks::LIBRARY;

pub(super) const CHECK: Check = Check {
    id: "V58",
    title: "a webhook that changes the containers or volumes of Pods asks to be called again when a later one changes them",
    severity: Severity::Warning,
    why: "Most clusters have several webhooks that change Pods, and none knows whose turn is when. With \
          reinvocationPolicy Never a webhook never sees the sidecars that a later one adds: they go without its mount, \
          its credentials, its limits. With IfNeeded it is called once more, which it must stand: see V01 and V02. \
          Where nothing that it does depends on what other webhooks add, as far as that was tried, it is a note.",
    source: "KEP-492, Reinvocation; istio/istio#54562; aws/amazon-eks-pod-identity-webhook#61",
    audience: Audience::Mutating,
    probe: Probe::Object(|object_probe| Box::pin(run(object_probe))),
};

/// What of a Pod other webhooks add to: a label is set once and for all, a container may come later.
const INJECTED: [&str; 3] = ["spec.containers", "spec.initContainers", "spec.volumes"];

async fn run(object_probe: &ObjectProbe<'_>) -> Observed {
    if (object_probe.request.kind.group.as_str(), object_probe.request.kind.kind.as_str()) != ("", "Pod") {
        return Err(Obstacle::not_applicable("the object is no Pod"));
    }
    let first = object_probe.first().await?;
    let Some(object) = &first.object else { return Ok(Vec::new()) };
    if object_probe.subject.webhook.reinvocation_policy == ReinvocationPolicy::IfNeeded {
        return Ok(Vec::new());
    }
    let mut differences = object_probe.differences(object_probe.object(), object, Order::Counts);
    differences.retain(|difference| INJECTED.iter().any(|field| difference.path.starts_with(field)));
    if differences.is_empty() {
        return Ok(Vec::new());
    }
    let fields = super::fields(&differences);
    let violation = if depends_on_others(object_probe).await {
        let message = format!(
            "with reinvocationPolicy Never it changes {fields}: the containers that later webhooks add to a Pod it \
             never sees; if they matter to it, set IfNeeded"
        );
        Violation::new("injects without reinvocation", message)
    } else {
        let message = format!(
            "with reinvocationPolicy Never it changes {fields}, whatever other webhooks add before or after it; if it \
             is ever to do something to their containers, set IfNeeded"
        );
        Violation::new("injects regardless of others, without reinvocation", message)
            .with_severity(Severity::Note)
    };
    Ok(vec![violation.with_differences(differences).with_steps([first])])
}

/// Whether another object comes out if another webhook's change comes after its call than if that comes before.
async fn depends_on_others(object_probe: &ObjectProbe<'_>) -> bool {
    for other in LIBRARY.iter().filter(|other| other.applies_to(object_probe.object())) {
        let called = Arc::clone(&object_probe.subject.called);
        let before = ObjectProbe::in_order([other.webhook(), Arc::clone(&called)]);
        let before = object_probe.outcome(&before, object_probe.request).await;
        let after = object_probe
            .outcome(&ObjectProbe::in_order([called, other.webhook()]), object_probe.request)
            .await;
        // What is not admitted cannot be compared, and is no proof that nothing is missed.
        let (Some(before), Some(after)) = (before.admitted(), after.admitted()) else { return true };
        if !object_probe.differences(before, after, Order::Free).is_empty() {
            return true;
        }
    }
    false
}
