//! Records what admission policies decide about a request.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::{Binding, Definition, ValidationAction};
use crate::conditions::Evaluation;
use crate::config::{FailurePolicy, Phase, Round};

/// The maximum number of violations in an audit annotation. Later ones are not recorded.
///
/// Source: apiserver pkg/admission/plugin/policy/validating/dispatcher.go, `maxValidationFailures`.
pub(crate) const MAX_VALIDATION_FAILURES: usize = 50;

/// The results of all policies of a phase for one request.
#[derive(Clone, Debug)]
pub struct PoliciesChecked {
    /// The phase of the policies.
    pub phase: Phase,
    /// The round in which mutating policies were applied; always [`Round::First`] for validating policies.
    pub round: Round,
    /// Whether a mutation was applied, even if it did not change the object.
    pub mutated: bool,
    /// Whether a mutation changed the object.
    pub changed: bool,
    /// The policies that match the request or cannot be applied, in the order in which they were evaluated.
    pub policies: Vec<PolicyRecord>,
    /// The policies that do not match the request; empty unless the admission run explains policies.
    pub skipped: Vec<SkippedPolicy>,
    /// The warnings for the client.
    pub warnings: Vec<String>,
    /// The violations for the audit event, in order.
    pub violations: Vec<Violation>,
}

impl PoliciesChecked {
    pub(crate) fn new(phase: Phase, round: Round) -> Self {
        Self {
            phase,
            round,
            mutated: false,
            changed: false,
            policies: Vec::new(),
            skipped: Vec::new(),
            warnings: Vec::new(),
            violations: Vec::new(),
        }
    }
}

/// A violation that a binding reports to the audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The message of the violation.
    pub message: String,
    /// The name of the policy.
    pub policy: String,
    /// The name of the binding.
    pub binding: String,
    /// The index of the decision in its [`PolicyRun`].
    pub expression_index: usize,
    /// The actions of the binding.
    pub validation_actions: Vec<ValidationAction>,
}

/// A policy with bindings that does not match a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkippedPolicy {
    /// The name of the policy.
    pub policy: Arc<str>,
    /// The reason why `matchConstraints` does not match.
    pub mismatch: PolicyMismatch,
}

/// The first field of `matchConstraints` or `matchResources` that excludes a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyMismatch {
    /// The field that excludes the request.
    pub field: MatchField,
    /// The compared values, such as `objectSelector requires app=web; the object has no labels`.
    ///
    /// Contains a line for a selector, or for each rule; empty unless the admission run explains policies.
    pub compared: Vec<String>,
}

impl PolicyMismatch {
    /// Returns the mismatch of a request whose kind is exempt from policies.
    pub(crate) fn exempt() -> Self {
        Self { field: MatchField::Exempt, compared: Vec::new() }
    }
}

/// A criterion that excludes a request from a policy or a binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a match that forgets one must not compile")]
pub enum MatchField {
    /// `namespaceSelector` does not match the labels of the namespace.
    NamespaceSelector,
    /// `objectSelector` matches the labels of neither the new nor the old object.
    ObjectSelector,
    /// A rule in `excludeResourceRules` matches the request or an equivalent resource.
    ExcludeResourceRules,
    /// No rule in `resourceRules` matches the request or an equivalent resource.
    ResourceRules,
    /// Policies do not apply to the kind of the request.
    Exempt,
}

/// A policy that matches a request, or that cannot be applied.
#[derive(Clone, Debug)]
pub struct PolicyRecord {
    /// The name of the policy.
    pub policy: Arc<str>,
    /// The failure policy of the policy.
    pub failure_policy: FailurePolicy,
    /// The reason why the policy cannot be applied.
    pub error: Option<String>,
    /// The bindings of the policy, in order; empty if the policy cannot be applied.
    pub bindings: Vec<BindingRecord>,
}

impl PolicyRecord {
    pub(crate) fn new(definition: &Definition) -> Self {
        Self {
            policy: Arc::clone(&definition.name),
            failure_policy: definition.failure_policy,
            error: None,
            bindings: Vec::new(),
        }
    }
}

/// The result of one binding of a policy that matches a request.
#[derive(Clone, Debug)]
pub struct BindingRecord {
    /// The name of the binding.
    pub binding: Arc<str>,
    /// The reason why `matchResources` does not match the request; `None` if the binding matches.
    pub mismatch: Option<PolicyMismatch>,
    /// The reason why the binding cannot be applied.
    pub error: Option<String>,
    /// The actions of the binding.
    pub validation_actions: Vec<ValidationAction>,
    /// Whether the `paramRef` of the binding selects no object, and `parameterNotFoundAction` allows that.
    pub lacks_params: bool,
    /// The evaluations of the policy: one for each param, or one if the binding does not use params.
    pub runs: Vec<PolicyRun>,
}

impl BindingRecord {
    pub(crate) fn new(binding: &Binding, validation_actions: Vec<ValidationAction>) -> Self {
        Self {
            binding: Arc::clone(&binding.name),
            mismatch: None,
            error: None,
            validation_actions,
            lacks_params: false,
            runs: Vec::new(),
        }
    }
}

/// The evaluation of a policy for one binding and one param.
#[derive(Clone, Debug, Default)]
pub struct PolicyRun {
    /// The param, as `NAMESPACE/NAME` or `NAME`; `None` without a param.
    pub param: Option<String>,
    /// The evaluation of the match conditions; `None` if the policy does not have any.
    pub conditions: Option<Evaluation>,
    /// The evaluated expressions and variables, in the order in which their evaluation ended.
    pub expressions: Vec<EvaluatedExpression>,
    /// The decisions: usually one for each validation.
    pub decisions: Vec<Decision>,
    /// The audit annotations.
    pub annotations: Vec<PolicyAnnotation>,
    /// Whether the mutations were applied: the match conditions are true, and in the second round the policy is due.
    pub invoked: bool,
    /// The mutations, in order.
    pub mutations: Vec<MutationRecord>,
    /// The change of the mutations to the object.
    ///
    /// `None` if nothing changed or if the admission run does not explain policies.
    pub change: Option<Box<PolicyChange>>,
}

/// The object before and after the mutations of a policy.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyChange {
    /// The object before the first mutation.
    pub before: Value,
    /// The object after the last mutation, with its defaults.
    pub after: Value,
}

/// The result of one mutation.
#[derive(Clone, Debug)]
pub struct MutationRecord {
    /// The effect on the object, or the reason why the mutation failed.
    pub outcome: Result<MutationEffect, String>,
    /// The duration of the evaluation and of the change.
    pub took: Duration,
}

/// The effect of a mutation that did not fail.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "upstream has these three")]
pub enum MutationEffect {
    /// The object was changed.
    Changed,
    /// The object is the same as before.
    Unchanged,
    /// The operations of a JSON patch were not applied, because an operation `test` failed. Contains the error.
    TestFailed(String),
}

/// An expression with its value and cost.
#[derive(Clone, Debug)]
pub struct EvaluatedExpression {
    /// The part of the policy that contains the expression.
    pub part: ExpressionPart,
    /// The expression, as written.
    pub expression: Arc<str>,
    /// The value in short form, or the error.
    pub value: Result<String, String>,
    /// The cost of the evaluation, without the cost of the variables that it uses.
    pub cost: u64,
}

/// The part of a policy that contains an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExpressionPart {
    /// The variable with this name.
    Variable(Arc<str>),
    /// The validation with this index.
    Validation(usize),
    /// The message expression of the validation with this index.
    MessageExpression(usize),
    /// The audit annotation with this key.
    AuditAnnotation(Arc<str>),
    /// The mutation with this index.
    Mutation(usize),
}

/// The outcome of a validation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "upstream has these four")]
pub enum Verdict {
    /// The expression is true.
    Admitted,
    /// The expression is false.
    Denied,
    /// The evaluation failed, and the failure policy is `Fail`.
    Failed,
    /// The evaluation failed, and the failure policy is `Ignore`.
    Ignored,
}

/// The decision of a validation, or of a policy whose evaluation failed.
#[derive(Clone, Debug)]
pub struct Decision {
    /// The outcome of the validation.
    pub verdict: Verdict,
    /// The message of the violation or failure; empty if the request is admitted.
    pub message: String,
    /// The reason in the Status; empty for a failure.
    pub reason: String,
    /// The duration of the evaluation.
    pub took: Duration,
}

/// An audit annotation of a policy.
#[derive(Clone, Debug)]
pub struct PolicyAnnotation {
    /// The key in the policy.
    pub key: Arc<str>,
    /// The value, or the reason why it is not published.
    pub outcome: AnnotationOutcome,
    /// The duration of the evaluation.
    pub took: Duration,
}

/// The value of an audit annotation, or the reason why it is not published.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "upstream has these three")]
pub enum AnnotationOutcome {
    /// The annotation is published with this value.
    Published(String),
    /// The value is null or empty, or the evaluation failed and the failure policy is `Ignore`.
    Excluded,
    /// The evaluation failed and the failure policy is `Fail`, or the value is not a string or null.
    Failed(String),
}

impl Decision {
    /// Returns whether the actions of the binding apply.
    pub fn is_violation(&self) -> bool {
        matches!(self.verdict, Verdict::Denied | Verdict::Failed)
    }
}
