//! Evaluates `matchConditions`: CEL expressions that decide whether a webhook is called.

mod evaluation;
mod expression;
pub mod partial;
mod request;
mod variables;

use std::sync::{Arc, OnceLock};

use tokio::time::Instant;

pub(crate) use self::evaluation::outcome;
pub use self::evaluation::{Evaluated, Evaluation, EvaluationError, OUT_OF_BUDGET, Outcome};
pub use self::expression::{CompileError, Environment, Expression, compile, compile_in, declarations};
pub use self::partial::{KnownFields, constant_error, constant_error_of, constant_value};
pub(crate) use self::variables::variable_error;
pub use self::variables::{Bindings, Subject};

/// The cost budget of all conditions of a webhook together.
///
/// Source: apiserver pkg/apis/cel/config.go, `RuntimeCELCostBudgetMatchConditions`.
/// Rule: MC-14.
pub const RUNTIME_CEL_COST_BUDGET_MATCH_CONDITIONS: u64 = 2_500_000;

/// One entry of a webhook's `matchConditions`.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "a condition has these parts")]
pub struct Condition {
    /// The `name` of the condition.
    pub name: Arc<str>,
    /// The `expression` of the condition, as written.
    pub text: Arc<str>,
    /// The compiled expression. If a stored expression does not compile, each evaluation fails with the error.
    pub expression: Result<Expression, CompileError>,
}

/// Compares names and source texts; the source text determines the compiled expression.
impl PartialEq for Condition {
    fn eq(&self, other: &Self) -> bool {
        (&self.name, &self.text) == (&other.name, &other.text)
    }
}

impl Condition {
    /// Creates a condition with the rules for stored expressions.
    ///
    /// Rule: MC-09.
    pub fn new(name: &str, text: &str) -> Self {
        Self { expression: compile(text, Environment::Stored), name: name.into(), text: text.into() }
    }

    /// Returns whether the expression uses `variable`.
    pub fn mentions(&self, variable: &str) -> bool {
        self.expression.as_ref().is_ok_and(|expression| expression.program().mentions(variable))
    }
}

/// Evaluates all `conditions` for `subject`, regardless of the values of earlier ones, until the budget runs out.
///
/// Source: apiserver pkg/admission/plugin/cel/condition.go, `ForInput`, and activation.go, `Evaluate`;
/// pkg/admission/plugin/webhook/matchconditions/matcher.go.
/// Rule: MC-09, MC-10, MC-15, MC-16.
pub fn evaluate(conditions: &[Condition], subject: &Subject<'_>) -> Evaluation {
    let started = Instant::now();
    let request = OnceLock::new();
    let variables = variables::Bindings::new(subject, &request);
    let mut evaluated = Vec::with_capacity(conditions.len());
    let mut left = RUNTIME_CEL_COST_BUDGET_MATCH_CONDITIONS;
    let mut out_of_budget = false;
    for condition in conditions {
        let began = Instant::now();
        let (value, cost) = match &condition.expression {
            Ok(expression) => expression.evaluate(&variables),
            Err(CompileError::Unsupported(what)) => (Err(EvaluationError::Unsupported(what.clone())), 0),
            Err(error) => (Err(EvaluationError::Server(format!("compilation error: {error}"))), 0),
        };
        evaluated.push(Evaluated {
            name: Arc::clone(&condition.name),
            expression: Arc::clone(&condition.text),
            value,
            cost,
            took: began.elapsed(),
        });
        let Some(rest) = left.checked_sub(cost) else {
            out_of_budget = true;
            break;
        };
        left = rest;
    }
    let outcome = if out_of_budget { Outcome::OutOfBudget } else { evaluation::outcome(&evaluated) };
    Evaluation { conditions: evaluated, outcome, took: started.elapsed() }
}
