//! V03: a webhook keeps the values that other webhooks added.

use std::sync::Arc;

use kubernetes_admission::config::ReinvocationPolicy;
use serde_json::Value;

use super::overwritten::overwritten;
use crate::check::{Audience, Check, Observed, Probe, Repeatability, Severity, Skipped, Violation};
use crate::environment::Verdict;
use crate::object_probe::ObjectProbe;
use crate::other_webhooks::LIBRARY;

pub(super) const CHECK: Check = Check {
    id: "V03",
    title: "preservation of other changes: what another webhook added is kept",
    severity: Severity::Error,
    why: "A webhook that replaces a whole list, or sets a whole map, deletes what other webhooks added: \
          their sidecars, volumes, and labels. No error is reported, and which webhook wins depends on the \
          names of the configurations.",
    help: "Patch single items and keys instead of whole lists and maps.",
    source: "istio/istio#54562; Admission Webhook Good Practices, Don't overwrite array values",
    audience: Audience::Mutating,
    repeatability: Repeatability::Same,
    probe: Probe::Object(|object_probe| Box::pin(run(object_probe))),
};

async fn run(object_probe: &ObjectProbe<'_>) -> Observed {
    let first = object_probe.first().await?;
    let mut violations = Vec::new();
    let mut tested = false;
    for other in LIBRARY.iter().filter(|other| other.applies_to(object_probe.object())) {
        let before = ObjectProbe::in_order([other.webhook(), Arc::clone(&object_probe.subject.called)]);
        let before = object_probe.outcome(&before, object_probe.request).await;
        let reinvoked = object_probe.subject.with_reinvocation(ReinvocationPolicy::IfNeeded);
        let after = object_probe
            .outcome(&ObjectProbe::in_order([reinvoked, other.webhook()]), object_probe.request)
            .await;
        // The object that the other webhook receives: the original, or the result of this webhook.
        let seen = [Some(object_probe.object()), first.object.as_ref()];
        for (outcome, seen) in [before, after].into_iter().zip(seen) {
            let (Some(seen), Verdict::Admitted, Some(found)) = (seen, outcome.verdict(), &outcome.object)
            else {
                continue;
            };
            tested = true;
            if other.survives(seen, found) {
                continue;
            }
            let does = other.does;
            let lost = other.lost(seen, found);
            let rewritten = other.list_of(seen, found);
            let is_policy =
                rewritten.is_some_and(|list| rewrites(object_probe.object(), first.object.as_ref(), &list));
            let violation = if is_policy {
                let kind = format!("changes what another webhook added, which {does}");
                let message = format!(
                    "another webhook {does}, and the webhook changes the values of the addition, as it does \
                     for the user's own items; correct only if that is the webhook's purpose"
                );
                Violation::new(kind, message).with_severity(Severity::Note)
            } else {
                let kind = format!("removes what another webhook added, which {does}");
                let is_changed = lost.as_ref().is_some_and(|lost| lost.found.is_some());
                let verb = if is_changed { "changes" } else { "removes" };
                let message = format!("another webhook {does}, and the webhook {verb} the addition");
                Violation::new(kind, message)
            };
            violations.push(violation.with_differences(lost.into_iter().collect()).with_steps([outcome]));
            break;
        }
    }
    if tested {
        Ok(violations)
    } else {
        Err(Skipped::not_applicable("the webhook denies every object that another webhook changed"))
    }
}

/// Returns whether the webhook also overwrites values that the user wrote in the list's items.
///
/// For example, a webhook that redirects images to a mirror does so.
fn rewrites(before: &Value, after: Option<&Value>, list: &str) -> bool {
    let below = format!("{list}/");
    after.is_some_and(|after| overwritten(before, after).iter().any(|value| value.before.starts_with(&below)))
}
