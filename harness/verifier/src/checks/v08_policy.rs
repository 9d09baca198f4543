//! V08: a webhook that is called once only misses nothing.

use std::sync::Arc;

use kubernetes_admission::config::ReinvocationPolicy;

use crate::check::{Audience, Check, Observed, Obstacle, Probe, Severity, Violation};
use crate::comparison::Order;
use crate::object_probe::ObjectProbe;
use crate::other_webhooks::LIBRARY;

pub(super) const CHECK: Check = Check {
    id: "V08",
    title: "reinvocationPolicy: declared Never, it leaves nothing undone that IfNeeded would have done",
    severity: Severity::Warning,
    why: "The default is Never: what a later webhook adds, the containers of another injector for instance, is never \
          shown to this one and starts without its mount, environment or limits. Where calling it again gives what it \
          gives if the other one comes first, IfNeeded is the right policy, and renaming configurations to begin with \
          zzz is not needed.",
    source: "admissionregistration.k8s.io/v1 types, reinvocationPolicy; KEP-492, Mutating Plugin ordering",
    audience: Audience::Mutating,
    probe: Probe::Object(|object_probe| Box::pin(run(object_probe))),
};

async fn run(object_probe: &ObjectProbe<'_>) -> Observed {
    if object_probe.subject.webhook.reinvocation_policy == ReinvocationPolicy::IfNeeded {
        let reason = "it is IfNeeded: whether it may be is what V01, V02 and V03 say";
        return Err(Obstacle::not_applicable(reason));
    }
    object_probe.first().await?;
    let mut violations = Vec::new();
    let mut looked = false;
    for other in LIBRARY.iter().filter(|other| other.applies_to(object_probe.object())) {
        let called = Arc::clone(&object_probe.subject.called);
        let first = ObjectProbe::in_order([other.webhook(), Arc::clone(&called)]);
        let first = object_probe.outcome(&first, object_probe.request).await;
        let never = object_probe
            .outcome(&ObjectProbe::in_order([called, other.webhook()]), object_probe.request)
            .await;
        let if_needed = object_probe.subject.with_reinvocation(ReinvocationPolicy::IfNeeded);
        let if_needed = object_probe
            .outcome(&ObjectProbe::in_order([if_needed, other.webhook()]), object_probe.request)
            .await;
        let (Some(expected), Some(once), Some(again)) =
            (first.admitted(), never.admitted(), if_needed.admitted())
        else {
            continue;
        };
        looked = true;
        let missed = object_probe.differences(expected, once, Order::Free);
        // If calling it again does not help either, V02 tells.
        if missed.is_empty() || !object_probe.differences(expected, again, Order::Free).is_empty() {
            continue;
        }
        let does = other.does;
        let message = format!(
            "if another webhook {does} after it, these are not as they are if the other one comes first, or if the \
             reinvocationPolicy is IfNeeded: {}",
            super::fields(&missed)
        );
        let violation = Violation::new(format!("misses that another webhook {does}"), message);
        violations.push(violation.with_differences(missed).with_steps([first, never, if_needed]));
    }
    if looked {
        Ok(violations)
    } else {
        Err(Obstacle::not_applicable("it admits nothing that another webhook has changed"))
    }
}
