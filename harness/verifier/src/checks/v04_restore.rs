//! V04: a backup of the stored object can be restored.

use std::sync::Arc;

use super::requests;
use crate::check::{Audience, Check, Observed, Probe, Repeatability, Severity, Skipped, Violation};
use crate::comparison::Order;
use crate::environment::Verdict;
use crate::object_probe::ObjectProbe;
use crate::rejection;

pub(super) const CHECK: Check = Check {
    id: "V04",
    title: "restore from a backup: the stored result can be created again unchanged",
    severity: Severity::Error,
    why: "Backups, migrations, and `kubectl get -o yaml | kubectl create -f -` create objects that the \
          webhook has already mutated and that have since received a name, a node, a volume with the \
          service account token, default tolerations, or a cluster IP. A webhook that treats these as the \
          user's input, or denies the object because of them, changes the restored object or blocks the \
          restore, exactly when a restore is needed most.",
    help: "Ignore fields that the API server and its controllers set, and recognize your own earlier \
           changes.",
    source: "Dynamic Admission Control, Idempotence: any change could already exist in the user-provided \
             object",
    audience: Audience::Mutating,
    repeatability: Repeatability::Same,
    probe: Probe::Object(|object_probe| Box::pin(run(object_probe))),
};

async fn run(object_probe: &ObjectProbe<'_>) -> Observed {
    let first = object_probe.first().await?;
    let Some(made) = &first.object else { return Ok(Vec::new()) };
    let again = object_probe.outcome(&object_probe.alone(), &object_probe.with_object(made.clone())).await;
    let is_left = match (again.verdict(), &again.object) {
        (Verdict::Admitted, Some(again)) => object_probe.differences(made, again, Order::Counts).is_empty(),
        _ => false,
    };
    if !is_left {
        return Err(Skipped::not_checked("the webhook changes its own result, restored or not: see V01"));
    }
    let request = object_probe.environment.create(requests::restored(object_probe.stored(made)?));
    let request = request.map_err(|status| Skipped::not_checked(status.message))?;
    let replay = match object_probe.answered(&object_probe.alone(), &request).await {
        Ok(replay) => replay,
        // The selectors no longer match the object, so the webhook does not change it.
        Err(Skipped::NotApplicable(_)) => return Ok(Vec::new()),
        Err(skip) => return Err(skip),
    };
    let steps = [Arc::clone(&first), Arc::clone(&replay)];
    if let Verdict::Denied(status) = replay.verdict() {
        let message =
            format!("the webhook denies its own result when a backup restores it: {}", status.message);
        return Ok(vec![Violation::new("denies a restored object", message).with_steps(steps)]);
    }
    let (environment, known) = (object_probe.environment, std::slice::from_ref(&first));
    if let Some(rejected) = rejection::rejection(environment, "a restored object", &replay, known) {
        return Ok(vec![rejected.with_steps(steps)]);
    }
    let (Some(restored), Some(found)) = (&request.object, &replay.object) else { return Ok(Vec::new()) };
    // Built-in plugins run again after a webhook changed something, and restore what they had set.
    let settled = object_probe.environment.create(found.clone()).ok().and_then(|settled| settled.object);
    let found = settled.as_ref().unwrap_or(found);
    let differences = object_probe.differences(restored, found, Order::Counts);
    if differences.is_empty() {
        return Ok(Vec::new());
    }
    let message = format!(
        "when a backup restores the webhook's own result, the webhook changes {}",
        super::fields(&differences)
    );
    Ok(vec![
        Violation::new("changes a restored object", message).with_differences(differences).with_steps(steps),
    ])
}
