//! Who may do what: role-based access control over Roles, `ClusterRoles` and their bindings. Pure decisions.

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

/// An access check: who does what with what.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "a caller says all of it")]
pub struct AccessRequest<'a> {
    /// Who wants to do it.
    pub user: &'a UserInfo,
    /// The verb of the API, such as `list` or `deletecollection`; for a path that is no resource, the HTTP method in
    /// lower case.
    pub verb: &'a str,
    /// What it is about.
    pub target: AccessTarget<'a>,
}

/// What an [`AccessRequest`] is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the API has these two")]
pub enum AccessTarget<'a> {
    /// A resource of the API.
    Resource(ResourceTarget<'a>),
    /// A path that is no resource, such as `/healthz`.
    Path(&'a str),
}

/// A resource, one object or a subresource. What a request does not say is empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a caller says all of it")]
pub struct ResourceTarget<'a> {
    /// The API group; empty for the core group.
    pub group: &'a str,
    /// The API version; `*` for any.
    pub version: &'a str,
    /// The plural name.
    pub resource: &'a str,
    /// The subresource.
    pub subresource: &'a str,
    /// The namespace.
    pub namespace: &'a str,
    /// The object's name.
    pub name: &'a str,
    /// The field selector, as text. RBAC does not look at it.
    pub field_selector: &'a str,
    /// The label selector, as text. RBAC does not look at it.
    pub label_selector: &'a str,
}

/// Whether a request is allowed.
///
/// Source: apiserver pkg/authorization/authorizer/interfaces.go, `Decision`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the API has these three")]
pub enum Decision {
    /// It is.
    Allow,
    /// It is not, whatever others say. RBAC never says so.
    Deny,
    /// Nothing allows it, which refuses it too.
    NoOpinion,
}

/// What an [`Authorizer`] answers.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "an authorizer says all of it")]
pub struct AccessDecision {
    /// Whether the request is allowed.
    pub decision: Decision,
    /// Why, such as `RBAC: allowed by …`; may be empty.
    pub reason: String,
    /// What went wrong while it was decided. RBAC puts that into the reason.
    pub error: Option<String>,
}

impl AccessDecision {
    fn allow(reason: impl Into<String>) -> Self {
        Self { decision: Decision::Allow, reason: reason.into(), error: None }
    }

    /// Whether the request may go on.
    pub fn is_allowed(&self) -> bool {
        self.decision == Decision::Allow
    }
}

/// All that a user may do in a namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "an authorizer says all of it")]
pub struct AccessRules {
    /// The rules, in the order in which they are found.
    pub rules: Vec<PolicyRule>,
    /// Why rules may be missing; empty if none are.
    pub error: String,
}

/// Decides who may do what.
pub trait Authorizer: fmt::Debug + Send + Sync {
    /// Whether a request is allowed.
    fn authorize(&self, request: &AccessRequest<'_>) -> AccessDecision;

    /// All that a user may do in a namespace.
    fn rules_for(&self, user: &UserInfo, namespace: &str) -> AccessRules;
}

/// Allows everything.
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

/// Whether a user may do everything, whatever the roles are.
pub fn is_privileged(user: &UserInfo) -> bool {
    user.groups.iter().any(|group| group == PRIVILEGED_GROUP)
}

/// RBAC as kube-apiserver runs it with `--authorization-mode=RBAC`: members of `system:masters` are allowed first.
///
/// Source: kubernetes pkg/kubeapiserver/authorizer/reload.go, `newForConfig`; apiserver
/// pkg/authorization/union/union.go, which puts the name of the authorizer before its reason where none decides.
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
