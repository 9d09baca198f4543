//! Defines steps about the containers of pods and pod templates.

use cucumber::then;
use gherkin::Step;
use serde_json::Value;

use super::failure::{Outcome, StepFailure};
use super::outcome::listed;
use super::world::World;
use super::{StepHelp, then as step};

pub(super) const HELP: [StepHelp; 4] = [
    step(
        "the object has the container {string}",
        "The returned pod, or the pod template of the returned object, has this container",
        r#"Then the object has the container "proxy""#,
    ),
    step(
        "the object does not have the container {string}",
        "The returned pod, or the pod template of the returned object, does not have this container",
        r#"Then the object does not have the container "proxy""#,
    ),
    step(
        "the object has the init container {string}",
        "The returned pod, or the pod template of the returned object, has this init container, which may be a sidecar",
        r#"Then the object has the init container "setup""#,
    ),
    step(
        "the object does not have the init container {string}",
        "The returned pod, or the pod template of the returned object, does not have this init container",
        r#"Then the object does not have the init container "setup""#,
    ),
];

/// A list of containers in a pod.
#[derive(Clone, Copy, PartialEq)]
enum List {
    Containers,
    InitContainers,
}

impl List {
    fn field(self) -> &'static str {
        match self {
            Self::Containers => "containers",
            Self::InitContainers => "initContainers",
        }
    }

    fn noun(self) -> &'static str {
        match self {
            Self::Containers => "container",
            Self::InitContainers => "init container",
        }
    }

    fn other(self) -> Self {
        match self {
            Self::Containers => Self::InitContainers,
            Self::InitContainers => Self::Containers,
        }
    }

    /// Returns the names in the list.
    fn names(self, pod_spec: &Value) -> Vec<&str> {
        let items = pod_spec.get(self.field()).and_then(Value::as_array);
        items.into_iter().flatten().filter_map(|item| item.get("name")?.as_str()).collect()
    }
}

/// Returns the `spec` of a pod or of a pod template in `object`.
fn pod_spec(object: &Value) -> Outcome<&Value> {
    let specs = ["/spec", "/spec/template/spec", "/spec/jobTemplate/spec/template/spec", "/template/spec"];
    let found = specs.iter().filter_map(|path| object.pointer(path));
    found.into_iter().find(|spec| spec.get("containers").is_some()).ok_or_else(|| {
        let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
        StepFailure::new(format!(
            "the object is not a pod and does not have a pod template: its kind is {kind}"
        ))
    })
}

/// Checks that the list contains the name or, unless `expected`, that it does not.
fn check(list: List, object: &Value, name: &str, expected: bool) -> Outcome {
    let spec = pod_spec(object)?;
    let (noun, names) = (list.noun(), list.names(spec));
    match (names.contains(&name), expected) {
        (true, true) | (false, false) => Ok(()),
        (true, false) => {
            Err(StepFailure::new(format!("expected no {noun} \"{name}\", but the object has it")))
        }
        (false, true) => {
            let found = listed(&names);
            let failure = StepFailure::new(format!("expected the {noun} \"{name}\", found {found}"));
            let other = list.other();
            let is_other = other.names(spec).contains(&name);
            Err(failure.with_help(is_other.then(|| {
                format!(
                    "the object has this name in {}: use the step `the object has the {} \"{name}\"`",
                    other.field(),
                    other.noun()
                )
            })))
        }
    }
}

fn check_response(world: &World, step: &Step, list: List, name: &str, expected: bool) -> Outcome {
    let object = world.object()?;
    check(list, object, name, expected).inspect_err(|_| world.note_whole(step, "the object", object))
}

#[then(expr = "the object has the container {string}")]
fn has(world: &mut World, step: &Step, name: String) -> Outcome {
    check_response(world, step, List::Containers, &name, true)
}

#[then(expr = "the object does not have the container {string}")]
fn has_not(world: &mut World, step: &Step, name: String) -> Outcome {
    check_response(world, step, List::Containers, &name, false)
}

#[then(expr = "the object has the init container {string}")]
fn has_init(world: &mut World, step: &Step, name: String) -> Outcome {
    check_response(world, step, List::InitContainers, &name, true)
}

#[then(expr = "the object does not have the init container {string}")]
fn has_no_init(world: &mut World, step: &Step, name: String) -> Outcome {
    check_response(world, step, List::InitContainers, &name, false)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn containers_of_pods_and_pod_templates_are_found_by_name() {
        let spec = json!({"containers": [{"name": "web"}], "initContainers": [{"name": "setup"}]});
        let template = json!({"spec": spec});
        for object in [
            json!({"kind": "Pod", "spec": spec}),
            json!({"kind": "Deployment", "spec": {"template": template}}),
            json!({"kind": "CronJob", "spec": {"jobTemplate": {"spec": {"template": template}}}}),
            json!({"kind": "PodTemplate", "template": template}),
        ] {
            let result = |list: List, name: &str, expected: bool| {
                check(list, &object, name, expected).map_err(|failure| failure.to_string())
            };
            assert_eq!(result(List::Containers, "web", true), Ok(()));
            assert_eq!(result(List::InitContainers, "setup", true), Ok(()));
            assert_eq!(result(List::Containers, "setup", false), Ok(()));
            let failure = "expected no init container \"setup\", but the object has it";
            assert_eq!(result(List::InitContainers, "setup", false), Err(failure.to_owned()));
            let failure = "expected the container \"proxy\", found \"web\"";
            assert_eq!(result(List::Containers, "proxy", true), Err(failure.to_owned()));
            let failure = "expected the container \"setup\", found \"web\"\nhelp: the object has this name in \
                           initContainers: use the step `the object has the init container \"setup\"`";
            assert_eq!(result(List::Containers, "setup", true), Err(failure.to_owned()));
        }
    }

    #[test]
    fn an_object_without_containers_is_named() {
        let failure = check(List::Containers, &json!({"kind": "ConfigMap"}), "web", false).unwrap_err();
        let expected = "the object is not a pod and does not have a pod template: its kind is ConfigMap";
        assert_eq!(failure.to_string(), expected);
    }
}
