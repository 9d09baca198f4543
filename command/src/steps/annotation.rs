//! Defines steps that set and check annotations.

use cucumber::{given, then, when};
use gherkin::Step;
use serde_json::json;

use super::failure::Outcome;
use super::parameter::Ordinal;
use super::request::pod;
use super::webhook::{adding, key_and_value, removing};
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

#[given(expr = "{string} adds the annotation {string}")]
fn adds(world: &mut World, short: String, annotation: String) -> Outcome {
    let annotation = parts(&annotation)?;
    world.behave(&short, adding("annotations", annotation))
}

#[given(expr = "{string} adds the annotation {string} on its {ordinal} call")]
fn adds_on_call(world: &mut World, short: String, annotation: String, call: Ordinal) -> Outcome {
    let annotation = parts(&annotation)?;
    world.behave_on_call(&short, call, adding("annotations", annotation))
}

#[given(expr = "{string} removes the annotation {string}")]
fn removes(world: &mut World, short: String, key: String) -> Outcome {
    world.behave(&short, removing("annotations", &key))
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
    world.patch_metadata(step, &resource, &name, json!({"annotations": {key: value}})).await
}

#[when(expr = "the annotation {string} is removed from the {word} {string}")]
async fn is_removed(world: &mut World, step: &Step, key: String, resource: String, name: String) -> Outcome {
    world.patch_metadata(step, &resource, &name, json!({"annotations": {key: null}})).await
}

#[then(expr = "the object has the annotation {string}")]
fn has(world: &mut World, step: &Step, annotation: String) -> Outcome {
    let (key, value) = parts(&annotation)?;
    let expected = json!({"metadata": {"annotations": {key: value}}});
    world.check_contains(step, "the object", &expected, world.object()?)
}
