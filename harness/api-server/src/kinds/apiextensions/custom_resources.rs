//! Builds the resources that `CustomResourceDefinition`s define.

use std::sync::Arc;

use kubernetes_admission::attributes::{GroupVersionKind, GroupVersionResource};
use kubernetes_admission::config::ConversionWebhook;
use kubernetes_types::json::text as text_at;
use kubernetes_types::status::{Status, Unsupported};
use kubernetes_types::structural::Compiled;
use serde_json::{Value, json};

use crate::apimachinery::metadata;
use crate::kinds::apiextensions::{definition_status, selectable_fields};
use crate::kinds::common::custom_columns::CustomColumns;
use crate::kinds::conversion::Strategy;
use crate::kinds::discovery::custom::{CustomResourceInfo, DefinitionStage, ScalePaths};
use crate::kinds::discovery::storage_hash::storage_version_hash;
use crate::kinds::discovery::{Resource, Subresource, is_newer};

/// Returns the lifecycle stage of a definition.
fn stage_of(definition: &Value) -> DefinitionStage {
    if !definition_status::is_true(definition, "Established") {
        DefinitionStage::Unusable
    } else if definition_status::is_true(definition, "Terminating") {
        DefinitionStage::Emptied
    } else if metadata::is_deleting(definition) {
        DefinitionStage::Terminating
    } else {
        DefinitionStage::Established
    }
}

/// Returns the group and the plural name of a definition.
pub(crate) fn group_resource(definition: &Value) -> (&str, &str) {
    (text_at(definition, &["spec", "group"]), text_at(definition, &["spec", "names", "plural"]))
}

/// Returns the resources of a definition, one for each version in the order of `spec.versions`.
///
/// The resources have the accepted names. Without accepted names, the result is empty. The compiled schemas in
/// `before` are reused if the schemas have not changed.
///
/// Source: apiextensions-apiserver `pkg/apiserver/customresource_handler.go`, `getOrCreateServingInfoFor`;
/// `pkg/apiserver/customresource_discovery_controller.go`, `sync`.
/// Rule: SCH-10, SEL-14.
pub(crate) fn resources(definition: &Value, before: Option<(&Value, &[Arc<Resource>])>) -> Vec<Resource> {
    let text =
        |pointer: &str| definition.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let texts = |pointer: &str| -> Vec<String> {
        let items = definition.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
        items.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    if !definition_status::is_served(definition) {
        return Vec::new();
    }
    let versions = || definition.pointer("/spec/versions").and_then(Value::as_array).into_iter().flatten();
    let (group, plural, kind) =
        (text("/spec/group"), text("/status/acceptedNames/plural"), text("/status/acceptedNames/kind"));
    let stage = stage_of(definition);
    let storage_hash = storage_version_hash(&group, storage_version(definition), &kind);
    let is_true = |version: &&Value, field: &str| version.get(field).and_then(Value::as_bool) == Some(true);
    let storage_version = storage_version(definition);
    let conversion = match ConversionWebhook::from_definition(definition) {
        Ok(None) => Strategy::None,
        Ok(Some(webhook)) => Strategy::Webhook(Ok(Arc::new(webhook))),
        Err(unsupported) => Strategy::Webhook(Err(unsupported)),
    };
    let since = metadata::text(definition, "resourceVersion").parse().unwrap_or_default();
    let served_since = known_serving(definition, before).unwrap_or(since);
    versions()
        .map(|version| {
            let name = version.get("name").and_then(Value::as_str).unwrap_or_default();
            let gvk = GroupVersionKind::new(group.clone(), name, kind.clone());
            let scale = version.pointer("/subresources/scale").map(scale_paths);
            let (schema, schema_since) = known_schema(name, version, before)
                .unwrap_or_else(|| (Compiled::new(schema_of(version)), since));
            let mut subresources = Vec::new();
            let get_and_change = || ["get", "patch", "update"].map(str::to_owned).to_vec();
            if version.pointer("/subresources/status").is_some_and(|status| !status.is_null()) {
                let status =
                    Subresource { name: "status".to_owned(), kind: gvk.clone(), verbs: get_and_change() };
                subresources.push(status);
            }
            if scale.is_some() {
                subresources.push(Subresource {
                    name: "scale".to_owned(),
                    kind: GroupVersionKind::new("autoscaling", "v1", "Scale"),
                    verbs: get_and_change(),
                });
            }
            let singular = text("/status/acceptedNames/singular");
            let list_kind = text("/status/acceptedNames/listKind");
            Resource {
                gvr: GroupVersionResource::new(group.clone(), name, plural.clone()),
                kind: gvk,
                list_kind: if list_kind.is_empty() { format!("{kind}List") } else { list_kind },
                namespaced: text("/spec/scope") == "Namespaced",
                singular: if singular.is_empty() { kind.to_lowercase() } else { singular },
                short_names: texts("/status/acceptedNames/shortNames"),
                categories: texts("/status/acceptedNames/categories"),
                verbs: ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"]
                    .map(str::to_owned)
                    .to_vec(),
                subresources,
                custom: Some(CustomResourceInfo {
                    storage_version: storage_version.to_owned(),
                    conversion: conversion.clone(),
                    scale,
                    served: is_true(&version, "served"),
                    schema,
                    schema_since,
                    served_since,
                    selectable: selectable_fields::names(version),
                    deprecation: deprecation(definition, version),
                    stage,
                    storage_hash: storage_hash.clone(),
                    columns: CustomColumns::for_version(version),
                    scale_columns: CustomColumns::for_scale(version),
                }),
            }
        })
        .collect()
}

fn storage_version(definition: &Value) -> &str {
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array).into_iter().flatten();
    let mut names = versions.filter(|version| version["storage"] == true).map(|it| text_at(it, &["name"]));
    names.next().unwrap_or_default()
}

/// Returns the configured or the default warning for a deprecated version; `None` if the version is not deprecated.
///
/// The default warning names the newest version that is not deprecated, if that version is newer.
///
/// Source: apiextensions-apiserver `pkg/apiserver/customresource_handler.go`, `defaultDeprecationWarning`.
/// Rule: SCH-15.
fn deprecation(definition: &Value, version: &Value) -> Option<String> {
    if version["deprecated"] != true {
        return None;
    }
    if let Some(warning) = version.get("deprecationWarning").and_then(Value::as_str) {
        return Some(warning.to_owned());
    }
    let (group, kind) =
        (text_at(definition, &["spec", "group"]), text_at(definition, &["spec", "names", "kind"]));
    let name = text_at(version, &["name"]);
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array).into_iter().flatten();
    let newest = versions
        .filter(|other| other["served"] == true && other["deprecated"] != true)
        .map(|other| text_at(other, &["name"]))
        .filter(|other| is_newer(other, name))
        .reduce(|one, other| if is_newer(other, one) { other } else { one });
    let instead = newest.map(|newest| format!("; use {group}/{newest} {kind}")).unwrap_or_default();
    Some(format!("{group}/{name} {kind} is deprecated{instead}"))
}

/// Returns the schema of a version; `null` if the version does not have a schema.
pub(crate) fn schema_of(version: &Value) -> &Value {
    version.pointer("/schema/openAPIV3Schema").unwrap_or(&Value::Null)
}

/// Returns the compiled schema of a version and the resource version that introduced it; `None` if the schema changed.
fn known_schema(
    name: &str,
    version: &Value,
    before: Option<(&Value, &[Arc<Resource>])>,
) -> Option<(Result<Arc<Compiled>, Unsupported>, u64)> {
    let (definition, resources) = before?;
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array)?;
    let same = versions.iter().find(|known| known["name"] == *name)?;
    if schema_of(same) != schema_of(version) {
        return None;
    }
    let resource = resources.iter().find(|resource| resource.gvr.version == name)?;
    let custom = resource.custom.as_ref()?;
    Some((custom.schema.clone(), custom.schema_since))
}

/// Returns the resource version that introduced the `spec` and the accepted names; `None` if they changed.
///
/// Source: apiextensions-apiserver `pkg/apiserver/customresource_handler.go`, `updateCustomResourceDefinition`.
fn known_serving(definition: &Value, before: Option<(&Value, &[Arc<Resource>])>) -> Option<u64> {
    let (known, resources) = before?;
    let is_same = |pointer: &str| known.pointer(pointer) == definition.pointer(pointer);
    let custom = resources.first()?.custom.as_ref()?;
    (is_same("/spec") && is_same("/status/acceptedNames")).then_some(custom.served_since)
}

/// Rejects a schema with constructs that admit does not support, unless `old` contains the same schema.
///
/// # Errors
/// Returns 501 for a construct that admit does not support.
pub(crate) fn check_schemas(definition: &Value, old: Option<&Value>) -> Result<(), Box<Status>> {
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array).into_iter().flatten();
    let before = || old.and_then(|old| old.pointer("/spec/versions")?.as_array()).into_iter().flatten();
    for version in versions {
        if before().any(|known| schema_of(known) == schema_of(version)) {
            continue;
        }
        Compiled::new(schema_of(version)).map_err(|unsupported| Status::unsupported(&unsupported))?;
    }
    Ok(())
}

fn scale_paths(scale: &Value) -> ScalePaths {
    let pointer = |field: &str| scale.get(field).and_then(Value::as_str).map(|path| path.replace('.', "/"));
    ScalePaths {
        spec_replicas: pointer("specReplicasPath").unwrap_or_default(),
        status_replicas: pointer("statusReplicasPath").unwrap_or_default(),
        label_selector: pointer("labelSelectorPath"),
    }
}

/// Sets the defaults of a definition: optional names, the conversion strategy, and the port of the conversion webhook.
///
/// Source: apiextensions-apiserver pkg/apis/apiextensions/v1/defaults.go.
pub(crate) fn set_defaults(definition: &mut Value) {
    let Some(spec) = definition.get_mut("spec").and_then(Value::as_object_mut) else { return };
    let conversion = spec.entry("conversion").or_insert_with(|| json!({"strategy": "None"}));
    let service = conversion.pointer_mut("/webhook/clientConfig/service").and_then(Value::as_object_mut);
    if let Some(service) = service {
        service.entry("port").or_insert_with(|| 443.into());
    }
    let Some(names) = spec.get_mut("names").and_then(Value::as_object_mut) else { return };
    let kind = names.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
    if kind.is_empty() {
        return;
    }
    for (field, default) in [("singular", kind.to_lowercase()), ("listKind", format!("{kind}List"))] {
        if names.get(field).and_then(Value::as_str).is_none_or(str::is_empty) {
            names.insert(field.to_owned(), default.into());
        }
    }
}

/// Sets the initial `status` of a new definition.
///
/// Source: apiextensions-apiserver pkg/registry/customresourcedefinition/strategy.go, `PrepareForCreate`.
pub(crate) fn begin(definition: &mut Value) {
    let stored = Some(stored_versions(definition)).filter(|stored| !stored.is_empty());
    let status = json!({
        "acceptedNames": {"kind": "", "plural": ""},
        "conditions": null,
        "storedVersions": stored,
    });
    if let Some(members) = definition.as_object_mut() {
        members.insert("status".to_owned(), status);
    }
}

fn stored_versions(definition: &Value) -> Vec<Value> {
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array).into_iter().flatten();
    versions
        .filter(|version| version.get("storage").and_then(Value::as_bool) == Some(true))
        .filter_map(|version| version.get("name").cloned())
        .take(1)
        .collect()
}

/// Sets the `status` of a definition whose names are accepted and whose resource is established.
///
/// Source: apiextensions-apiserver `pkg/controller/status/naming_controller.go` and
/// `pkg/controller/establish/establishing_controller.go`.
pub(crate) fn establish(definition: &mut Value) {
    let names = definition.pointer("/spec/names").cloned().unwrap_or_default();
    let stored = stored_versions(definition);
    let time = metadata::text(definition, "creationTimestamp").to_owned();
    let condition = |kind: &str, reason: &str, message: &str| {
        json!({
            "type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": time,
        })
    };
    let status = json!({
        "acceptedNames": names,
        "conditions": [
            condition("NamesAccepted", "NoConflicts", "no conflicts found"),
            condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        ],
        "storedVersions": stored,
    });
    if let Some(members) = definition.as_object_mut() {
        members.insert("status".to_owned(), status);
    }
}

/// Returns whether the definition of a custom resource is being deleted.
pub(crate) fn is_terminating(resource: &Resource) -> bool {
    resource
        .custom
        .as_ref()
        .is_some_and(|custom| matches!(custom.stage, DefinitionStage::Terminating | DefinitionStage::Emptied))
}
