//! Sets the defaults of admission policies and their bindings.

use serde_json::{Value, json};

use crate::kinds::common::defaults::{each, fill, fill_pointer, with};

/// Sets the defaults of a `ValidatingAdmissionPolicy` or a `MutatingAdmissionPolicy`.
///
/// Source: kubernetes pkg/apis/admissionregistration/v1/defaults.go.
/// Rule: POL-A.
pub(crate) fn policy(object: &mut Value) {
    with(object, "spec", |spec| {
        fill_pointer(spec, "failurePolicy", "Fail");
        with(spec, "matchConstraints", match_resources);
    });
}

pub(crate) fn binding(object: &mut Value) {
    with(object, "spec", |spec| with(spec, "matchResources", match_resources));
}

/// Source: kubernetes pkg/apis/admissionregistration/v1/defaults.go, `SetDefaults_MatchResources` and
/// `SetDefaults_Rule`.
fn match_resources(resources: &mut Value) {
    fill_pointer(resources, "matchPolicy", "Equivalent");
    for selector in ["namespaceSelector", "objectSelector"] {
        fill(resources, selector, json!({}));
    }
    for rules in ["resourceRules", "excludeResourceRules"] {
        each(resources, rules, |rule| fill_pointer(rule, "scope", "*"));
    }
}
