//! Evaluates a policy for one request, one binding, and one param.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use kubernetes_cel::function::Error;
use kubernetes_cel::value::Value;
use kubernetes_types::status::Unsupported;
use serde_json::Value as Json;
use tokio::time::Instant;

use super::activation::{Activation, ParamInput, Scope, shown};
use super::compilation::{Composition, Expression, NamedExpression};
use super::record::{
    AnnotationOutcome, Decision, EvaluatedExpression, ExpressionPart, PolicyAnnotation, PolicyRun, Verdict,
};
use super::{ValidatingPolicy, Validation};
pub(crate) use crate::attributes::GroupVersionResource;
use crate::conditions::{
    Bindings, CompileError, Evaluated, Evaluation, EvaluationError, OUT_OF_BUDGET, Outcome,
    RUNTIME_CEL_COST_BUDGET_MATCH_CONDITIONS, Subject, outcome,
};
use crate::config::FailurePolicy;

/// The cost budget of all validations of a policy, for one binding and one param.
///
/// Source: apiserver pkg/apis/cel/config.go, `RuntimeCELCostBudget`.
/// Rule: POL-36.
pub(super) const RUNTIME_CEL_COST_BUDGET: u64 = 10_000_000;
/// The maximum length, in bytes, of the value of a message expression.
///
/// Source: apiserver pkg/apis/cel/config.go, `MaxEvaluatedMessageExpressionSizeBytes`.
const MAX_EVALUATED_MESSAGE_EXPRESSION_SIZE_BYTES: usize = 5 * 1024;
/// The maximum length, in bytes, of the value of an audit annotation.
///
/// Source: apiserver pkg/admission/plugin/policy/validating/dispatcher.go, `maxAuditAnnotationValueLength`.
const MAX_AUDIT_ANNOTATION_VALUE_LENGTH: usize = 10 * 1024;

/// The request for which a policy is evaluated.
#[derive(Clone, Copy)]
pub(crate) struct Input<'a> {
    /// The request and its objects, in the version that the policy matches.
    pub(crate) subject: Subject<'a>,
    /// The resource that the policy matches: the request's own, or an equivalent one.
    pub(crate) resource: &'a GroupVersionResource,
    /// The stored namespace of the request for audit annotations and mutations, as a Go struct.
    ///
    /// `None` for cluster-scoped objects and Namespaces, and for a validating policy that does not use
    /// `namespaceObject`.
    pub(crate) namespace: Option<&'a Json>,
    /// The stored namespace with only the fields that other expressions may use.
    pub(crate) visible_namespace: Option<&'a Json>,
}

/// The reason why a sequence of expressions ends early.
pub(super) enum Stop {
    OutOfBudget,
    Unsupported(Unsupported),
}

/// The result of one expression.
pub(super) struct Evaluand<'a> {
    pub(super) value: Result<Value<'a>, String>,
    /// The cost, without the cost of variables.
    cost: u64,
    took: Duration,
}

/// A sequence of expressions that share variables and a cost budget.
pub(super) struct Sequence<'a> {
    activation: Activation<'a>,
    /// The remaining cost budget.
    left: u64,
    /// The evaluated expressions and variables, in the order in which their evaluation ended.
    pub(super) evaluated: Vec<EvaluatedExpression>,
}

impl<'a> Sequence<'a> {
    /// Creates a sequence with a cost budget.
    pub(super) fn new(activation: Activation<'a>, budget: u64) -> Self {
        Self { activation, left: budget, evaluated: Vec::new() }
    }

    /// Evaluates an expression and subtracts its cost and the cost of its variables from the budget.
    ///
    /// Source: apiserver pkg/admission/plugin/cel/activation.go, `Evaluate`.
    /// Rule: POL-35, POL-36.
    pub(super) fn evaluate(
        &mut self,
        expression: &'a Expression,
        part: Option<ExpressionPart>,
    ) -> Result<Evaluand<'a>, Stop> {
        let evaluand = self.evaluate_uncharged(expression, part).map_err(Stop::Unsupported)?;
        self.charge(&evaluand)?;
        Ok(evaluand)
    }

    /// Evaluates an expression. Without a `part`, records only the variables.
    fn evaluate_uncharged(
        &mut self,
        expression: &'a Expression,
        part: Option<ExpressionPart>,
    ) -> Result<Evaluand<'a>, Unsupported> {
        let started = Instant::now();
        let unsupported =
            |what: &str| Unsupported { what: format!("the expression '{}': {what}", expression.text) };
        if let Err(error) = &expression.program {
            if let CompileError::Unsupported(what) = error {
                return Err(unsupported(what));
            }
            let text = format!("compilation error: {error}");
            self.record(expression, part, Err(text.clone()), 0);
            return Ok(Evaluand { value: Err(text), cost: 0, took: Duration::ZERO });
        }
        let (value, cost) = self.activation.evaluate(expression);
        let value = match value {
            Err(Error::Unsupported(what)) => return Err(unsupported(&what)),
            Err(error) => Err(format!("expression '{}' resulted in error: {error}", expression.text)),
            Ok(value) => Ok(value),
        };
        self.record(expression, part, value.as_ref().map(shown).map_err(Clone::clone), cost);
        Ok(Evaluand { value, cost, took: started.elapsed() })
    }

    /// Subtracts the cost of the last expression and of its variables from the budget.
    fn charge(&mut self, evaluand: &Evaluand<'_>) -> Result<(), Stop> {
        for cost in [self.activation.take_cost(), evaluand.cost] {
            self.left = self.left.checked_sub(cost).ok_or(Stop::OutOfBudget)?;
        }
        Ok(())
    }

    fn record(
        &mut self,
        expression: &Expression,
        part: Option<ExpressionPart>,
        value: Result<String, String>,
        cost: u64,
    ) {
        self.evaluated.extend(self.activation.take_evaluated());
        let expression = Arc::clone(&expression.text);
        self.evaluated.extend(part.map(|part| EvaluatedExpression { part, expression, value, cost }));
    }
}

/// Evaluates a policy for one binding and one param.
///
/// Source: apiserver pkg/admission/plugin/policy/validating/validator.go, `Validate`.
/// Rule: POL-30, POL-31, POL-32, POL-33.
///
/// # Errors
/// Returns [`Unsupported`] if an expression uses a feature that admit does not support.
pub(crate) fn validate(
    policy: &ValidatingPolicy,
    input: &Input<'_>,
    param: ParamInput<'_>,
) -> Result<PolicyRun, Unsupported> {
    let failure_policy = policy.definition.failure_policy;
    let composition = &policy.definition.composition;
    let mut run = PolicyRun::default();
    if !composition.match_conditions.is_empty() {
        let evaluation = match_conditions(composition, input, param, &mut run.expressions)?;
        let error = evaluation.error().map(str::to_owned);
        let matches = evaluation.outcome == Outcome::True;
        run.conditions = Some(evaluation);
        match (error, failure_policy) {
            (Some(error), FailurePolicy::Fail) => {
                run.decisions = vec![failed(failure_policy, error, Duration::ZERO)];
                return Ok(run);
            }
            (Some(_), FailurePolicy::Ignore) => return Ok(run),
            (None, _) if !matches => return Ok(run),
            (None, _) => {}
        }
    }
    let request = OnceLock::new();
    let sequence = |namespace, authorizer, left| {
        let bindings = Bindings::new(&input.subject, &request).with_resource(input.resource);
        let scope = Scope { params: param, namespace, authorizer };
        Sequence::new(Activation::new(bindings, scope, &composition.variables), left)
    };
    let mut validations = sequence(input.visible_namespace, true, RUNTIME_CEL_COST_BUDGET);
    let results = all(&policy.validations, |index, validation| {
        validations.evaluate(&validation.expression, Some(ExpressionPart::Validation(index))).map(Some)
    });
    run.expressions.append(&mut validations.evaluated);
    let results = match results {
        Ok(results) => results,
        Err(stop) => return ended(stop, failure_policy, run),
    };
    let mut messages = sequence(input.visible_namespace, false, validations.left);
    let texts = all(&policy.validations, |index, validation| {
        let part = Some(ExpressionPart::MessageExpression(index));
        let expression = validation.message_expression.as_ref();
        expression.map(|expression| messages.evaluate(expression, part)).transpose()
    });
    run.expressions.append(&mut messages.evaluated);
    let texts = match texts {
        Ok(texts) => Some(texts),
        Err(Stop::OutOfBudget) => None,
        Err(Stop::Unsupported(unsupported)) => return Err(unsupported),
    };
    run.decisions = (results.into_iter().flatten().zip(&policy.validations).enumerate())
        .map(|(index, (result, validation))| match (result.value, &texts) {
            (Err(error), _) => failed(failure_policy, error, result.took),
            (Ok(_), None) => {
                failed(failure_policy, format!("failed messageExpression: {OUT_OF_BUDGET}"), result.took)
            }
            (Ok(Value::Bool(true)), Some(_)) => Decision {
                verdict: Verdict::Admitted,
                message: String::new(),
                reason: String::new(),
                took: result.took,
            },
            (Ok(_), Some(texts)) => {
                let text = texts.get(index).and_then(Option::as_ref);
                denied(validation, text.and_then(|text| text.value.as_ref().ok()), result.took)
            }
        })
        .collect();
    let mut annotations = sequence(input.namespace, false, RUNTIME_CEL_COST_BUDGET);
    let values = all(&policy.audit_annotations, |_, NamedExpression { name, expression }| {
        let part = Some(ExpressionPart::AuditAnnotation(Arc::clone(name)));
        annotations.evaluate(expression, part).map(Some)
    });
    run.expressions.append(&mut annotations.evaluated);
    match values {
        Ok(values) => {
            let values = values.into_iter().flatten().zip(&policy.audit_annotations);
            run.annotations = values
                .map(|(value, annotation)| self::annotation(annotation, &value, failure_policy))
                .collect();
            Ok(run)
        }
        Err(stop) => ended(stop, failure_policy, run),
    }
}

/// Evaluates the items in order until `evaluate` returns a [`Stop`].
fn all<'a, T, R>(
    items: &'a [T],
    mut evaluate: impl FnMut(usize, &'a T) -> Result<Option<R>, Stop>,
) -> Result<Vec<Option<R>>, Stop> {
    items.iter().enumerate().map(|(index, item)| evaluate(index, item)).collect()
}

/// Returns the result of a sequence that ended early: one failure instead of all decisions, or [`Unsupported`].
fn ended(stop: Stop, policy: FailurePolicy, mut run: PolicyRun) -> Result<PolicyRun, Unsupported> {
    match stop {
        Stop::OutOfBudget => {
            run.decisions = vec![failed(policy, OUT_OF_BUDGET.to_owned(), Duration::ZERO)];
            Ok(run)
        }
        Stop::Unsupported(unsupported) => Err(unsupported),
    }
}

fn failed(policy: FailurePolicy, message: String, took: Duration) -> Decision {
    let verdict = match policy {
        FailurePolicy::Fail => Verdict::Failed,
        FailurePolicy::Ignore => Verdict::Ignored,
    };
    Decision { verdict, message, reason: String::new(), took }
}

/// Returns the decision for a validation that is false, with its message.
///
/// Rule: POL-31, POL-32.
fn denied(validation: &Validation, text: Option<&Value<'_>>, took: Duration) -> Decision {
    let text = text.and_then(Value::as_str).map_or("", str::trim);
    let is_usable = text.len() <= MAX_EVALUATED_MESSAGE_EXPRESSION_SIZE_BYTES && !text.contains('\n');
    let message = match (text, validation.message.trim()) {
        (text, _) if is_usable && !text.is_empty() => text.to_owned(),
        (_, "") => format!("failed expression: {}", validation.expression.text.trim()),
        (_, message) => message.to_owned(),
    };
    let reason = if validation.reason.is_empty() { "Invalid" } else { &validation.reason };
    Decision { verdict: Verdict::Denied, message, reason: reason.to_owned(), took }
}

/// Returns an audit annotation with its value, or with the reason why it is not published.
///
/// Rule: POL-40, POL-41.
fn annotation(
    annotation: &NamedExpression,
    evaluand: &Evaluand<'_>,
    policy: FailurePolicy,
) -> PolicyAnnotation {
    let outcome = match (&evaluand.value, policy) {
        (Err(error), FailurePolicy::Fail) => AnnotationOutcome::Failed(error.clone()),
        (Err(_), FailurePolicy::Ignore) | (Ok(Value::Null), _) => AnnotationOutcome::Excluded,
        (Ok(value), _) => match value.as_str().map(str::trim) {
            Some("") => AnnotationOutcome::Excluded,
            Some(text) => AnnotationOutcome::Published(cut(text).to_owned()),
            None => AnnotationOutcome::Failed(format!(
                "valueExpression '{}' resulted in unsupported return type: {}. Return type must be either string or null.",
                annotation.expression.text,
                value.type_name()
            )),
        },
    };
    PolicyAnnotation { key: Arc::clone(&annotation.name), outcome, took: evaluand.took }
}

/// Truncates the value of an audit annotation. A character at the limit is removed as a whole.
fn cut(text: &str) -> &str {
    let end =
        (0..=MAX_AUDIT_ANNOTATION_VALUE_LENGTH.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    end.and_then(|end| text.get(..end)).unwrap_or(text)
}

/// Evaluates the match conditions, with the request's own resource and without `namespaceObject`.
///
/// Source: apiserver pkg/admission/plugin/webhook/matchconditions/matcher.go, `Match`.
/// Rule: POL-20, POL-21.
pub(crate) fn match_conditions(
    composition: &Composition,
    input: &Input<'_>,
    param: ParamInput<'_>,
    expressions: &mut Vec<EvaluatedExpression>,
) -> Result<Evaluation, Unsupported> {
    let started = Instant::now();
    let request = OnceLock::new();
    let bindings = Bindings::new(&input.subject, &request);
    let scope = Scope { params: param, namespace: None, authorizer: true };
    let activation = Activation::new(bindings, scope, &composition.variables);
    let mut sequence = Sequence::new(activation, RUNTIME_CEL_COST_BUDGET_MATCH_CONDITIONS);
    let mut conditions = Vec::with_capacity(composition.match_conditions.len());
    let mut out_of_budget = false;
    for NamedExpression { name, expression } in &composition.match_conditions {
        // The condition belongs to the returned evaluation; its variables stay in `expressions`.
        let evaluand = sequence.evaluate_uncharged(expression, None)?;
        out_of_budget = sequence.charge(&evaluand).is_err();
        let Evaluand { value, cost, took } = evaluand;
        let value = value.map(|value| matches!(value, Value::Bool(true))).map_err(EvaluationError::Server);
        let expression = Arc::clone(&expression.text);
        conditions.push(Evaluated { name: Arc::clone(name), expression, value, cost, took });
        if out_of_budget {
            break;
        }
    }
    expressions.append(&mut sequence.evaluated);
    let outcome = if out_of_budget { Outcome::OutOfBudget } else { outcome(&conditions) };
    Ok(Evaluation { conditions, outcome, took: started.elapsed() })
}
