//! `StorageObjectInUseProtection`: adds finalizers that protect volumes, claims, and their classes while in use.

use kubernetes_admission::attributes::{Attributes, Operation};
use kubernetes_admission::plugin::Plugin;
use kubernetes_types::status::Status;
use serde_json::{Value, json};

use crate::apimachinery::metadata;

/// Adds a finalizer to a new object. A controller removes the finalizer when the object is no longer used.
///
/// Source: kubernetes plugin/pkg/admission/storage/storageobjectinuseprotection/admission.go.
/// Rule: KND-02.
#[derive(Clone, Copy, Debug)]
pub struct StorageObjectInUseProtection;

const FINALIZERS: [(&str, &str); 3] = [
    ("persistentvolumes", "kubernetes.io/pv-protection"),
    ("persistentvolumeclaims", "kubernetes.io/pvc-protection"),
    ("volumeattributesclasses.storage.k8s.io", "kubernetes.io/vac-protection"),
];

impl Plugin for StorageObjectInUseProtection {
    fn name(&self) -> &'static str {
        "StorageObjectInUseProtection"
    }

    fn admit(&self, attributes: &mut Attributes) -> Result<(), Box<Status>> {
        let resource = attributes.resource.group_resource();
        let known = FINALIZERS.iter().find(|(known, _)| *known == resource);
        if attributes.operation == Operation::Create
            && attributes.subresource.is_empty()
            && let (Some((_, finalizer)), Some(object)) = (known, attributes.object.as_mut())
        {
            let finalizers = object.pointer("/metadata/finalizers").and_then(Value::as_array);
            let mut finalizers = finalizers.cloned().unwrap_or_default();
            if !finalizers.iter().any(|present| present == finalizer) {
                finalizers.push(json!(finalizer));
                metadata::set(object, "finalizers", finalizers.into());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::request;
    use super::*;

    #[track_caller]
    fn check(operation: Operation, subresource: &str, finalizers: &Value, expected: &Value) {
        let object = json!({"metadata": {"name": "c", "finalizers": finalizers}});
        let mut attributes = request(operation, "persistentvolumeclaims", "PersistentVolumeClaim", object);
        subresource.clone_into(&mut attributes.subresource);
        StorageObjectInUseProtection.admit(&mut attributes).unwrap();
        assert_eq!(attributes.object.unwrap()["metadata"]["finalizers"], *expected);
    }

    #[test]
    fn new_claim_gets_one_finalizer() {
        const PVC_PROTECTION: &str = "kubernetes.io/pvc-protection";
        check(Operation::Create, "", &json!(null), &json!([PVC_PROTECTION]));
        check(Operation::Create, "", &json!(["a/b"]), &json!(["a/b", PVC_PROTECTION]));
        check(Operation::Create, "", &json!([PVC_PROTECTION, "a/b"]), &json!([PVC_PROTECTION, "a/b"]));
        check(Operation::Update, "", &json!([]), &json!([]));
        check(Operation::Create, "status", &json!([]), &json!([]));
    }
}
