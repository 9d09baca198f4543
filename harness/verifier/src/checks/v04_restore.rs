//! V04: what was backed up can be restored.

use std::sync::Arc;

use super::requests;
use crate::check::{Audience, Check, Observed, Obstacle, Probe, Severity, Violation};
use crate::comparison::Order;
use crate::environment::Verdict;
use crate::object_probe::ObjectProbe;

pub(super) const CHECK: Check = Check {
    id: "V04",
    title: "restorable: its result, with what the server and its controllers added since, can be created again as it is",
    severity: Severity::Error,
    why: "Backups, migrations and `kubectl get -o yaml | kubectl create -f -` create objects that the webhook has \
          mutated before and that have since got a name, a node, the volume with the service account's token, default \
          tolerations, a cluster IP. A webhook that takes these for the user's wishes, or for a reason to say no, makes \
          the restored object another one, or none, on the day on which nobody can afford it.",
    source: "Dynamic Admission Control, Idempotence: any change could already exist in the user-provided object",
    audience: Audience::Mutating,
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
        return Err(Obstacle::not_checked(
            "it does not leave its own result alone, restored or not: see V01",
        ));
    }
    let request = object_probe.environment.create(requests::restored(object_probe.stored(made)?));
    let request = request.map_err(|status| Obstacle::not_checked(status.message))?;
    let replay = match object_probe.answered(&object_probe.alone(), &request).await {
        Ok(replay) => replay,
        // It no longer picks the object: then it does nothing to it either.
        Err(Obstacle::NotApplicable(_)) => return Ok(Vec::new()),
        Err(obstacle) => return Err(obstacle),
    };
    let steps = [Arc::clone(&first), Arc::clone(&replay)];
    if let Verdict::Denied(status) = replay.verdict() {
        let message = format!("it denies its own result when that is restored: {}", status.message);
        return Ok(vec![Violation::new("denies what is restored", message).with_steps(steps)]);
    }
    let (Some(restored), Some(found)) = (&request.object, &replay.object) else { return Ok(Vec::new()) };
    // The server's own plugins run again after a webhook has changed something: they give back what they gave.
    let settled = object_probe.environment.create(found.clone()).ok().and_then(|settled| settled.object);
    let found = settled.as_ref().unwrap_or(found);
    let differences = object_probe.differences(restored, found, Order::Counts);
    if differences.is_empty() {
        return Ok(Vec::new());
    }
    let message = format!("when its own result is restored it changes {}", super::fields(&differences));
    Ok(vec![
        Violation::new("changes what is restored", message).with_differences(differences).with_steps(steps),
    ])
}
