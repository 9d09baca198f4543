//! Validates the defaults of a schema.
//!
//! Source: apiextensions-apiserver pkg/apiserver/schema/defaulting/validation.go.

use serde_json::Value;

use super::super::coerce::{self, displayed};
use super::super::parse::parse;
use super::super::pruning::prune_part;
use super::super::{Purpose, rules, validation};
use super::{nested, properties};
use crate::schema as types;
use crate::status::{FieldError, Unsupported};

/// Returns the validation errors of all defaults in a schema.
pub(super) fn errors(schema: &Value, path: &str) -> Result<Vec<FieldError>, Unsupported> {
    let mut errors = Vec::new();
    visit(schema, path, &mut errors)?;
    Ok(errors)
}

fn visit(schema: &Value, path: &str, errors: &mut Vec<FieldError>) -> Result<(), Unsupported> {
    if let Some(default) = schema.get("default").filter(|default| !default.is_null()) {
        errors.extend(judge(schema, default, &format!("{path}.default"))?);
    }
    if let Some(items) = nested(schema, "items") {
        visit(items, &format!("{path}.items"), errors)?;
    }
    for (name, property) in properties(schema) {
        visit(property, &format!("{path}.properties[{name}]"), errors)?;
    }
    Ok(())
}

fn judge(schema: &Value, default: &Value, path: &str) -> Result<Vec<FieldError>, Unsupported> {
    let parsed = parse(schema)?;
    let mut default = default.clone();
    types::normalize_numbers(&mut default);
    let mut errors = Vec::new();
    let mut pruned = default.clone();
    prune_part(&mut pruned, &parsed);
    if pruned != default {
        errors.push(FieldError::invalid(path, displayed(&default), "must not have unknown fields"));
    }
    let below = |error: FieldError| {
        let field = if error.field == "<nil>" { path.to_owned() } else { format!("{path}.{}", error.field) };
        FieldError { field, ..error }
    };
    let mut coerced = default.clone();
    if let Err(error) = coerce::coerce(&mut coerced, &parsed, false) {
        errors.push(below(error));
        return Ok(errors);
    }
    let embedded = coerce::errors(&coerced, &parsed);
    if !embedded.is_empty() {
        errors.extend(embedded.into_iter().map(below));
        return Ok(errors);
    }
    let wrong = validation::errors(&parsed, &coerced, None, Purpose::Object)?;
    if !wrong.is_empty() {
        errors.extend(wrong.into_iter().map(below));
        return Ok(errors);
    }
    let Some(rules) = rules::rules(schema)? else { return Ok(errors) };
    // Validate as an unchanged object and as a new one.
    let unchanged = rules.judge_strictly(&coerced, Some(&coerced))?;
    let found = if unchanged.errors.is_empty() { rules.judge_strictly(&coerced, None)? } else { unchanged };
    errors.extend(found.errors.into_iter().map(below));
    Ok(errors)
}
