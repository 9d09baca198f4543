//! Validates the match conditions of a webhook.

use std::collections::BTreeSet;

use kubernetes_types::names;
use serde_json::Value;

use super::super::{list, text};
use super::error::Errors;
use crate::conditions::{CompileError, Environment, compile};

const MAX_MATCH_CONDITIONS: usize = 64;

/// Returns the expressions of all match conditions in `webhooks`.
pub(super) fn expressions(webhooks: &[Value]) -> BTreeSet<&str> {
    let conditions = webhooks.iter().flat_map(|webhook| list(webhook, "matchConditions"));
    conditions.filter_map(|condition| text(condition, "expression")).collect()
}

/// Validates the match conditions of a webhook.
///
/// `stored` contains the expressions of the webhooks that an update replaces. These expressions may use features that
/// only this release supports. Expressions are trimmed before they are compared and compiled.
///
/// Source: kubernetes pkg/apis/admissionregistration/validation/validation.go, `validateMatchConditions`,
/// `validateMatchCondition`, `validateMatchConditionsExpression` and `convertCELErrorToValidationError`.
/// Rule: VLD-27, VLD-28, VLD-29, VLD-30.
pub(super) fn validate(
    conditions: &[Value],
    stored: Option<&BTreeSet<&str>>,
    path: &str,
    errors: &mut Errors,
) {
    if conditions.len() > MAX_MATCH_CONDITIONS {
        errors.too_many(path, conditions.len(), MAX_MATCH_CONDITIONS);
    }
    let mut seen = BTreeSet::new();
    for (index, condition) in conditions.iter().enumerate() {
        let expression = text(condition, "expression").unwrap_or_default().trim();
        let is_stored = stored.is_some_and(|stored| stored.contains(expression));
        let environment = if is_stored { Environment::Stored } else { Environment::New };
        validate_expression(expression, environment, format!("{path}[{index}].expression"), errors);
        let name_path = format!("{path}[{index}].name");
        let name = text(condition, "name").unwrap_or_default();
        if name.is_empty() {
            errors.required(name_path, "");
            continue;
        }
        errors.all_invalid(&name_path, name, &names::label_key(name));
        if !seen.insert(name) {
            errors.duplicate(name_path, name);
        }
    }
}

fn validate_expression(expression: &str, environment: Environment, path: String, errors: &mut Errors) {
    if expression.is_empty() {
        errors.required(path, "");
        return;
    }
    match compile(expression, environment) {
        // Unsupported features are reported when the configuration is read.
        Ok(_) | Err(CompileError::Unsupported(_)) => {}
        Err(CompileError::Invalid(detail)) => errors.invalid(path, expression, &detail),
        Err(CompileError::Internal(detail)) => errors.internal(path, &detail),
    }
}
