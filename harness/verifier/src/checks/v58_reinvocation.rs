//! V58: a webhook that changes Pods is reinvoked after later changes.

use std::sync::Arc;

use kubernetes_admission::config::ReinvocationPolicy;

use crate::check::{Audience, Check, Observed, Probe, Repeatability, Severity, Skipped, Violation};
use crate::comparison::Order;
use crate::object_probe::ObjectProbe;
use crate::other_webhooks::LIBRARY;

pub(super) const CHECK: Check = Check {
    id: "V58",
    title: "reinvocation of injectors: a webhook that changes containers or volumes of Pods is called again \
            after later changes",
    severity: Severity::Warning,
    why: "Most clusters have several webhooks that change Pods, and their order is not known. With \
          reinvocationPolicy Never, a webhook never sees the sidecars that a later webhook adds: they run \
          without its mount, credentials, or limits. With IfNeeded, it is called once more, which it must \
          tolerate: see V01 and V02. If no test showed that its result depends on what other webhooks add, \
          the finding is a note.",
    help: "Fix the findings of V01 and V03 first; then set reinvocationPolicy: IfNeeded.",
    source: "KEP-492, Reinvocation; istio/istio#54562; aws/amazon-eks-pod-identity-webhook#61",
    audience: Audience::Mutating,
    repeatability: Repeatability::Same,
    probe: Probe::Object(|object_probe| Box::pin(run(object_probe))),
};

/// The Pod fields that other webhooks extend. A label is set once, but containers may be added later.
const INJECTED: [&str; 3] = ["spec.containers", "spec.initContainers", "spec.volumes"];

async fn run(object_probe: &ObjectProbe<'_>) -> Observed {
    if (object_probe.request.kind.group.as_str(), object_probe.request.kind.kind.as_str()) != ("", "Pod") {
        return Err(Skipped::not_applicable("the object is not a Pod"));
    }
    let first = object_probe.first().await?;
    let Some(object) = &first.object else { return Ok(Vec::new()) };
    let mut differences = object_probe.differences(object_probe.object(), object, Order::Counts);
    differences.retain(|difference| INJECTED.iter().any(|field| difference.path.starts_with(field)));
    if differences.is_empty() {
        return Err(Skipped::not_applicable("the webhook does not change containers or volumes"));
    }
    if object_probe.subject.webhook.reinvocation_policy == ReinvocationPolicy::IfNeeded {
        return Ok(Vec::new());
    }
    let fields = super::fields(&differences);
    let violation = if depends_on_others(object_probe).await {
        let message = format!(
            "with reinvocationPolicy Never, the webhook changes {fields} but never sees the containers that \
             later webhooks add to a Pod; if they matter, set IfNeeded"
        );
        Violation::new("injects without reinvocation", message)
    } else {
        let message = format!(
            "with reinvocationPolicy Never, the webhook changes {fields} regardless of what other webhooks \
             add; if it must ever change their containers, set IfNeeded"
        );
        Violation::new("injects regardless of other webhooks, without reinvocation", message)
            .with_severity(Severity::Note)
    };
    Ok(vec![violation.with_differences(differences).with_steps([first])])
}

/// Returns whether the result depends on whether another webhook changes the object before or after the call.
async fn depends_on_others(object_probe: &ObjectProbe<'_>) -> bool {
    for other in LIBRARY.iter().filter(|other| other.applies_to(object_probe.object())) {
        let called = Arc::clone(&object_probe.subject.called);
        let before = ObjectProbe::in_order([other.webhook(), Arc::clone(&called)]);
        let before = object_probe.outcome(&before, object_probe.request).await;
        let after = object_probe
            .outcome(&ObjectProbe::in_order([called, other.webhook()]), object_probe.request)
            .await;
        // Rejected objects cannot be compared, so the result counts as dependent.
        let (Some(before), Some(after)) = (before.admitted(), after.admitted()) else { return true };
        if !object_probe.differences(before, after, Order::Free).is_empty() {
            return true;
        }
    }
    false
}
