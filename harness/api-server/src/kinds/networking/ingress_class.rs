//! Implements `IngressClass` objects.

use kubernetes_types::json::{at, text};
use serde_json::Value;

use crate::kinds::common::cells::{Context, age_of, name, row};
use crate::kinds::common::change::Change;
use crate::kinds::common::defaults::{fill_pointer, with};
use crate::kinds::common::fields::{Errors, IMMUTABLE, Path, get, set, word};
use crate::kinds::common::{fields, formats};
use crate::kinds::kind::Kind;

/// The behavior of `IngressClass` objects.
pub(crate) const KIND: Kind = Kind {
    group: "networking.k8s.io",
    resource: "ingressclasses",
    kind: "IngressClass",
    set_defaults: Some(set_defaults),
    validate,
    cells: Some(cells),
    ..Kind::COUNTED
};

/// Sets the defaults of an `IngressClass`.
///
/// Source: kubernetes pkg/apis/networking/v1/defaults.go, `SetDefaults_IngressClass`.
pub(crate) fn set_defaults(object: &mut Value) {
    with(object, "spec", |spec| {
        with(spec, "parameters", |parameters| fill_pointer(parameters, "scope", "Cluster"));
    });
}

/// Validates an `IngressClass`.
///
/// Source: kubernetes pkg/apis/networking/validation/validation.go, `ValidateIngressClass` and
/// `ValidateIngressClassUpdate`.
/// Rule: VLO-29.
pub(crate) fn validate(errors: &mut Errors, object: &Value, change: Option<Change<'_>>) {
    const MAX_LEN_INGRESS_CLASS_CONTROLLER: usize = 250;
    let (path, spec) = (Path::new("spec"), get(object, "spec"));
    let (controller, controller_path) = (fields::text(spec, "controller"), path.child("controller"));
    if change.is_some_and(|change| !change.is_same(&["spec", "controller"])) {
        errors.invalid_text(&controller_path, controller, IMMUTABLE);
    }
    if controller.len() > MAX_LEN_INGRESS_CLASS_CONTROLLER {
        errors.too_long(&controller_path, MAX_LEN_INGRESS_CLASS_CONTROLLER);
    }
    formats::domain_prefixed_path(errors, &controller_path, controller);
    let Some(parameters) = set(spec, "parameters") else { return };
    let path = path.child("parameters");
    if let Some(group) = word(parameters, "apiGroup") {
        formats::dns_subdomain(errors, &path.child("apiGroup"), group);
    }
    for field in ["kind", "name"] {
        let (path, found) = (path.child(field), fields::text(parameters, field));
        if found.is_empty() {
            errors.required_by_type(&path);
        } else {
            formats::path_segment(errors, &path, found);
        }
    }
    let namespace_path = path.child("namespace");
    match (word(parameters, "scope"), word(parameters, "namespace")) {
        (None, _) => errors.required(&path.child("scope"), ""),
        (Some("Namespace"), None) => {
            errors.required(&namespace_path, "`parameters.scope` is set to 'Namespace'");
        }
        (Some("Namespace"), Some(namespace)) => formats::dns_label(errors, &namespace_path, namespace),
        (Some("Cluster"), Some(_)) => {
            errors.forbidden(&namespace_path, "`parameters.scope` is set to 'Cluster'");
        }
        (Some("Cluster"), None) => {}
        (Some(other), _) => errors.unsupported(&path.child("scope"), other, &["Cluster", "Namespace"]),
    }
}

pub(crate) fn cells(object: &Value, context: &Context<'_>) -> Vec<Value> {
    let annotation =
        text(object, &["metadata", "annotations", "ingressclass.kubernetes.io/is-default-class"]);
    let default = if annotation == "true" { " (default)" } else { "" };
    let parameters = at(object, &["spec", "parameters"]);
    let parameters = if parameters.is_null() {
        "<none>".to_owned()
    } else {
        let group = at(parameters, &["apiGroup"]).as_str().map(|group| format!(".{group}"));
        let kind = text(parameters, &["kind"]);
        format!("{kind}{}/{}", group.unwrap_or_default(), text(parameters, &["name"]))
    };
    row![
        format!("{}{default}", name(object)),
        text(object, &["spec", "controller"]),
        parameters,
        age_of(object, context),
    ]
}
