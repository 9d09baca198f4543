//! Authorizes requests, including impersonation.

pub(crate) mod impersonation;

use kubernetes_admission::attributes::UserInfo;
use kubernetes_admission::authorizer::{
    AccessDecision, AccessRequest, AccessTarget, Authorizer, ResourceTarget,
};
use kubernetes_types::status::Status;

use super::request_info::RequestInfo;
use crate::registry::authorization::forbidden;

/// Returns the access that a request from `user` requires.
///
/// Source: apiserver pkg/endpoints/filters/authorization.go, `GetAuthorizerAttributes`.
pub(crate) fn access_request<'a>(user: &'a UserInfo, info: &'a RequestInfo) -> AccessRequest<'a> {
    let target = match &info.object {
        None => AccessTarget::Path(&info.path),
        Some(object) => AccessTarget::Resource(ResourceTarget {
            group: &object.group,
            version: &object.version,
            resource: &object.resource,
            subresource: &object.subresource,
            namespace: &object.namespace,
            name: &object.name,
            field_selector: &info.field_selector,
            label_selector: &info.label_selector,
        }),
    };
    AccessRequest { user, verb: &info.verb, target }
}

/// Authorizes a request from `user`. Returns the decision and, if the request is denied, the error.
///
/// Source: apiserver pkg/endpoints/filters/authorization.go, `withAuthorization`.
pub(crate) fn authorize(
    authorizer: &dyn Authorizer,
    user: &UserInfo,
    info: &RequestInfo,
) -> (AccessDecision, Result<(), Box<Status>>) {
    let request = access_request(user, info);
    let decision = authorizer.authorize(&request);
    let allowed =
        if decision.is_allowed() { Ok(()) } else { Err(Box::new(forbidden(&request, &decision.reason))) };
    (decision, allowed)
}
