//! `LimitRanger`: applies the `LimitRange` objects of a namespace.

mod constraints;
mod defaults;

use std::sync::Arc;

use kubernetes_admission::attributes::{Attributes, Operation};
use kubernetes_admission::plugin::{Plugin, Remarks};
use kubernetes_types::status::{Status, aggregate};
use serde_json::Value;

use super::forbidden;
use crate::storage::ObjectReader;

/// Sets the defaults of the namespace's `LimitRange` objects on the containers of new Pods.
///
/// Rejects Pods and `PersistentVolumeClaim`s that violate the limits.
///
/// Source: kubernetes plugin/pkg/admission/limitranger/admission.go.
pub(crate) struct LimitRanger {
    objects: Arc<dyn ObjectReader>,
}

/// The kinds that the plugin checks.
enum LimitedObject {
    Pod,
    Claim,
}

impl LimitRanger {
    /// Creates the plugin with a reader for the objects of the server.
    pub(crate) fn new(objects: Arc<dyn ObjectReader>) -> Self {
        Self { objects }
    }

    fn limit_ranges(&self, attributes: &Attributes) -> Vec<Arc<Value>> {
        self.objects.list("", "limitranges", &attributes.namespace)
    }
}

impl Plugin for LimitRanger {
    fn name(&self) -> &'static str {
        "LimitRanger"
    }

    fn admit(&self, attributes: &mut Attributes) -> Result<(), Box<Status>> {
        if let Some(LimitedObject::Pod) = limited(attributes) {
            let limit_ranges = self.limit_ranges(attributes);
            if let Some(pod) = &mut attributes.object {
                for limit_range in limit_ranges {
                    defaults::give(&limit_range, pod);
                }
            }
        }
        Ok(())
    }

    fn validate(&self, attributes: &Attributes, _remarks: &mut Remarks) -> Result<(), Box<Status>> {
        let Some(limited) = limited(attributes) else { return Ok(()) };
        let Some(object) = &attributes.object else { return Ok(()) };
        for limit_range in self.limit_ranges(attributes) {
            let violations = match limited {
                LimitedObject::Pod => constraints::of_pod(&limit_range, object),
                LimitedObject::Claim => constraints::of_claim(&limit_range, object),
            };
            if !violations.is_empty() {
                return Err(forbidden(attributes, &aggregate(violations)));
            }
        }
        Ok(())
    }
}

/// Returns the kind of object that limits apply to; `None` if limits do not apply to the request.
///
/// Limits apply to a Pod when it is created or resized, and to a `PersistentVolumeClaim` when it is created or updated,
/// unless the object is being deleted.
fn limited(attributes: &Attributes) -> Option<LimitedObject> {
    let is_deleted = |object: &Value| {
        object.pointer("/metadata/deletionTimestamp").is_some_and(|timestamp| !timestamp.is_null())
    };
    if !attributes.kind.group.is_empty() || attributes.old_object.as_ref().is_some_and(is_deleted) {
        return None;
    }
    let kind = attributes.kind.kind.as_str();
    match (kind, attributes.subresource.as_str(), attributes.operation) {
        ("Pod", "", Operation::Create) | ("Pod", "resize", Operation::Update) => Some(LimitedObject::Pod),
        ("PersistentVolumeClaim", "", Operation::Create | Operation::Update) => Some(LimitedObject::Claim),
        (_, _, Operation::Create | Operation::Update | Operation::Delete | Operation::Connect) => None,
    }
}

#[cfg(test)]
mod tests;
