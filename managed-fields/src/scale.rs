//! Converts managedFields between a Scale and the scaled object.
//!
//! Source: apimachinery pkg/util/managedfields/scalehandler.go.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::managed::{Managed, VersionedSet};
use crate::path::{Path, PathElement};
use crate::set::Set;

/// The `apiVersion` of every Scale.
const SCALE: &str = "autoscaling/v1";

/// Returns the path of the replicas in a Scale: `spec.replicas`.
fn replicas_of_scale() -> Path {
    vec![PathElement::field("spec"), PathElement::field("replicas")]
}

/// Returns the `metadata.managedFields` of the Scale of an object whose entries are `parent`.
///
/// The returned entries contain only the owners of the replicas.
///
/// `replicas` maps each version of the object to the path of the replicas, or to `None` if the version does not have
/// such a field.
///
/// # Errors
/// Returns kube-apiserver's error if entries cannot be decoded.
pub fn entries_of_scale(parent: &Value, replicas: &BTreeMap<String, Option<Path>>) -> Result<Value, String> {
    let parent = Managed::decode(parent)?;
    let mut scale = Managed::default();
    for (manager, owned) in &parent.fields {
        let Some(Some(path)) = replicas.get(&owned.api_version) else { continue };
        if owned.set.has(path) {
            let set = Set::from_paths([replicas_of_scale()]);
            let owned = VersionedSet { set, api_version: SCALE.to_owned(), operation: owned.operation };
            scale.fields.insert(manager.clone(), owned);
            scale.times.extend(parent.times.get(manager).map(|time| (manager.clone(), time.clone())));
        }
    }
    Ok(scale.encode().unwrap_or_default())
}

/// Returns the `metadata.managedFields` of an object after a write to its Scale.
///
/// `scale` contains the new entries of the Scale, and `parent` the previous entries of the object; `api_version` is the
/// version of the object.
///
/// # Errors
/// Returns kube-apiserver's error if entries cannot be decoded.
pub fn entries_of_parent(
    parent: &Value,
    scale: &Value,
    api_version: &str,
    replicas: &BTreeMap<String, Option<Path>>,
) -> Result<Value, String> {
    let parent = Managed::decode(parent)?;
    let mut of_scale = Managed::decode(scale)?.fields;
    let mut merged = Managed::default();
    for (manager, owned) in &parent.fields {
        let Some(path) = replicas.get(&owned.api_version) else { continue };
        let mut owned = owned.clone();
        if let Some(path) = path.as_ref().filter(|path| owned.set.has(path)) {
            let still_owns = of_scale.remove(manager).is_some();
            if !still_owns {
                owned.set = owned.set.difference(&Set::from_paths([path.clone()]));
                if owned.set.is_empty() {
                    continue;
                }
            }
        }
        merged.fields.insert(manager.clone(), owned);
        merged.times.extend(parent.times.get(manager).map(|time| (manager.clone(), time.clone())));
    }
    let path = replicas.get(api_version).cloned().flatten().unwrap_or_default();
    for (manager, owned) in of_scale {
        if !owned.set.has(&replicas_of_scale()) {
            continue;
        }
        let set = Set::from_paths([path.clone()]);
        merged.times.extend(parent.times.get(&manager).map(|time| (manager.clone(), time.clone())));
        let api_version = api_version.to_owned();
        merged.fields.insert(manager, VersionedSet { set, api_version, operation: owned.operation });
    }
    Ok(merged.encode().unwrap_or_default())
}
