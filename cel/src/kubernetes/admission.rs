//! The variables of admission expressions and their types.
//!
//! Source: apiserver pkg/admission/plugin/cel/compile.go.

use crate::environment::{Environment, ObjectType};
use crate::library::authorizer::{authorizer, resource_check};
use crate::types::Type;

/// The variables that are declared in addition to `object`, `oldObject`, `request`, and `namespaceObject`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Variables {
    /// Whether the variable `params` is declared.
    pub params: bool,
    /// Whether the variables `authorizer` and `authorizer.requestResource` are declared.
    pub authorizer: bool,
}

/// Declares the variables of admission expressions in an environment.
///
/// Source: apiserver pkg/admission/plugin/cel/compile.go, `createEnvForOpts`.
#[must_use]
pub fn with_admission_variables(environment: Environment, variables: Variables) -> Environment {
    let objects = object_types().into_iter();
    let mut environment = objects
        .fold(environment, Environment::with_object)
        .with_names_of_scalar_types()
        .with_variable("object", Type::Dyn)
        .with_variable("oldObject", Type::Dyn)
        .with_variable("namespaceObject", object("Namespace"))
        .with_variable("request", object("AdmissionRequest"));
    if variables.params {
        environment = environment.with_variable("params", Type::Dyn);
    }
    if variables.authorizer {
        environment = environment
            .with_variable("authorizer", authorizer())
            .with_variable("authorizer.requestResource", resource_check());
    }
    environment
}

/// Returns the types of `request` and `namespaceObject`.
///
/// The types omit `uid`, `object`, and `oldObject` of a request, and the managed fields and owner references of a
/// Namespace.
///
/// Source: apiserver pkg/admission/plugin/cel/compile.go, `BuildRequestType` and `BuildNamespaceType`.
/// Rule: MC-04.
fn object_types() -> [ObjectType; 9] {
    let (text, texts) = (Type::String, Type::list(Type::String));
    let map = |value: &Type| Type::map(Type::String, value.clone());
    [
        object_type("GroupVersionKind", [("group", &text), ("version", &text), ("kind", &text)]),
        object_type("GroupVersionResource", [("group", &text), ("version", &text), ("resource", &text)]),
        object_type(
            "UserInfo",
            [("username", &text), ("uid", &text), ("groups", &texts), ("extra", &map(&texts))],
        ),
        object_type(
            "AdmissionRequest",
            [
                ("kind", &object("GroupVersionKind")),
                ("resource", &object("GroupVersionResource")),
                ("subResource", &text),
                ("requestKind", &object("GroupVersionKind")),
                ("requestResource", &object("GroupVersionResource")),
                ("requestSubResource", &text),
                ("name", &text),
                ("namespace", &text),
                ("operation", &text),
                ("userInfo", &object("UserInfo")),
                ("dryRun", &Type::Bool),
                ("options", &Type::Dyn),
            ],
        ),
        object_type("NamespaceSpec", [("finalizers", &texts)]),
        object_type(
            "NamespaceCondition",
            [
                ("status", &text),
                ("type", &text),
                ("lastTransitionTime", &Type::Timestamp),
                ("message", &text),
                ("reason", &text),
            ],
        ),
        object_type(
            "NamespaceStatus",
            [("conditions", &Type::list(object("NamespaceCondition"))), ("phase", &text)],
        ),
        object_type(
            "NamespaceMetadata",
            [
                ("name", &text),
                ("generateName", &text),
                ("namespace", &text),
                ("labels", &map(&text)),
                ("annotations", &map(&text)),
                ("UID", &text),
                ("creationTimestamp", &Type::Timestamp),
                ("deletionGracePeriodSeconds", &Type::Int),
                ("deletionTimestamp", &Type::Timestamp),
                ("generation", &Type::Int),
                ("resourceVersion", &text),
                ("finalizers", &texts),
            ],
        ),
        object_type(
            "Namespace",
            [
                ("metadata", &object("NamespaceMetadata")),
                ("spec", &object("NamespaceSpec")),
                ("status", &object("NamespaceStatus")),
            ],
        ),
    ]
}

fn object(name: &str) -> Type {
    Type::Object(format!("kubernetes.{name}").into())
}

fn object_type<const FIELDS: usize>(name: &str, fields: [(&'static str, &Type); FIELDS]) -> ObjectType {
    ObjectType::new(&format!("kubernetes.{name}"), fields.map(|(name, of)| (name, of.clone())))
}
