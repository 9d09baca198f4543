//! Compiles the expressions of policies.

use std::sync::Arc;

use kubernetes_cel::Program;

use crate::conditions::{CompileError, Environment};
use crate::policy_expressions::{PolicyExpressions, Purpose};

/// A compiled expression.
#[derive(Clone, Debug)]
pub struct Expression {
    /// The expression, as written.
    pub text: Arc<str>,
    /// The program, or the reason why the expression does not compile.
    pub program: Result<Program, CompileError>,
}

impl Expression {
    /// Compiles a stored expression.
    pub(super) fn new(text: &str, purpose: Purpose, declared: &mut PolicyExpressions) -> Self {
        Self { text: text.into(), program: declared.compile(text, purpose, Environment::Stored) }
    }

    /// Returns whether the expression uses `variable`.
    pub(super) fn mentions(&self, variable: &str) -> bool {
        self.program.as_ref().is_ok_and(|program| program.mentions(variable))
    }
}

/// A compiled expression with a name or a key.
#[derive(Clone, Debug)]
pub struct NamedExpression {
    /// The name or the key.
    pub name: Arc<str>,
    /// The compiled expression.
    pub expression: Expression,
}

impl NamedExpression {
    /// Compiles a stored expression with a name or a key.
    pub(super) fn new(name: &str, text: &str, purpose: Purpose, declared: &mut PolicyExpressions) -> Self {
        Self { name: name.into(), expression: Expression::new(text, purpose, declared) }
    }

    /// Compiles a stored variable and declares it for all expressions that are compiled later.
    pub(super) fn variable(name: &str, text: &str, declared: &mut PolicyExpressions) -> Self {
        let program = declared.compile_variable(name, text, Environment::Stored);
        Self { name: name.into(), expression: Expression { text: text.into(), program } }
    }
}

/// The variables and the match conditions of a policy.
#[derive(Clone, Debug, Default)]
pub struct Composition {
    /// `spec.variables`, in order.
    pub variables: Vec<NamedExpression>,
    /// `spec.matchConditions`, in order.
    pub match_conditions: Vec<NamedExpression>,
}

/// One entry of `spec.validations`.
#[derive(Clone, Debug)]
pub struct Validation {
    /// The compiled `expression`.
    pub expression: Expression,
    /// `message`; may be empty.
    pub message: String,
    /// `reason`; may be empty.
    pub reason: String,
    /// `messageExpression`, if set.
    pub message_expression: Option<Expression>,
}
