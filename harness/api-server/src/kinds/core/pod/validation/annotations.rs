//! Validates Pod annotations.

use kubernetes_types::json_text;
use serde_json::{Map, Value};

use crate::kinds::common::fields::{Errors, Path, get, list, text, word};
use crate::kinds::common::formats;
use crate::kinds::core::pod::validation::scheduling;

pub(crate) const MIRROR: &str = "kubernetes.io/config.mirror";

pub(crate) const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";

pub(crate) const SECCOMP_CONTAINER_PREFIX: &str = "container.seccomp.security.alpha.kubernetes.io/";

pub(crate) const APP_ARMOR_PREFIX: &str = "container.apparmor.security.beta.kubernetes.io/";

const TOLERATIONS: &str = "scheduler.alpha.kubernetes.io/tolerations";

/// Validates the annotations for mirror Pods, tolerations, the deletion cost, and profiles.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `ValidatePodSpecificAnnotations`;
/// pkg/apis/core/helper/helpers.go, `GetDeletionCostFromPodAnnotations`.
pub(crate) fn annotations(errors: &mut Errors, path: &Path<'_>, metadata: &Value, spec: &Value) {
    const POD_DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
    let annotations = get(metadata, "annotations");
    if let Some(value) = word(annotations, MIRROR)
        && text(spec, "nodeName").is_empty()
    {
        let why = "must set spec.nodeName if mirror pod annotation is set";
        errors.invalid_text(&path.key(MIRROR), value, why);
    }
    let of_tolerations = word(annotations, TOLERATIONS).filter(|value| !value.is_empty());
    if let Some(value) = of_tolerations {
        let fields = ["key", "operator", "value", "effect", "tolerationSeconds"];
        if let Some(found) = decoded_list(errors, path, TOLERATIONS, value, &fields) {
            scheduling::tolerations(errors, &path.child(TOLERATIONS), &found);
        }
    }
    if let Some(cost) = word(annotations, POD_DELETION_COST) {
        // A leading plus or zero is invalid.
        let is_plain =
            cost == "0" || cost.starts_with(|first: char| first == '-' || ('1'..='9').contains(&first));
        if !is_plain || cost.parse::<i32>().is_err() {
            errors.invalid_text(&path.key(POD_DELETION_COST), cost, "must be a 32bit integer");
        }
    }
    profiles(errors, path, annotations, spec);
}

/// Validates seccomp and `AppArmor` profiles in annotations.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `ValidateSeccompPodAnnotations` and
/// `ValidateAppArmorPodAnnotations`.
/// Rule: VLO-36.
fn profiles(errors: &mut Errors, path: &Path<'_>, annotations: &Value, spec: &Value) {
    let all = annotations.as_object().into_iter().flatten();
    let all: Vec<(&str, &str)> =
        all.map(|(name, value)| (name.as_str(), value.as_str().unwrap_or_default())).collect();
    let seccomp = all.iter().filter(|(name, _)| *name == SECCOMP_POD);
    for (name, profile) in
        seccomp.chain(all.iter().filter(|(name, _)| name.starts_with(SECCOMP_CONTAINER_PREFIX)))
    {
        let path = path.child(name);
        match profile.strip_prefix("localhost/") {
            _ if ["runtime/default", "docker/default", "unconfined"].contains(profile) => {}
            Some(local) => formats::descending_path(errors, &path, local),
            None => errors.invalid_text(&path, profile, "must be a valid seccomp profile"),
        }
    }
    for (name, profile) in &all {
        let Some(container) = name.strip_prefix(APP_ARMOR_PREFIX) else { continue };
        let lists = ["initContainers", "containers", "ephemeralContainers"];
        let is_there =
            lists.iter().any(|field| list(spec, field).iter().any(|found| text(found, "name") == container));
        if !is_there {
            errors.invalid_text(&path.key(name), container, "container not found");
        }
        let known = ["", "runtime/default", "unconfined"];
        if !known.contains(profile) && !profile.starts_with("localhost/") {
            let profile_shown = kubernetes_types::quoting::quote(profile);
            let why = format!("invalid AppArmor profile name: {profile_shown}");
            errors.invalid_text(&path.key(name), profile, why);
        }
    }
}

/// Decodes the annotation `key`, a list of structs with these fields. Returns `None` after an error.
///
/// As Go does, matches member names case-insensitively.
///
/// Source: kubernetes pkg/apis/core/helper/helpers.go, `GetTolerationsFromPodAnnotations` and
/// `GetTaintsFromNodeAnnotations`.
pub(crate) fn decoded_list(
    errors: &mut Errors,
    path: &Path<'_>,
    key: &str,
    value: &str,
    fields: &[&str],
) -> Option<Vec<Value>> {
    let items: Option<Vec<Value>> = match decoded(errors, path, key, value)? {
        Value::Null => Some(Vec::new()),
        Value::Array(items) => items.into_iter().map(|item| with_fields(item, fields)).collect(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => None,
    };
    if items.is_none() {
        errors.cannot_validate(&format!("the annotation {key} with values of wrong types"));
    }
    items
}

/// Decodes the JSON in the annotation `key`. Returns `None` after an error.
pub(crate) fn decoded(errors: &mut Errors, path: &Path<'_>, key: &str, value: &str) -> Option<Value> {
    if let Err(why) = json_text::scan(value.as_bytes(), json_text::MAX_DEPTH, |_| {}) {
        errors.invalid_text(path, key, why);
        return None;
    }
    let found = serde_json::from_str(value).ok();
    if found.is_none() {
        errors.cannot_validate(&format!("the JSON in the annotation {key}"));
    }
    found
}

/// Returns a struct with the members that it has in Go; `None` for values of other types.
fn with_fields(item: Value, fields: &[&str]) -> Option<Value> {
    let members = match item {
        Value::Null => Map::new(),
        Value::Object(members) => members,
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => return None,
    };
    let mut known = Map::new();
    for (name, value) in members {
        let Some(field) = fields.iter().find(|field| field.eq_ignore_ascii_case(&name)) else { continue };
        let is_of_type = match *field {
            "tolerationSeconds" => value.is_null() || value.is_i64(),
            "timeAdded" => value.is_null(),
            _ => value.is_null() || value.is_string(),
        };
        if !is_of_type {
            return None;
        }
        known.insert((*field).to_owned(), value);
    }
    Some(Value::Object(known))
}
