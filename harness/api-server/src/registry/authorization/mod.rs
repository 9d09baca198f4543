//! Checks permissions that a request needs in addition to the permission for the request itself.

pub(crate) mod escalation;
pub(crate) mod params;
pub(crate) mod signers;
pub(crate) mod status_fields;

use kubernetes_admission::authorizer::{AccessRequest, AccessTarget, ResourceTarget};
use kubernetes_types::quoting::quote;
use kubernetes_types::status::Status;
use serde_json::Value;

use super::request::ObjectRequest;

/// Checks that the user of an update may write the fields that need a separate permission.
///
/// # Errors
/// Returns an error if the user may not write a changed field.
pub(crate) fn check_fields(request: &ObjectRequest<'_>, new: &Value, old: &Value) -> Result<(), Box<Status>> {
    params::check(request, new, Some(old))?;
    status_fields::check_pod_certificate(request, new, old)
}

/// Checks that the user of a PUT or a patch may also create the object.
///
/// # Errors
/// Returns 403 if the user may not create the object.
///
/// Source: apiserver pkg/endpoints/handlers/update.go, `withAuthorization`.
/// Rule: APY-22.
pub(crate) fn check_creation(request: &ObjectRequest<'_>) -> Result<(), Box<Status>> {
    let asked = creation(request);
    let decision = request.authorizer.authorize(&asked);
    if decision.is_allowed() { Ok(()) } else { Err(Box::new(forbidden(&asked, &decision.reason))) }
}

fn creation<'a>(request: &'a ObjectRequest<'_>) -> AccessRequest<'a> {
    let target = &request.target;
    let (gvr, namespace) = (&target.resource.gvr, target.admitted_namespace());
    let resource = ResourceTarget {
        group: &gvr.group,
        version: &gvr.version,
        resource: &gvr.resource,
        subresource: &target.subresource,
        namespace,
        name: &target.name,
        ..ResourceTarget::default()
    };
    AccessRequest { user: &request.user, verb: "create", target: AccessTarget::Resource(resource) }
}

/// Checks that the user of a stream to a Pod has permission for `create`, even if the stream begins with a GET.
///
/// # Errors
/// Returns 403 if the user does not have permission.
///
/// Source: kubernetes pkg/registry/core/pod/rest/authorize.go, `ensureAuthorizedForVerb`.
pub(crate) fn check_stream(request: &ObjectRequest<'_>) -> Result<(), Box<Status>> {
    let decision = request.authorizer.authorize(&creation(request));
    if decision.is_allowed() {
        return Ok(());
    }
    let (gvr, name) = (&request.target.resource.gvr, &request.target.name);
    Err(Box::new(Status::forbidden(&gvr.group, &gvr.resource, name, &decision.reason)))
}

/// Builds the 403 for a request that no rule allows.
///
/// Source: apiserver pkg/endpoints/handlers/responsewriters/errors.go, `ForbiddenStatusError`.
/// Rule: RBAC-01, RBAC-07.
pub(crate) fn forbidden(request: &AccessRequest<'_>, reason: &str) -> Status {
    let (user, verb) = (quote(&request.user.username), request.verb);
    let (what, group, resource, name) = match request.target {
        AccessTarget::Path(path) => (format!("User {user} cannot {verb} path {}", quote(path)), "", "", ""),
        AccessTarget::Resource(target) => {
            let resource = if target.subresource.is_empty() {
                target.resource.to_owned()
            } else {
                format!("{}/{}", target.resource, target.subresource)
            };
            let place = if target.namespace.is_empty() {
                "at the cluster scope".to_owned()
            } else {
                format!("in the namespace {}", quote(target.namespace))
            };
            let (resource, group) = (quote(&resource), quote(target.group));
            let what = format!("User {user} cannot {verb} resource {resource} in API group {group} {place}");
            (what, target.group, target.resource, target.name)
        }
    };
    let mut why = what.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    if !reason.is_empty() {
        why = format!("{why}: {reason}");
    }
    Status::forbidden(group, resource, name, &why)
}

#[cfg(test)]
mod tests {
    use kubernetes_admission::attributes::UserInfo;

    use super::*;

    #[track_caller]
    fn check(verb: &str, target: AccessTarget<'_>, reason: &str, message: &str) {
        let user = UserInfo { username: "a<b".to_owned(), ..UserInfo::default() };
        let status = forbidden(&AccessRequest { user: &user, verb, target }, reason);
        assert_eq!((status.message.as_str(), status.code), (message, 403));
    }

    #[test]
    fn denial_names_user_verb_and_resource() {
        let target =
            ResourceTarget { resource: "pods", namespace: "ns", name: "x", ..ResourceTarget::default() };
        check(
            "get",
            AccessTarget::Resource(target),
            "",
            r#"pods "x" is forbidden: User "a&lt;b" cannot get resource "pods" in API group "" in the namespace "ns""#,
        );
        let target =
            ResourceTarget { group: "apps", resource: "x", subresource: "y", ..ResourceTarget::default() };
        check(
            "list",
            AccessTarget::Resource(target),
            "<why>",
            r#"x.apps is forbidden: User "a&lt;b" cannot list resource "x/y" in API group "apps" at the cluster scope: <why>"#,
        );
        check("get", AccessTarget::Path("/x"), "", r#"forbidden: User "a&lt;b" cannot get path "/x""#);
    }
}
