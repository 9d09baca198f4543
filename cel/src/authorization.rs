//! Defines how `authorizer` asks the embedding program for permissions.

use std::collections::BTreeMap;
use std::fmt;

use crate::selectors::{FieldRequirement, LabelRequirement};

/// Decides whether users have access. The `check` functions of expressions call it.
///
/// Source: apiserver pkg/authorization/authorizer/interfaces.go, `UnconditionalAuthorizer`.
pub trait Authorizer: fmt::Debug + Send + Sync {
    /// Decides whether the user in `attributes` has access.
    fn authorize(&self, attributes: &Attributes<'_>) -> Decision;
}

/// The information about a user that the authenticator provides.
///
/// Source: apiserver pkg/authentication/user/user.go, `DefaultInfo`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// The name, such as `alice` or `system:serviceaccount:default:builder`.
    pub name: String,
    /// The unique identifier of the user.
    pub uid: String,
    /// The groups, such as `system:authenticated`.
    pub groups: Vec<String>,
    /// Additional data from the authenticator.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// An access check: a user, a verb, and a target.
///
/// Source: apiserver pkg/authorization/authorizer/interfaces.go, `AttributesRecord`.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Attributes<'a> {
    /// The user who requests access.
    pub user: &'a User,
    /// The verb, such as `get`.
    pub verb: &'a str,
    /// The target that the user accesses.
    pub target: Target<'a>,
}

/// The target of an access check: a path or a resource.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Target<'a> {
    /// A non-resource path, such as `/healthz`.
    Path(&'a str),
    /// A resource, regardless of its version.
    Resource(&'a Resource),
}

/// A resource, all objects of a resource, or one object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resource {
    /// The API group, or an empty string for the core group.
    pub group: String,
    /// The resource, such as `pods`.
    pub resource: String,
    /// The subresource, or an empty string for the resource itself.
    pub subresource: String,
    /// The namespace, or an empty string for all namespaces and for cluster-scoped resources.
    pub namespace: String,
    /// The name of the object, or an empty string for all objects.
    pub name: String,
    /// The requirements of a field selector, or the parse error.
    pub fields: Selection<FieldRequirement>,
    /// The requirements of a label selector, or the parse error.
    pub labels: Selection<LabelRequirement>,
}

/// The requirements of a selector, or its parse error; by default, an empty list of requirements.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Selection<T> {
    /// The requirements, all of which must be met.
    Requirements(Vec<T>),
    /// The parse error of the selector, with kube-apiserver's message.
    Invalid(String),
}

impl<T> Default for Selection<T> {
    fn default() -> Self {
        Self::Requirements(vec![])
    }
}

impl<T> From<Result<Vec<T>, String>> for Selection<T> {
    fn from(parsed: Result<Vec<T>, String>) -> Self {
        parsed.map_or_else(Self::Invalid, Self::Requirements)
    }
}

/// An authorizer's response to an access check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// Whether the access is allowed.
    pub verdict: AuthorizationDecision,
    /// The reason for the verdict.
    pub reason: String,
    /// The error that occurred in the authorizer, if any.
    pub error: Option<String>,
}

/// The verdict of an authorizer.
///
/// Source: apiserver pkg/authorization/authorizer/interfaces.go, `Decision`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum AuthorizationDecision {
    /// The authorizer denies the access.
    #[default]
    Deny,
    /// The authorizer allows the access.
    Allow,
    /// The authorizer does not decide; another authorizer can.
    NoOpinion,
}

impl User {
    /// Creates the user of a service account.
    ///
    /// Source: apiserver pkg/authentication/serviceaccount/util.go, `UserInfo`.
    pub fn service_account(namespace: &str, name: &str) -> Self {
        Self {
            name: format!("system:serviceaccount:{namespace}:{name}"),
            groups: vec!["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")],
            ..Self::default()
        }
    }
}
