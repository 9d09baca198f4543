//! Reads the files that steps refer to, before any scenario runs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use gherkin::{Feature, Rule, Scenario, Step};
use regex::Regex;
use serde_json::Value;

use super::sentences::steps;
use crate::admission_kinds::is_configuration;
use crate::steps::{file_error, objects_of, yaml_of};
use crate::{Failure, similar_file};

/// Matches a step that names a file with objects.
static FILE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r#"^the objects? in the file "([^"]*)" (?:exist|is created|is updated)$"#).ok()
});

/// The kinds of cluster-scoped objects that are common in webhook manifests.
const SHARED: [&str; 6] = [
    "Namespace",
    "CustomResourceDefinition",
    "ClusterRole",
    "ClusterRoleBinding",
    "PriorityClass",
    "StorageClass",
];

/// Checks that every file that a step names can be read and is valid YAML.
///
/// # Errors
/// Returns one failure that names each file once, with the first step that names it.
pub(crate) fn check(features: &[Feature]) -> Result<(), Failure> {
    let mut seen = BTreeSet::new();
    let mut problems = Vec::new();
    for feature in features {
        for (step, name) in steps(feature).filter_map(|step| Some((step, name_of(step)?))) {
            let file = path_of(feature, name);
            if seen.insert(file.clone())
                && let Some(problem) = file_error(&file)
            {
                let path = feature.path.as_deref().unwrap_or(Path::new("")).display();
                let line = step.position.line;
                let base = if Path::new(name).is_absolute() { "" } else { " (relative to the feature file)" };
                let suggestion = match (file.exists(), file.parent()) {
                    (false, Some(folder)) => similar_file::suggestion_in(folder, Path::new(name)),
                    _ => String::new(),
                };
                problems.push(format!("{path}:{line}: cannot read {name}{base}: {problem}{suggestion}"));
            }
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(Failure::usage(problems.join("\n"))) }
}

/// Returns whether the scenario must run alone, because it uses objects that other scenarios may also use.
///
/// Such objects are namespaces that the scenario names, objects in them, and cluster-scoped objects in files.
pub(crate) fn is_serial(feature: &Feature, rule: Option<&Rule>, scenario: &Scenario) -> bool {
    let mut tags = feature.tags.iter().chain(rule.iter().flat_map(|rule| &rule.tags)).chain(&scenario.tags);
    let backgrounds = feature.background.iter().chain(rule.iter().flat_map(|rule| &rule.background));
    let mut steps = backgrounds.flat_map(|background| &background.steps).chain(&scenario.steps);
    tags.any(|tag| tag == "serial") || steps.any(|step| uses_shared_objects(feature, step))
}

fn uses_shared_objects(feature: &Feature, step: &Step) -> bool {
    if step.value.starts_with("webhooks are also called in the namespace ") {
        return true;
    }
    if let Some(name) = name_of(step) {
        let objects = objects_of(&path_of(feature, name));
        return objects.iter().any(|object| is_in_named_namespace(object) || is_shared(object));
    }
    let is_object = ["this object ", "these objects "].iter().any(|begin| step.value.starts_with(begin));
    is_object && yaml_of(step).iter().any(is_in_named_namespace)
}

/// Returns whether the object is a Namespace, or specifies its own namespace.
fn is_in_named_namespace(object: &Value) -> bool {
    let kind = object.get("kind").and_then(Value::as_str);
    !is_configuration(object)
        && (kind == Some("Namespace") || object.pointer("/metadata/namespace").is_some())
}

fn is_shared(object: &Value) -> bool {
    object.get("kind").and_then(Value::as_str).is_some_and(|kind| SHARED.contains(&kind))
}

/// Returns the file name in a step; `None` if the step does not name a file.
fn name_of(step: &Step) -> Option<&str> {
    let name = FILE.as_ref()?.captures(&step.value)?.get(1)?.as_str();
    (!name.is_empty()).then_some(name)
}

/// Returns the path of the file that a step of `feature` names.
fn path_of(feature: &Feature, name: &str) -> PathBuf {
    let folder = feature.path.as_deref().and_then(Path::parent).unwrap_or(Path::new(""));
    folder.join(name)
}
