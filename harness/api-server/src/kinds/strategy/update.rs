//! Prepares updated objects between mutating admission and validation.

use std::collections::{HashMap, HashSet, VecDeque};

use kubernetes_admission::attributes::GroupVersionKind;
use kubernetes_types::equality::{same, semantically_equal};
use kubernetes_types::json::{at, keep};
use kubernetes_types::schema::{EmptyFields, Type};
use serde_json::Value;

use crate::apimachinery::metadata;
use crate::kinds::apiextensions::definition_update;
use crate::kinds::discovery::Resource;
use crate::kinds::strategy::{
    TEMPLATE_GENERATION, certificate, claim, counts_empty_fields, counts_generation, create, disabled_fields,
    pod, service, set_annotation, set_label,
};
use crate::kinds::validation::devices;

/// The resources whose `/status` does not change labels, annotations, finalizers, or owner references.
///
/// Source: `ResetObjectMetaForStatus` in kubernetes `pkg/registry/*/*/strategy.go`; kube-aggregator
/// pkg/registry/apiservice/strategy.go.
const STATUS_KEEPS_METADATA: [&str; 11] = [
    "apiservices.apiregistration.k8s.io",
    "podcertificaterequests.certificates.k8s.io",
    "servicecidrs.networking.k8s.io",
    "storageversionmigrations.storagemigration.k8s.io",
    "resourceclaims.resource.k8s.io",
    "devicetaintrules.resource.k8s.io",
    "volumeattachments.storage.k8s.io",
    "csinodes.storage.k8s.io",
    "validatingadmissionpolicies.admissionregistration.k8s.io",
    "flowschemas.flowcontrol.apiserver.k8s.io",
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io",
];

/// The resources whose `/status` copies all metadata, including the UID, from the stored object.
///
/// Source: `PrepareForUpdate` in kubernetes `pkg/registry/flowcontrol/*/strategy.go`.
const STATUS_KEEPS_ALL_METADATA: [&str; 2] =
    ["flowschemas.flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io"];

/// Returns whether the `/status` of a resource changes only the status; `resource` includes the group.
pub(crate) fn keeps_metadata(resource: &str) -> bool {
    STATUS_KEEPS_METADATA.contains(&resource)
}

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
    if resource.gvr.group_resource() == "namespaces" {
        let name = metadata::text(object, "name").to_owned();
        set_label(object, "kubernetes.io/metadata.name", &name);
    }
    if subresource == "status" {
        keep_all_but_status(object, old, resource);
        complete_status(object, old, resource);
    } else if subresource == "ephemeralcontainers" {
        pod::keep_all_but_ephemeral_containers(object, old);
    } else if subresource == "resize" {
        pod::keep_all_but_resources(object, old);
    } else if subresource == "approval" {
        certificate::keep_all_but_conditions(object, old);
    } else if resource.has_status() {
        keep(object, old, "status");
        if resource.gvr.group_resource() == "namespaces" && subresource != "finalize" {
            keep(object, old, "spec");
        }
    }
    if subresource.is_empty() {
        complete(object, old, resource);
    }
    disabled_fields::drop(object, resource);
    if resource.gvr.group_resource() == "daemonsets.apps" {
        let pointer = format!("/metadata/annotations/{TEMPLATE_GENERATION}");
        let generation = old.pointer(&pointer).and_then(Value::as_str).unwrap_or_default();
        let mut generation: i64 = generation.parse().unwrap_or(0);
        if differs(object, old, resource, &["spec", "template"]) {
            generation = generation.wrapping_add(1);
        }
        set_annotation(object, TEMPLATE_GENERATION, &generation.to_string());
    }
    let changed = subresource != "status" && counts_change(object, old, resource);
    metadata::set(object, "generation", generation(old).wrapping_add(changed.into()).into());
    // The generation is already set, so that setting the removed field counts as a change.
    if subresource.is_empty() && resource.gvr.group_resource() == "endpointslices.discovery.k8s.io" {
        create::drop_topology(object, Some(old));
    }
}

/// Applies the resource-specific part of the strategy for an update of the object.
///
/// Source: `PrepareForUpdate` in kubernetes `pkg/registry/*/*/strategy.go`.
fn complete(object: &mut Value, old: &Value, resource: &Resource) {
    match resource.gvr.group_resource().as_str() {
        "secrets" if object.get("type").and_then(Value::as_str).is_none_or(str::is_empty) => {
            keep(object, old, "type");
        }
        "serviceaccounts" => create::keep_names_of_secrets(object),
        "persistentvolumeclaims" => claim::normalize_data_sources(object, Some(old)),
        "certificatesigningrequests.certificates.k8s.io" => keep(object, old, "spec"),
        "devicetaintrules.resource.k8s.io" => {
            let changed = |field: &str| {
                let pointer = format!("/spec/taint/{field}");
                object.pointer(&pointer) != old.pointer(&pointer)
            };
            // A taint with a new effect counts as newly added.
            if changed("effect")
                && !changed("timeAdded")
                && let Some(taint) = object.pointer_mut("/spec/taint").and_then(Value::as_object_mut)
            {
                taint.insert("timeAdded".to_owned(), metadata::now().into());
            }
        }
        "services" => service::drop_type_dependent_fields(object, old),
        "customresourcedefinitions.apiextensions.k8s.io" => definition_update::note_storage_version(object),
        _ => {}
    }
}

/// Applies the resource-specific part of the strategy for an update of the status.
///
/// Source: `PrepareForUpdate` of the status strategies in kubernetes `pkg/registry/*/*/strategy.go`.
fn complete_status(object: &mut Value, old: &Value, resource: &Resource) {
    match resource.gvr.group_resource().as_str() {
        "pods" => keep_in_status_of_pod(object, old),
        "persistentvolumes" => {
            let status =
                |object: &Value, field: &str| object["status"].get(field).cloned().unwrap_or_default();
            let is_same = |field: &str| status(object, field) == status(old, field);
            let since = status(object, LAST_PHASE_TRANSITION_TIME);
            let kept = if !is_same("phase") && (since.is_null() || is_same(LAST_PHASE_TRANSITION_TIME)) {
                metadata::now().into()
            } else if is_same("phase") && since.is_null() {
                status(old, LAST_PHASE_TRANSITION_TIME)
            } else {
                return;
            };
            if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut)
                && !kept.is_null()
            {
                status.insert(LAST_PHASE_TRANSITION_TIME.to_owned(), kept);
            }
        }
        certificate::RESOURCE => certificate::complete_conditions(object, old),
        "resourceclaims.resource.k8s.io" => drop_deallocated_devices(object, old),
        _ => {}
    }
}

/// Removes the status of devices that are no longer allocated.
///
/// Source: kubernetes pkg/registry/resource/resourceclaim/strategy.go, `dropDeallocatedStatusDevices`.
/// Rule: VLO-47.
fn drop_deallocated_devices(claim: &mut Value, old: &Value) {
    let allocated = |claim: &Value| -> HashSet<[String; 4]> {
        let results = claim.pointer("/status/allocation/devices/results").and_then(Value::as_array);
        let id = |result| devices::status::device_id(result).map(str::to_owned);
        results.into_iter().flatten().map(id).collect()
    };
    let (before, now) = (allocated(old), allocated(claim));
    let Some(status) = claim.get_mut("status").and_then(Value::as_object_mut) else { return };
    let Some(devices) = status.get_mut("devices").and_then(Value::as_array_mut) else { return };
    devices.retain(|device| {
        let id = devices::status::device_id(device).map(str::to_owned);
        !before.contains(&id) || now.contains(&id)
    });
    if devices.is_empty() {
        status.remove("devices");
    }
}

const LAST_PHASE_TRANSITION_TIME: &str = "lastPhaseTransitionTime";

/// Keeps status fields of a Pod that an older kubelet does not set.
fn keep_in_status_of_pod(pod: &mut Value, old: &Value) {
    let Some(status) = pod.get_mut("status").and_then(Value::as_object_mut) else { return };
    for field in [
        "qosClass",
        "resourceClaimStatuses",
        "extendedResourceClaimStatus",
        "nodeAllocatableResourceClaimStatuses",
        "observedGeneration",
    ] {
        let is_missing = status
            .get(field)
            .is_none_or(|value| value.is_null() || value.as_str() == Some("") || value.as_i64() == Some(0));
        if is_missing && let Some(value) = old["status"].get(field) {
            status.insert(field.to_owned(), value.clone());
        }
    }
    // Several conditions may have the same type. They are matched in order.
    let mut before: HashMap<Option<Value>, VecDeque<&Value>> = HashMap::new();
    for condition in old.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten() {
        before.entry(condition.get("type").cloned()).or_default().push_back(condition);
    }
    let conditions = status.get_mut("conditions").and_then(Value::as_array_mut).into_iter().flatten();
    for condition in conditions.filter_map(Value::as_object_mut) {
        let same = before.get_mut(&condition.get("type").cloned()).and_then(VecDeque::pop_front);
        if condition.get("observedGeneration").and_then(Value::as_i64).unwrap_or(0) == 0
            && let Some(generation) = same.and_then(|same| same.get("observedGeneration"))
        {
            condition.insert("observedGeneration".to_owned(), generation.clone());
        }
    }
}

/// Returns `metadata.generation`. It counts the changes to the spec.
pub(crate) fn generation(object: &Value) -> i64 {
    object.pointer("/metadata/generation").and_then(Value::as_i64).unwrap_or(0)
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
    match resource.gvr.group_resource().as_str() {
        "priorityclasses.scheduling.k8s.io" => false,
        "csidrivers.storage.k8s.io" => differs(&["spec"]),
        "deployments.apps" => differs(&["spec"]) || differs(&["metadata", "annotations"]),
        "endpointslices.discovery.k8s.io" => {
            differs(&["metadata", "labels"]) || !same_intent(object, old, resource)
        }
        // Without a status subresource the status is a regular field.
        _ if resource.custom.is_some() => without(&["metadata"], object) != without(&["metadata"], old),
        _ if counts_empty_fields(resource) => {
            // Stored objects do not have empty fields.
            let empty = EmptyFields::find(object, &resource.kind);
            empty.is_below("spec") || empty.is_below("webhooks") || !same_intent(object, old, resource)
        }
        _ => counts_generation(resource) && !same_intent(object, old, resource),
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
    match resource.gvr.group_resource().as_str() {
        "deployments.apps" => keep_in_metadata(object, old, "labels"),
        "pods" => {
            keep_in_metadata(object, old, "ownerReferences");
            // Validation rejects setting the time in other requests.
            keep_in_metadata(object, old, "deletionTimestamp");
        }
        kept if STATUS_KEEPS_ALL_METADATA.contains(&kept) => keep_all_metadata(object, old),
        kept if keeps_metadata(kept) => keep_metadata(object, old),
        _ => {}
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

/// Discards changes to the metadata in a write to a subresource.
///
/// Source: apimachinery pkg/apis/meta/v1/meta.go, `ResetObjectMetaForStatus`.
pub(crate) fn keep_metadata(object: &mut Value, old: &Value) {
    for field in ["labels", "annotations", "finalizers", "ownerReferences"] {
        keep_in_metadata(object, old, field);
    }
}

fn keep_in_metadata(object: &mut Value, old: &Value, field: &str) {
    match old.pointer(&format!("/metadata/{field}")) {
        Some(value) => metadata::set(object, field, value.clone()),
        None => {
            metadata::remove(object, field);
        }
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
