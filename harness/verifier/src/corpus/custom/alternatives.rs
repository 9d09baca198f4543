//! Resolves the alternatives in a schema: `allOf`, and one branch of each `anyOf` and `oneOf`.

use std::borrow::Cow;

use serde_json::{Map, Value};

/// The maximum nesting depth of alternatives.
const MAX_DEPTH: usize = 8;

/// Returns a schema that requires the branch at index `turn` of each of its alternatives.
///
/// The result is approximate, so generated objects must still be validated.
pub(super) fn chosen(schema: &Value, turn: usize) -> Cow<'_, Value> {
    match schema.as_object() {
        Some(members) if has_any(members) => Cow::Owned(Value::Object(resolved(members, turn, MAX_DEPTH))),
        _ => Cow::Borrowed(schema),
    }
}

fn has_any(members: &Map<String, Value>) -> bool {
    ["allOf", "anyOf", "oneOf", "not"].iter().any(|keyword| members.contains_key(*keyword))
}

fn resolved(members: &Map<String, Value>, turn: usize, depth: usize) -> Map<String, Value> {
    let mut schema = members.clone();
    let mut taken = |keyword: &str| match schema.remove(keyword) {
        Some(Value::Array(branches)) if depth > 0 => branches,
        _ => Vec::new(),
    };
    let (all, any, one) = (taken("allOf"), taken("anyOf"), taken("oneOf"));
    let not = schema.remove("not");
    for branch in &all {
        overlay(&mut schema, branch, turn, depth);
    }
    for branches in [&any, &one] {
        if let Some(branch) = turn.checked_rem(branches.len()).and_then(|index| branches.get(index)) {
            overlay(&mut schema, branch, turn, depth);
        }
    }
    // Fields that the other branches of `oneOf` require would make two branches match.
    let demanded: Vec<&str> = one.iter().chain(&not).flat_map(required).collect();
    let kept: Vec<String> = schema.get("required").map(names).unwrap_or_default();
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.retain(|name, _| !demanded.contains(&name.as_str()) || kept.contains(name));
    }
    schema
}

/// Returns the names of the fields in the `required` list of a branch.
fn required(branch: &Value) -> Vec<&str> {
    branch["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

fn names(required: &Value) -> Vec<String> {
    let names = required.as_array().into_iter().flatten().filter_map(Value::as_str);
    names.map(str::to_owned).collect()
}

/// Merges `branch` into `schema`, and keeps the stricter of two limits.
fn overlay(schema: &mut Map<String, Value>, branch: &Value, turn: usize, depth: usize) {
    let Value::Object(branch) = branch else { return };
    let branch = if has_any(branch) { &resolved(branch, turn, depth.saturating_sub(1)) } else { branch };
    for (keyword, said) in branch {
        let stays = |known: &Value| {
            let (known, said) = (known.as_f64(), said.as_f64());
            match keyword.as_str() {
                "minimum" | "minLength" | "minItems" | "minProperties" => known >= said,
                "maximum" | "maxLength" | "maxItems" | "maxProperties" => known <= said,
                _ => false,
            }
        };
        match schema.get_mut(keyword) {
            Some(known) if stays(known) => {}
            Some(Value::Object(known)) if keyword == "properties" => {
                for (name, property) in said.as_object().into_iter().flatten() {
                    match known.get_mut(name) {
                        Some(Value::Object(known)) if depth > 0 => overlay(known, property, turn, depth - 1),
                        Some(_) => {}
                        None => {
                            known.insert(name.clone(), property.clone());
                        }
                    }
                }
            }
            Some(Value::Object(known))
                if depth > 0 && ["items", "additionalProperties"].contains(&&**keyword) =>
            {
                overlay(known, said, turn, depth - 1);
            }
            Some(Value::Array(known)) if keyword == "required" => {
                known.extend(said.as_array().into_iter().flatten().cloned());
            }
            Some(Value::Array(known)) if keyword == "enum" => {
                known.retain(|value| said.as_array().is_some_and(|said| said.contains(value)));
            }
            _ => {
                if keyword == "type" {
                    schema.remove("x-kubernetes-int-or-string");
                }
                schema.insert(keyword.clone(), said.clone());
            }
        }
    }
}
