//! Merges an apply configuration into an object without field managers, as admission policies do.

use serde_json::Value;

use super::{Duplicates, deduced, merge, validate};
use crate::path::{PathElement, text};
use crate::schema::{Relation, Schema, Type};

/// Returns the result of merging `configuration` into `live`; both must be of type `of`.
///
/// The configuration may not contain atomic lists, maps, or structs, because the merge would replace them.
///
/// # Errors
/// Returns kube-apiserver's error message if the configuration or the object does not match the type, or if the
/// configuration contains an atomic value.
///
/// Source: apiserver pkg/admission/plugin/policy/mutating/patch/smd.go, `ApplyStructuredMergeDiff`.
pub fn merge_configuration<T: Schema>(
    live: &Value,
    configuration: &Value,
    of: Type<T>,
) -> Result<Value, String> {
    validate(configuration, of, Duplicates::Refused)
        .map_err(|error| format!("failed to convert patch object to typed object: {error}"))?;
    let mut atomics = Vec::new();
    find_atomics(configuration, of, &mut Vec::new(), &mut atomics);
    if !atomics.is_empty() {
        let atomics = atomics.join(", ");
        return Err(format!(
            "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {atomics}"
        ));
    }
    validate(live, of, Duplicates::Allowed)
        .map_err(|error| format!("failed to convert original object to typed object: {error}"))?;
    merge(live, configuration, of).map_err(|error| format!("failed to merge patch: {error}"))
}

/// Adds the paths of all atomic lists, maps, and structs. Values in maps are not searched.
///
/// Source: apiserver pkg/admission/plugin/policy/mutating/patch/smd.go, `findAtomics`.
fn find_atomics<T: Schema>(
    value: &Value,
    of: Type<T>,
    path: &mut Vec<PathElement>,
    atomics: &mut Vec<String>,
) {
    let atom = deduced(of.atom(), Some(value));
    let mut below = |element: PathElement, value: &Value, of: Type<T>, atomics: &mut Vec<String>| {
        path.push(element);
        find_atomics(value, of, path, atomics);
        path.pop();
    };
    match (value, atom.map, atom.list) {
        (Value::Object(members), Some(map), _) => {
            let mut found = Vec::new();
            for (name, value) in members {
                if let Some(of) = of.field(name) {
                    below(PathElement::field(name), value, of, &mut found);
                }
            }
            if map.is_atomic {
                atomics.push(text(path));
            }
            atomics.append(&mut found);
        }
        (Value::Array(items), _, Some(list)) => {
            let mut found = Vec::new();
            for (index, item) in (0..).zip(items) {
                below(PathElement::Index(index), item, list.element, &mut found);
            }
            if list.relation == Relation::Atomic {
                atomics.push(text(path));
            }
            atomics.append(&mut found);
        }
        _ => {}
    }
}
