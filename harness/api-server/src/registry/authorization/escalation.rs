//! Privilege escalation prevention: users cannot grant permissions that they do not have.

use kubernetes_admission::attributes::UserInfo;
use kubernetes_admission::authorizer::{
    AccessRequest, AccessTarget, Escalation, PolicyRule, RBAC_GROUP, ResourceTarget, RoleNotFound,
    is_privileged,
};
use kubernetes_types::status::Status;
use serde_json::Value;

use crate::apimachinery::metadata;
use crate::kinds::rbac::text;
use crate::registry::request::ObjectRequest;

/// Checks that the user of a request may create this role or binding, or replace `old` with it.
///
/// Source: kubernetes `pkg/registry/rbac/{role,clusterrole,rolebinding,clusterrolebinding}/policybased/storage.go` and
/// `pkg/registry/rbac/escalation_check.go`.
/// Rule: RBAC-15, RBAC-16, RBAC-17.
///
/// # Errors
/// Returns 403 if the user would grant permissions that the user does not have, or 404 if a binding references a
/// missing role.
pub(crate) fn check(
    request: &ObjectRequest<'_>,
    object: &Value,
    old: Option<&Value>,
) -> Result<(), Box<Status>> {
    let gvr = &request.target.resource.gvr;
    if gvr.group != RBAC_GROUP || is_privileged(&request.user) {
        return Ok(());
    }
    let check = EscalationCheck { request, user: &request.user, namespace: &request.target.namespace };
    match gvr.resource.as_str() {
        "roles" | "clusterroles" => check.role(object, old),
        _ => check.binding(object, old),
    }
}

struct EscalationCheck<'a> {
    request: &'a ObjectRequest<'a>,
    user: &'a UserInfo,
    namespace: &'a str,
}

impl EscalationCheck<'_> {
    fn role(&self, object: &Value, old: Option<&Value>) -> Result<(), Box<Status>> {
        let resource = &self.request.target.resource.gvr.resource;
        let is_allowed = self.may("escalate", resource, &self.request.target.name);
        if is_allowed || is_for_the_collector(object, old) {
            return Ok(());
        }
        let refused = |why: &str| Err(self.refusal(object, why));
        if let Some(why) = self.escalation(&PolicyRule::all_from_role(object))? {
            return refused(&why);
        }
        let gathers = |role: &Value| {
            !role
                .get("aggregationRule")
                .map_or(&[][..], |rule| crate::kinds::rbac::list(rule, "clusterRoleSelectors"))
                .is_empty()
        };
        if (gathers(object) || old.is_some_and(gathers)) && self.escalation(&everything())?.is_some() {
            return refused("must have cluster-admin privileges to use the aggregationRule");
        }
        Ok(())
    }

    fn binding(&self, object: &Value, old: Option<&Value>) -> Result<(), Box<Status>> {
        if is_for_the_collector(object, old) {
            return Ok(());
        }
        let none = Value::Null;
        let reference = object.get("roleRef").unwrap_or(&none);
        let (kind, name) = (text(reference, "kind"), text(reference, "name"));
        let resource = match kind {
            "ClusterRole" => "clusterroles",
            "Role" => "roles",
            _ => "",
        };
        if !resource.is_empty() && self.may("bind", resource, name) {
            return Ok(());
        }
        let rules = self.request.registry.state.policies.role_rules(kind, name, self.namespace);
        match rules {
            Ok(rules) => match self.escalation(&rules)? {
                Some(why) => Err(self.refusal(object, &why)),
                None => Ok(()),
            },
            Err(missing) => Err(self.not_found(&missing)),
        }
    }

    fn may(&self, verb: &str, resource: &str, name: &str) -> bool {
        let target = ResourceTarget {
            group: RBAC_GROUP,
            version: "*",
            resource,
            name,
            namespace: self.namespace,
            ..ResourceTarget::default()
        };
        let target = AccessTarget::Resource(target);
        self.request.authorizer.authorize(&AccessRequest { user: self.user, verb, target }).is_allowed()
    }

    /// Returns the reason why the user cannot grant these rules; `None` if the user can grant them.
    fn escalation(&self, granted: &[PolicyRule]) -> Result<Option<String>, Box<Status>> {
        let (held, missing) =
            self.request.registry.state.policies.current().rights(self.user, self.namespace);
        let escalation =
            Escalation::find(&held, granted).map_err(|what| Box::new(Status::unsupported(&what)))?;
        let errors = missing.iter().map(|missing| self.not_found(missing).message);
        Ok(escalation.map(|escalation| escalation.message(self.user, errors.collect())))
    }

    fn refusal(&self, object: &Value, why: &str) -> Box<Status> {
        let gvr = &self.request.target.resource.gvr;
        Box::new(Status::forbidden(&gvr.group, &gvr.resource, metadata::text(object, "name"), why))
    }

    /// Returns the error for a missing role. A 404 contains the resource of the request, not the resource of the role.
    ///
    /// Source: apiserver pkg/registry/generic/registry/store.go, `qualifiedResourceFromContext`.
    fn not_found(&self, missing: &RoleNotFound) -> Box<Status> {
        let gvr = &self.request.target.resource.gvr;
        Box::new(match missing.kind.as_str() {
            "ClusterRole" | "Role" => Status::not_found(&gvr.group, &gvr.resource, &missing.name),
            _ => Status::failure(500, "", missing.to_string()),
        })
    }
}

/// Returns the rules of `cluster-admin`. They allow all requests.
fn everything() -> [PolicyRule; 2] {
    let all = || vec!["*".to_owned()];
    let resources = PolicyRule { verbs: all(), api_groups: all(), resources: all(), ..PolicyRule::default() };
    let paths = PolicyRule { verbs: all(), non_resource_urls: all(), ..PolicyRule::default() };
    [resources, paths]
}

/// Returns whether an update changes only fields that the garbage collector updates.
///
/// Source: kubernetes pkg/registry/rbac/helpers.go, `IsOnlyMutatingGCFields`.
fn is_for_the_collector(object: &Value, old: Option<&Value>) -> bool {
    let rest = metadata::without_collector_fields;
    old.is_some_and(|old| rest(object) == rest(old))
}
