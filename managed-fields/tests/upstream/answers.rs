//! Answers the questions that the oracle answers with Kubernetes' own packages.

use std::collections::BTreeMap;

use kubernetes_managed_fields::{
    Duplicates, Path, PathElement, Set, Type, compare, entries_of_parent, entries_of_scale, extract_items,
    field_set, merge, remove_items, validate, validate_entries,
};
use serde_json::{Map, Value, json};

use crate::schemas::{Ref, Schemas};
use crate::writes;

/// Returns this crate's answer to `question`.
pub(crate) fn answer(question: &Value, schemas: &Schemas) -> Value {
    if question.get("writes").is_some() {
        return writes::written(question, schemas);
    }
    if let Some(entries) = question.get("entries") {
        return validate_entries(entries).map_or_else(|error| json!({"error": error}), |()| json!({}));
    }
    if question.get("replicas").is_some() {
        return scaled(question);
    }
    match question.get("type").and_then(Value::as_str) {
        Some(name) => typed(question, schemas.named(question["schema"].as_str().unwrap_or_default(), name)),
        None => sets(question),
    }
}

fn scaled(question: &Value) -> Value {
    let entries = |name: &str| question.get(name).cloned().unwrap_or_default();
    let path = |names: &Value| {
        let names = names.as_array().into_iter().flatten();
        let path: Path = names.map(|name| PathElement::field(name.as_str().unwrap())).collect();
        (!path.is_empty()).then_some(path)
    };
    let replicas = question["replicas"].as_object().unwrap();
    let replicas: BTreeMap<_, _> =
        replicas.iter().map(|(version, names)| (version.clone(), path(names))).collect();
    let mut answer = Map::new();
    let parent = entries_of_parent(&entries("parent"), &entries("scale"), "example.com/v1", &replicas);
    for (name, entries) in [("scale", entries_of_scale(&entries("parent"), &replicas)), ("parent", parent)] {
        match entries {
            Ok(entries) => answer.insert(name.to_owned(), entries),
            Err(error) => answer.insert(format!("{name}Error"), error.into()),
        };
    }
    answer.into()
}

fn sets(question: &Value) -> Value {
    let text = |name: &str| question.get(name).and_then(Value::as_str);
    let set = match Set::from_json(text("set").unwrap()) {
        Ok(set) => set,
        Err(error) => return json!({"error": error}),
    };
    let paths: Vec<_> =
        set.paths().iter().map(|path| path.iter().map(ToString::to_string).collect::<String>()).collect();
    let mut answer = json!({
        "set": set.to_json(),
        "paths": paths.join("\n"),
        "leaves": set.leaves().to_json(),
        "len": set.len(),
    });
    if let Some(other) = text("other") {
        let other = match Set::from_json(other) {
            Ok(other) => other,
            Err(error) => return json!({"error": error}),
        };
        answer["union"] = set.union(&other).to_json().into();
        answer["intersection"] = set.intersection(&other).to_json().into();
        answer["difference"] = set.difference(&other).to_json().into();
        answer["recursiveDifference"] = set.recursive_difference(&other).to_json().into();
        // This property does not depend on the oracle.
        assert_eq!(Set::from_value(&set.to_value()).as_ref(), Ok(&set));
        assert_eq!(set.union(&other), other.union(&set));
        assert_eq!(set.difference(&other).union(&set.intersection(&other)), set);
        assert!(set.paths().iter().all(|path| set.has(path)));
        assert_eq!(set.paths().into_iter().collect::<Set>(), set);
    }
    answer
}

fn typed(question: &Value, of: Type<Ref<'_>>) -> Value {
    let mut answer = Map::new();
    let mut say = |name: &str, value: Value| {
        answer.insert(name.to_owned(), value);
    };
    let new = &question["new"];
    if let Err(errors) = validate(new, of, Duplicates::Refused) {
        return json!({"error": errors.to_string()});
    }
    say("fields", field_set(new, of).to_json().into());
    if let Some(text) = question.get("set").and_then(Value::as_str) {
        let items = Set::from_json(text).unwrap();
        say("removed", remove_items(new.clone(), &items, of));
        say("extracted", extract_items(new.clone(), &items, of));
    }
    if let Some(old) = question.get("old") {
        if let Err(errors) = validate(old, of, Duplicates::Allowed) {
            say("oldError", errors.to_string().into());
            return answer.into();
        }
        match merge(old, new, of) {
            Ok(merged) => say("merged", merged),
            Err(errors) => say("mergeError", errors.to_string().into()),
        }
        match compare(old, new, of) {
            Ok(changes) => say(
                "changes",
                json!({
                    "removed": changes.removed.to_json(),
                    "modified": changes.modified.to_json(),
                    "added": changes.added.to_json(),
                }),
            ),
            Err(errors) => say("compareError", errors.to_string().into()),
        }
        say("oldFields", field_set(old, of).to_json().into());
    }
    answer.into()
}

/// Removes insignificant differences: converts floats that are whole numbers to integers, and sorts errors.
///
/// Go reports the errors in the random iteration order of a map.
pub(crate) fn comparable(value: &Value) -> Value {
    match value {
        Value::Number(number) => match number.as_f64() {
            #[expect(clippy::cast_possible_truncation, reason = "it is a whole number in the range")]
            Some(float) if float.fract() == 0.0 && float.abs() < 9e15 => json!(float as i64),
            _ => value.clone(),
        },
        Value::Array(items) => items.iter().map(comparable).collect(),
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| {
                let value = match value {
                    Value::String(text) if name.to_lowercase().ends_with("error") => {
                        let (head, list) = text.split_once("errors:\n").unwrap_or((text, ""));
                        let mut lines: Vec<_> = list.lines().collect();
                        lines.sort_unstable();
                        format!("{head}{}", lines.join("\n")).into()
                    }
                    Value::String(_)
                    | Value::Null
                    | Value::Bool(_)
                    | Value::Number(_)
                    | Value::Array(_)
                    | Value::Object(_) => comparable(value),
                };
                (name.clone(), value)
            })
            .collect(),
        Value::Null | Value::Bool(_) | Value::String(_) => value.clone(),
    }
}
