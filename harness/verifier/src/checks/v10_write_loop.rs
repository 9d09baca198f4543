//! V10: the owner of an object and the webhooks do not undo each other's changes forever.

use std::sync::Arc;

use kubernetes_admission::event::{Phase, Round};
use serde_json::Value;

use crate::check::{Audience, Check, Observed, Probe, Repeatability, Severity, Skipped, Violation};
use crate::comparison::{self, Order};
use crate::environment::{Outcome, Verdict};
use crate::object_probe::ObjectProbe;
use crate::rejection;
use crate::stored::{as_updated, update};
use crate::subject::Subject;

/// The number of writes by the owner.
const ROUNDS: usize = 3;

pub(super) const CHECK: Check = Check {
    id: "V10",
    title: "write loops: the webhooks do not undo what the object's owner writes",
    severity: Severity::Warning,
    why: "A controller, a GitOps tool, or an operator writes the fields that it owns until they have the \
          values that it wants. If a webhook sets one of them to another value on every update, both write \
          forever: resourceVersion keeps increasing, watches and etcd are kept busy, and the tool reports \
          endless drift.",
    help: "Set a field only if it is not set, or only on CREATE.",
    source: "Admission Webhook Good Practices, Prevent loops caused by competing controllers; \
             argoproj/argo-cd#22514",
    audience: Audience::Mutating,
    repeatability: Repeatability::Same,
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
            return Err(Skipped::not_applicable("no mutating webhook is called for updates of the object"));
        }
        if let Some(rejected) = rejected(object_probe, &updated).await? {
            steps.push(updated);
            return Ok(vec![rejected.with_steps(steps)]);
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
    // The owner's last write and the stored object.
    let mut wanted = stored.clone();
    overlay(&mut wanted, object_probe.object());
    let wanted =
        as_updated(&update(object_probe.request, stored.clone(), wanted.clone()), &wanted, cluster_fixture);
    let differences = object_probe.differences(&wanted, &stored, Order::Free);
    let (kind, message, differences) = if differences.is_empty() {
        let fields = super::all_fields(&changed);
        let message =
            format!("after {ROUNDS} updates that change nothing, another update still changes {fields}");
        ("changes the object on every update", message, changed)
    } else {
        let fields = super::all_fields(&differences);
        let message = format!("whenever the owner writes {fields}, the webhooks change the value again");
        ("undoes what the owner writes", message, differences)
    };
    Ok(vec![
        Violation::new(kind, message).with_differences(differences).showing_all_fields().with_steps(steps),
    ])
}

/// Reports an update that the API server rejects only because of several webhooks.
///
/// # Errors
/// Returns [`Skipped`] if the API server rejects the changes of one webhook, which V09 reports.
async fn rejected(
    object_probe: &ObjectProbe<'_>,
    updated: &Arc<Outcome>,
) -> Result<Option<Violation>, Skipped> {
    let what = "an update by the owner";
    if rejection::rejection(object_probe.environment, what, updated, &[]).is_none() {
        return Ok(None);
    }
    let subjects = object_probe.subjects.iter();
    let mutating: Vec<&Subject> = subjects.filter(|it| it.webhook.phase == Phase::Mutating).collect();
    match rejection::joint(object_probe, what, updated, &mutating).await {
        Some(rejected) => Ok(Some(rejected.with_help(rejection::ALLOWED))),
        None => Err(Skipped::not_checked("the API server rejects a webhook's changes on updates: see V09")),
    }
}

fn admitted(outcome: Arc<Outcome>) -> Result<Arc<Outcome>, Skipped> {
    match outcome.verdict() {
        Verdict::Admitted => Ok(outcome),
        Verdict::Denied(_) => Err(Skipped::not_applicable("the webhooks deny the object")),
        Verdict::NoConditions(_) => Err(Skipped::no_conditions()),
        verdict @ (Verdict::Failed(_) | Verdict::ServerError(_) | Verdict::Unsupported(_)) => {
            Err(Skipped::not_checked(verdict.to_string()))
        }
    }
}

/// Overwrites the fields of `object` that `wanted` contains and keeps all other fields, as an apply does.
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
    fn overlay_writes_only_the_owned_fields() {
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
