//! V03: what other webhooks added is still there afterwards.

use std::sync::Arc;

use crate::config::ReinvocationPolicy;
use crate::verify::check::{Audience, Check, Observed, Obstacle, Probe, Severity, Violation};
use crate::verify::foreign::LIBRARY;
use crate::verify::laboratory::Verdict;
use crate::verify::trial::Trial;

pub(super) const CHECK: Check = Check {
    id: "V03",
    title: "considerate: what another webhook added is still there afterwards",
    severity: Severity::Error,
    why: "A webhook that replaces a whole list, or sets a whole map, deletes what others have put there: their \
          sidecars, volumes, labels. Nobody is told, and which one wins depends on the names of configurations.",
    source: "istio/istio#54562; Admission Webhook Good Practices, Don't overwrite array values",
    audience: Audience::Mutating,
    probe: Probe::Object(|trial| Box::pin(run(trial))),
};

async fn run(trial: &Trial<'_>) -> Observed {
    let first = trial.first().await?;
    let mut violations = Vec::new();
    let mut looked = false;
    for foreign in LIBRARY.iter().filter(|foreign| foreign.applies_to(trial.object())) {
        let before = Trial::in_order([foreign.webhook(), Arc::clone(&trial.subject.called)]);
        let before = trial.outcome(&before, trial.request).await;
        let reinvoked = trial.subject.with_reinvocation(ReinvocationPolicy::IfNeeded);
        let after = trial.outcome(&Trial::in_order([reinvoked, foreign.webhook()]), trial.request).await;
        // What the other webhook sees: the object itself, or what this webhook has made of it.
        let seen = [Some(trial.object()), first.object.as_ref()];
        for (outcome, seen) in [before, after].into_iter().zip(seen) {
            let (Some(seen), Verdict::Admitted, Some(found)) = (seen, outcome.verdict(), &outcome.object)
            else {
                continue;
            };
            looked = true;
            if !foreign.survives(seen, found) {
                let does = foreign.does;
                let kind = format!("takes away what another webhook added, which {does}");
                let message = format!("another webhook {does}; afterwards it is gone or changed");
                violations.push(Violation::new(kind, message).with_steps([outcome]));
                break;
            }
        }
    }
    if looked {
        Ok(violations)
    } else {
        Err(Obstacle::not_applicable("it denies whatever another webhook has changed"))
    }
}
