//! Compiles the CEL expressions of match conditions once, and evaluates them for each request.

use std::sync::LazyLock;

use kubernetes_cel::environment;
use kubernetes_cel::function::Error;
use kubernetes_cel::kubernetes::{self, Expressions, RELEASE, Variables, with_admission_variables};
use kubernetes_cel::types::Type;
use kubernetes_cel::value::Value;
use kubernetes_cel::{Limits, Program};

use super::evaluation::EvaluationError;
use super::variables::Bindings;

/// The compatibility rules for an expression.
///
/// New expressions may use only features that the previous release supports, so that the server can be rolled back.
///
/// Source: apiserver pkg/cel/environment/environment.go, `NewExpressions` and `StoredExpressions`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "upstream has these two")]
pub enum Environment {
    /// The rules for new and changed expressions.
    New,
    /// The rules for stored expressions.
    Stored,
}

/// The compiled CEL expression of a match condition.
#[derive(Clone, Debug)]
pub struct Expression(Program);

/// The reason why an expression does not compile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(
    clippy::exhaustive_enums,
    reason = "upstream has two types of errors, and what admit does not support"
)]
pub enum CompileError {
    /// The expression is invalid. Contains kube-apiserver's error message.
    #[error("{0}")]
    Invalid(String),
    /// The expression is valid, but no program can be created from it. Contains kube-apiserver's error message.
    #[error("{0}")]
    Internal(String),
    /// The expression uses a feature that admit does not support.
    #[error("{0}")]
    Unsupported(String),
}

static NEW: LazyLock<environment::Environment> = LazyLock::new(|| declared(Expressions::New));
static STORED: LazyLock<environment::Environment> = LazyLock::new(|| declared(Expressions::Stored));

/// Returns the CEL environment for match conditions.
///
/// Source: apiserver pkg/admission/plugin/webhook/accessors.go, `GetCompiledMatcher`.
/// Rule: MC-02.
fn declared(expressions: Expressions) -> environment::Environment {
    let variables = Variables { params: false, authorizer: true };
    with_admission_variables(kubernetes::environment(RELEASE, expressions), variables)
}

/// Returns the variables and functions that match conditions may use.
pub fn declarations(environment: Environment) -> &'static environment::Environment {
    match environment {
        Environment::New => &NEW,
        Environment::Stored => &STORED,
    }
}

/// Compiles the expression of a match condition.
///
/// # Errors
/// Returns [`CompileError`] if the expression is invalid, does not return a bool, or uses a feature that admit does not
/// support.
///
/// Source: apiserver pkg/admission/plugin/cel/compile.go, `CompileCELExpression`; kubernetes
/// pkg/apis/admissionregistration/validation/validation.go, `convertCELErrorToValidationError`.
pub fn compile(text: &str, environment: Environment) -> Result<Expression, CompileError> {
    compile_in(declarations(environment), text, check_type).map(Expression)
}

/// Compiles an expression whose static type `check` accepts.
///
/// # Errors
/// Returns [`CompileError`] if the expression is invalid, has a type that `check` rejects, or uses a feature that admit
/// does not support.
///
/// Source: apiserver pkg/admission/plugin/cel/compile.go, `CompileCELExpression`.
pub fn compile_in(
    declared: &environment::Environment,
    text: &str,
    check: impl Fn(&Type) -> Result<(), CompileError>,
) -> Result<Program, CompileError> {
    match declared.compile(text) {
        Ok(program) => check(program.result_type()).map(|()| program),
        Err(error) => Err(match &error {
            environment::CompileError::Invalid(_) => CompileError::Invalid(error.to_string()),
            // If the expression also has the wrong type, report that error instead.
            environment::CompileError::Instantiation(_) => declared
                .type_of(text)
                .map_err(|error| CompileError::Invalid(error.to_string()))
                .and_then(|found| check(&found))
                .map_or_else(|error| error, |()| CompileError::Internal(error.to_string())),
            environment::CompileError::Unsupported(what) => CompileError::Unsupported(what.clone()),
            _ => CompileError::Unsupported(error.to_string()),
        }),
    }
}

/// Checks that a condition has the static type `bool`; `dyn` is rejected.
///
/// Rule: MC-04, VLD-29.
fn check_type(found: &Type) -> Result<(), CompileError> {
    if found.is_bool() {
        return Ok(());
    }
    Err(CompileError::Invalid(format!("must evaluate to bool but got {}", found.runtime_text())))
}

impl Expression {
    /// Returns the compiled program.
    pub(super) fn program(&self) -> &Program {
        &self.0
    }

    /// Evaluates the expression. Returns its value or error, and the cost.
    ///
    /// Source: apiserver pkg/admission/plugin/cel/activation.go, `Evaluate`.
    /// Rule: MC-13.
    pub(super) fn evaluate(&self, variables: &Bindings<'_>) -> (Result<bool, EvaluationError>, u64) {
        let evaluation = self.0.evaluate(variables, &Limits::default());
        let value = match evaluation.value {
            Ok(Value::Bool(value)) => Ok(value),
            // The type check has already ensured a bool.
            Ok(other) => Err(EvaluationError::Server(format!("{other} is not a bool"))),
            Err(Error::Unsupported(what)) => Err(EvaluationError::Unsupported(what)),
            Err(error) => {
                let text = format!("expression '{}' resulted in error: {error}", self.0.source());
                Err(EvaluationError::Server(text))
            }
        };
        (value, evaluation.cost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, environment: Environment, expected: &Result<(), CompileError>) {
        assert_eq!(compile(text, environment).map(drop), *expected, "{text}");
    }

    #[test]
    fn a_condition_must_be_a_bool_with_valid_constants() {
        let invalid = |text: &str| Err(CompileError::Invalid(text.to_owned()));
        check("object.a == 1", Environment::New, &Ok(()));
        check("google.protobuf.BoolValue{value: true}", Environment::New, &Ok(()));
        check("6", Environment::New, &invalid("must evaluate to bool but got int"));
        check("object.a", Environment::New, &invalid("must evaluate to bool but got dyn"));
        check("int('x')", Environment::New, &invalid("must evaluate to bool but got int"));
        let internal = "program instantiation failed: type conversion error from 'string' to 'int'";
        check("int('x') == 1", Environment::New, &Err(CompileError::Internal(internal.to_owned())));
        let undeclared = "compilation failed: ERROR: <input>:1:1: undeclared reference to 'params' (in container '')\n \
                          | params == null\n | ^";
        check("params == null", Environment::New, &invalid(undeclared));
    }

    #[test]
    fn a_new_expression_may_use_only_previous_release_features() {
        let expression = "[1, 2].includes(1)";
        check(expression, Environment::Stored, &Ok(()));
        assert!(matches!(compile(expression, Environment::New), Err(CompileError::Invalid(_))));
    }
}
