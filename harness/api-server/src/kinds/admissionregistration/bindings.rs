//! Validates the bindings of admission policies.

use std::collections::HashSet;

use kubernetes_types::json;
use kubernetes_types::json::at;
use kubernetes_types::quoting::encode;
use serde_json::Value;

use crate::kinds::admissionregistration::{matching, policies};
use crate::kinds::common::cells::{Context, age_of, items, name, row};
use crate::kinds::common::fields::{Errors, Path, get, set, text, texts};
use crate::kinds::common::{formats, selectors};

const VALIDATION_ACTIONS: [&str; 3] = ["Audit", "Deny", "Warn"];

const PARAMETER_NOT_FOUND_ACTIONS: [&str; 2] = ["Deny", "Allow"];

/// Validates a `ValidatingAdmissionPolicyBinding`.
///
/// Source: kubernetes pkg/apis/admissionregistration/validation/validation.go,
/// `validateValidatingAdmissionPolicyBindingSpec`.
/// Rule: POL-E.
pub(crate) fn validating_binding(errors: &mut Errors, object: &Value, is_new: bool) {
    let (spec, path) = (get(object, "spec"), Path::new("spec"));
    if text(spec, "policyName").is_empty() {
        errors.required_by_type(&path.child("policyName"));
    }
    binding(errors, &path, spec);
    validation_actions(errors, &path.child("validationActions"), spec);
    if is_new {
        policies::static_suffix(errors, object);
    }
}

/// Validates a `MutatingAdmissionPolicyBinding`.
///
/// Source: kubernetes pkg/apis/admissionregistration/validation/validation.go,
/// `validateMutatingAdmissionPolicyBindingSpec`.
/// Rule: POL-E.
pub(crate) fn mutating_binding(errors: &mut Errors, object: &Value, is_new: bool) {
    let (spec, path) = (get(object, "spec"), Path::new("spec"));
    if text(spec, "policyName").is_empty() {
        errors.required(&path.child("policyName"), "");
    }
    binding(errors, &path, spec);
    matching::mutating_operations(errors, &path.child("matchResources"), get(spec, "matchResources"));
    if is_new {
        policies::static_suffix(errors, object);
    }
}

/// Validates the fields that both kinds of bindings have.
fn binding(errors: &mut Errors, path: &Path<'_>, spec: &Value) {
    let name = text(spec, "policyName");
    if !name.is_empty() {
        formats::dns_subdomain(errors, &path.child("policyName"), name);
    }
    param_ref(errors, &path.child("paramRef"), get(spec, "paramRef"));
    matching::resources(errors, &path.child("matchResources"), get(spec, "matchResources"));
}

/// Source: kubernetes pkg/apis/admissionregistration/validation/validation.go, `validateParamRef`.
fn param_ref(errors: &mut Errors, path: &Path<'_>, reference: &Value) {
    const EXCLUSIVE: &str = "name and selector are mutually exclusive";
    if reference.is_null() {
        return;
    }
    let (name, selector) = (text(reference, "name"), set(reference, "selector"));
    if !name.is_empty() {
        formats::path_segment(errors, &path.child("name"), name);
        if selector.is_some() {
            errors.forbidden(&path.child("name"), EXCLUSIVE);
        }
    }
    match selector {
        Some(selector) => {
            selectors::label_selector(errors, &path.child("selector"), selector);
            if !name.is_empty() {
                errors.forbidden(&path.child("selector"), EXCLUSIVE);
            }
        }
        None if name.is_empty() => errors.required(path, "one of name or selector must be specified"),
        None => {}
    }
    let action = text(reference, "parameterNotFoundAction");
    errors.required_one_of(&path.child("parameterNotFoundAction"), action, &PARAMETER_NOT_FOUND_ACTIONS);
}

/// Source: kubernetes pkg/apis/admissionregistration/validation/validation.go, `validateValidationActions`.
fn validation_actions(errors: &mut Errors, path: &Path<'_>, spec: &Value) {
    let mut seen = HashSet::new();
    for (index, action) in texts(spec, "validationActions").enumerate() {
        errors.one_of(&path.index(index), Some(action), &VALIDATION_ACTIONS);
        if !seen.insert(action) {
            errors.duplicate(&path.index(index), action);
        }
    }
    if seen.contains("Deny") && seen.contains("Warn") {
        let why = "must not contain both Deny and Warn (repeating the same validation failure information in the API \
                   response and headers serves no purpose)";
        errors.invalid(path, encode(get(spec, "validationActions")), why);
    }
    if seen.is_empty() {
        errors.required_by_type(path);
    }
}

pub(crate) fn cells(object: &Value, context: &Context<'_>) -> Vec<Value> {
    let reference = at(object, &["spec", "paramRef"]);
    let selector = at(reference, &["selector"]);
    let parameter = match (json::text(reference, &["name"]), json::text(reference, &["namespace"])) {
        ("", _) if selector.is_null() => "<unset>".to_owned(),
        ("", _) => go_selector(selector),
        (name, "") => format!("*/{name}"),
        (name, namespace) => format!("{namespace}/{name}"),
    };
    row![name(object), json::text(object, &["spec", "policyName"]), parameter, age_of(object, context)]
}

/// Formats a `LabelSelector` as Go's verb `%v` does.
///
/// Source: apimachinery pkg/apis/meta/v1/generated.pb.go, `String`.
fn go_selector(selector: &Value) -> String {
    let labels = at(selector, &["matchLabels"]).as_object().into_iter().flatten();
    let labels: Vec<String> =
        labels.map(|(key, value)| format!("{key}: {},", value.as_str().unwrap_or_default())).collect();
    let labels = labels.concat();
    let expression = |it: &Value| {
        let values = items(it, &["values"]).iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ");
        let (key, operator) = (json::text(it, &["key"]), json::text(it, &["operator"]));
        format!("LabelSelectorRequirement{{Key:{key},Operator:{operator},Values:[{values}],}},")
    };
    let expressions: String = items(selector, &["matchExpressions"]).iter().map(expression).collect();
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{labels}}},\
         MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )
}
