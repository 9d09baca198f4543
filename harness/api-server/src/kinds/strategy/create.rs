//! Prepares new objects between mutating admission and validation.

use kubernetes_admission::attributes::UserInfo;
use serde_json::{Value, json};

use crate::apimachinery::metadata;
use crate::kinds::discovery::Resource;
use crate::kinds::table;
use crate::kinds::{defaulting, strategy};

/// Applies the part of the create strategy that depends only on the object.
///
/// The caller must already have generated a name from `generateName`.
///
/// Source: apiserver pkg/registry/rest/create.go, `BeforeCreate`, and the resources' `PrepareForCreate`.
/// Rule: KND-03.
pub(crate) fn prepare_for_create(object: &mut Value, resource: &Resource) {
    metadata::remove(object, "deletionTimestamp");
    metadata::remove(object, "deletionGracePeriodSeconds");
    metadata::set(object, "uid", uuid::Uuid::new_v4().to_string().into());
    metadata::set(object, "creationTimestamp", metadata::now().into());
    let kind = table::of(resource);
    if resource.custom.is_some() || kind.starts_generation {
        metadata::set(object, "generation", 1.into());
    }
    if resource.has_status() && !kind.keeps_status {
        reset_status(object);
    }
    (kind.prepare_create)(object);
    (kind.drop_disabled_fields)(object);
}

/// Returns whether the template of a new Job has a map of labels. The map may be empty.
///
/// In kube-apiserver, a Job without labels and its template share that map until the Job is copied or decoded again.
pub(crate) fn shares_labels(object: &Value) -> bool {
    let labels = object.pointer("/spec/template/metadata/labels");
    labels.is_some_and(Value::is_object)
}

/// Replaces the labels of a new Job with those of its template. [`shares_labels`] returns whether the two are shared.
///
/// Source: kubernetes pkg/apis/batch/v1/defaults.go, `SetDefaults_Job`; pkg/registry/batch/job/strategy.go.
/// Rule: KND-03.
pub(crate) fn share_labels(object: &mut Value) {
    if let Some(labels) = object.pointer("/spec/template/metadata/labels").cloned() {
        metadata::set(object, "labels", labels);
    }
}

/// Sets the requester of a `CertificateSigningRequest` to `user`, even if the object contains a different requester.
///
/// Source: kubernetes pkg/registry/certificates/certificates/strategy.go, `PrepareForCreate`.
/// Rule: KND-03.
pub(crate) fn set_requester(object: &mut Value, user: &UserInfo) {
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else { return };
    let requester = json!({
        "username": user.username, "uid": user.uid, "groups": user.groups, "extra": user.extra,
    });
    for (field, value) in requester.as_object().into_iter().flatten() {
        let is_empty = value.as_str() == Some("")
            || value.as_array().is_some_and(Vec::is_empty)
            || value.as_object().is_some_and(serde_json::Map::is_empty);
        if is_empty {
            spec.remove(field);
        } else {
            spec.insert(field.clone(), value.clone());
        }
    }
}

pub(crate) fn namespace(object: &mut Value) {
    let name = metadata::text(object, "name").to_owned();
    if let Some(spec) =
        object.as_object_mut().map(|members| members.entry("spec").or_insert_with(|| json!({})))
    {
        let finalizers = spec.get("finalizers").and_then(Value::as_array).cloned().unwrap_or_default();
        let missing = !finalizers.iter().any(|finalizer| finalizer == "kubernetes");
        let all: Vec<Value> = finalizers.into_iter().chain(missing.then(|| "kubernetes".into())).collect();
        *spec = json!({"finalizers": all});
    }
    set_status(object, json!({"phase": "Active"}));
    strategy::set_label(object, "kubernetes.io/metadata.name", &name);
}

pub(crate) fn set_status(object: &mut Value, status: Value) {
    if let Some(members) = object.as_object_mut() {
        members.insert("status".to_owned(), status);
    }
}

/// Replaces the status with the initial status of the kind.
fn reset_status(object: &mut Value) {
    let mut bare = json!({"apiVersion": object.get("apiVersion"), "kind": object.get("kind")});
    defaulting::set_defaults(&mut bare);
    let Some(members) = object.as_object_mut() else { return };
    match bare.get_mut("status").map(Value::take) {
        Some(status) => members.insert("status".to_owned(), status),
        None => members.remove("status"),
    };
}

/// Removes all fields from the secrets of a `ServiceAccount` except for their names.
///
/// Source: kubernetes pkg/registry/core/serviceaccount/strategy.go, `cleanSecretReferences`.
pub(crate) fn keep_names_of_secrets(account: &mut Value) {
    let secrets = account.get_mut("secrets").and_then(Value::as_array_mut).into_iter().flatten();
    for secret in secrets {
        if let Some(members) = secret.as_object_mut() {
            members.retain(|field, _| field == "name");
        }
    }
}

/// Removes `deprecatedTopology`. The field is read-only in `discovery.k8s.io/v1`.
///
/// Sets `nodeName` of an endpoint from its topology if the old slice contains an endpoint with this topology.
///
/// Source: kubernetes pkg/registry/discovery/endpointslice/strategy.go, `dropTopologyOnV1`.
pub(crate) fn drop_topology(slice: &mut Value, old: Option<&Value>) {
    const HOST: &str = "kubernetes.io/hostname";
    fn topology(endpoint: &Value) -> Option<&str> {
        endpoint.get("deprecatedTopology")?.get(HOST)?.as_str()
    }
    let endpoints_of = |slice: &Value| slice.get("endpoints").and_then(Value::as_array).cloned();
    let before = old.and_then(endpoints_of).unwrap_or_default();
    if old.is_some() && endpoints_of(slice).unwrap_or_default() == before {
        return;
    }
    let endpoints = slice.get_mut("endpoints").and_then(Value::as_array_mut).into_iter().flatten();
    for endpoint in endpoints {
        let node = topology(endpoint).map(str::to_owned);
        let was_known = before.iter().any(|before| topology(before) == node.as_deref());
        let Some(members) = endpoint.as_object_mut() else { continue };
        if let Some(node) = node
            && was_known
            && !members.contains_key("nodeName")
        {
            members.insert("nodeName".to_owned(), node.into());
        }
        members.remove("deprecatedTopology");
    }
}
