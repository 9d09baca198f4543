//! Prepares updated objects between mutating admission and validation.

use kubernetes_admission::attributes::GroupVersionKind;
use kubernetes_types::equality::{same, semantically_equal};
use kubernetes_types::json::{at, keep};
use kubernetes_types::schema::{EmptyFields, Type};
use serde_json::Value;

use crate::apimachinery::metadata;
use crate::kinds::common::preparation::{generation, keep_in_metadata, keep_metadata};
use crate::kinds::discovery::Resource;
use crate::kinds::kind::{Changes, Kind, StatusKeeps};
use crate::kinds::table;

/// Applies the update strategy of a resource to `object`.
///
/// Source: apiserver pkg/registry/rest/update.go, `BeforeUpdate`, and the resources' `PrepareForUpdate`.
/// Rule: KND-04.
pub(crate) fn prepare_for_update(object: &mut Value, old: &Value, resource: &Resource, subresource: &str) {
    for field in ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        let pointer = format!("/metadata/{field}");
        let may_be_another = ["uid", "deletionGracePeriodSeconds"].contains(&field);
        let is_said = object.pointer(&pointer).is_some_and(|value| !value.is_null() && value != "");
        if may_be_another && is_said {
            continue;
        }
        match old.pointer(&pointer) {
            Some(value) => metadata::set(object, field, value.clone()),
            // Validation rejects setting the deletion fields.
            None if field.starts_with("deletion") => {}
            None => {
                metadata::remove(object, field);
            }
        }
    }
    let kind = table::of(resource);
    match (subresource, Kind::on(kind.prepare_subresources, subresource)) {
        ("status", _) => {
            keep_all_but_status(object, old, resource);
            (kind.prepare_status)(object, old);
        }
        (_, Some(prepare)) => prepare(object, old),
        _ if resource.has_status() => keep(object, old, "status"),
        _ => {}
    }
    if subresource.is_empty() {
        (kind.prepare_update)(object, old);
    }
    (kind.drop_disabled_fields)(object);
    let changed = subresource != "status" && counts_change(object, old, resource);
    metadata::set(object, "generation", generation(old).wrapping_add(changed.into()).into());
    // The generation is already set, so that a field that this function removes counts as a change.
    (kind.finish_update)(object, old, Type::for_kind(&kind_of(object, resource)));
}

/// Returns whether two objects of a built-in kind differ semantically at `path`.
fn differs(object: &Value, old: &Value, resource: &Resource, path: &[&str]) -> bool {
    let kind = kind_of(object, resource);
    let of = path.iter().fold(Type::for_kind(&kind), |of, name| of.member(name));
    !same(at(object, path), at(old, path), of)
}

/// Returns whether an update increments the generation.
///
/// Source: `PrepareForUpdate` in kubernetes `pkg/registry/*/*/strategy.go` and in apiextensions-apiserver
/// pkg/registry/customresource/strategy.go.
/// Rule: CFG-09, KND-04.
fn counts_change(object: &Value, old: &Value, resource: &Resource) -> bool {
    let differs = |path: &[&str]| differs(object, old, resource, path);
    if resource.custom.is_some() {
        // Without a status subresource the status is a regular field.
        return without(&["metadata"], object) != without(&["metadata"], old);
    }
    match table::of(resource).next_generation {
        Changes::Of(fields) => fields.iter().any(|path| differs(path)),
        Changes::OfIntentOr(fields) => {
            fields.iter().any(|path| differs(path)) || !same_intent(object, old, resource)
        }
        Changes::OfIntentOrEmptyFields => {
            // Stored objects do not have empty fields.
            let empty = EmptyFields::find(object, &resource.kind);
            empty.is_below("spec") || empty.is_below("webhooks") || !same_intent(object, old, resource)
        }
    }
}

/// Discards the changes that an update of `/status` cannot make.
fn keep_all_but_status(object: &mut Value, old: &Value, resource: &Resource) {
    let fields: Vec<String> = object
        .as_object()
        .into_iter()
        .chain(old.as_object())
        .flat_map(|members| members.keys().cloned())
        .filter(|field| !["apiVersion", "kind", "metadata", "status"].contains(&field.as_str()))
        .collect();
    for field in fields {
        keep(object, old, &field);
    }
    match table::of(resource).status_keeps {
        StatusKeeps::Fields(fields) => fields.iter().for_each(|field| keep_in_metadata(object, old, field)),
        StatusKeeps::Metadata => keep_metadata(object, old),
        StatusKeeps::AllMetadata => keep_all_metadata(object, old),
    }
    if resource.custom.is_some() {
        keep(object, old, "apiVersion");
        keep(object, old, "kind");
        keep_all_metadata(object, old);
    }
}

/// Discards changes to the metadata, except for managed fields, in a write to a subresource.
fn keep_all_metadata(object: &mut Value, old: &Value) {
    let resource_version = object.pointer("/metadata/resourceVersion").cloned();
    let entries = metadata::managed_fields(object).clone();
    keep(object, old, "metadata");
    metadata::set_managed_fields(object, entries);
    if let Some(resource_version) = resource_version {
        metadata::set(object, "resourceVersion", resource_version);
    }
}

/// Returns whether two objects of a built-in kind are equal except for metadata and status.
fn same_intent(object: &Value, old: &Value, resource: &Resource) -> bool {
    let intent = |object: &Value| without(&["metadata", "status"], object);
    semantically_equal(&intent(object), &intent(old), &kind_of(object, resource))
}

/// Returns the kind of an object with its storage version. It may differ from the version of the resource.
fn kind_of(object: &Value, resource: &Resource) -> GroupVersionKind {
    let kind = GroupVersionKind::from_object(object);
    if kind.kind == resource.kind.kind { kind } else { resource.kind.clone() }
}

fn without(parts: &[&str], object: &Value) -> Value {
    let mut members = object.as_object().cloned().unwrap_or_default();
    members.retain(|name, _| !parts.contains(&name.as_str()));
    members.into()
}
