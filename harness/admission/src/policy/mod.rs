//! Parses, compiles, and evaluates admission policies: CEL expressions that decide whether a request is admitted.
//!
//! Each version of a policy is compiled once. The evaluation of a policy for a request is a pure function.

mod activation;
mod compilation;
mod evaluation;
mod mutation;
mod reading;
mod record;

use std::sync::{Arc, OnceLock};

use kubernetes_types::selector::Selector;

pub(crate) use self::activation::ParamInput;
pub use self::compilation::{Composition, Expression, NamedExpression, Validation};
pub(crate) use self::evaluation::{Input, match_conditions, validate};
pub(crate) use self::mutation::{Change, MutationError, evaluate};
pub use self::mutation::{Mutation, PatchType};
pub use self::reading::{
    PolicyError, mutating_binding, mutating_policy, validating_binding, validating_policy,
};
pub(crate) use self::record::MAX_VALIDATION_FAILURES;
pub use self::record::{
    AnnotationOutcome, BindingRecord, Decision, EvaluatedExpression, ExpressionPart, MatchField,
    MutationEffect, MutationRecord, PoliciesChecked, PolicyAnnotation, PolicyChange, PolicyMismatch,
    PolicyRecord, PolicyRun, SkippedPolicy, Verdict, Violation,
};
pub use crate::attributes::GroupVersionKind;
use crate::config::{FailurePolicy, MatchPolicy, ReinvocationPolicy, Rule};

/// A parsed and compiled `ValidatingAdmissionPolicy`.
#[derive(Clone, Debug)]
pub struct ValidatingPolicy {
    /// The fields that both kinds of policies have.
    pub definition: Definition,
    /// `spec.validations`, in order.
    pub validations: Vec<Validation>,
    /// `spec.auditAnnotations`, in order.
    pub audit_annotations: Vec<NamedExpression>,
    /// Whether an expression or a variable uses `namespaceObject`.
    pub reads_namespace: bool,
}

/// A `MutatingAdmissionPolicy`: parsed and compiled.
#[derive(Clone, Debug)]
pub struct MutatingPolicy {
    /// The fields that both kinds of policies have.
    pub definition: Definition,
    /// `spec.reinvocationPolicy`: whether the policy is applied again after later changes.
    pub reinvocation_policy: ReinvocationPolicy,
    /// `spec.mutations`, in order.
    pub mutations: Vec<Mutation>,
}

/// The fields that both kinds of policies have.
#[derive(Clone, Debug)]
pub struct Definition {
    /// `metadata.name`.
    pub name: Arc<str>,
    /// `spec.failurePolicy`: the effect of expressions and bindings that fail.
    pub failure_policy: FailurePolicy,
    /// `spec.paramKind`.
    pub param_kind: Option<ParamKind>,
    /// `spec.matchConstraints`.
    pub match_constraints: MatchResources,
    /// `spec.variables` and `spec.matchConditions`.
    pub composition: Composition,
}

/// The kind of the params of a policy.
#[derive(Clone, Debug)]
pub struct ParamKind {
    /// The kind, with its version.
    pub kind: GroupVersionKind,
    /// Whether the kind is namespaced; unset until the server serves the kind.
    ///
    /// A kind that the server stops serving keeps its scope and does not have any objects.
    pub namespaced: OnceLock<bool>,
}

/// The resources to which a policy or a binding applies.
#[derive(Clone, Debug)]
pub struct MatchResources {
    /// `namespaceSelector`: selects requests by the labels of the namespace.
    pub namespace_selector: Selector,
    /// `objectSelector`: selects requests by the labels of the new or the old object.
    pub object_selector: Selector,
    /// `resourceRules`; if empty, all resources match.
    pub resource_rules: Vec<NamedRule>,
    /// `excludeResourceRules`: excludes resources, and takes precedence over `resourceRules`.
    pub exclude_resource_rules: Vec<NamedRule>,
    /// `matchPolicy`: whether the rules also match equivalent resources.
    pub match_policy: MatchPolicy,
}

/// A rule of a policy or a binding.
#[derive(Clone, Debug)]
pub struct NamedRule {
    /// The operations and resources that the rule matches.
    pub rule: Rule,
    /// `resourceNames`; if empty, all names match.
    pub resource_names: Vec<String>,
}

impl NamedRule {
    /// Returns whether `resourceNames` includes the name of an object.
    pub(crate) fn has_name(&self, name: &str) -> bool {
        self.resource_names.is_empty() || self.resource_names.iter().any(|known| known == name)
    }
}

/// A `ValidatingAdmissionPolicyBinding`.
#[derive(Clone, Debug)]
pub struct ValidatingBinding {
    /// The fields that the bindings of both kinds of policies have.
    pub binding: Binding,
    /// `spec.validationActions`, in order.
    pub validation_actions: Vec<ValidationAction>,
}

/// The fields that the bindings of both kinds of policies have.
#[derive(Clone, Debug)]
pub struct Binding {
    /// `metadata.name`.
    pub name: Arc<str>,
    /// `spec.policyName`.
    pub policy_name: String,
    /// `spec.paramRef`.
    pub param_ref: Option<ParamRef>,
    /// `spec.matchResources`; if `None`, the binding applies to everything that the policy matches.
    pub match_resources: Option<MatchResources>,
}

/// A parsed `paramRef`: which params a binding uses.
#[derive(Clone, Debug)]
pub struct ParamRef {
    /// The name of the param; empty if a selector is used.
    pub name: String,
    /// The namespace of the params; if empty, the namespace of the request.
    pub namespace: String,
    /// The labels of the params; `None` if a name is used.
    pub selector: Option<Selector>,
    /// Whether `parameterNotFoundAction` is `Deny`.
    pub denies_if_not_found: bool,
}

/// An action that a binding takes on a violation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the API has these three")]
pub enum ValidationAction {
    /// The request is denied.
    Deny,
    /// The client receives a warning.
    Warn,
    /// The audit event contains the violation.
    Audit,
}

impl ValidationAction {
    /// Returns the value in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deny => "Deny",
            Self::Warn => "Warn",
            Self::Audit => "Audit",
        }
    }
}

/// A policy with its bindings. A policy without bindings has no effect.
#[derive(Clone, Debug)]
pub struct Hook<P, B> {
    /// The policy.
    pub policy: Arc<P>,
    /// The bindings of the policy, sorted by name.
    pub bindings: Vec<Arc<B>>,
}

/// A validating policy with its bindings.
pub type ValidatingHook = Hook<ValidatingPolicy, ValidatingBinding>;

/// A mutating policy with its bindings.
pub type MutatingHook = Hook<MutatingPolicy, Binding>;
