//! Implements the functions that check access through the variable `authorizer`.
//!
//! Source: apiserver pkg/cel/library/authz.go.

use std::fmt;
use std::sync::Arc;

use super::costs::NOMINAL;
use crate::authorization::{Attributes, AuthorizationDecision, Authorizer, Decision, Resource, Target, User};
use crate::function::{Call, CallCost, Error, Function, Implementation, Overload};
use crate::names::{dns1123_label, dns1123_subdomain};
use crate::selectors::{parse_fields, parse_labels};
use crate::types::Type;
use crate::value::{Opaque, Value};

const AUTHORIZER: &str = "kubernetes.authorization.Authorizer";
const PATH_CHECK: &str = "kubernetes.authorization.PathCheck";
const GROUP_CHECK: &str = "kubernetes.authorization.GroupCheck";
const RESOURCE_CHECK: &str = "kubernetes.authorization.ResourceCheck";
const DECISION: &str = "kubernetes.authorization.Decision";

/// Returns the functions of the authorizer library.
///
/// Rule: MC-14.
pub(crate) fn functions() -> Vec<Function> {
    let check = Function::new(
        "check",
        vec![
            member("pathcheck_check", &[PATH_CHECK], object(DECISION), check_path),
            member("resourcecheck_check", &[RESOURCE_CHECK], object(DECISION), check_resource),
        ],
    );
    let service_account = Overload::member(
        "authorizer_serviceaccount",
        vec![object(AUTHORIZER), Type::String, Type::String],
        object(AUTHORIZER),
        service_account,
    );
    vec![
        builder("path", "authorizer_path", AUTHORIZER, PATH_CHECK, path),
        builder("group", "authorizer_group", AUTHORIZER, GROUP_CHECK, group),
        Function::new("serviceAccount", vec![service_account]).with_cost(NOMINAL),
        builder("resource", "groupcheck_resource", GROUP_CHECK, RESOURCE_CHECK, resource),
        builder("subresource", "resourcecheck_subresource", RESOURCE_CHECK, RESOURCE_CHECK, |call| {
            refine(call, |resource, subresource| subresource.clone_into(&mut resource.subresource))
        }),
        builder("namespace", "resourcecheck_namespace", RESOURCE_CHECK, RESOURCE_CHECK, |call| {
            refine(call, |resource, namespace| namespace.clone_into(&mut resource.namespace))
        }),
        builder("name", "resourcecheck_name", RESOURCE_CHECK, RESOURCE_CHECK, |call| {
            refine(call, |resource, name| name.clone_into(&mut resource.name))
        }),
        // The cost limit of a condition allows two checks.
        check.with_cost(|_, _, _| Some(350_000)),
        accessor("errored", "decision_errored", Type::Bool, |call| {
            Ok(Value::Bool(decision(call)?.error.is_some()))
        }),
        accessor("error", "decision_error", Type::String, |call| {
            Ok(Value::text(decision(call)?.error.as_deref().unwrap_or_default()))
        }),
        accessor("allowed", "decision_allowed", Type::Bool, |call| {
            Ok(Value::Bool(decision(call)?.verdict == AuthorizationDecision::Allow))
        }),
        accessor("reason", "decision_reason", Type::String, |call| {
            Ok(Value::text(decision(call)?.reason.as_str()))
        }),
    ]
}

/// Returns the functions that set field and label selectors.
pub(crate) fn selector_functions() -> Vec<Function> {
    let selector = |name, id, implementation| {
        Function::new(name, vec![member(id, &[RESOURCE_CHECK], object(RESOURCE_CHECK), implementation)])
            .with_cost(COST_OF_SELECTOR)
    };
    vec![
        selector("fieldSelector", "authorizer_fieldselector", |call| {
            refine(call, |resource, text| resource.fields = parse_fields(text).into())
        }),
        selector("labelSelector", "authorizer_labelselector", |call| {
            refine(call, |resource, text| resource.labels = parse_labels(text).into())
        }),
    ]
}

/// Returns the type of the variable `authorizer`.
pub(crate) fn authorizer() -> Type {
    object(AUTHORIZER)
}

/// Returns the type of the variable `authorizer.requestResource`.
pub(crate) fn resource_check() -> Type {
    object(RESOURCE_CHECK)
}

/// The cost of parsing a selector.
///
/// Each requirement takes at least two characters, and costs as much as a list and an object.
///
/// Source: apiserver pkg/cel/library/cost.go, `selectorCostEstimate`.
const COST_OF_SELECTOR: CallCost = |_, arguments, _| {
    let size = arguments.get(1)?.size_or_one();
    Some(10 + size.div_ceil(10) + size.div_ceil(2) * (10 + 40))
};

#[derive(Clone, Debug)]
pub(crate) struct AuthorizerValue {
    pub(crate) user: Arc<User>,
    pub(crate) authorizer: Arc<dyn Authorizer>,
}

#[derive(Debug)]
struct PathCheck {
    authorizer: AuthorizerValue,
    path: String,
}

#[derive(Debug)]
struct GroupCheck {
    authorizer: AuthorizerValue,
    group: String,
}

#[derive(Clone, Debug)]
pub(crate) struct ResourceCheck {
    pub(crate) authorizer: AuthorizerValue,
    pub(crate) resource: Resource,
}

/// Implements `Opaque` for a type whose values kube-apiserver cannot compare, even with themselves, or convert to text.
macro_rules! opaque_value {
    ($type:ty, $name:expr, $go:literal) => {
        impl Opaque for $type {
            fn type_name(&self) -> &'static str {
                $name
            }

            fn go_type(&self) -> &'static str {
                $go
            }

            fn equals(&self, _: &dyn Opaque) -> Option<bool> {
                None
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str($name)
            }
        }

        impl From<$type> for Value<'_> {
            fn from(value: $type) -> Self {
                Value::Opaque(Arc::new(value))
            }
        }
    };
}

opaque_value!(AuthorizerValue, AUTHORIZER, "library.authorizerVal");
opaque_value!(PathCheck, PATH_CHECK, "library.pathCheckVal");
opaque_value!(GroupCheck, GROUP_CHECK, "library.groupCheckVal");
opaque_value!(ResourceCheck, RESOURCE_CHECK, "library.resourceCheckVal");
opaque_value!(Decision, DECISION, "library.decisionVal");

impl AuthorizerValue {
    fn decide<'a>(&self, verb: &str, target: Target<'_>) -> Value<'a> {
        self.authorizer.authorize(&Attributes { user: &self.user, verb, target }).into()
    }
}

fn object(name: &str) -> Type {
    Type::Object(name.into())
}

/// Creates an overload with a string after the receiver.
fn member(
    id: &'static str,
    receiver: &[&'static str],
    result: Type,
    implementation: Implementation,
) -> Overload {
    let parameters = receiver.iter().map(|name| object(name)).chain([Type::String]).collect();
    Overload::member(id, parameters, result, implementation)
}

fn builder(
    name: &'static str,
    id: &'static str,
    receiver: &'static str,
    result: &'static str,
    implementation: Implementation,
) -> Function {
    Function::new(name, vec![member(id, &[receiver], object(result), implementation)]).with_cost(NOMINAL)
}

fn accessor(name: &'static str, id: &'static str, result: Type, implementation: Implementation) -> Function {
    Function::new(name, vec![Overload::member(id, vec![object(DECISION)], result, implementation)])
        .with_cost(NOMINAL)
}

fn path<'a>(call: &Call<'_, 'a>) -> Result<Value<'a>, Error> {
    let authorizer = call.opaque::<AuthorizerValue>(0)?.clone();
    let path = not_blank(call.text(1)?.as_str(), "path must not be empty")?;
    Ok(PathCheck { authorizer, path }.into())
}

fn group<'a>(call: &Call<'_, 'a>) -> Result<Value<'a>, Error> {
    let authorizer = call.opaque::<AuthorizerValue>(0)?.clone();
    Ok(GroupCheck { authorizer, group: call.text(1)?.as_str().to_owned() }.into())
}

fn service_account<'a>(call: &Call<'_, 'a>) -> Result<Value<'a>, Error> {
    let authorizer = Arc::clone(&call.opaque::<AuthorizerValue>(0)?.authorizer);
    let (namespace, name) = (call.text(1)?.as_str(), call.text(2)?.as_str());
    if !dns1123_subdomain(name).is_empty() {
        return Err(Error::new("Invalid service account name".to_owned()));
    }
    if !dns1123_label(namespace).is_empty() {
        return Err(Error::new("Invalid service account namespace".to_owned()));
    }
    Ok(AuthorizerValue { user: Arc::new(User::service_account(namespace, name)), authorizer }.into())
}

fn resource<'a>(call: &Call<'_, 'a>) -> Result<Value<'a>, Error> {
    let check = call.opaque::<GroupCheck>(0)?;
    let resource = not_blank(call.text(1)?.as_str(), "resource must not be empty")?;
    let resource = Resource { group: check.group.clone(), resource, ..Resource::default() };
    Ok(ResourceCheck { authorizer: check.authorizer.clone(), resource }.into())
}

fn refine<'a>(call: &Call<'_, 'a>, set: fn(&mut Resource, &str)) -> Result<Value<'a>, Error> {
    let mut check = call.opaque::<ResourceCheck>(0)?.clone();
    set(&mut check.resource, call.text(1)?.as_str());
    Ok(check.into())
}

fn check_path<'a>(call: &Call<'_, 'a>) -> Result<Value<'a>, Error> {
    let check = call.opaque::<PathCheck>(0)?;
    Ok(check.authorizer.decide(call.text(1)?.as_str(), Target::Path(&check.path)))
}

fn check_resource<'a>(call: &Call<'_, 'a>) -> Result<Value<'a>, Error> {
    let check = call.opaque::<ResourceCheck>(0)?;
    Ok(check.authorizer.decide(call.text(1)?.as_str(), Target::Resource(&check.resource)))
}

fn decision<'c>(call: &Call<'c, '_>) -> Result<&'c Decision, Error> {
    call.opaque(0)
}

fn not_blank(text: &str, error: &str) -> Result<String, Error> {
    if text.trim().is_empty() { Err(Error::new(error.to_owned())) } else { Ok(text.to_owned()) }
}

/// Returns the value of the variable `authorizer` for a user.
pub fn authorizer_value<'a>(user: Arc<User>, authorizer: Arc<dyn Authorizer>) -> Value<'a> {
    AuthorizerValue { user, authorizer }.into()
}

/// Returns the value of the variable `authorizer.requestResource` for a user and the resource of a request.
pub fn request_resource_value<'a>(
    user: Arc<User>,
    authorizer: Arc<dyn Authorizer>,
    resource: Resource,
) -> Value<'a> {
    ResourceCheck { authorizer: AuthorizerValue { user, authorizer }, resource }.into()
}
