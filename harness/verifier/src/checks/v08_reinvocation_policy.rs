//! V08: the `reinvocationPolicy` `Never` gives the same result as `IfNeeded`.

use std::sync::Arc;

use kubernetes_admission::config::ReinvocationPolicy;
use kubernetes_admission::event::Round;

use crate::check::{Audience, Check, Observed, Probe, Repeatability, Severity, Skipped, Violation};
use crate::comparison::Order;
use crate::object_probe::ObjectProbe;
use crate::other_webhooks::LIBRARY;

pub(super) const CHECK: Check = Check {
    id: "V08",
    title: "reinvocationPolicy: Never gives the same result as IfNeeded",
    severity: Severity::Warning,
    why: "The default is Never: kube-apiserver does not show the webhook what a later webhook adds, for \
          example the containers of another injector, which then start without their mount, environment, or \
          limits. If calling the webhook again gives the same result as when the other webhook runs first, \
          IfNeeded is the right policy, and the configuration does not have to be renamed to begin with zzz.",
    help: "Fix the findings of V01 and V03 first; then set reinvocationPolicy: IfNeeded.",
    source: "admissionregistration.k8s.io/v1 types, reinvocationPolicy; KEP-492, Mutating Plugin ordering",
    audience: Audience::Mutating,
    repeatability: Repeatability::Same,
    probe: Probe::Object(|object_probe| Box::pin(run(object_probe))),
};

async fn run(object_probe: &ObjectProbe<'_>) -> Observed {
    if object_probe.subject.webhook.reinvocation_policy == ReinvocationPolicy::IfNeeded {
        let reason = "reinvocationPolicy is already IfNeeded: V01, V02, and V03 check whether the webhook \
                      supports it";
        return Err(Skipped::not_applicable(reason));
    }
    object_probe.first().await?;
    let mut violations = Vec::new();
    let mut tested = false;
    for other in LIBRARY.iter().filter(|other| other.applies_to(object_probe.object())) {
        let called = Arc::clone(&object_probe.subject.called);
        let first = ObjectProbe::in_order([other.webhook(), Arc::clone(&called)]);
        let first = object_probe.outcome(&first, object_probe.request).await;
        let if_needed = object_probe.subject.with_reinvocation(ReinvocationPolicy::IfNeeded);
        let if_needed = object_probe
            .outcome(&ObjectProbe::in_order([if_needed, other.webhook()]), object_probe.request)
            .await;
        let (Some(expected), Some(again)) = (first.admitted(), if_needed.admitted()) else { continue };
        if !if_needed.was_changed(&object_probe.subject.webhook.id, Round::Second) {
            // The second call has no effect, so the result with Never is the same: the webhook need not be called.
            tested = true;
            continue;
        }
        let never = object_probe
            .outcome(&ObjectProbe::in_order([called, other.webhook()]), object_probe.request)
            .await;
        let Some(once) = never.admitted() else { continue };
        tested = true;
        let missed = object_probe.differences(expected, once, Order::Free);
        // If reinvocation does not help either, V02 reports it.
        if missed.is_empty() || !object_probe.differences(expected, again, Order::Free).is_empty() {
            continue;
        }
        let does = other.does;
        let message = format!(
            "if another webhook {does} after the webhook's call, the result differs from that with the \
             other webhook first, or with reinvocationPolicy IfNeeded: {}",
            super::fields(&missed)
        );
        let violation = Violation::new(format!("misses that another webhook {does}"), message);
        violations.push(violation.with_differences(missed).with_steps([first, never, if_needed]));
    }
    if tested {
        Ok(violations)
    } else {
        Err(Skipped::not_applicable("the webhook allows no object that another webhook changed"))
    }
}
