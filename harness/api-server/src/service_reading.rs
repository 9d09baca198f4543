//! What is read of a Service beside what is stored.

use std::sync::Arc;

use serde_json::Value;

use super::answer::Answer;
use super::discovery::Resource;

/// Whether readers of `object`, of `resource` and not of a subresource, do not see all of it: an `ExternalName` has a policy
/// for the traffic in the cluster where it had one before it became that.
///
/// Source: kubernetes pkg/registry/core/service/storage/storage.go, `defaultOnReadInternalTrafficPolicy`.
/// Rule: KND-20.
pub(super) fn is_hidden_in_part(object: impl FnOnce() -> Arc<Value>, resource: &Resource) -> bool {
    // Most objects need not be decoded for this.
    if resource.gvr.resource != "services" || !resource.gvr.group.is_empty() {
        return false;
    }
    let object = object();
    let Some(spec) = object.get("spec") else { return false };
    spec.get("type").is_some_and(|kind| kind == "ExternalName") && spec.get("internalTrafficPolicy").is_some()
}

/// The object as it is read.
pub(super) fn read(mut object: Arc<Value>, resource: &Resource) -> Arc<Value> {
    if is_hidden_in_part(|| Arc::clone(&object), resource)
        && let Some(spec) = Arc::make_mut(&mut object).get_mut("spec").and_then(Value::as_object_mut)
    {
        spec.remove("internalTrafficPolicy");
    }
    object
}

/// An answer with the object as it is read.
pub(super) fn answered(answer: Answer, resource: &Resource) -> Answer {
    if let Answer::Object(code, object) = answer {
        Answer::Object(code, read(object, resource))
    } else {
        answer
    }
}
