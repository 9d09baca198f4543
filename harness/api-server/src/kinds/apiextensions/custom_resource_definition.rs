//! Implements `CustomResourceDefinition` objects.

use std::sync::LazyLock;

use kubernetes_types::json::{set, text};
use serde_json::{Value, json};

use crate::apimachinery::metadata;
use crate::kinds::apiextensions::{custom_resources, definition_deletion, definition_update, definitions};
use crate::kinds::common;
use crate::kinds::common::cells::{Context, created, is_true, items, joined, name, row, status_of};
use crate::kinds::common::columns::{column, described};
use crate::kinds::common::defaults::{ensure, fill, fill_pointer, has, is_empty, remove, with};
use crate::kinds::kind::{DeleteEffect, Kind};

/// The behavior of `CustomResourceDefinition` objects.
pub(crate) const KIND: Kind = Kind {
    group: "apiextensions.k8s.io",
    resource: "customresourcedefinitions",
    kind: "CustomResourceDefinition",
    has_core_finalizers: false,
    requires_resource_version: true,
    set_defaults: Some(set_defaults),
    through_internal: Some(through_internal),
    has_status_table: false,
    prepare_create: custom_resources::begin,
    prepare_update: |object, _| definition_update::note_storage_version(object),
    canonicalize: definitions::coerce_defaults,
    cells: Some(cells),
    columns: Some(|| &COLUMNS),
    is_definition: true,
    failed_precondition: [Some("precondition failed"), None],
    has_uid_precondition: [true, false],
    delete: |stored, _, by_name| {
        let is_marked = by_name && !metadata::is_deleting(stored);
        is_marked.then(|| DeleteEffect::Changed { object: definition_deletion::mark(stored), gone: false })
    },
    ..Kind::COUNTED
};

/// Sets the defaults of a `CustomResourceDefinition`.
///
/// Source: apiextensions-apiserver pkg/apis/apiextensions/v1/defaults.go.
pub(crate) fn set_defaults(object: &mut Value) {
    ensure(object, "metadata");
    let Some(spec) = ensure(object, "spec") else { return };
    if let Some(names) = ensure(spec, "names") {
        let kind = common::defaults::text(names, "kind").to_owned();
        if !kind.is_empty() {
            fill(names, "singular", kind.to_lowercase());
            fill(names, "listKind", format!("{kind}List"));
        }
    }
    fill_pointer(spec, "conversion", json!({"strategy": "None"}));
    with(spec, "conversion", |conversion| {
        with(conversion, "webhook", |webhook| {
            with(webhook, "clientConfig", |client| {
                with(client, "service", |service| fill(service, "port", 443));
            });
        });
    });
    let stored: Vec<Value> = spec
        .get("versions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter(|version| version.get("storage") == Some(&Value::Bool(true)))
        .filter_map(|version| version.get("name").cloned())
        .collect();
    if let Some(status) = ensure(object, "status") {
        for field in ["conditions", "storedVersions"] {
            if !has(status, field) {
                set(status, &[field], Value::Null);
            }
        }
        if is_empty(status, "storedVersions") && !stored.is_empty() {
            set(status, &["storedVersions"], stored);
        }
        if let Some(names) = ensure(status, "acceptedNames") {
            for field in ["kind", "plural"] {
                fill(names, field, "");
            }
        }
    }
}

/// Removes a conversion webhook without fields. The internal type cannot represent it.
///
/// Source: `Convert_v1_CustomResourceConversion_To_apiextensions_CustomResourceConversion` and back.
pub(crate) fn through_internal(object: &mut Value) {
    with(object, "spec", |spec| {
        with(spec, "conversion", |conversion| {
            let is_none =
                |webhook: &Value| !has(webhook, "clientConfig") && !has(webhook, "conversionReviewVersions");
            if conversion.get("webhook").is_some_and(is_none) {
                remove(conversion, "webhook");
            }
        });
    });
}

/// The columns of custom resource definitions.
///
/// Source: apiextensions-apiserver pkg/registry/customresourcedefinition/tableconvertor/tableconvertor.go.
pub(crate) static COLUMNS: LazyLock<Value> = LazyLock::new(|| {
    Value::from(vec![
        column("Name", "string", described("default", 0), 0),
        column("Scope", "string", "Cluster/Namespaced", 0),
        column("Versions", "string", "Served versions", 0),
        column("Created At", "date", described("default", 1), 0),
        column("Group", "string", "API group", 1),
        column("Kind", "string", "CustomResource kind", 1),
        column("ShortNames", "string", "Short names", 1),
        column("Established", "boolean", "Established status", 1),
    ])
});

pub(crate) fn cells(object: &Value, _: &Context<'_>) -> Vec<Value> {
    let served = items(object, &["spec", "versions"]).iter().filter(|version| is_true(version, &["served"]));
    let label = |version: &Value| {
        let storage = if is_true(version, &["storage"]) { "(storage)" } else { "" };
        format!("{}{storage}", text(version, &["name"]))
    };
    let mut versions: Vec<String> = served.map(label).collect();
    versions.sort_unstable();
    row![
        name(object),
        text(object, &["spec", "scope"]),
        versions.join(","),
        created(object),
        text(object, &["spec", "group"]),
        text(object, &["spec", "names", "kind"]),
        joined(items(object, &["spec", "names", "shortNames"]), &[]),
        status_of(object, "Established") == Some("True"),
    ]
}
