//! Completes objects as the server does, and creates requests that update or delete the stored objects.

use serde_json::{Value, json};

use kubernetes_admission::attributes::{Attributes, GroupVersionKind, Operation, UserInfo};
use kubernetes_api_server::ClusterFixture;
use kubernetes_types::json::{self, at, set};

/// The creation time of all stored objects.
const CREATED: &str = "2026-01-01T00:00:00Z";
const UID: &str = "6f3d1d2e-0000-4000-8000-00000000000a";

/// Returns `object` as the server stores it after `user` creates it: with a name, UID, generation, and status.
pub(super) fn as_stored(object: &Value, user: &UserInfo, cluster_fixture: &ClusterFixture) -> Value {
    let kind = GroupVersionKind::from_object(object);
    let mut stored = object.clone();
    if let Some(resource) = cluster_fixture.resource_of(&kind) {
        let mut creation = Attributes {
            operation: Operation::Create,
            resource: resource.name,
            subresource: String::new(),
            kind,
            namespace: String::new(),
            name: String::new(),
            object: Some(stored),
            old_object: None,
            options: None,
            dry_run: false,
            user: user.clone(),
        };
        prepare(&mut creation, cluster_fixture);
        stored = creation.object.take().unwrap_or_default();
        cluster_fixture.normalize(&mut stored);
    } else {
        identify(&mut stored);
    }
    set(&mut stored, &["metadata", "resourceVersion"], "1");
    stored
}

/// Returns a stored object with finalizers as it is after its deletion has started.
///
/// Source for definitions of custom resources: apiextensions-apiserver `pkg/registry/customresourcedefinition/etcd.go`,
/// `Delete`, and pkg/controller/finalizer.
pub(super) fn as_deleting(stored: Value, cluster_fixture: &ClusterFixture) -> Value {
    if GroupVersionKind::from_object(&stored).kind == "CustomResourceDefinition" {
        return as_deleting_definition(stored);
    }
    let mut deleting = cluster_fixture.marked(&stored).unwrap_or(stored);
    set(&mut deleting, &["metadata", "deletionTimestamp"], CREATED);
    deleting
}

fn as_deleting_definition(stored: Value) -> Value {
    let mut deleting = stored;
    set(&mut deleting, &["metadata", "deletionTimestamp"], CREATED);
    if let Some(Value::Array(finalizers)) = deleting.pointer_mut("/metadata/finalizers") {
        finalizers.insert(0, "customresourcecleanup.apiextensions.k8s.io".into());
    }
    let terminating = json!({
        "type": "Terminating", "status": "True", "reason": "InstanceDeletionInProgress",
        "message": "CustomResource deletion is in progress", "lastTransitionTime": CREATED,
    });
    if let Some(Value::Array(conditions)) = deleting.pointer_mut("/status/conditions") {
        conditions.push(terminating);
    }
    deleting
}

/// Completes the object of a request as the server does before it calls validating webhooks.
///
/// The result is deterministic, so that the same request gets the same response.
pub(super) fn prepare(request: &mut Attributes, cluster_fixture: &ClusterFixture) {
    let creates = request.operation == Operation::Create && request.subresource.is_empty();
    if let (true, Some(object)) = (creates, &mut request.object) {
        // Runs before the strategy of limit ranges, which generates a random name if there is none.
        let name = name(object);
        set(object, &["metadata", "name"], name);
    }
    cluster_fixture.prepare(request);
    if let ("approval", Some(object)) = (request.subresource.as_str(), &mut request.object) {
        let conditions = object.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
        for condition in conditions.into_iter().flatten() {
            set(condition, &["lastUpdateTime"], CREATED);
            set(condition, &["lastTransitionTime"], CREATED);
        }
    }
    if !creates {
        return;
    }
    let Some(object) = &mut request.object else { return };
    identify(object);
    if request.name.is_empty() {
        request.name = name(object);
    }
    if let Some(time) = object.pointer_mut("/status/lastPhaseTransitionTime") {
        *time = CREATED.into();
    }
    if object["kind"] == "Service"
        && let Some(spec) = object.get_mut("spec")
    {
        allocate(spec);
    }
}

fn identify(object: &mut Value) {
    let name = name(object);
    set(object, &["metadata", "name"], name);
    // A Job's selector and its Pods' labels contain its uid.
    if let Some(Value::String(uid)) = object.pointer("/metadata/uid").cloned()
        && let Some(spec) = object.get_mut("spec").filter(|_| !uid.is_empty())
    {
        rename(spec, &uid);
    }
    set(object, &["metadata", "uid"], UID);
    set(object, &["metadata", "creationTimestamp"], CREATED);
}

/// Replaces the UID `uid` with [`UID`] in all strings of `value`.
fn rename(value: &mut Value, uid: &str) {
    match value {
        Value::String(text) if text == uid => UID.clone_into(text),
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, uid)),
        Value::Object(members) => members.values_mut().for_each(|member| rename(member, uid)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns the name of the object, or a name that is generated from `generateName`.
fn name(object: &Value) -> String {
    let text = |field: &str| json::text(object, &["metadata", field]);
    if text("name").is_empty() { format!("{}x7k2p", text("generateName")) } else { text("name").to_owned() }
}

/// Allocates an address for a Service, unless its type is `ExternalName`.
///
/// Source: kubernetes pkg/registry/core/service/storage/alloc.go.
fn allocate(spec: &mut Value) {
    let Some(members) = spec.as_object_mut() else { return };
    if members.get("type") == Some(&"ExternalName".into()) {
        return;
    }
    let address = members.entry("clusterIP").or_insert_with(|| "10.0.0.10".into()).clone();
    members.entry("clusterIPs").or_insert_with(|| json!([address]));
    members.entry("ipFamilies").or_insert_with(|| json!(["IPv4"]));
    members.entry("ipFamilyPolicy").or_insert_with(|| "SingleStack".into());
}

/// Returns the object as the server stores it after an update to `written`.
///
/// The generation is not changed, because it is only a counter.
pub(super) fn as_updated(update: &Attributes, written: &Value, cluster_fixture: &ClusterFixture) -> Value {
    let mut request = Attributes { object: Some(written.clone()), ..update.clone() };
    cluster_fixture.prepare(&mut request);
    let mut stored = request.object.unwrap_or_default();
    if let Some(generation) = update.old_object.as_ref().and_then(|old| old.pointer("/metadata/generation")) {
        set(&mut stored, &["metadata", "generation"], generation.clone());
    }
    stored
}

/// The operations for which [`request_about`] creates requests.
pub(super) const OPERATIONS: [Operation; 3] = [Operation::Create, Operation::Update, Operation::Delete];

/// Returns the creation, unchanged update, or deletion of the object that `creation` creates.
///
/// Returns `None` for CONNECT, and if the object is not stored because it is the body of a subresource request.
pub(super) fn request_about(
    creation: &Attributes,
    operation: Operation,
    cluster_fixture: &ClusterFixture,
) -> Option<Attributes> {
    if operation == Operation::Create {
        return Some(creation.clone());
    }
    let object = creation.object.as_ref().filter(|_| creation.subresource.is_empty())?;
    let stored = || as_stored(object, &creation.user, cluster_fixture);
    match operation {
        Operation::Update => Some(update(creation, stored(), stored())),
        Operation::Delete => Some(delete(creation, stored())),
        Operation::Create | Operation::Connect => None,
    }
}

/// Returns the requests of [`request_about`] for all [`OPERATIONS`], in that order.
pub(super) fn requests_about(
    creation: &Attributes,
    cluster_fixture: &ClusterFixture,
) -> impl Iterator<Item = Attributes> {
    OPERATIONS.into_iter().filter_map(|operation| request_about(creation, operation, cluster_fixture))
}

/// Returns the request that updates `stored` to `written`; `creation` is the request that created the object.
pub(super) fn update(creation: &Attributes, stored: Value, written: Value) -> Attributes {
    Attributes {
        operation: Operation::Update,
        name: name(&stored),
        object: Some(written),
        old_object: Some(stored),
        options: Some(json!({"kind": "UpdateOptions", "apiVersion": "meta.k8s.io/v1"})),
        ..creation.clone()
    }
}

/// Returns the request that deletes `stored`; `creation` is the request that created the object.
///
/// Source of the precondition: kubernetes pkg/registry/core/namespace/storage and apiextensions-apiserver
/// pkg/registry/customresourcedefinition/etcd.go, `Delete`.
pub(super) fn delete(creation: &Attributes, stored: Value) -> Attributes {
    let mut options = json!({"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"});
    if ["Namespace", "CustomResourceDefinition"].contains(&creation.kind.kind.as_str()) {
        set(&mut options, &["preconditions"], json!({"uid": at(&stored, &["metadata", "uid"])}));
    }
    Attributes {
        operation: Operation::Delete,
        name: name(&stored),
        object: None,
        old_object: Some(stored),
        options: Some(options),
        ..creation.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_names_are_deterministic() {
        let cluster_fixture = ClusterFixture::new([]);
        for kind in ["LimitRange", "ConfigMap"] {
            let object = json!({"apiVersion": "v1", "kind": kind, "metadata": {"generateName": "a-"}});
            let stored = || as_stored(&object, &UserInfo::default(), &cluster_fixture);
            assert_eq!(stored()["metadata"]["name"], "a-x7k2p");
            assert_eq!(stored(), stored());
        }
    }
}
