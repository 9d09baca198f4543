//! Compiles the CEL rules of a stored schema.

use std::collections::BTreeMap;

use kubernetes_cel::Program;
use kubernetes_cel::declared_type::{with_declared_type, with_optional_old_self};
use kubernetes_cel::environment::{CompileError, Environment};
use kubernetes_cel::kubernetes::{Expressions, Version, environment};
use kubernetes_cel::schema::Schema as Types;
use kubernetes_cel::types::Type;
use serde_json::Value;

use super::{Rule, Rules, SchemaRules, path};
use crate::status::Unsupported;

/// The Kubernetes release whose expressions are supported.
const RELEASE: Version = Version::new(1, 37);

/// The name of the type of `self` in the CEL environment.
const NAME: &str = "selfType";

/// Compiles the rules of a whole schema; returns `None` if the schema does not have any rules.
///
/// # Errors
/// Returns [`Unsupported`] if an expression uses a feature that admit does not support.
pub(in crate::structural) fn rules(schema: &Value) -> Result<Option<Rules>, Unsupported> {
    if !has_rules(schema) {
        return Ok(None);
    }
    schema_rules(schema, schema, true)
}

/// Returns whether the schema or any of its parts has rules.
///
/// Source: apiextensions-apiserver pkg/apiserver/schema/cel/validation.go, `hasXValidations`.
fn has_rules(schema: &Value) -> bool {
    let Some(members) = schema.as_object() else { return false };
    let own = members.get("x-kubernetes-validations").and_then(Value::as_array);
    own.is_some_and(|rules| !rules.is_empty())
        || members.get("items").is_some_and(has_rules)
        || members.get("additionalProperties").is_some_and(has_rules)
        || members
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .any(|(_, it)| has_rules(it))
}

/// Compiles the rules of `validation`; it must be `schema` or one of its `allOf` alternatives.
///
/// Source: apiextensions-apiserver pkg/apiserver/schema/cel/validation.go, `validator`.
fn schema_rules(validation: &Value, schema: &Value, is_root: bool) -> Result<Option<Rules>, Unsupported> {
    let nested = |name: &str| -> Result<Option<Box<Rules>>, Unsupported> {
        match (validation.get(name), schema.get(name)) {
            (Some(validation), Some(part)) if validation.is_object() && part.is_object() => {
                if has_element_type(schema) {
                    return Ok(schema_rules(validation, part, false)?.map(Box::new));
                }
                let own = own(validation, part, false)?;
                let own = own.map(|own| SchemaRules { is_undeclared: true, ..own });
                Ok(own.map(|own| Box::new(Rules { own: Some(own), ..Rules::default() })))
            }
            _ => Ok(None),
        }
    };
    let mut properties = BTreeMap::new();
    for (name, validation) in validation.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let Some(schema) = schema.get("properties").and_then(|all| all.get(name)) else { continue };
        if let Some(rules) = schema_rules(validation, schema, false)? {
            properties.insert(name.clone(), rules);
        }
    }
    let mut all_of = Vec::new();
    for validation in validation.get("allOf").and_then(Value::as_array).into_iter().flatten() {
        all_of.extend(schema_rules(validation, schema, is_root)?);
    }
    let rules = Rules {
        own: own(validation, schema, is_root)?,
        items: nested("items")?,
        additional: nested("additionalProperties")?,
        properties,
        all_of,
    };
    let is_empty = rules.own.is_none()
        && rules.items.is_none()
        && rules.additional.is_none()
        && rules.properties.is_empty()
        && rules.all_of.is_empty();
    Ok((!is_empty).then_some(rules))
}

/// Returns whether the values of a schema are lists or maps.
///
/// Source: apiserver pkg/cel/common/schemas.go, `SchemaDeclType`.
fn has_element_type(schema: &Value) -> bool {
    let has = |field: &str| schema.get(field).is_some_and(Value::is_object);
    match schema.get("type").and_then(Value::as_str) {
        Some("array") => has("items"),
        Some("object") => has("additionalProperties"),
        _ => false,
    }
}

fn own(validation: &Value, schema: &Value, is_root: bool) -> Result<Option<SchemaRules>, Unsupported> {
    let declared = validation.get("x-kubernetes-validations").and_then(Value::as_array);
    let Some(declared) = declared.filter(|rules| !rules.is_empty()) else { return Ok(None) };
    let unsupported = |what: String| Unsupported { what };
    let types =
        Types::from_json(schema).map_err(|error| unsupported(format!("a schema with rules: {error}")))?;
    let types = if is_root { types.of_resource() } else { types };
    // A value without a type is not visible to expressions; kube-apiserver reports that when the definition is created.
    let Some(of) = types.declared_type() else { return Ok(None) };
    let base = environment(RELEASE, Expressions::Stored);
    let strict = with_declared_type(base.clone(), &of, NAME, &["self", "oldSelf"]);
    let mut rules = Vec::with_capacity(declared.len());
    for rule in declared {
        let text = |name: &str| rule.get(name).and_then(Value::as_str).unwrap_or_default();
        if text("rule").trim().is_empty() {
            continue;
        }
        let optional_old = rule.get("optionalOldSelf").and_then(Value::as_bool).unwrap_or_default();
        let optional = optional_old.then(|| with_optional_old_self(base.clone(), &of, NAME));
        let environment = optional.as_ref().unwrap_or(&strict);
        let wrong_type = "cel expression must evaluate to a bool";
        let program = compiled(environment, text("rule"), &Type::Bool, wrong_type)?;
        let message_expression = match text("messageExpression") {
            "" => None,
            // The definition is rejected; its default is validated without this expression.
            expression => compiled(environment, expression, &Type::String, "")?.ok(),
        };
        rules.push(Rule {
            uses_old: program.as_ref().is_ok_and(|program| program.mentions("oldSelf")),
            program,
            optional_old,
            text: text("rule").trim().to_owned(),
            message: text("message").trim().to_owned(),
            message_expression,
            reason: text("reason").to_owned(),
            field_path: path::normalized(text("fieldPath"), schema).unwrap_or_default(),
        });
    }
    let kind = schema.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    Ok(Some(SchemaRules { types, is_undeclared: false, kind, rules }))
}

/// Compiles an expression. Returns the program or the compilation error.
///
/// # Errors
/// Returns [`Unsupported`] if an expression uses a feature that admit does not support.
pub(in crate::structural) fn compiled(
    environment: &Environment,
    text: &str,
    expected: &Type,
    wrong_type: &str,
) -> Result<Result<Program, String>, Unsupported> {
    match environment.compile(text) {
        Ok(program) if program.result_type() == expected => Ok(Ok(program)),
        Ok(_) => Ok(Err(wrong_type.to_owned())),
        Err(CompileError::Unsupported(why)) => {
            Err(Unsupported { what: format!("the rule {}: {why}", Value::from(text)) })
        }
        Err(error) => Ok(Err(error.to_string())),
    }
}
