//! Hides stored fields of a Service in reads.

use std::sync::Arc;

use serde_json::Value;

use crate::kinds::discovery::Resource;
use crate::storage::StoredObject;

const EXTERNAL_NAME: &str = "ExternalName";

pub(crate) fn may_omit_fields(stored: &StoredObject, resource: &Resource) -> bool {
    // Most Services need not be decoded for this check.
    let is_external = |found: &[u8]| found == EXTERNAL_NAME.as_bytes();
    is_service(resource) && stored.encoded().text().windows(EXTERNAL_NAME.len()).any(is_external)
}

fn is_service(resource: &Resource) -> bool {
    resource.gvr.resource == "services" && resource.gvr.group.is_empty()
}

/// Returns `object` in the form that clients read. `object` must belong to `resource`, not to a subresource.
///
/// For an `ExternalName` Service, omits an internal traffic policy that was stored before the type changed.
///
/// Source: kubernetes pkg/registry/core/service/storage/storage.go, `defaultOnReadInternalTrafficPolicy`.
/// Rule: KND-20.
pub(crate) fn read(mut object: Arc<Value>, resource: &Resource) -> Arc<Value> {
    let hides = |spec: &Value| {
        spec.get("type").is_some_and(|kind| kind == EXTERNAL_NAME)
            && spec.get("internalTrafficPolicy").is_some()
    };
    if is_service(resource)
        && object.get("spec").is_some_and(hides)
        && let Some(spec) = Arc::make_mut(&mut object).get_mut("spec").and_then(Value::as_object_mut)
    {
        spec.remove("internalTrafficPolicy");
    }
    object
}
