//! Authorizes writes of admission policies and bindings that refer to params.

use kubernetes_admission::attributes::UserInfo;
use kubernetes_admission::authorizer::{AccessRequest, AccessTarget, ResourceTarget, is_privileged};
use kubernetes_types::json::{at, text};
use kubernetes_types::status::{FieldError, Status};
use serde_json::Value;

use crate::apimachinery::metadata;
use crate::kinds::webhook_configurations;
use crate::registry::policies;
use crate::registry::request::ObjectRequest;
use crate::storage::Key;

/// Checks that the user of a request may read the params that a policy or binding refers to.
///
/// An update of a policy is checked only if it changes the `paramKind`. Upstream compares the params of a binding by
/// address, so every update of a binding with params is checked.
///
/// Source: kubernetes `pkg/registry/admissionregistration/*admissionpolicy*/authz.go`.
/// Rule: POL-H.
///
/// # Errors
/// Returns 422 if the user does not have permission.
pub(crate) fn check(
    request: &ObjectRequest<'_>,
    object: &Value,
    old: Option<&Value>,
) -> Result<(), Box<Status>> {
    let resource = &request.target.resource;
    if resource.gvr.group != webhook_configurations::GROUP
        || !request.target.subresource.is_empty()
        || is_privileged(&request.user)
    {
        return Ok(());
    }
    let plural = resource.gvr.resource.as_str();
    let (field, refused) = match plural {
        policies::VALIDATING | policies::MUTATING => ("paramKind", of_policy(request, object, old)),
        policies::VALIDATING_BINDINGS => ("paramRef", of_binding(request, object, policies::VALIDATING)),
        policies::MUTATING_BINDINGS => ("paramRef", of_binding(request, object, policies::MUTATING)),
        _ => return Ok(()),
    };
    let Some(why) = refused else { return Ok(()) };
    let error = FieldError::forbidden(format!("spec.{field}"), why);
    let (kind, name) = (&resource.kind, metadata::text(object, "name"));
    Err(Box::new(Status::invalid(&kind.group, &kind.kind, name, &[error])))
}

/// Returns the reason why the user may not write a policy; `None` if the user may write it.
fn of_policy(request: &ObjectRequest<'_>, policy: &Value, old: Option<&Value>) -> Option<String> {
    let kind_of = |policy| at(policy, &["spec", "paramKind"]);
    let kind = kind_of(policy);
    if kind.is_null() || old.is_some_and(|old| kind_of(old) == kind) {
        return None;
    }
    let required = Required::for_kind(request, kind);
    let target = ResourceTarget { name: "*", namespace: "*", ..required.target() };
    if may(request, "get", target) {
        return None;
    }
    let (user, name, version) = (shown(&request.user), text(kind, &["kind"]), text(kind, &["apiVersion"]));
    Some(format!(
        "user {user} must have \"get\" permission on all objects of the referenced paramKind (kind={name}, \
         apiVersion={version})"
    ))
}

/// Returns the reason why the user may not write a binding of a policy; `policies` is the resource of the policy.
fn of_binding(request: &ObjectRequest<'_>, binding: &Value, policies: &str) -> Option<String> {
    let reference = at(binding, &["spec", "paramRef"]);
    if reference.is_null() {
        return None;
    }
    let state = &request.registry.state;
    let policy_name = text(binding, &["spec", "policyName"]);
    let key = Key::cluster_scoped(webhook_configurations::GROUP, policies, policy_name);
    let policy = state.storage.at(&key);
    let kind = policy.as_deref().map_or(&Value::Null, |policy| at(policy, &["spec", "paramKind"]));
    let required = Required::for_kind(request, kind);
    let (name, namespace) = (text(reference, &["name"]), text(reference, &["namespace"]));
    let verb = if name.is_empty() { "list" } else { "get" };
    if may(request, verb, ResourceTarget { name, namespace, ..required.target() }) {
        return None;
    }
    let user = shown(&request.user);
    let lacks_all = format!(
        "to determine minimum required permissions and user {user} does not have \"{verb}\" permission for all groups, \
         versions and resources"
    );
    Some(if policy.is_none() {
        format!("unable to get policy {policy_name} {lacks_all}")
    } else if !kind.is_null() && required.resource.is_none() {
        let (version, kind) = (text(kind, &["apiVersion"]), text(kind, &["kind"]));
        format!("unable to resolve paramKind &{{{version} {kind}}} {lacks_all}")
    } else {
        // Upstream swaps the user and the verb for mutating policies.
        let (user, verb) =
            if policies.starts_with("mutating") { (verb, user.as_str()) } else { (user.as_str(), verb) };
        format!("user {user} does not have \"{verb}\" permission on the object referenced by paramRef")
    })
}

/// The group, version, and resource for which a permission is required; `None` means all.
struct Required {
    group_version: Option<(String, String)>,
    resource: Option<String>,
}

impl Required {
    /// Returns the resource that serves a param kind, according to discovery.
    ///
    /// Source: kubernetes pkg/registry/admissionregistration/resolver/resolver.go, `Resolve`.
    fn for_kind(request: &ObjectRequest<'_>, kind: &Value) -> Self {
        let api_version = text(kind, &["apiVersion"]);
        if api_version.is_empty() {
            return Self { group_version: None, resource: None };
        }
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let resources = request.registry.state.resources();
        let served = resources.all().iter().find(|resource| {
            (resource.gvr.group.as_str(), resource.gvr.version.as_str()) == (group, version)
                && resource.kind.kind == text(kind, &["kind"])
                && resource.is_established()
        });
        Self {
            group_version: Some((group.to_owned(), version.to_owned())),
            resource: served.map(|resource| resource.gvr.resource.clone()),
        }
    }

    fn target(&self) -> ResourceTarget<'_> {
        let (group, version) =
            self.group_version.as_ref().map_or(("*", "*"), |(group, version)| (group, version));
        let resource = self.resource.as_deref().unwrap_or("*");
        ResourceTarget { group, version, resource, ..ResourceTarget::default() }
    }
}

fn may(request: &ObjectRequest<'_>, verb: &str, target: ResourceTarget<'_>) -> bool {
    let asked = AccessRequest { user: &request.user, verb, target: AccessTarget::Resource(target) };
    request.authorizer.authorize(&asked).is_allowed()
}

/// Formats a user as Go's `%v` does.
///
/// Source: apiserver pkg/authentication/user/user.go, `DefaultInfo`.
fn shown(user: &UserInfo) -> String {
    let UserInfo { username, uid, groups, extra } = user;
    let extra: Vec<String> =
        extra.iter().map(|(key, values)| format!("{key}:[{}]", values.join(" "))).collect();
    format!("&{{{username} {uid} [{}] map[{}]}}", groups.join(" "), extra.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_shown_as_by_go() {
        let user = UserInfo {
            username: "a".to_owned(),
            groups: vec!["b".into(), "c".into()],
            ..UserInfo::default()
        };
        assert_eq!(shown(&user), "&{a  [b c] map[]}");
        let extra = [("k".to_owned(), vec!["x".to_owned(), "y".to_owned()])].into();
        assert_eq!(shown(&UserInfo { uid: "1".to_owned(), extra, ..user }), "&{a 1 [b c] map[k:[x y]]}");
    }
}
