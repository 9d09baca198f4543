//! Finds the mutating webhooks whose changes depend on those of another webhook.
//!
//! The two webhooks of a pair are called in both orders. A webhook depends on the other if it changes the object
//! differently after the other's call, and it overwrites the other if it removes or replaces what the other added.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kubernetes_admission::config::WebhookId;
use kubernetes_admission::event::{CallResult, Phase, Round};
use kubernetes_admission::patch::Patch;
use serde_json::Value;

use super::checks;
use super::comparison;
use super::environment::{Outcome, WebhookSet};
use super::interaction::{Interaction, MAX_FIELDS, Relation};
use super::object_probe::ObjectProbe;
use super::shape;
use super::subject::Subject;
use super::validity::without_positions;

/// Returns the interactions of all pairs of mutating webhooks that are called for the object of `object_probe`.
pub(super) async fn of_object(object_probe: &ObjectProbe<'_>) -> Vec<Interaction> {
    let Ok(subjects) = checks::called_together(object_probe).await else { return Vec::new() };
    let mut found = Vec::new();
    for (position, one) in subjects.iter().enumerate() {
        for other in subjects.iter().skip(position + 1) {
            found.extend(of_pair(object_probe, one, other).await);
        }
    }
    found
}

/// Returns what each webhook of a pair does differently if the other was called before it.
async fn of_pair(object_probe: &ObjectProbe<'_>, one: &Subject, other: &Subject) -> Vec<Interaction> {
    let one_first = ObjectProbe::in_order([one, other].map(|subject| Arc::clone(&subject.called)));
    let other_first = ObjectProbe::in_order([other, one].map(|subject| Arc::clone(&subject.called)));
    let outcome = object_probe.outcome(&one_first, object_probe.request).await;
    let reversed = object_probe.outcome(&other_first, object_probe.request).await;
    if outcome.refusal.is_some() || reversed.refusal.is_some() {
        return Vec::new();
    }
    let changes =
        |outcome: &Outcome| [one, other].map(|subject| Change::of_call(outcome, &subject.webhook.id));
    let [one_alone, other_second] = changes(&outcome);
    let [one_second, other_alone] = changes(&reversed);
    let mut found = Vec::new();
    let trials = [
        (one, other, &one_first, [&one_alone, &one_second, &other_alone]),
        (other, one, &other_first, [&other_alone, &other_second, &one_alone]),
    ];
    for (subject, before, order, changes) in trials {
        if let [Some(alone), Some(together), Some(others)] = changes {
            let relations = compare(alone, together, others);
            found.extend(interactions(object_probe, [subject, before], order, alone, relations).await);
        }
    }
    found
}

/// Creates the interactions of `subject` with `other`, without the fields that vary between calls with the same request.
///
/// `order` are both webhooks with `subject` first, and `alone` is its change in that order.
async fn interactions(
    object_probe: &ObjectProbe<'_>,
    [subject, other]: [&Subject; 2],
    order: &WebhookSet,
    alone: &Change,
    mut relations: [(Relation, BTreeSet<String>); 2],
) -> Vec<Interaction> {
    if relations.iter().all(|(_, fields)| fields.is_empty()) {
        return Vec::new();
    }
    // A webhook that returns random values changes the object differently in every call.
    let again = object_probe.outcome_again(order, object_probe.request).await;
    let Some(again) = Change::of_call(&again, &subject.webhook.id) else { return Vec::new() };
    let varying = varying(alone, &again);
    let example = shape::kind_and_name(object_probe.object());
    for (_, fields) in &mut relations {
        fields.retain(|field| !varying.contains(field));
    }
    relations
        .into_iter()
        .filter(|(_, fields)| !fields.is_empty())
        .map(|(relation, fields)| Interaction {
            webhook: subject.name(),
            other: other.name(),
            relation,
            fields: fields.into_iter().take(MAX_FIELDS).collect(),
            objects: 1,
            example: example.clone(),
        })
        .collect()
}

/// Returns the fields that two calls with the same request change differently.
fn varying(one: &Change, other: &Change) -> BTreeSet<String> {
    let in_one = without(&one.added, &other.added);
    let in_other = without(&other.added, &one.added);
    fields(in_one.keys().chain(in_other.keys()))
}

/// Compares a webhook's change to the object alone with its change after that of another webhook.
fn compare(alone: &Change, together: &Change, others: &Change) -> [(Relation, BTreeSet<String>); 2] {
    let overwritten: BTreeSet<&Leaf> =
        together.removed.keys().filter(|leaf| others.added.contains_key(*leaf)).collect();
    let overwritten_paths: BTreeSet<&str> = overwritten.iter().map(|leaf| leaf.0.as_str()).collect();
    let missing = alone.added.keys().filter(|leaf| !together.result.contains_key(*leaf));
    let additional = together.added.keys().filter(|leaf| !alone.added.contains_key(*leaf));
    let removed = together.removed.keys().filter(|leaf| !alone.removed.contains_key(*leaf));
    let different = missing.chain(additional).chain(removed);
    let depends = different.filter(|leaf| !overwritten_paths.contains(leaf.0.as_str()));
    [(Relation::DependsOn, fields(depends)), (Relation::Overwrites, fields(overwritten.iter().copied()))]
}

/// Returns the fields of `leaves`. A list item that includes its key counts as one field: that of the list.
fn fields<'a>(leaves: impl Iterator<Item = &'a Leaf>) -> BTreeSet<String> {
    let paths: Vec<&str> = leaves.map(|(path, _)| path.as_str()).collect();
    let item = |path: &'a str| path.rsplit_once("].").filter(|(_, name)| comparison::KEYS.contains(name));
    let items: BTreeSet<&str> = paths.iter().filter_map(|path| Some(item(path)?.0)).collect();
    let item_of = |path: &'a str| {
        path.match_indices("].").filter_map(|(end, _)| path.get(..end)).find(|start| items.contains(start))
    };
    paths.into_iter().map(|path| without_positions(item_of(path).unwrap_or(path))).collect()
}

/// The path of a value without members or items, and its JSON text. Keys identify list items where possible.
type Leaf = (String, String);

/// The change of one call, as the values that it added and removed.
#[derive(Debug, Default)]
struct Change {
    added: BTreeMap<Leaf, usize>,
    removed: BTreeMap<Leaf, usize>,
    /// The values of the object after the call.
    result: BTreeMap<Leaf, usize>,
}

impl Change {
    /// Returns the change of the first call of a webhook; empty if the webhook was not called, and `None` if the call
    /// failed.
    fn of_call(outcome: &Outcome, id: &WebhookId) -> Option<Self> {
        let call = outcome
            .calls_of(id)
            .find(|called| called.phase == Phase::Mutating && called.round == Round::First);
        let Some(called) = call else { return Some(Self::default()) };
        let CallResult::Allowed { patch, .. } = &called.result else { return None };
        let review: Value = serde_json::from_slice(&called.review).ok()?;
        let before = review.pointer("/request/object")?;
        let patch = patch.as_ref().and_then(|operations| Patch::decode(operations.written().as_bytes()).ok());
        Some(match patch.and_then(|patch| patch.apply(before).ok()) {
            Some(after) => Self::between(before, &after),
            None => Self::between(before, before),
        })
    }

    fn between(before: &Value, after: &Value) -> Self {
        let (before, after) = (leaves(before), leaves(after));
        Self { added: without(&after, &before), removed: without(&before, &after), result: after }
    }
}

/// Returns the entries of `all` that `other` does not contain as often.
fn without(all: &BTreeMap<Leaf, usize>, other: &BTreeMap<Leaf, usize>) -> BTreeMap<Leaf, usize> {
    all.iter()
        .filter_map(|(leaf, count)| {
            let rest = count.saturating_sub(other.get(leaf).copied().unwrap_or(0));
            (rest > 0).then(|| (leaf.clone(), rest))
        })
        .collect()
}

fn leaves(value: &Value) -> BTreeMap<Leaf, usize> {
    let mut found = BTreeMap::new();
    walk(value, "", &mut found);
    found
}

fn walk(value: &Value, path: &str, found: &mut BTreeMap<Leaf, usize>) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            for (name, value) in members {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                walk(value, &path, found);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                let key = comparison::key(item).unwrap_or_default();
                walk(item, &format!("{path}[{key}]"), found);
            }
        }
        Value::Object(_)
        | Value::Array(_)
        | Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_) => *found.entry((path.to_owned(), value.to_string())).or_default() += 1,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Compares what a webhook does to `object` with what it does after another webhook.
    ///
    /// `alone` is the result of the webhook, `other` that of the other webhook, and `together` that of the webhook
    /// after the other one.
    #[track_caller]
    fn check(
        object: &Value,
        alone: &Value,
        other: &Value,
        together: &Value,
        depends: &[&str],
        overwrites: &[&str],
    ) {
        let found = compare(
            &Change::between(object, alone),
            &Change::between(other, together),
            &Change::between(object, other),
        );
        let expected = |fields: &[&str]| fields.iter().map(|field| (*field).to_owned()).collect();
        assert_eq!(
            found,
            [(Relation::DependsOn, expected(depends)), (Relation::Overwrites, expected(overwrites))]
        );
    }

    fn pod(containers: &Value) -> Value {
        json!({"spec": {"containers": containers}})
    }

    #[test]
    fn separate_labels_are_independent_even_if_the_object_has_none() {
        check(
            &json!({"metadata": {"name": "a"}}),
            &json!({"metadata": {"name": "a", "labels": {"x": "1"}}}),
            &json!({"metadata": {"name": "a", "labels": {"y": "1"}}}),
            &json!({"metadata": {"name": "a", "labels": {"x": "1", "y": "1"}}}),
            &[],
            &[],
        );
    }

    #[test]
    fn webhook_that_changes_the_containers_of_another_depends_on_it() {
        check(
            &pod(&json!([{"name": "app"}])),
            &pod(&json!([{"name": "app", "image": "mirror/app"}])),
            &pod(&json!([{"name": "app"}, {"name": "proxy"}])),
            &pod(
                &json!([{"name": "app", "image": "mirror/app"}, {"name": "proxy", "image": "mirror/proxy"}]),
            ),
            &["spec.containers.image"],
            &[],
        );
    }

    #[test]
    fn added_list_item_is_one_field() {
        let env = json!([{"name": "A", "value": "b"}]);
        check(
            &pod(&json!([{"name": "app"}])),
            &pod(&json!([{"name": "app", "env": env}])),
            &pod(&json!([{"name": "app"}, {"name": "proxy"}])),
            &pod(&json!([{"name": "app", "env": env}, {"name": "proxy", "env": env}])),
            &["spec.containers.env"],
            &[],
        );
    }

    #[test]
    fn replaced_value_of_another_webhook_is_overwritten() {
        check(
            &json!({"metadata": {"name": "a"}}),
            &json!({"metadata": {"name": "a", "labels": {"team": "x"}}}),
            &json!({"metadata": {"name": "a", "labels": {"team": "y"}}}),
            &json!({"metadata": {"name": "a", "labels": {"team": "x"}}}),
            &[],
            &["metadata.labels.team"],
        );
    }

    #[test]
    fn webhook_that_keeps_the_value_of_another_depends_on_it() {
        let kept = json!({"metadata": {"name": "a", "labels": {"team": "y"}}});
        check(
            &json!({"metadata": {"name": "a"}}),
            &json!({"metadata": {"name": "a", "labels": {"team": "x"}}}),
            &kept,
            &kept,
            &["metadata.labels.team"],
            &[],
        );
    }

    #[test]
    fn webhooks_that_add_the_same_value_are_independent() {
        let changed = json!({"spec": {"tolerations": [{"key": "gpu"}]}});
        check(&json!({"spec": {}}), &changed, &changed, &changed, &[], &[]);
    }
}
