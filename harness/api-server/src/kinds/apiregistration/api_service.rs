//! Implements `APIService` objects.

use std::sync::LazyLock;

use kubernetes_types::json::{at, text};
use kubernetes_types::names;
use kubernetes_types::quoting::quote;
use serde_json::{Value, json};

use crate::apimachinery::metadata;
use crate::kinds::common::cells::{Context, age_of, condition, items, name, row};
use crate::kinds::common::change::Change;
use crate::kinds::common::columns::{column, described};
use crate::kinds::common::defaults::{fill, with};
use crate::kinds::common::fields::{Errors, Path, flag, get, int, list, set};
use crate::kinds::common::formats::path_segment_errors;
use crate::kinds::common::{fields, formats, preparation};
use crate::kinds::kind::{Kind, StatusKeeps};

/// The behavior of `APIService` objects.
pub(crate) const KIND: Kind = Kind {
    group: "apiregistration.k8s.io",
    resource: "apiservices",
    kind: "APIService",
    set_defaults: Some(set_defaults),
    validate_name: name_errors,
    requires_resource_version: true,
    status_keeps: StatusKeeps::Metadata,
    has_status_table: false,
    prepare_create: set_available,
    validate,
    validate_subresources: &[("status", validate_status)],
    cells: Some(cells),
    columns: Some(|| &COLUMNS),
    ..Kind::PLAIN
};

/// Source: kube-aggregator pkg/registry/apiservice/strategy.go, `PrepareForCreate`.
fn set_available(object: &mut Value) {
    if object.pointer("/spec/service").is_none() {
        let available = json!({
            "type": "Available", "status": "True", "lastTransitionTime": metadata::now(), "reason": "Local",
            "message": "Local APIServices are always available",
        });
        preparation::set_status(object, json!({"conditions": [available]}));
    }
}

/// Validates the name of an `APIService`.
///
/// Source: kube-aggregator pkg/apis/apiregistration/validation/validation.go, `ValidateAPIService`.
pub(crate) fn name_errors(name: &str, object: &Value) -> Vec<String> {
    let errors = path_segment_errors(name);
    let required = format!("{}.{}", text(object, &["spec", "version"]), text(object, &["spec", "group"]));
    if errors.is_empty() && name != required {
        return vec![format!("must be `spec.version+\".\"+spec.group`: {}", quote(&required))];
    }
    errors
}

/// Sets the defaults of an `APIService`.
///
/// Source: kube-aggregator pkg/apis/apiregistration/v1/defaults.go.
pub(crate) fn set_defaults(object: &mut Value) {
    with(object, "spec", |spec| with(spec, "service", |service| fill(service, "port", 443)));
}

/// Validates an `APIService`.
///
/// Source: kube-aggregator pkg/apis/apiregistration/validation/validation.go, `ValidateAPIService`.
/// Rule: VLO-50.
pub(crate) fn validate(errors: &mut Errors, object: &Value, _: Option<Change<'_>>) {
    let (path, spec) = (Path::new("spec"), get(object, "spec"));
    let (group, version) = (fields::text(spec, "group"), fields::text(spec, "version"));
    if group.is_empty() && version != "v1" {
        errors.required(&path.child("group"), "only v1 may have an empty group and it better be legacy kube");
    }
    if !group.is_empty() {
        formats::dns_subdomain(errors, &path.child("group"), group);
    }
    errors.all_invalid(&path.child("version"), version, names::dns1035_label(version));
    for (field, limit) in [("groupPriorityMinimum", 20_000), ("versionPriority", 1000)] {
        let priority = int(spec, field).unwrap_or(0);
        if !(1..=limit).contains(&priority) {
            let why = format!("must be positive and less than {limit}");
            errors.invalid(&path.child(field), priority, why);
        }
    }
    let bundle = decoded_length(fields::text(spec, "caBundle"));
    let (bundle_path, insecure_path) = (path.child("caBundle"), path.child("insecureSkipTLSVerify"));
    let is_insecure = flag(spec, "insecureSkipTLSVerify");
    let Some(service) = set(spec, "service") else {
        if bundle != 0 {
            let shown = quote(&format!("{bundle} bytes"));
            errors.invalid(&bundle_path, shown, "local APIServices may not have a caBundle");
        }
        if is_insecure {
            errors.invalid(&insecure_path, true, "local APIServices may not have insecureSkipTLSVerify");
        }
        return;
    };
    let path = path.child("service");
    for field in ["namespace", "name"] {
        if fields::text(service, field).is_empty() {
            errors.required(&path.child(field), "");
        }
    }
    let port = int(service, "port").unwrap_or(0);
    if !(1..=65_535).contains(&port) {
        let why = format!("port is not valid: {}", formats::between(1, 65_535));
        errors.invalid(&path.child("port"), port, why);
    }
    if is_insecure && bundle != 0 {
        errors.invalid(&insecure_path, true, "may not be true if caBundle is present");
    }
}

/// Returns the number of bytes that a base64 string encodes.
fn decoded_length(text: &str) -> usize {
    let digits = text.trim_end_matches('=').len();
    digits * 3 / 4
}

/// Validates the status of an `APIService`.
///
/// Source: kube-aggregator pkg/apis/apiregistration/validation/validation.go, `ValidateAPIServiceStatus`.
/// Rule: VLO-50.
pub(crate) fn validate_status(errors: &mut Errors, object: &Value, _: Change<'_>) {
    let path = Path::new("status");
    let path = path.child("conditions");
    for (index, condition) in list(get(object, "status"), "conditions").iter().enumerate() {
        let path = path.index(index);
        errors.one_of(
            &path.child("status"),
            Some(fields::text(condition, "status")),
            &["True", "False", "Unknown"],
        );
    }
}

/// The columns of API services.
///
/// Source: kube-aggregator pkg/registry/apiservice/etcd/etcd.go, `ConvertToTable`.
pub(crate) static COLUMNS: LazyLock<Value> = LazyLock::new(|| {
    let service = "The reference to the service that hosts this API endpoint.";
    Value::from(vec![
        column("Name", "string", described("default", 0), 0),
        column("Service", "string", service, 0),
        column("Available", "string", "Whether this service is available.", 0),
        column("Age", "string", described("default", 1), 0),
    ])
});

pub(crate) fn cells(object: &Value, context: &Context<'_>) -> Vec<Value> {
    let service = at(object, &["spec", "service"]);
    let service = if service.is_null() {
        "Local".to_owned()
    } else {
        format!("{}/{}", text(service, &["namespace"]), text(service, &["name"]))
    };
    let available = condition(items(object, &["status", "conditions"]), "Available");
    let available = available.map_or_else(
        || "Unknown".to_owned(),
        |condition| match (text(condition, &["status"]), text(condition, &["reason"])) {
            (status, reason) if status == "True" || reason.is_empty() => status.to_owned(),
            (status, reason) => format!("{status} ({reason})"),
        },
    );
    row![name(object), service, available, age_of(object, context)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn length_of_the_bundle_is_that_of_its_bytes() {
        for (text, length) in [("", 0), ("YQ==", 1), ("YWI=", 2), ("YWJj", 3), ("YWJjZA==", 4)] {
            assert_eq!(decoded_length(text), length, "{text}");
        }
    }
}
