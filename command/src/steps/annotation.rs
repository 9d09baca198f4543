//! Defines steps that set and check annotations.

use std::collections::BTreeMap;

use cucumber::{given, then, when};
use fake_webhooks::{AlwaysMutate, Behavior, Condition};
use gherkin::Step;
use http::Method;
use serde_json::{Value, json};

use super::failure::Outcome;
use super::parameter::Ordinal;
use super::request::pod;
use super::webhook::{key_and_value, metadata_path, only_when, patch};
use super::world::World;
use super::{StepHelp, given as given_step, then as then_step, when as when_step};

pub(super) const ADDS: StepHelp = given_step(
    "{string} adds the annotation {string}",
    "Adds the annotation to objects that do not have it",
    r#"Given "sidecar" adds the annotation "example.com/injected=true""#,
);

pub(super) const ADDS_ON_CALL: StepHelp = given_step(
    "{string} adds the annotation {string} on its {ordinal} call",
    "Adds the annotation on one call of the scenario, if the object does not have it",
    r#"Given "sidecar" adds the annotation "example.com/injected=true" on its second call"#,
);

pub(super) const REMOVES: StepHelp = given_step(
    "{string} removes the annotation {string}",
    "Removes the annotation from objects that have it",
    r#"Given "sidecar" removes the annotation "example.com/injected""#,
);

pub(super) const POD: StepHelp = when_step(
    "a pod with the annotation {string} is created",
    r#"Creates the pod "web" with an annotation"#,
    r#"When a pod with the annotation "example.com/inject=true" is created"#,
);

pub(super) const ADDED: StepHelp = when_step(
    "the annotation {string} is added to the {word} {string}",
    "Sends PATCH to set an annotation",
    r#"When the annotation "example.com/inject=true" is added to the configmap "settings""#,
);

pub(super) const REMOVED: StepHelp = when_step(
    "the annotation {string} is removed from the {word} {string}",
    "Sends PATCH to remove an annotation",
    r#"When the annotation "example.com/inject" is removed from the configmap "settings""#,
);

pub(super) const HAS: StepHelp = then_step(
    "the object has the annotation {string}",
    "The returned object has this annotation",
    r#"Then the object has the annotation "example.com/injected=true""#,
);

fn parts(annotation: &str) -> Outcome<(String, String)> {
    key_and_value("annotation", annotation)
}

/// Returns a behavior that adds an annotation only if it is absent, because an ineffective patch can count as a change.
fn adding(annotation: &str) -> Outcome<Behavior> {
    let (key, value) = parts(annotation)?;
    let path = metadata_path("annotations", &key);
    let annotations = BTreeMap::from([(key, value)]);
    let adding = Behavior::AlwaysMutate(AlwaysMutate { labels: BTreeMap::new(), annotations });
    Ok(only_when(Condition::Absent(path), adding))
}

fn change(key: &str, value: &Value) -> Value {
    json!({"metadata": {"annotations": {key: value}}})
}

#[given(expr = "{string} adds the annotation {string}")]
fn adds(world: &mut World, short: String, annotation: String) -> Outcome {
    let behavior = adding(&annotation)?;
    world.behave(&short, behavior)
}

#[given(expr = "{string} adds the annotation {string} on its {ordinal} call")]
fn adds_on_call(world: &mut World, short: String, annotation: String, call: Ordinal) -> Outcome {
    let behavior = adding(&annotation)?;
    world.change(&short)?.on_call.insert(call.0, behavior);
    Ok(())
}

#[given(expr = "{string} removes the annotation {string}")]
fn removes(world: &mut World, short: String, key: String) -> Outcome {
    let path = metadata_path("annotations", &key);
    let operations = vec![json!({"op": "remove", "path": path})];
    world.behave(&short, only_when(Condition::Present(path), patch(operations)))
}

#[when(expr = "a pod with the annotation {string} is created")]
async fn annotated_pod_is_created(world: &mut World, step: &Step, annotation: String) -> Outcome {
    let (key, value) = parts(&annotation)?;
    world.create(step, pod(json!({"annotations": {key: value}}))).await
}

#[when(expr = "the annotation {string} is added to the {word} {string}")]
async fn is_added(
    world: &mut World,
    step: &Step,
    annotation: String,
    resource: String,
    name: String,
) -> Outcome {
    let (key, value) = parts(&annotation)?;
    let path = world.path_of(&resource, &name).await?;
    world.request(step, Method::PATCH, &path, Some(change(&key, &json!(value)))).await
}

#[when(expr = "the annotation {string} is removed from the {word} {string}")]
async fn is_removed(world: &mut World, step: &Step, key: String, resource: String, name: String) -> Outcome {
    let path = world.path_of(&resource, &name).await?;
    world.request(step, Method::PATCH, &path, Some(change(&key, &Value::Null))).await
}

#[then(expr = "the object has the annotation {string}")]
fn has(world: &mut World, annotation: String) -> Outcome {
    let (key, value) = parts(&annotation)?;
    super::outcome::contains("the object", &change(&key, &json!(value)), world.object()?)
}
