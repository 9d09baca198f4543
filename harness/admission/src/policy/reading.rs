//! Parses stored policies and bindings.

use std::sync::OnceLock;

use kubernetes_types::selector::Selector;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::compilation::{Composition, Expression, NamedExpression, Validation};
use super::{
    Binding, Definition, MatchResources, MutatingPolicy, Mutation, NamedRule, ParamKind, ParamRef, PatchType,
    ValidatingBinding, ValidatingPolicy, ValidationAction,
};
pub(crate) use crate::attributes::GroupVersionKind;
use crate::config::{FailurePolicy, MatchPolicy, ReinvocationPolicy, Rule, Scope};
use crate::policy_expressions::{PolicyExpressions, Purpose};

/// The reason why a stored policy or binding cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid {kind} \"{name}\": {what}")]
pub struct PolicyError {
    /// The kind of the object, such as `ValidatingAdmissionPolicy`.
    pub kind: String,
    /// The name of the object.
    pub name: String,
    /// The reason, with the field.
    pub what: String,
}

/// Parses and compiles a stored `ValidatingAdmissionPolicy`.
///
/// An expression that does not compile fails at each evaluation.
///
/// Source: apiserver pkg/admission/plugin/policy/validating/plugin.go, `compilePolicy`.
///
/// # Errors
/// Returns [`PolicyError`] if a field has a type or value that the API does not store.
pub fn validating_policy(object: &Value) -> Result<ValidatingPolicy, PolicyError> {
    let spec: PolicySpec = spec(object)?;
    let declared = &mut PolicyExpressions::new(spec.param_kind.is_some());
    let definition = definition(object, &spec, declared)?;
    let mut validations = Vec::new();
    for validation in spec.validations.iter().flatten() {
        let text = &validation.message_expression;
        validations.push(Validation {
            expression: Expression::new(&validation.expression, Purpose::Condition, declared),
            message: validation.message.clone(),
            reason: validation.reason.clone(),
            message_expression: (!text.is_empty()).then(|| Expression::new(text, Purpose::Message, declared)),
        });
    }
    let mut audit_annotations = Vec::new();
    for AuditAnnotationSpec { key, value_expression } in spec.audit_annotations.iter().flatten() {
        audit_annotations.push(NamedExpression::new(key, value_expression, Purpose::Annotation, declared));
    }
    let reads = |expression: &Expression| expression.mentions("namespaceObject");
    let variables = &definition.composition.variables;
    let reads_namespace = variables.iter().chain(&audit_annotations).any(|named| reads(&named.expression))
        || validations.iter().any(|validation| {
            reads(&validation.expression) || validation.message_expression.as_ref().is_some_and(reads)
        });
    Ok(ValidatingPolicy { definition, validations, audit_annotations, reads_namespace })
}

/// Parses and compiles a stored `MutatingAdmissionPolicy`.
///
/// An expression that does not compile fails at each evaluation.
///
/// Source: apiserver pkg/admission/plugin/policy/mutating/compilation.go, `compilePolicy`.
///
/// # Errors
/// Returns [`PolicyError`] if a field has a type or value that the API does not store.
pub fn mutating_policy(object: &Value) -> Result<MutatingPolicy, PolicyError> {
    let spec: PolicySpec = spec(object)?;
    let declared = &mut PolicyExpressions::new(spec.param_kind.is_some());
    let definition = definition(object, &spec, declared)?;
    let mut mutations = Vec::new();
    for mutation in spec.mutations.iter().flatten() {
        let (patch_type, purpose, source) = match mutation.patch_type.as_str() {
            "JSONPatch" => (PatchType::JsonPatch, Purpose::JsonPatch, &mutation.json_patch),
            _ => (PatchType::ApplyConfiguration, Purpose::ApplyConfiguration, &mutation.apply_configuration),
        };
        let text = source.as_ref().map_or("", |source| source.expression.as_str());
        mutations.push(Mutation { patch_type, expression: Expression::new(text, purpose, declared) });
    }
    let reinvocation_policy = match spec.reinvocation_policy.as_str() {
        "IfNeeded" => ReinvocationPolicy::IfNeeded,
        _ => ReinvocationPolicy::Never,
    };
    Ok(MutatingPolicy { definition, reinvocation_policy, mutations })
}

/// Parses the fields that both kinds of policies have.
fn definition(
    object: &Value,
    spec: &PolicySpec,
    declared: &mut PolicyExpressions,
) -> Result<Definition, PolicyError> {
    let mut variables = Vec::new();
    for NamedSpec { name, expression } in spec.variables.iter().flatten() {
        variables.push(NamedExpression::variable(name, expression, declared));
    }
    let mut match_conditions = Vec::new();
    for NamedSpec { name, expression } in spec.match_conditions.iter().flatten() {
        match_conditions.push(NamedExpression::new(name, expression, Purpose::Condition, declared));
    }
    let param_kind = spec.param_kind.as_ref().map(|kind| ParamKind {
        kind: GroupVersionKind::from_object(&serde_json::json!({
            "apiVersion": kind.api_version, "kind": kind.kind,
        })),
        namespaced: OnceLock::new(),
    });
    let match_constraints = spec.match_constraints.clone().unwrap_or_default();
    Ok(Definition {
        name: name(object).into(),
        failure_policy: match spec.failure_policy.as_str() {
            "Ignore" => FailurePolicy::Ignore,
            _ => FailurePolicy::Fail,
        },
        param_kind,
        match_constraints: match_resources(match_constraints).map_err(|what| error(object, what))?,
        composition: Composition { variables, match_conditions },
    })
}

/// Parses a stored `ValidatingAdmissionPolicyBinding`.
///
/// # Errors
/// Returns [`PolicyError`] if a field has a type or value that the API does not store.
pub fn validating_binding(object: &Value) -> Result<ValidatingBinding, PolicyError> {
    let spec: BindingSpec = spec(object)?;
    let actions = spec.validation_actions.iter().flatten().map(|action| match action.as_str() {
        "Deny" => Ok(ValidationAction::Deny),
        "Warn" => Ok(ValidationAction::Warn),
        "Audit" => Ok(ValidationAction::Audit),
        other => Err(format!("invalid validationActions value \"{other}\": must be Deny, Warn, or Audit")),
    });
    let validation_actions = actions.collect::<Result<_, _>>().map_err(|what| error(object, what))?;
    Ok(ValidatingBinding { validation_actions, binding: binding(object, spec)? })
}

/// Parses a stored `MutatingAdmissionPolicyBinding`.
///
/// # Errors
/// Returns [`PolicyError`] if a field has a type or value that the API does not store.
pub fn mutating_binding(object: &Value) -> Result<Binding, PolicyError> {
    binding(object, spec(object)?)
}

/// Parses the fields that the bindings of both kinds of policies have.
fn binding(object: &Value, spec: BindingSpec) -> Result<Binding, PolicyError> {
    let fail = |what: String| error(object, what);
    let param_ref = spec.param_ref.map(|reference| {
        Ok(ParamRef {
            name: reference.name,
            namespace: reference.namespace,
            selector: reference.selector.as_ref().map(selector).transpose()?,
            denies_if_not_found: reference.parameter_not_found_action == "Deny",
        })
    });
    Ok(Binding {
        name: name(object).into(),
        policy_name: spec.policy_name,
        param_ref: param_ref.transpose().map_err(fail)?,
        match_resources: spec.match_resources.map(match_resources).transpose().map_err(fail)?,
    })
}

fn name(object: &Value) -> &str {
    object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default()
}

fn error(object: &Value, what: String) -> PolicyError {
    let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
    PolicyError { kind: kind.to_owned(), name: name(object).to_owned(), what }
}

fn spec<T: DeserializeOwned>(object: &Value) -> Result<T, PolicyError> {
    T::deserialize(object.get("spec").unwrap_or(&Value::Null))
        .map_err(|wrong| error(object, format!("spec: {wrong}")))
}

fn match_resources(spec: MatchResourcesSpec) -> Result<MatchResources, String> {
    let rules = |rules: Option<Vec<RuleSpec>>| rules.into_iter().flatten().map(rule).collect();
    Ok(MatchResources {
        namespace_selector: spec.namespace_selector.as_ref().map_or(Ok(Selector::default()), selector)?,
        object_selector: spec.object_selector.as_ref().map_or(Ok(Selector::default()), selector)?,
        resource_rules: rules(spec.resource_rules),
        exclude_resource_rules: rules(spec.exclude_resource_rules),
        match_policy: match spec.match_policy.as_str() {
            "Exact" => MatchPolicy::Exact,
            _ => MatchPolicy::Equivalent,
        },
    })
}

fn selector(selector: &Value) -> Result<Selector, String> {
    if selector.is_null() {
        return Ok(Selector::default());
    }
    Selector::parse_stored(selector).map_err(|error| error.to_string())
}

fn rule(spec: RuleSpec) -> NamedRule {
    NamedRule {
        rule: Rule {
            operations: spec.operations.unwrap_or_default(),
            api_groups: spec.api_groups.unwrap_or_default(),
            api_versions: spec.api_versions.unwrap_or_default(),
            resources: spec.resources.unwrap_or_default(),
            scope: match spec.scope.as_str() {
                "Cluster" => Scope::Cluster,
                "Namespaced" => Scope::Namespaced,
                _ => Scope::All,
            },
        },
        resource_names: spec.resource_names.unwrap_or_default(),
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PolicySpec {
    failure_policy: String,
    param_kind: Option<ParamKindSpec>,
    match_constraints: Option<MatchResourcesSpec>,
    match_conditions: Option<Vec<NamedSpec>>,
    variables: Option<Vec<NamedSpec>>,
    validations: Option<Vec<ValidationSpec>>,
    audit_annotations: Option<Vec<AuditAnnotationSpec>>,
    reinvocation_policy: String,
    mutations: Option<Vec<MutationSpec>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct MutationSpec {
    patch_type: String,
    apply_configuration: Option<ExpressionSpec>,
    json_patch: Option<ExpressionSpec>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ExpressionSpec {
    expression: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ParamKindSpec {
    api_version: String,
    kind: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct NamedSpec {
    name: String,
    expression: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ValidationSpec {
    expression: String,
    message: String,
    reason: String,
    message_expression: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct AuditAnnotationSpec {
    key: String,
    value_expression: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct BindingSpec {
    policy_name: String,
    param_ref: Option<ParamRefSpec>,
    match_resources: Option<MatchResourcesSpec>,
    validation_actions: Option<Vec<String>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ParamRefSpec {
    name: String,
    namespace: String,
    selector: Option<Value>,
    parameter_not_found_action: String,
}

#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct MatchResourcesSpec {
    namespace_selector: Option<Value>,
    object_selector: Option<Value>,
    resource_rules: Option<Vec<RuleSpec>>,
    exclude_resource_rules: Option<Vec<RuleSpec>>,
    match_policy: String,
}

#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RuleSpec {
    resource_names: Option<Vec<String>>,
    operations: Option<Vec<String>>,
    api_groups: Option<Vec<String>>,
    api_versions: Option<Vec<String>>,
    resources: Option<Vec<String>>,
    scope: String,
}
