//! V10: the owner of an object and the webhooks do not fight for ever.

use std::sync::Arc;

use kubernetes_admission::event::{Phase, Round};
use serde_json::Value;

use crate::check::{Audience, Check, Observed, Obstacle, Probe, Severity, Violation};
use crate::comparison::{self, Order};
use crate::environment::{Outcome, Verdict};
use crate::object_probe::ObjectProbe;
use crate::stored::{as_updated, update};

/// How often the owner writes.
const ROUNDS: usize = 3;

pub(super) const CHECK: Check = Check {
    id: "V10",
    title: "no write loop: what the object's owner writes again and again is not undone each time",
    severity: Severity::Warning,
    why: "A controller, a GitOps tool or an operator writes the fields that it owns until they are as it wants them. A \
          webhook that sets one of them to something else on every update makes both of them write for ever: the \
          resourceVersion runs, watches and etcd are kept busy, and the tool reports drift that never ends.",
    source: "Admission Webhook Good Practices, Prevent loops caused by competing controllers; argoproj/argo-cd#22514",
    audience: Audience::Mutating,
    probe: Probe::Collection(|object_probe| Box::pin(run(object_probe))),
};

async fn run(object_probe: &ObjectProbe<'_>) -> Observed {
    let webhooks = object_probe.subjects.iter().filter(|subject| subject.webhook.phase == Phase::Mutating);
    let webhook_set = ObjectProbe::in_order(webhooks.map(|subject| Arc::clone(&subject.called)));
    let created = admitted(object_probe.outcome(&webhook_set, object_probe.request).await)?;
    let cluster_fixture = &object_probe.environment.cluster_fixture;
    let Some(made) = &created.object else { return Ok(Vec::new()) };
    let mut stored = object_probe.stored(made)?;
    let mut steps = vec![created];
    let mut changed = Vec::new();
    for _ in 0..ROUNDS {
        let mut written = stored.clone();
        overlay(&mut written, object_probe.object());
        let request = update(object_probe.request, stored.clone(), written.clone());
        let updated = admitted(object_probe.outcome(&webhook_set, &request).await)?;
        let called =
            object_probe.subjects.iter().any(|subject| updated.was_called(&subject.webhook.id, Round::First));
        if !called {
            return Err(Obstacle::not_applicable("no mutating webhook is called for updates of the object"));
        }
        let Some(found) = &updated.object else { return Ok(Vec::new()) };
        let found = as_updated(&request, found, cluster_fixture);
        let written = as_updated(&request, &written, cluster_fixture);
        steps.push(updated);
        changed = object_probe.differences(&written, &found, Order::Free);
        if changed.is_empty() {
            return Ok(Vec::new());
        }
        stored = found;
    }
    // What the owner wrote last, and what was stored.
    let mut wanted = stored.clone();
    overlay(&mut wanted, object_probe.object());
    let wanted =
        as_updated(&update(object_probe.request, stored.clone(), wanted.clone()), &wanted, cluster_fixture);
    let differences = object_probe.differences(&wanted, &stored, Order::Free);
    let (kind, message, differences) = if differences.is_empty() {
        let fields = super::fields(&changed);
        let message =
            format!("after {ROUNDS} updates that change nothing, another changes {fields} once more");
        ("changes more on every update", message, changed)
    } else {
        let fields = super::fields(&differences);
        let message = format!("whenever the owner writes {fields}, it is changed again");
        ("undoes what the owner writes", message, differences)
    };
    Ok(vec![Violation::new(kind, message).with_differences(differences).with_steps(steps)])
}

fn admitted(outcome: Arc<Outcome>) -> Result<Arc<Outcome>, Obstacle> {
    match outcome.verdict() {
        Verdict::Admitted => Ok(outcome),
        Verdict::Denied(_) => Err(Obstacle::not_applicable("the webhooks deny the object")),
        Verdict::NoConditions(_) => Err(Obstacle::no_conditions()),
        verdict @ (Verdict::Failed(_) | Verdict::ServerError(_) | Verdict::Unsupported(_)) => {
            Err(Obstacle::not_checked(verdict.to_string()))
        }
    }
}

/// Writes what `wanted` says into `object`, and leaves the rest alone, as an apply does.
pub(super) fn overlay(object: &mut Value, wanted: &Value) {
    match (object, wanted) {
        (Value::Object(members), Value::Object(wanted)) => {
            for (name, wanted) in wanted {
                overlay(members.entry(name.clone()).or_insert(Value::Null), wanted);
            }
        }
        (Value::Array(items), Value::Array(wanted))
            if wanted.iter().all(|item| comparison::key(item).is_some()) =>
        {
            for wanted in wanted {
                let key = comparison::key(wanted);
                match items.iter_mut().find(|item| comparison::key(item) == key) {
                    Some(item) => overlay(item, wanted),
                    None => items.push(wanted.clone()),
                }
            }
        }
        (object, wanted) => *object = wanted.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_owner_writes_its_own_fields_and_no_others() {
        let mut object = json!({
            "metadata": {"labels": {"a": "changed", "injected": "yes"}},
            "spec": {"containers": [{"name": "app", "image": "other", "env": []}, {"name": "proxy"}], "args": ["x"]},
        });
        let wanted = json!({
            "metadata": {"labels": {"a": "b"}},
            "spec": {"containers": [{"name": "app", "image": "app"}], "args": ["y", "z"]},
        });
        overlay(&mut object, &wanted);
        let expected = json!({
            "metadata": {"labels": {"a": "b", "injected": "yes"}},
            "spec": {"containers": [{"name": "app", "image": "app", "env": []}, {"name": "proxy"}], "args": ["y", "z"]},
        });
        assert_eq!(object, expected);
    }
}
