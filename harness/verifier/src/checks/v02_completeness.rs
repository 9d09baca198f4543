//! V02: a webhook does all of its work when it is reinvoked after another webhook.

use std::sync::Arc;

use kubernetes_admission::config::ReinvocationPolicy;
use kubernetes_admission::event::Round;

use crate::check::{Audience, Check, Observed, Probe, Repeatability, Severity, Skipped, Violation};
use crate::comparison::Order;
use crate::environment::Verdict;
use crate::object_probe::ObjectProbe;
use crate::other_webhooks::{LIBRARY, OtherWebhook};

pub(super) const CHECK: Check = Check {
    id: "V02",
    title: "completeness on reinvocation: the webhook handles another webhook's addition as it would on the \
            first call",
    severity: Severity::Error,
    why: "An injector that finds its own volume or sidecar on reinvocation and returns early skips the \
          containers that another webhook added in the meantime: they start without their mount, \
          credentials, or environment. The result must not depend on whether the other webhook ran before \
          or after. For a webhook that is never reinvoked, the finding is a note: it shows what would \
          happen with reinvocationPolicy IfNeeded.",
    help: "Do not return early when your own change is present; check each container and volume separately.",
    source: "KEP-492, reinvocation; aws/amazon-eks-pod-identity-webhook#61; DataDog/datadog-agent#37091; \
             Azure/azure-workload-identity#1744",
    audience: Audience::Mutating,
    repeatability: Repeatability::Same,
    probe: Probe::Object(|object_probe| Box::pin(run(object_probe))),
};

async fn run(object_probe: &ObjectProbe<'_>) -> Observed {
    let is_reinvoked = object_probe.subject.webhook.reinvocation_policy == ReinvocationPolicy::IfNeeded;
    let violations = reinvoked(object_probe).await?.into_iter().map(|violation| {
        if is_reinvoked {
            return violation;
        }
        let message = format!("{}; with reinvocationPolicy Never, it is not called again", violation.message);
        Violation { message, ..violation }.with_severity(Severity::Note)
    });
    Ok(violations.collect())
}

async fn reinvoked(object_probe: &ObjectProbe<'_>) -> Observed {
    object_probe.first().await?;
    let mut violations = Vec::new();
    let mut tested = false;
    for other in LIBRARY.iter().filter(|other| other.applies_to(object_probe.object())) {
        match after(object_probe, other).await {
            Ok(violation) => {
                tested = true;
                violations.extend(violation);
            }
            Err(Skipped::NotApplicable(_)) => {}
            Err(skip) => return Err(skip),
        }
    }
    if tested {
        Ok(violations)
    } else {
        Err(Skipped::not_applicable("the webhook is not called again after another webhook's change"))
    }
}

/// Compares a reinvocation of the webhook after `other` with its first call after `other`.
async fn after(object_probe: &ObjectProbe<'_>, other: &OtherWebhook) -> Result<Option<Violation>, Skipped> {
    let at_first_sight = ObjectProbe::in_order([other.webhook(), Arc::clone(&object_probe.subject.called)]);
    let expected = object_probe.admitted(&at_first_sight, object_probe.request).await?;
    let reinvoked = object_probe.subject.with_reinvocation(ReinvocationPolicy::IfNeeded);
    let found = object_probe
        .outcome(&ObjectProbe::in_order([reinvoked, other.webhook()]), object_probe.request)
        .await;
    if !found.was_called(&object_probe.subject.webhook.id, Round::Second) {
        return Err(Skipped::not_applicable("the webhook is not called again"));
    }
    let steps = [Arc::clone(&expected), Arc::clone(&found)];
    let does = other.does;
    let (kind, message) = match found.verdict() {
        Verdict::Denied(status) => (
            format!("denies on reinvocation, after another webhook {does}"),
            format!(
                "called again after another webhook {does}, the webhook denies what it allows on the first \
                 call: {}",
                status.message
            ),
        ),
        Verdict::ServerError(status) => (
            format!("patch fails on reinvocation, after another webhook {does}"),
            format!(
                "called again after another webhook {does}, the webhook returns a patch that does not \
                 apply: {}",
                status.message
            ),
        ),
        Verdict::NoConditions(_) => return Err(Skipped::no_conditions()),
        verdict @ (Verdict::Failed(_) | Verdict::Unsupported(_)) => {
            return Err(Skipped::not_checked(verdict.to_string()));
        }
        Verdict::Admitted => {
            let (Some(expected), Some(found)) = (&expected.object, &found.object) else { return Ok(None) };
            let differences = object_probe.differences(expected, found, Order::Free);
            if differences.is_empty() {
                return Ok(None);
            }
            if !leaves_its_result_alone(object_probe).await {
                return Err(Skipped::not_checked("the webhook changes its own result: see V01"));
            }
            let message = format!(
                "the result differs depending on whether another webhook {does} before or after the \
                 webhook's first call: {}",
                super::fields(&differences)
            );
            let kind = format!("incomplete after another webhook {does}");
            return Ok(Some(Violation::new(kind, message).with_differences(differences).with_steps(steps)));
        }
    };
    Ok(Some(Violation::new(kind, message).with_steps(steps)))
}

/// Returns whether the webhook leaves its own result unchanged.
///
/// If it does not, every other webhook would cause a finding.
async fn leaves_its_result_alone(object_probe: &ObjectProbe<'_>) -> bool {
    let Ok(first) = object_probe.first().await else { return true };
    let Some(made) = &first.object else { return true };
    let again = object_probe.outcome(&object_probe.alone(), &object_probe.with_object(made.clone())).await;
    // A denial is reported separately.
    let (Verdict::Admitted, Some(again)) = (again.verdict(), &again.object) else { return true };
    object_probe.differences(made, again, Order::Free).is_empty()
}
