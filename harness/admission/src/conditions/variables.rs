//! Defines the CEL variables of match conditions.

use std::fmt;
use std::sync::{Arc, OnceLock};

use kubernetes_cel::Variables;
use kubernetes_cel::authorization::{self, AuthorizationDecision, Resource, User};
use kubernetes_cel::function::Error;
use kubernetes_cel::value::{Origin, Value};
use kubernetes_cel::{authorizer_value, request_resource_value};
use serde_json::Value as Json;

use super::request;
use crate::attributes::GroupVersionResource;
pub(crate) use crate::attributes::{Attributes, GroupVersionKind, UserInfo};
use crate::authorizer::{AccessDecision, AccessRequest, AccessTarget, Authorizer, Decision, ResourceTarget};

/// Returns kube-apiserver's error for the variable `name` of a policy, which fails to `fails` (evaluate or compile).
///
/// Source: apiserver pkg/admission/plugin/cel/composition.go, `Callback`.
pub(crate) fn variable_error(name: &str, fails: &str, error: Error) -> Error {
    if matches!(error, Error::Unsupported(_)) {
        return error;
    }
    Error::new(format!("composited variable \"{name}\" fails to {fails}: {error}"))
}

/// The request that conditions are evaluated for, as one webhook would receive it.
#[derive(Clone, Copy)]
#[expect(clippy::exhaustive_structs, reason = "the environment has these variables")]
pub struct Subject<'a> {
    /// The attributes of the request.
    pub attributes: &'a Attributes,
    /// The kind of the objects, in the version that the webhook would receive.
    pub kind: &'a GroupVersionKind,
    /// The new object in the version of `kind`.
    pub object: Option<&'a Json>,
    /// The old object in the version of `kind`.
    pub old_object: Option<&'a Json>,
    /// Whether the objects are of a built-in type.
    pub built_in: bool,
    /// The authorizer that answers permission checks.
    pub authorizer: &'a Arc<dyn Authorizer>,
}

impl fmt::Debug for Subject<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subject").field("kind", self.kind).finish_non_exhaustive()
    }
}

/// The values of the variables. Each value is created when an expression uses it.
#[derive(Debug)]
pub struct Bindings<'a> {
    subject: Subject<'a>,
    /// The resource in the variable `request`.
    resource: &'a GroupVersionResource,
    request: &'a OnceLock<Json>,
}

impl<'a> Bindings<'a> {
    /// Creates bindings that cache the variable `request` in `request`.
    pub fn new(subject: &Subject<'a>, request: &'a OnceLock<Json>) -> Self {
        Self { subject: *subject, resource: &subject.attributes.resource, request }
    }

    /// Sets the resource in the variable `request`. The default is the request's own resource.
    pub(crate) fn with_resource(self, resource: &'a GroupVersionResource) -> Self {
        Self { resource, ..self }
    }

    /// Returns the new or the old object as a CEL value with exactly the fields of its JSON.
    ///
    /// Rule: MC-07.
    fn object(&self, object: Option<&'a Json>) -> Value<'a> {
        let origin = if self.subject.built_in { Origin::Typed } else { Origin::Unstructured };
        object.map_or(Value::Null, |object| Value::from_json_of(object, origin))
    }

    fn user(&self) -> Arc<User> {
        let UserInfo { username, uid, groups, extra } = self.subject.attributes.user.clone();
        Arc::new(User { name: username, uid, groups, extra })
    }

    fn request_resource(&self) -> Resource {
        let Attributes { resource, subresource, namespace, name, .. } = self.subject.attributes;
        Resource {
            group: resource.group.clone(),
            resource: resource.resource.clone(),
            subresource: subresource.clone(),
            namespace: namespace.clone(),
            name: name.clone(),
            ..Resource::default()
        }
    }
}

/// Resolves variables. `namespaceObject` is declared, but is always null in match conditions.
///
/// Source: apiserver pkg/admission/plugin/cel/activation.go, `newActivation`;
/// pkg/admission/plugin/webhook/matchconditions/matcher.go, `Match`.
/// Rule: MC-03, MC-08.
impl<'a> Variables<'a> for Bindings<'a> {
    fn get(&self, name: &str) -> Option<Value<'a>> {
        let Subject { attributes, kind, object, old_object, authorizer, .. } = self.subject;
        let asked = || Arc::new(CelAuthorizer(Arc::clone(authorizer)));
        Some(match name {
            "object" => self.object(object),
            "oldObject" => self.object(old_object),
            "namespaceObject" => Value::Null,
            "request" => {
                let request = self.request.get_or_init(|| request::value(attributes, self.resource, kind));
                Value::from_json_of(request, Origin::Request)
            }
            "authorizer" => authorizer_value(self.user(), asked()),
            "authorizer.requestResource" => {
                request_resource_value(self.user(), asked(), self.request_resource())
            }
            _ => return None,
        })
    }
}

/// The server's authorizer for CEL. A check does not specify a version, and RBAC ignores its selectors.
///
/// Source: apiserver pkg/cel/library/authz.go, `receiverOnlyObjectVal` and `resourceCheckVal.Authorize`.
#[derive(Debug)]
struct CelAuthorizer(Arc<dyn Authorizer>);

impl authorization::Authorizer for CelAuthorizer {
    fn authorize(&self, attributes: &authorization::Attributes<'_>) -> authorization::Decision {
        let User { name, uid, groups, extra } = attributes.user.clone();
        let user = UserInfo { username: name, uid, groups, extra };
        let target = match attributes.target {
            authorization::Target::Path(path) => AccessTarget::Path(path),
            authorization::Target::Resource(resource) => AccessTarget::Resource(ResourceTarget {
                group: &resource.group,
                version: "*",
                resource: &resource.resource,
                subresource: &resource.subresource,
                namespace: &resource.namespace,
                name: &resource.name,
                ..ResourceTarget::default()
            }),
            // Deny access to targets of unknown kinds.
            _ => return authorization::Decision::default(),
        };
        let AccessDecision { decision, reason, error } =
            self.0.authorize(&AccessRequest { user: &user, verb: attributes.verb, target });
        let verdict = match decision {
            Decision::Allow => AuthorizationDecision::Allow,
            Decision::Deny => AuthorizationDecision::Deny,
            Decision::NoOpinion => AuthorizationDecision::NoOpinion,
        };
        authorization::Decision { verdict, reason, error }
    }
}
