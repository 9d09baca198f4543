//! Validates `env`, `envFrom`, and other references to Pod fields.

use kubernetes_types::quantity::Quantity;
use kubernetes_types::{names, quantity};
use serde_json::Value;

use crate::kinds::common::fields::{Errors, Path, get, list, set, text};
use crate::kinds::common::formats;

/// The Pod fields that an environment variable may reference.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validEnvDownwardAPIFieldPathExpressions`.
const FIELDS: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

/// The Pod fields that a file may reference.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validVolumeDownwardAPIFieldPathExpressions`.
const FILE_FIELDS: [&str; 5] =
    ["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];

/// The container resources that a variable or a file may reference.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validContainerResourceFieldPathExpressions`.
const RESOURCES: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];

/// Whether a field reference sets an environment variable or the contents of a file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldTarget {
    Variable,
    File,
}

/// Validates the environment variables of a container.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `ValidateEnv`.
/// Rule: VLO-07.
pub(crate) fn variables(errors: &mut Errors, path: &Path<'_>, container: &Value) {
    for (index, variable) in list(container, "env").iter().enumerate() {
        let path = path.index(index);
        let name = text(variable, "name");
        if name.is_empty() {
            errors.required(&path.child("name"), "");
        } else {
            errors.all_invalid(&path.child("name"), name, formats::environment_name(name));
        }
        if let Some(source) = set(variable, "valueFrom") {
            value_from(errors, &path.child("valueFrom"), source, text(variable, "value"));
        }
    }
}

fn value_from(errors: &mut Errors, path: &Path<'_>, source: &Value, value: &str) {
    let mut sources = 0;
    if let Some(field) = set(source, "fieldRef") {
        sources += 1;
        field_reference(errors, &path.child("fieldRef"), field, FieldTarget::Variable);
    }
    if let Some(field) = set(source, "resourceFieldRef") {
        sources += 1;
        resource_reference(errors, &path.child("resourceFieldRef"), field, FieldTarget::Variable);
    }
    for field in ["configMapKeyRef", "secretKeyRef"] {
        if let Some(reference) = set(source, field) {
            sources += 1;
            key_reference(errors, &path.child(field), reference);
        }
    }
    if let Some(reference) = set(source, "fileKeyRef") {
        sources += 1;
        file_reference(errors, &path.child("fileKeyRef"), reference);
    }
    if sources == 0 {
        errors.invalid_text(
            path,
            "",
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
        );
    } else if !value.is_empty() {
        errors.invalid_text(path, "", "may not be specified when `value` is not empty");
    } else if sources > 1 {
        errors.invalid_text(path, "", "may not have more than one field specified at a time");
    }
}

fn key_reference(errors: &mut Errors, path: &Path<'_>, reference: &Value) {
    let (name, key) = (text(reference, "name"), text(reference, "key"));
    formats::dns_subdomain(errors, &path.child("name"), name);
    if key.is_empty() {
        errors.required(&path.child("key"), "");
    } else {
        errors.all_invalid(&path.child("key"), key, formats::config_key(key));
    }
}

fn file_reference(errors: &mut Errors, path: &Path<'_>, reference: &Value) {
    let of = |field| text(reference, field);
    if of("key").is_empty() {
        errors.required(&path.child("key"), "");
    } else {
        errors.all_invalid(&path.child("key"), of("key"), formats::environment_name(of("key")));
    }
    if of("volumeName").is_empty() {
        errors.required(&path.child("volumeName"), "");
    } else {
        formats::dns_label(errors, &path.child("volumeName"), of("volumeName"));
    }
    if of("path").is_empty() {
        errors.required(&path.child("path"), "");
    } else {
        formats::no_backsteps(errors, &path.child("path"), of("path"));
    }
}

/// Validates a `fieldRef`.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validateObjectFieldSelector`;
/// pkg/apis/core/pods/helpers.go, `ConvertDownwardAPIFieldLabel`.
pub(crate) fn field_reference(errors: &mut Errors, path: &Path<'_>, reference: &Value, into: FieldTarget) {
    let (version, label) = (text(reference, "apiVersion"), text(reference, "fieldPath"));
    if version.is_empty() {
        errors.required(&path.child("apiVersion"), "");
        return;
    }
    let field_path = path.child("fieldPath");
    if label.is_empty() {
        errors.required(&field_path, "");
        return;
    }
    let mut refuse = |why: String| {
        errors.invalid_text(&field_path, label, format!("error converting fieldPath: {why}"));
    };
    if version != "v1" {
        refuse(format!("unsupported pod version: {version}"));
        return;
    }
    let subscripted = label.strip_suffix("']").and_then(|rest| rest.split_once("['"));
    if let Some((name, subscript)) = subscripted {
        match name {
            "metadata.annotations" => formats::qualified_name(errors, path, &subscript.to_lowercase()),
            "metadata.labels" => formats::qualified_name(errors, path, subscript),
            _ => refuse(format!("field label does not support subscript: {label}")),
        }
        return;
    }
    let known = [
        "metadata.annotations",
        "metadata.labels",
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.serviceAccountName",
        "spec.schedulerName",
        "status.phase",
        "status.hostIP",
        "status.hostIPs",
        "status.podIP",
        "status.podIPs",
        "spec.host",
    ];
    if !known.contains(&label) {
        refuse(format!("field label not supported: {label}"));
        return;
    }
    // The former name of the field.
    let label = if label == "spec.host" { "spec.nodeName" } else { label };
    let supported = if into == FieldTarget::Variable { &FIELDS[..] } else { &FILE_FIELDS[..] };
    errors.one_of(&field_path, Some(label), supported);
}

/// Validates a `resourceFieldRef`.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validateContainerResourceFieldSelector` and
/// `validateContainerResourceDivisor`.
pub(crate) fn resource_reference(errors: &mut Errors, path: &Path<'_>, reference: &Value, into: FieldTarget) {
    let resource = text(reference, "resource");
    let is_huge = resource.starts_with("limits.hugepages-") || resource.starts_with("requests.hugepages-");
    if into == FieldTarget::File && text(reference, "containerName").is_empty() {
        errors.required(&path.child("containerName"), "");
    } else if resource.is_empty() {
        errors.required(&path.child("resource"), "");
    } else if !is_huge {
        errors.one_of(&path.child("resource"), Some(resource), &RESOURCES);
    }
    let Some(divisor) =
        quantity::from_value(get(reference, "divisor")).filter(|divisor| *divisor != Quantity::ZERO)
    else {
        return;
    };
    let kind = match resource {
        "limits.cpu" | "requests.cpu" => "cpu",
        "limits.memory" | "requests.memory" => "memory",
        "limits.ephemeral-storage" | "requests.ephemeral-storage" => "local ephemeral storage",
        _ if is_huge => "hugepages",
        _ => return,
    };
    let divisor = divisor.to_string();
    let path = path.child("divisor");
    if kind == "cpu" {
        if !["1m", "1"].contains(&divisor.as_str()) {
            let why = "only divisor's values 1m and 1 are supported with the cpu resource";
            errors.invalid_text(&path, resource, why);
        }
        return;
    }
    let sizes = ["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];
    if !sizes.contains(&divisor.as_str()) {
        let list = sizes.join(", ");
        let why = format!("only divisor's values {list} are supported with the {kind} resource");
        errors.invalid_text(&path, resource, why);
    }
}

/// Validates `envFrom` of a container.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `ValidateEnvFrom`.
/// Rule: VLO-07.
pub(crate) fn sources(errors: &mut Errors, path: &Path<'_>, container: &Value) {
    for (index, source) in list(container, "envFrom").iter().enumerate() {
        let item = path.index(index);
        let prefix = text(source, "prefix");
        if !prefix.is_empty() {
            errors.all_invalid(&item.child("prefix"), prefix, formats::environment_name(prefix));
        }
        let mut sources = 0;
        for field in ["configMapRef", "secretRef"] {
            let Some(reference) = set(source, field) else { continue };
            sources += 1;
            let (path, name) = (item.child(field), text(reference, "name"));
            if name.is_empty() {
                errors.required(&path.child("name"), "");
            } else {
                // A valid prefix for a generated name is also accepted.
                let begun = name.strip_suffix('-').map_or_else(|| name.to_owned(), |base| format!("{base}a"));
                errors.all_invalid(&path.child("name"), name, names::dns1123_subdomain(&begun));
            }
        }
        if sources == 0 {
            errors.invalid_text(path, "", "must specify one of: `configMapRef` or `secretRef`");
        } else if sources > 1 {
            errors.invalid_text(path, "", "may not have more than one field specified at a time");
        }
    }
}
