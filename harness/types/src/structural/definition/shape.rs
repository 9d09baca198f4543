//! Checks whether a schema is structural.
//!
//! Outside of all alternatives, the schema must specify one type for each value. Alternatives may validate only values
//! that are described outside of them.
//!
//! Source: apiextensions-apiserver `pkg/apiserver/schema/{validation,complete}.go`.

use std::collections::HashSet;

use kubernetes_cel::regexp::{Regexp, RegexpError};
use serde_json::{Value, json};

use super::{flag, is_set, list, nested, properties, text};
use crate::status::FieldError;

/// The position of a schema: the root, a list item, or a field.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// The errors found so far, and the patterns that have been compiled.
#[derive(Default)]
struct ShapeErrors<'s> {
    errors: Vec<FieldError>,
    patterns: HashSet<&'s str>,
}

impl<'s> ShapeErrors<'s> {
    fn push(&mut self, error: FieldError) {
        self.errors.push(error);
    }

    /// Compiles a pattern once, even if it occurs several times.
    fn compile(&mut self, pattern: &'s str) -> Result<(), RegexpError> {
        if !pattern.is_empty() && !self.patterns.contains(pattern) {
            Regexp::new(pattern)?;
            self.patterns.insert(pattern);
        }
        Ok(())
    }
}

/// Returns the reasons why a schema is not structural, sorted by message.
pub(super) fn errors(schema: &Value, path: &str) -> Vec<FieldError> {
    let mut wrong = ShapeErrors::default();
    visit(schema, Level::Root, path, &mut wrong);
    let mut errors = wrong.errors;
    is_complete(schema, Some(schema), path, path, &mut errors);
    errors.sort_by_cached_key(ToString::to_string);
    errors
}

fn visit<'s>(schema: &'s Value, level: Level, path: &str, errors: &mut ShapeErrors<'s>) {
    let kind = text(schema, "type");
    let items = nested(schema, "items");
    if kind == "array" && items.is_none() {
        errors.push(FieldError::required(format!("{path}.items"), "must be specified"));
    }
    if let Some(items) = items {
        visit(items, Level::Item, &format!("{path}.items"), errors);
    }
    for (name, property) in properties(schema) {
        visit(property, Level::Field, &format!("{path}.properties[{name}]"), errors);
    }
    let additional = schema.get("additionalProperties").filter(|values| !values.is_null());
    if let Some(values) = additional {
        let path = format!("{path}.additionalProperties");
        if level == Level::Root {
            errors.push(FieldError::forbidden(path.as_str(), "must not be used at the root"));
        }
        if values.is_object() {
            visit(values, Level::Field, &path, errors);
        }
    }
    let is_number_or_text = flag(schema, "x-kubernetes-int-or-string");
    let preserves = flag(schema, "x-kubernetes-preserve-unknown-fields");
    let is_embedded = flag(schema, "x-kubernetes-embedded-resource");
    for (name, is_set) in
        [("x-kubernetes-preserve-unknown-fields", preserves), ("x-kubernetes-embedded-resource", is_embedded)]
    {
        if is_number_or_text && is_set {
            let why = "must be false if x-kubernetes-int-or-string is true";
            errors.push(FieldError::invalid(format!("{path}.{name}"), true, why));
        }
    }
    let both = json!([{"type": "integer"}, {"type": "string"}]);
    let is_both = |schema: &Value| schema.get("anyOf") == Some(&both);
    let in_all_of = list(schema, "allOf").first().is_some_and(is_both);
    values(schema, is_both(schema), in_all_of, level, path, errors);
    let of_kind = |wrong: &str| -> FieldError {
        let field = format!("{path}.type");
        if kind.is_empty() {
            FieldError::required(field, wrong)
        } else {
            FieldError::invalid(field, Value::from(kind), wrong)
        }
    };
    if is_embedded && kind != "object" {
        errors.push(of_kind("must be object if x-kubernetes-embedded-resource is true"));
    } else if kind.is_empty() && !is_number_or_text && !preserves {
        errors.push(of_kind(match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        }));
    }
    if is_embedded && additional.is_some() {
        let why = "must not be used if x-kubernetes-embedded-resource is set";
        errors.push(FieldError::forbidden(format!("{path}.additionalProperties"), why));
    }
    if level == Level::Root && !kind.is_empty() && kind != "object" {
        errors.push(of_kind("must be object at the root"));
    }
    let is_resource = level == Level::Root || is_embedded;
    metadata(schema, is_resource, level, path, errors);
    if is_embedded && !preserves && properties(schema).next().is_none() {
        let why = "must not be empty if x-kubernetes-embedded-resource is true without \
                   x-kubernetes-preserve-unknown-fields";
        errors.push(FieldError::required(format!("{path}.properties"), why));
    }
}

/// Validates the restrictions that a schema places on metadata. Only a few restrictions are allowed.
fn metadata<'s>(
    schema: &'s Value,
    is_resource: bool,
    level: Level,
    path: &str,
    errors: &mut ShapeErrors<'s>,
) {
    for name in ["kind", "apiVersion"] {
        let Some((_, property)) = properties(schema).find(|(known, _)| *known == name) else { continue };
        let kind = text(property, "type");
        if is_resource && kind != "string" {
            let field = format!("{path}.properties[{name}].type");
            errors.push(FieldError::invalid(field, Value::from(kind), "must be string"));
        }
    }
    let Some((_, metadata)) = properties(schema).find(|(known, _)| *known == "metadata") else { return };
    let path = format!("{path}.properties[metadata]");
    let kind = text(metadata, "type");
    if is_resource && kind != "object" {
        errors.push(FieldError::invalid(format!("{path}.type"), Value::from(kind), "must be object"));
    }
    if level != Level::Root {
        return;
    }
    let only_names = properties(metadata).all(|(name, _)| ["name", "generateName"].contains(&name.as_str()));
    let has_more = metadata.as_object().into_iter().flatten().any(|(name, value)| match name.as_str() {
        "type" | "default" => false,
        "properties" => !only_names,
        _ => is_set(value),
    });
    if has_more {
        let why = "must not specify anything other than name and generateName, but metadata is implicitly specified";
        errors.push(FieldError::forbidden(path, why));
    }
}

fn values<'s>(
    schema: &'s Value,
    skip_any_of: bool,
    skip_first_all_of: bool,
    level: Level,
    path: &str,
    errors: &mut ShapeErrors<'s>,
) {
    for name in ["anyOf", "allOf", "oneOf"] {
        for (index, alternative) in list(schema, name).iter().enumerate() {
            if name == "anyOf" && skip_any_of {
                continue;
            }
            let skip = name == "allOf" && skip_first_all_of && index == 0;
            alternative_errors(alternative, skip, level, &format!("{path}.{name}[{index}]"), errors);
        }
    }
    if let Some(not) = nested(schema, "not") {
        alternative_errors(not, false, level, &format!("{path}.not"), errors);
    }
    let pattern = text(schema, "pattern");
    if let Err(RegexpError::Invalid(why)) = errors.compile(pattern) {
        let why = format!("must be a valid regular expression, but isn't: error parsing regexp: {why}");
        errors.push(FieldError::invalid(format!("{path}.pattern"), Value::from(pattern), why));
    }
}

/// Adds an error for each field that is forbidden in a schema nested in allOf, anyOf, oneOf, or not.
fn alternative_errors<'s>(
    schema: &'s Value,
    skip_any_of: bool,
    level: Level,
    path: &str,
    errors: &mut ShapeErrors<'s>,
) {
    values(schema, skip_any_of, false, level, path, errors);
    if let Some(items) = nested(schema, "items") {
        alternative_errors(items, false, level, &format!("{path}.items"), errors);
    }
    for (name, property) in properties(schema) {
        let path = format!("{path}.properties[{name}]");
        alternative_errors(property, false, Level::Field, &path, errors);
    }
    let additional = schema.get("additionalProperties");
    if additional.is_some_and(|values| values.is_object() || *values == true) {
        let why = "must be undefined to be structural";
        errors.push(FieldError::forbidden(format!("{path}.additionalProperties"), why));
    }
    for (name, why) in [
        ("type", "must be empty to be structural"),
        ("default", "must be undefined to be structural"),
        ("title", "must be empty to be structural"),
        ("description", "must be empty to be structural"),
        ("nullable", "must be false to be structural"),
        ("x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
        ("x-kubernetes-embedded-resource", "must be false to be structural"),
        ("x-kubernetes-int-or-string", "must be false to be structural"),
        ("x-kubernetes-list-map-keys", "must be empty to be structural"),
        ("x-kubernetes-list-type", "must be undefined to be structural"),
        ("x-kubernetes-map-type", "must be undefined to be structural"),
        ("x-kubernetes-validations", "must be empty to be structural"),
    ] {
        let is_there = schema.get(name).is_some_and(|value| match name {
            "default" | "x-kubernetes-list-type" | "x-kubernetes-map-type" => !value.is_null(),
            _ => is_set(value),
        });
        if is_there {
            errors.push(FieldError::forbidden(format!("{path}.{name}"), why));
        }
    }
    if properties(schema).any(|(name, _)| name == "metadata") {
        let why = "must not be specified in a nested context";
        errors.push(FieldError::forbidden(format!("{path}.properties[metadata]"), why));
    }
}

/// Checks that `schema` describes every value that the alternatives in `validation` validate.
fn is_complete(
    validation: &Value,
    schema: Option<&Value>,
    path: &str,
    from: &str,
    errors: &mut Vec<FieldError>,
) {
    if let Some(not) = nested(validation, "not") {
        is_described(not, schema, path, &format!("{from}.not"), errors);
    }
    for name in ["allOf", "anyOf", "oneOf"] {
        for (index, alternative) in list(validation, name).iter().enumerate() {
            is_described(alternative, schema, path, &format!("{from}.{name}[{index}]"), errors);
        }
    }
}

fn is_described(
    validation: &Value,
    schema: Option<&Value>,
    path: &str,
    from: &str,
    errors: &mut Vec<FieldError>,
) {
    let Some(schema) = schema else {
        errors.push(FieldError::required(path, &format!("because it is defined in {from}")));
        return;
    };
    is_complete(validation, Some(schema), path, from, errors);
    if let Some(items) = nested(validation, "items") {
        let (path, from) = (format!("{path}.items"), format!("{from}.items"));
        is_described(items, nested(schema, "items"), &path, &from, errors);
    }
    for (name, property) in properties(validation) {
        let known = properties(schema).find(|(known, _)| *known == name).map(|(_, property)| property);
        let (path, from) = (format!("{path}.properties[{name}]"), format!("{from}.properties[{name}]"));
        is_described(property, known, &path, &from, errors);
    }
}
