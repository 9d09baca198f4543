//! Who may do what: the question that `authorizer` asks the program that embeds the language.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::library::authorizer::{AuthorizerValue, ResourceCheck};
use crate::selectors::{FieldRequirement, LabelRequirement};
use crate::value::Value;

/// Decides who may do what. It is asked by the functions `check` of an expression.
///
/// Source: apiserver pkg/authorization/authorizer/interfaces.go, `UnconditionalAuthorizer`.
pub trait Authorizer: fmt::Debug + Send + Sync {
    /// Whether a user may do it.
    fn authorize(&self, attributes: &Attributes<'_>) -> Decision;
}

/// A user.
///
/// Source: apiserver pkg/authentication/user/user.go, `DefaultInfo`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// The name, such as `alice` or `system:serviceaccount:default:builder`.
    pub name: String,
    /// The identifier.
    pub uid: String,
    /// The groups, such as `system:authenticated`.
    pub groups: Vec<String>,
    /// What an authenticator adds.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// An access check: who does what with what.
///
/// Source: apiserver pkg/authorization/authorizer/interfaces.go, `AttributesRecord`.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Attributes<'a> {
    /// Who.
    pub user: &'a User,
    /// What, such as `get`.
    pub verb: &'a str,
    /// With what.
    pub target: Target<'a>,
}

/// What an access check is about.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Target<'a> {
    /// A path that is no resource, such as `/healthz`.
    Path(&'a str),
    /// A resource, in whatever version.
    Resource(&'a Resource),
}

/// A resource, or objects of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resource {
    /// The group; empty for the core group.
    pub group: String,
    /// The resource, such as `pods`.
    pub resource: String,
    /// The subresource; empty if there is none.
    pub subresource: String,
    /// The namespace; empty for all of them and for resources of the cluster.
    pub namespace: String,
    /// The name; empty for all objects.
    pub name: String,
    /// The requirements of a field selector, or why it cannot be read.
    pub fields: Selection<FieldRequirement>,
    /// The requirements of a label selector, or why it cannot be read.
    pub labels: Selection<LabelRequirement>,
}

/// The requirements of a selector; none if there is no selector.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Selection<T> {
    /// All of them must hold.
    Requirements(Vec<T>),
    /// The selector cannot be read, for the reason that kube-apiserver gives.
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

/// What an authorizer says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// The decision.
    pub verdict: Verdict,
    /// Why.
    pub reason: String,
    /// What went wrong, if something did.
    pub error: Option<String>,
}

/// The decision of an authorizer.
///
/// Source: apiserver pkg/authorization/authorizer/interfaces.go, `Decision`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// It is forbidden.
    #[default]
    Deny,
    /// It is allowed.
    Allow,
    /// Another authorizer may decide.
    NoOpinion,
}

impl User {
    /// A service account.
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

/// The value of the variable `authorizer`, which asks about a user.
pub fn authorizer_value<'a>(user: Arc<User>, authorizer: Arc<dyn Authorizer>) -> Value<'a> {
    AuthorizerValue { user, authorizer }.into()
}

/// The value of the variable `authorizer.requestResource`, which asks about a user and the resource of a request.
pub fn request_resource_value<'a>(
    user: Arc<User>,
    authorizer: Arc<dyn Authorizer>,
    resource: Resource,
) -> Value<'a> {
    ResourceCheck { authorizer: AuthorizerValue { user, authorizer }, resource }.into()
}
