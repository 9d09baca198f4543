//! Indexes roles and bindings for lookup.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use kubernetes_types::quoting::quote;
use kubernetes_types::status::aggregate;
use serde_json::Value;

use super::{AccessDecision, AccessRequest, AccessRules, AccessTarget, Decision, PolicyRule};
use crate::attributes::UserInfo;

/// All stored objects of the RBAC API.
#[derive(Clone, Debug, Default)]
#[expect(clippy::exhaustive_structs, reason = "the API has these four")]
pub struct RbacObjects {
    /// The `ClusterRole`s of the cluster.
    pub cluster_roles: Vec<Arc<Value>>,
    /// The Roles of all namespaces.
    pub roles: Vec<Arc<Value>>,
    /// The `ClusterRoleBinding`s of the cluster.
    pub cluster_role_bindings: Vec<Arc<Value>>,
    /// The `RoleBinding`s of all namespaces.
    pub role_bindings: Vec<Arc<Value>>,
}

/// Parsed objects by namespace and name. Cluster-scoped objects have an empty namespace.
type Index<T> = BTreeMap<String, BTreeMap<String, Parsed<T>>>;

#[derive(Clone, Debug)]
struct Parsed<T> {
    source: Arc<Value>,
    parsed: Arc<T>,
}

/// The permissions that the Roles, `ClusterRole`s, and bindings of a cluster grant.
#[derive(Clone, Debug, Default)]
pub struct Policies {
    roles: Index<Vec<PolicyRule>>,
    bindings: Index<Binding>,
}

#[derive(Clone, Debug)]
struct Binding {
    namespace: String,
    name: String,
    role_kind: String,
    role_name: String,
    subjects: Vec<Subject>,
}

#[derive(Clone, Debug)]
struct Subject {
    kind: String,
    namespace: String,
    name: String,
}

/// The error for a binding whose role does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "there is no more to say of it")]
pub struct RoleNotFound {
    /// The kind in the binding: `Role`, `ClusterRole`, or an invalid kind.
    pub kind: String,
    /// The name of the missing role.
    pub name: String,
}

/// Formats the error as kube-apiserver's authorizer does. That authorizer reads roles from a cache.
///
/// Source: client-go listers/rbac/v1; kubernetes pkg/registry/rbac/validation/rule.go, `GetRoleReferenceRules`.
impl fmt::Display for RoleNotFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind.as_str() {
            "ClusterRole" => "clusterrole",
            "Role" => "role",
            other => return write!(f, "unsupported role reference kind: {}", quote(other)),
        };
        write!(f, "{kind}.{} \"{}\" not found", super::RBAC_GROUP, self.name)
    }
}

impl Policies {
    /// Returns the policies for `objects`. Objects that `self` has parsed already are not parsed again.
    #[must_use]
    pub fn updated(&self, objects: &RbacObjects) -> Self {
        let roles = objects.cluster_roles.iter().chain(&objects.roles);
        let bindings = objects.cluster_role_bindings.iter().chain(&objects.role_bindings);
        Self {
            roles: index(&self.roles, roles, PolicyRule::all_from_role),
            bindings: index(&self.bindings, bindings, Binding::from_object),
        }
    }

    /// Authorizes a request with RBAC only. Ignores `system:masters`.
    ///
    /// Source: kubernetes plugin/pkg/auth/authorizer/rbac/rbac.go, `Authorize`.
    /// Rule: RBAC-09.
    pub(super) fn decide(&self, request: &AccessRequest<'_>) -> AccessDecision {
        let namespace = match request.target {
            AccessTarget::Resource(target) => target.namespace,
            AccessTarget::Path(_) => "",
        };
        let mut errors = Vec::new();
        for (binding, subject) in self.applying(request.user, namespace) {
            match self.role_rules(&binding.role_kind, &binding.role_name, &binding.namespace) {
                Ok(rules) if rules.iter().any(|rule| rule.allows(request)) => {
                    let source = binding.describe(subject);
                    return AccessDecision::allow(format!("RBAC: allowed by {source}"));
                }
                Ok(_) => {}
                Err(error) => errors.push(error.to_string()),
            }
        }
        let reason = if errors.is_empty() { String::new() } else { format!("RBAC: {}", aggregate(errors)) };
        AccessDecision { decision: Decision::NoOpinion, reason, error: None }
    }

    /// Returns all permissions of a user in a namespace, and an error for each binding whose role is missing.
    pub fn rights(&self, user: &UserInfo, namespace: &str) -> (Vec<PolicyRule>, Vec<RoleNotFound>) {
        let (mut rules, mut missing) = (Vec::new(), Vec::new());
        for (binding, _) in self.applying(user, namespace) {
            match self.role_rules(&binding.role_kind, &binding.role_name, &binding.namespace) {
                Ok(found) => rules.extend_from_slice(found),
                Err(error) => missing.push(error),
            }
        }
        (rules, missing)
    }

    pub(super) fn rules_of(&self, user: &UserInfo, namespace: &str) -> AccessRules {
        let (rules, missing) = self.rights(user, namespace);
        AccessRules { rules, error: aggregate(missing.iter().map(ToString::to_string)) }
    }

    /// Returns the rules of the role that a binding references.
    ///
    /// # Errors
    /// Returns [`RoleNotFound`] if the role does not exist.
    pub fn role_rules(&self, kind: &str, name: &str, namespace: &str) -> Result<&[PolicyRule], RoleNotFound> {
        let namespace = match kind {
            "ClusterRole" => Some(""),
            // A Role without a namespace does not exist.
            "Role" if !namespace.is_empty() => Some(namespace),
            _ => None,
        };
        namespace
            .and_then(|namespace| self.roles.get(namespace)?.get(name))
            .map(|role| role.parsed.as_slice())
            .ok_or_else(|| RoleNotFound { kind: kind.to_owned(), name: name.to_owned() })
    }

    /// Returns the bindings that apply to a user, each with the matching subject; cluster-wide bindings come first.
    ///
    /// Source: kubernetes pkg/registry/rbac/validation/rule.go, `VisitRulesFor`.
    /// Rule: RBAC-03.
    fn applying<'a>(
        &'a self,
        user: &'a UserInfo,
        namespace: &'a str,
    ) -> impl Iterator<Item = (&'a Binding, &'a Subject)> {
        let of = |namespace: &str| self.bindings.get(namespace).into_iter().flat_map(BTreeMap::values);
        let local = Some(namespace).filter(|namespace| !namespace.is_empty()).into_iter().flat_map(of);
        of("").chain(local).filter_map(|binding| {
            let binding = &*binding.parsed;
            let applies = |subject: &&Subject| subject.is(user, &binding.namespace);
            Some((binding, binding.subjects.iter().find(applies)?))
        })
    }
}

fn index<'a, T>(
    known: &Index<T>,
    objects: impl Iterator<Item = &'a Arc<Value>>,
    parse: impl Fn(&Value) -> T,
) -> Index<T> {
    let mut index: Index<T> = BTreeMap::new();
    for object in objects {
        let (namespace, name) = (text(object, "/metadata/namespace"), text(object, "/metadata/name"));
        let before = known.get(namespace).and_then(|names| names.get(name));
        let parsed = match before.filter(|before| Arc::ptr_eq(&before.source, object)) {
            Some(before) => Arc::clone(&before.parsed),
            None => Arc::new(parse(object)),
        };
        let entry = Parsed { source: Arc::clone(object), parsed };
        index.entry(namespace.to_owned()).or_default().insert(name.to_owned(), entry);
    }
    index
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

impl Binding {
    fn from_object(object: &Value) -> Self {
        let subjects = object.get("subjects").and_then(Value::as_array).into_iter().flatten();
        Self {
            namespace: text(object, "/metadata/namespace").to_owned(),
            name: text(object, "/metadata/name").to_owned(),
            role_kind: text(object, "/roleRef/kind").to_owned(),
            role_name: text(object, "/roleRef/name").to_owned(),
            subjects: subjects
                .map(|subject| Subject {
                    kind: text(subject, "/kind").to_owned(),
                    namespace: text(subject, "/namespace").to_owned(),
                    name: text(subject, "/name").to_owned(),
                })
                .collect(),
        }
    }

    /// Describes a binding and its subject, such as `ClusterRoleBinding "x" of ClusterRole "y" to User "z"`.
    ///
    /// Source: kubernetes pkg/registry/rbac/validation/rule.go, `roleBindingDescriber` and `describeSubject`.
    /// Rule: RBAC-11.
    fn describe(&self, subject: &Subject) -> String {
        let role = format!("{} {}", self.role_kind, quote(&self.role_name));
        let binding = if self.namespace.is_empty() {
            format!("ClusterRoleBinding {}", quote(&self.name))
        } else {
            format!("RoleBinding {}", quote(&format!("{}/{}", self.name, self.namespace)))
        };
        let name = match subject.kind.as_str() {
            "ServiceAccount" if subject.namespace.is_empty() => {
                format!("{}/{}", subject.name, self.namespace)
            }
            "ServiceAccount" => format!("{}/{}", subject.name, subject.namespace),
            _ => subject.name.clone(),
        };
        format!("{binding} of {role} to {} {}", subject.kind, quote(&name))
    }
}

impl Subject {
    /// Returns whether the subject is `user` or a group of `user`.
    ///
    /// Source: kubernetes pkg/registry/rbac/validation/rule.go, `appliesToUser`.
    /// Rule: RBAC-08.
    fn is(&self, user: &UserInfo, binding_namespace: &str) -> bool {
        match self.kind.as_str() {
            "User" => user.username == self.name,
            "Group" => user.groups.contains(&self.name),
            "ServiceAccount" => {
                let namespace =
                    if self.namespace.is_empty() { binding_namespace } else { self.namespace.as_str() };
                let account = user.username.strip_prefix("system:serviceaccount:");
                let name = account.and_then(|account| account.strip_prefix(namespace)?.strip_prefix(':'));
                !namespace.is_empty() && name == Some(self.name.as_str())
            }
            _ => false,
        }
    }
}
