//! Authorizes requests by RBAC: Roles, `ClusterRole`s, and their bindings. All functions are pure.

mod aggregation;
mod coverage;
mod policies;
mod policy_rule;

use std::fmt;

pub use self::aggregation::aggregated_rules;
pub use self::coverage::Escalation;
pub use self::policies::{Policies, RbacObjects, RoleNotFound};
pub use self::policy_rule::PolicyRule;
use crate::attributes::UserInfo;

/// The API group of roles and bindings.
pub const RBAC_GROUP: &str = "rbac.authorization.k8s.io";

/// The group whose members may do everything.
///
/// Source: apiserver pkg/authentication/user/user.go, `SystemPrivilegedGroup`.
pub const PRIVILEGED_GROUP: &str = "system:masters";

/// An access check: may a user perform a verb on a target?
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "a caller says all of it")]
pub struct AccessRequest<'a> {
    /// The user who makes the request.
    pub user: &'a UserInfo,
    /// The API verb, such as `list` or `deletecollection`; for a non-resource path, the HTTP method in lowercase.
    pub verb: &'a str,
    /// The resource or path that the user wants to access.
    pub target: AccessTarget<'a>,
}

/// The target of an [`AccessRequest`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the API has these two")]
pub enum AccessTarget<'a> {
    /// An API resource.
    Resource(ResourceTarget<'a>),
    /// A non-resource path, such as `/healthz`.
    Path(&'a str),
}

/// A resource, an object, or a subresource. Fields that the request does not specify are empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a caller says all of it")]
pub struct ResourceTarget<'a> {
    /// The API group; empty for the core group.
    pub group: &'a str,
    /// The API version; `*` for any.
    pub version: &'a str,
    /// The plural name of the resource, such as `pods`.
    pub resource: &'a str,
    /// The subresource; empty for the main resource.
    pub subresource: &'a str,
    /// The namespace; empty for a cluster-scoped object.
    pub namespace: &'a str,
    /// The object's name; empty for all objects.
    pub name: &'a str,
    /// The field selector, as text. RBAC ignores it.
    pub field_selector: &'a str,
    /// The label selector, as text. RBAC ignores it.
    pub label_selector: &'a str,
}

/// The verdict of an authorizer.
///
/// Source: apiserver pkg/authorization/authorizer/interfaces.go, `Decision`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the API has these three")]
pub enum Decision {
    /// The request is allowed.
    Allow,
    /// The request is denied, regardless of other authorizers. RBAC never returns this.
    Deny,
    /// No rule allows the request; it is rejected unless another authorizer allows it.
    NoOpinion,
}

/// An [`Authorizer`]'s response to an [`AccessRequest`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "an authorizer says all of it")]
pub struct AccessDecision {
    /// The verdict on the request.
    pub decision: Decision,
    /// The reason, such as `RBAC: allowed by …`; may be empty.
    pub reason: String,
    /// An error during evaluation. RBAC puts its errors into the reason instead.
    pub error: Option<String>,
}

impl AccessDecision {
    fn allow(reason: impl Into<String>) -> Self {
        Self { decision: Decision::Allow, reason: reason.into(), error: None }
    }

    /// Returns whether the request is allowed.
    pub fn is_allowed(&self) -> bool {
        self.decision == Decision::Allow
    }
}

/// All permissions of a user in a namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "an authorizer says all of it")]
pub struct AccessRules {
    /// The rules, in the order in which they were found.
    pub rules: Vec<PolicyRule>,
    /// The reason why rules may be missing; empty if the list is complete.
    pub error: String,
}

/// Decides what users may do.
pub trait Authorizer: fmt::Debug + Send + Sync {
    /// Returns the verdict on one request, and the reason for it.
    fn authorize(&self, request: &AccessRequest<'_>) -> AccessDecision;

    /// Returns all permissions of a user in a namespace.
    fn rules_for(&self, user: &UserInfo, namespace: &str) -> AccessRules;
}

/// An authorizer that allows every request.
///
/// Source: apiserver pkg/authorization/authorizerfactory/builtin.go, `alwaysAllowAuthorizer`.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::exhaustive_structs, reason = "there is nothing to say to it")]
pub struct AlwaysAllow;

impl Authorizer for AlwaysAllow {
    fn authorize(&self, _: &AccessRequest<'_>) -> AccessDecision {
        AccessDecision::allow("")
    }

    fn rules_for(&self, _: &UserInfo, _: &str) -> AccessRules {
        let all = || vec!["*".to_owned()];
        let resources =
            PolicyRule { verbs: all(), api_groups: all(), resources: all(), ..PolicyRule::default() };
        let paths = PolicyRule { verbs: all(), non_resource_urls: all(), ..PolicyRule::default() };
        AccessRules { rules: vec![resources, paths], error: String::new() }
    }
}

/// Returns whether a user may do everything, regardless of roles.
pub fn is_privileged(user: &UserInfo) -> bool {
    user.groups.iter().any(|group| group == PRIVILEGED_GROUP)
}

/// Decides as kube-apiserver does with `--authorization-mode=RBAC`: members of `system:masters` are always allowed.
///
/// Source: kubernetes pkg/kubeapiserver/authorizer/reload.go, `newForConfig`; apiserver
/// pkg/authorization/union/union.go, which prefixes the reason with the authorizer's name if no authorizer decides.
/// Rule: RBAC-09.
impl Authorizer for Policies {
    fn authorize(&self, request: &AccessRequest<'_>) -> AccessDecision {
        if is_privileged(request.user) {
            return AccessDecision::allow("");
        }
        let mut answer = self.decide(request);
        if answer.decision == Decision::NoOpinion && !answer.reason.is_empty() {
            answer.reason = format!("rbac: {}", answer.reason);
        }
        answer
    }

    fn rules_for(&self, user: &UserInfo, namespace: &str) -> AccessRules {
        self.rules_of(user, namespace)
    }
}

#[cfg(test)]
mod tests;
