//! V58: a webhook that changes Pods is called again when a later one changes them.

use crate::config::ReinvocationPolicy;
use crate::server::Surroundings;
use crate::verify::check::{Audience, Check, Observed, Obstacle, Probe, Severity, Violation};
use crate::verify::checks::matched;
use crate::verify::subject::Subject;

pub(super) const CHECK: Check = Check {
    id: "V58",
    title: "a webhook that mutates new Pods asks to be called again when a later one changes them",
    severity: Severity::Warning,
    why: "Most clusters have several webhooks that change Pods, and none knows whose turn is when. With \
          reinvocationPolicy Never a webhook never sees the sidecars that a later one adds: they go without its mount, \
          its credentials, its limits. With IfNeeded it is called once more, which it must stand: see V01 and V02.",
    source: "KEP-492, Reinvocation; istio/istio#54562; aws/amazon-eks-pod-identity-webhook#61",
    audience: Audience::Mutating,
    probe: Probe::Configuration(run),
};

fn run(subject: &Subject, _: &Surroundings) -> Observed {
    let webhook = &subject.webhook;
    if !webhook.rules.iter().any(|rule| matched::catches(rule, "CREATE", ("", "v1", "pods"))) {
        return Err(Obstacle::not_applicable("it is not called for new Pods"));
    }
    match webhook.reinvocation_policy {
        ReinvocationPolicy::IfNeeded => Ok(Vec::new()),
        ReinvocationPolicy::Never => {
            let message = "it is called for new Pods with reinvocationPolicy Never: what later webhooks add to a Pod it \
                           never sees; if that matters to it, set IfNeeded";
            Ok(vec![Violation::new("Pods without reinvocation", message)])
        }
    }
}
