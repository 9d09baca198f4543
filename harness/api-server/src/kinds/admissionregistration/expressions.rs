//! Validates the CEL expressions of policies.

use std::collections::HashSet;

use kubernetes_admission::conditions::{CompileError, Environment};
use kubernetes_admission::policy_expressions::{PolicyExpressions, Purpose};
use kubernetes_cel::schema::is_keyword;
use kubernetes_types::status::FieldError;
use serde_json::Value;

use crate::kinds::common::fields::{Errors, Path, list, text};
use crate::kinds::common::formats;

/// The expressions in a part of the stored policy.
///
/// Unlike new expressions, they may use features that the previous release does not support.
#[derive(Debug, Default)]
pub(crate) struct Stored<'a>(HashSet<&'a str>);

impl<'a> Stored<'a> {
    /// Collects the expressions in the `field` of all `items`.
    pub(crate) fn new(items: &'a [Value], field: &str) -> Self {
        Self(items.iter().map(|item| text(item, field)).collect())
    }

    /// Returns the CEL environment for compiling an expression.
    pub(crate) fn environment(&self, expression: &str) -> Environment {
        if self.0.contains(expression) { Environment::Stored } else { Environment::New }
    }
}

impl<'a> FromIterator<&'a str> for Stored<'a> {
    fn from_iter<I: IntoIterator<Item = &'a str>>(expressions: I) -> Self {
        Self(expressions.into_iter().collect())
    }
}

/// Adds an error for an expression that does not compile. The error contains `shown` as the value of the field.
///
/// Source: kubernetes pkg/apis/admissionregistration/validation/validation.go, `convertCELErrorToValidationError`.
pub(crate) fn report<T>(
    errors: &mut Errors,
    path: &Path<'_>,
    shown: &str,
    compiled: Result<T, CompileError>,
) {
    match compiled {
        Ok(_) => {}
        Err(CompileError::Invalid(detail)) => errors.invalid_text(path, shown, detail),
        Err(CompileError::Internal(detail)) => errors.push(FieldError::internal(path.to_string(), detail)),
        Err(CompileError::Unsupported(what)) => {
            errors.cannot_validate(&format!("this expression of a policy: {what}"));
        }
    }
}

/// Validates match conditions. They cannot use `variables`.
///
/// Source: kubernetes pkg/apis/admissionregistration/validation/validation.go, `validateMatchConditions`.
pub(crate) fn match_conditions(
    errors: &mut Errors,
    path: &Path<'_>,
    conditions: &[Value],
    params: bool,
    stored: &Stored<'_>,
) {
    const MAX_MATCH_CONDITIONS: usize = 64;
    if conditions.len() > MAX_MATCH_CONDITIONS {
        errors.too_many(path, conditions.len(), MAX_MATCH_CONDITIONS);
    }
    let mut expressions = PolicyExpressions::without_variables(params);
    let mut seen = HashSet::new();
    for (index, condition) in conditions.iter().enumerate() {
        let path = path.index(index);
        let (expression_path, expression) = (path.child("expression"), text(condition, "expression").trim());
        if expression.is_empty() {
            errors.required(&expression_path, "");
        } else {
            let environment = stored.environment(expression);
            let compiled = expressions.compile(expression, Purpose::Condition, environment);
            report(errors, &expression_path, expression, compiled);
        }
        let (path, name) = (path.child("name"), text(condition, "name"));
        if name.is_empty() {
            errors.required(&path, "");
            continue;
        }
        formats::qualified_name(errors, &path, name);
        if !seen.insert(name) {
            errors.duplicate(&path, name);
        }
    }
}

/// Validates the variables of a policy, and declares each for the expressions after it.
///
/// Source: kubernetes pkg/apis/admissionregistration/validation/validation.go, `validateVariable`.
pub(crate) fn variables(
    errors: &mut Errors,
    path: &Path<'_>,
    spec: &Value,
    expressions: &mut PolicyExpressions,
    stored: &Stored<'_>,
) {
    let path = path.child("variables");
    for (index, variable) in list(spec, "variables").iter().enumerate() {
        let path = path.index(index);
        let (name, expression) = (text(variable, "name"), text(variable, "expression"));
        if name.trim().is_empty() {
            errors.required(&path.child("name"), "name is not specified");
        } else if !is_identifier(name) {
            errors.invalid_text(&path.child("name"), name, "must be a valid CEL identifier");
        }
        if expression.trim().is_empty() {
            errors.required(&path.child("expression"), "expression is not specified");
        } else {
            let compiled = expressions.compile_variable(name, expression, stored.environment(expression));
            report(errors, &path.child("expression"), expression, compiled);
        }
    }
}

/// Returns whether a name is a CEL identifier that is not reserved.
///
/// Source: kubernetes pkg/apis/admissionregistration/validation/validation.go, `isCELIdentifier`.
fn is_identifier(name: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    !name.starts_with(|first: char| first.is_ascii_digit())
        && !name.is_empty()
        && name.bytes().all(is_word)
        && !is_keyword(name)
}
