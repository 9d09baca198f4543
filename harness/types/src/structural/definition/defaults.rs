//! Validates the defaults of a schema.
//!
//! Source: apiextensions-apiserver pkg/apiserver/schema/defaulting/validation.go.

use serde_json::{Value, json};

use super::super::coerce::{self, displayed};
use super::super::parse::parse;
use super::super::pruning::prune_part;
use super::super::{Purpose, rules, validation};
use super::{nested, properties};
use crate::json::set;
use crate::schema as types;
use crate::status::{FieldError, Unsupported, aggregate};

/// The fields of an embedded object that have a Go type.
const META_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// One step on the path from an object to one of its parts.
#[derive(Clone, Copy, Debug)]
enum Step<'a> {
    Member(&'a str),
    Item,
}

/// The object whose metadata contains a default.
#[derive(Clone, Debug)]
struct Surroundings<'a> {
    /// The schema of the object, with `x-kubernetes-embedded-resource`.
    root: &'a Value,
    /// The steps from the object to the default.
    steps: Vec<Step<'a>>,
}

impl<'a> Surroundings<'a> {
    fn with(&self, step: Step<'a>) -> Self {
        let mut steps = self.steps.clone();
        steps.push(step);
        Self { root: self.root, steps }
    }

    /// Returns an object that contains `default` at its path.
    ///
    /// Source: apiextensions-apiserver pkg/apiserver/schema/defaulting/surroundingobject.go, `NewRootObjectFunc`.
    fn around(&self, default: Value) -> Value {
        let mut object = self.steps.iter().rev().fold(default, |part, step| match step {
            Step::Member(name) => json!({(*name): part}),
            Step::Item => json!([part]),
        });
        for (name, value) in [("apiVersion", "validation/v1"), ("kind", "Validation")] {
            if object.get(name).is_none() {
                set(&mut object, &[name], value);
            }
        }
        object
    }
}

/// Returns the validation errors of all defaults in a schema.
pub(super) fn errors(schema: &Value, path: &str) -> Result<Vec<FieldError>, Unsupported> {
    let mut errors = Vec::new();
    // Source: apiextensions-apiserver pkg/apiserver/schema/defaulting/validation.go, `ValidateDefaults`.
    let mut root = schema.clone();
    set(&mut root, &["x-kubernetes-embedded-resource"], true);
    visit(&root, path, None, &mut errors)?;
    Ok(errors)
}

/// Validates the defaults of a schema; `surroundings` is `None` outside of metadata.
fn visit<'a>(
    schema: &'a Value,
    path: &str,
    surroundings: Option<&Surroundings<'a>>,
    errors: &mut Vec<FieldError>,
) -> Result<(), Unsupported> {
    let is_object = schema.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true));
    let surroundings = surroundings.filter(|_| !is_object);
    if let Some(default) = schema.get("default").filter(|default| !default.is_null()) {
        errors.extend(judge(schema, default, surroundings, &format!("{path}.default"))?);
    }
    if let Some(items) = nested(schema, "items") {
        let inner = surroundings.map(|around| around.with(Step::Item));
        visit(items, &format!("{path}.items"), inner.as_ref(), errors)?;
    }
    for (name, property) in properties(schema) {
        let step = Step::Member(name);
        let inner = match surroundings {
            Some(around) => Some(around.with(step)),
            None if is_object && META_FIELDS.contains(&name.as_str()) => {
                Some(Surroundings { root: schema, steps: vec![step] })
            }
            None => None,
        };
        visit(property, &format!("{path}.properties[{name}]"), inner.as_ref(), errors)?;
    }
    Ok(())
}

/// Normalizes the metadata of the embedded objects in all defaults of a schema, as their validation does in place.
///
/// # Errors
/// Returns [`Unsupported`] if the schema uses a feature that admit does not support.
///
/// Rule: SCH-21.
pub(super) fn coerce(schema: &mut Value, is_root: bool) -> Result<(), Unsupported> {
    let is_object = is_root || schema.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true));
    if schema.get("default").is_some_and(|default| !default.is_null()) {
        let parsed = parse(schema)?;
        if let Some(default) = schema.get_mut("default") {
            // Validation has reported the errors.
            let _ = coerce::coerce(default, &parsed, false);
        }
    }
    if let Some(items) = schema.get_mut("items").filter(|items| items.is_object()) {
        coerce(items, false)?;
    }
    for (name, property) in schema.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten()
    {
        // A default in metadata is validated in a copy.
        if !(is_object && META_FIELDS.contains(&name.as_str())) {
            coerce(property, false)?;
        }
    }
    Ok(())
}

fn judge(
    schema: &Value,
    default: &Value,
    surroundings: Option<&Surroundings<'_>>,
    path: &str,
) -> Result<Vec<FieldError>, Unsupported> {
    let parsed = parse(schema)?;
    let mut default = default.clone();
    types::normalize_numbers(&mut default);
    let mut errors = Vec::new();
    let below = |error: FieldError| {
        let field = if error.field == "<nil>" { path.to_owned() } else { format!("{path}.{}", error.field) };
        FieldError { field, ..error }
    };
    let coerced = if let Some(surroundings) = surroundings {
        if let Some(why) = wrong_metadata(surroundings, &default)? {
            let why = format!("must result in valid metadata: {why}");
            return Ok(vec![FieldError::invalid(path, displayed(&default), why)]);
        }
        default
    } else {
        let mut pruned = default.clone();
        prune_part(&mut pruned, &parsed);
        if pruned != default {
            errors.push(FieldError::invalid(path, displayed(&default), "must not have unknown fields"));
        }
        let mut coerced = default;
        if let Err(error) = coerce::coerce(&mut coerced, &parsed, false) {
            errors.push(below(error));
            return Ok(errors);
        }
        let embedded = coerce::errors(&coerced, &parsed);
        if !embedded.is_empty() {
            errors.extend(embedded.into_iter().map(below));
            return Ok(errors);
        }
        coerced
    };
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

/// Returns the reason why an object with this default has invalid metadata; `None` if its metadata is valid.
///
/// Rule: SCH-21.
fn wrong_metadata(surroundings: &Surroundings<'_>, default: &Value) -> Result<Option<String>, Unsupported> {
    let (mut object, root) = (surroundings.around(default.clone()), parse(surroundings.root)?);
    if let Err(error) = coerce::coerce(&mut object, &root, false) {
        return Ok(Some(error.to_string()));
    }
    let errors = coerce::errors(&object, &root);
    Ok((!errors.is_empty()).then(|| aggregate(errors.iter().map(ToString::to_string))))
}
