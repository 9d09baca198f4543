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

/// Declares the variable `variables` of policies with these fields. An earlier declaration is replaced.
///
/// Source: apiserver pkg/admission/plugin/cel/composition.go, `NewCompositedCompiler` and `AddField`.
#[must_use]
pub fn with_composed_variables<'n>(
    environment: Environment,
    fields: impl IntoIterator<Item = (&'n str, &'n Type)>,
) -> Environment {
    let fields = fields.into_iter().map(|(name, of)| (name, composed(of)));
    environment
        .with_object(ObjectType::new(VARIABLES, fields))
        .with_variable("variables", Type::object(VARIABLES))
}

/// Adds a field to the variable `variables` of policies, or replaces the field.
///
/// Source: apiserver pkg/admission/plugin/cel/composition.go, `AddField`.
#[must_use]
pub fn with_composed_variable(environment: Environment, name: &str, of: &Type) -> Environment {
    environment.with_field(VARIABLES, name, composed(of))
}

/// The type name of the variable `variables`.
const VARIABLES: &str = "kubernetes.variables";

/// Returns the type of a field of `variables` whose expression has the type `of`.
///
/// Basic types, lists, and maps are kept; all other types are dynamic.
///
/// Source: apiserver pkg/admission/plugin/cel/composition.go, `convertCelTypeToDeclType`.
fn composed(of: &Type) -> Type {
    match of {
        Type::Any
        | Type::Bool
        | Type::Bytes
        | Type::Double
        | Type::Duration
        | Type::Int
        | Type::Null
        | Type::String
        | Type::Timestamp
        | Type::Uint => of.clone(),
        Type::List(element) => Type::list(composed(element)),
        Type::Map(key, value) => Type::map(composed(key), composed(value)),
        _ => Type::Dyn,
    }
}

/// Declares the types and the function that expressions use to describe a change to an object.
///
/// `Object` and all names that begin with `Object.` are types whose fields have any name and any type. `JSONPatch` has
/// the fields of an operation.
///
/// Source: apiserver pkg/admission/plugin/cel/compile.go, `hasPatchTypes`.
#[must_use]
pub fn with_patch_types(environment: Environment) -> Environment {
    environment.with_patch_types().with_functions(crate::library::json_patch::functions())
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
