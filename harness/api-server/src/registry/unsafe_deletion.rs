//! Unsafe deletion of an undecodable object: `ignoreStoreReadErrorWithClusterBreakingPotential`.

use std::sync::Arc;

use kubernetes_admission::authorizer::{AccessRequest, AccessTarget, ResourceTarget};
use kubernetes_types::status::{FieldError, Status, Unsupported};

use super::preconditions;
use super::request::ObjectRequest;
use crate::apimachinery::options;
use crate::apimachinery::options::RequestOptions;

const ANNOTATION: &str = "apiserver.k8s.io/unsafe-delete-ignore-read-error";
const VERB: &str = "unsafe-delete-ignore-read-errors";

/// Returns the error for the unsafe deletion of a collection.
///
/// Source: apiserver pkg/endpoints/handlers/delete.go, `DeleteCollection`.
/// Rule: REQ-23.
pub(crate) fn refused_for_collections() -> Box<Status> {
    let why = "is not allowed with DELETECOLLECTION, try again after removing the option";
    Box::new(Status::invalid(
        options::GROUP,
        "DeleteOptions",
        "",
        &[FieldError::invalid(options::UNSAFE_DELETION, true, why)],
    ))
}

/// Returns the error for an unsafe deletion. An unsafe deletion always fails.
///
/// It fails if the user lacks permission, or if the object does not exist or can be decoded. Otherwise, it fails
/// because admit does not support it.
///
/// Source: apiserver pkg/endpoints/handlers/delete.go, `authorizeUnsafeDelete`;
/// `pkg/registry/generic/registry/corrupt_obj_deleter.go`.
/// Rule: REQ-23.
pub(crate) async fn refusal(request: &mut ObjectRequest<'_>) -> Box<Status> {
    request.annotations.insert(ANNOTATION.to_owned(), String::new());
    let target = &request.target;
    let resource = Arc::clone(&target.resource);
    let gvr = &resource.gvr;
    let asked = AccessRequest {
        user: &request.user,
        verb: VERB,
        target: AccessTarget::Resource(ResourceTarget {
            group: &gvr.group,
            version: &gvr.version,
            resource: &gvr.resource,
            namespace: target.admitted_namespace(),
            name: &target.name,
            ..ResourceTarget::default()
        }),
    };
    let decision = request.authorizer.authorize(&asked);
    if !decision.is_allowed() {
        let why = format!("not permitted to do \"{VERB}\", reason: {}", decision.reason);
        return Box::new(Status::forbidden(&gvr.group, &gvr.resource, &target.name, &why));
    }
    let key = target.key(&target.name);
    let Some(stored) = request.registry.state.storage.at(&key) else {
        return Box::new(Status::not_found(&gvr.group, &gvr.resource, &target.name));
    };
    if request.registry.state.in_version_of(&stored, &resource).await.is_ok() {
        let why = "unsafe deletion is not allowed because the object is decodable from storage";
        preconditions::invalid_object(&resource, &key, false, why)
    } else {
        let what = "deleting an object that cannot be decoded".to_owned();
        Box::new(Status::unsupported(&Unsupported { what }))
    }
}

pub(crate) fn is_asked_for(options: &RequestOptions) -> bool {
    options.document.as_object().is_some_and(options::requests_unsafe_deletion)
}
