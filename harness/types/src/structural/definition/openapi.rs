//! Validates the OpenAPI features of a schema: its fields, its `x-kubernetes-*` extensions, and its rules.
//!
//! Source: apiextensions-apiserver pkg/apis/apiextensions/validation/validation.go,
//! `ValidateCustomResourceDefinitionOpenAPISchema`.

use std::collections::HashSet;

use serde_json::Value;

use super::rules::{self, Cost};
use super::{flag, is_set, list, nested, properties, text};
use crate::quoting::quote;
use crate::status::{FieldError, Unsupported};

/// The constraints from the surrounding schemas.
#[derive(Clone, Debug)]
pub(super) struct Context {
    /// The reason why defaults are forbidden; `None` if defaults are allowed.
    forbidden_defaults: Option<String>,
    is_in_metadata: bool,
    /// The path of the outermost schema in which old values cannot be found; `None` if they can be found everywhere.
    uncorrelated: Option<String>,
    pub(super) cardinality: Cardinality,
}

/// The maximum number of times that a value can occur in one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cardinality {
    /// The number is unknown, because rules are not compiled here.
    Unknown,
    AtMost(u64),
    Unbounded,
}

impl Cardinality {
    /// Multiplies by `most`, the maximum number of occurrences in each value; `None` means unbounded.
    fn times(self, most: Option<u64>) -> Self {
        match (self, most) {
            (Self::AtMost(around), Some(most)) => Self::AtMost(around.saturating_mul(most)),
            (Self::Unknown, _) => Self::Unknown,
            (Self::AtMost(_) | Self::Unbounded, _) => Self::Unbounded,
        }
    }
}

/// The errors in a schema. Errors in rules are kept separately.
#[derive(Debug, Default)]
pub(crate) struct SchemaErrors {
    pub(super) of_schema: Vec<FieldError>,
    pub(super) of_rules: Vec<FieldError>,
    pub(super) cost: Cost,
}

impl Context {
    pub(super) fn new(with_rules: bool) -> Self {
        Self {
            forbidden_defaults: None,
            is_in_metadata: false,
            uncorrelated: None,
            cardinality: if with_rules { Cardinality::AtMost(1) } else { Cardinality::Unknown },
        }
    }

    /// Returns the context for the schemas in `allOf`, `anyOf`, `oneOf`, and `not`. Their rules are not compiled.
    fn for_alternative(&self) -> Self {
        Self { cardinality: Cardinality::Unknown, ..self.clone() }
    }

    /// Returns the context for values that occur up to `most` times in the surrounding value.
    fn times(self, most: Option<u64>) -> Self {
        Self { cardinality: self.cardinality.times(most), ..self }
    }

    fn uncorrelated(self, path: &str) -> Self {
        Self { uncorrelated: self.uncorrelated.or_else(|| Some(path.to_owned())), ..self }
    }

    pub(super) fn uncorrelated_at(&self) -> Option<&str> {
        self.uncorrelated.as_deref()
    }
}

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

const META_FIELDS: [&str; 3] = ["metadata", "kind", "apiVersion"];

/// Returns whether a schema has only features that structural schemas support.
///
/// Source: apiextensions-apiserver pkg/apiserver/schema/convert.go, `validateUnsupportedFields`.
pub(super) fn can_be_structural(schema: &Value) -> bool {
    let of_one = unsupported(schema, "").is_empty()
        && schema.get("x-kubernetes-preserve-unknown-fields") != Some(&Value::Bool(false));
    let children =
        ["items", "additionalProperties", "not"].into_iter().filter_map(|name| nested(schema, name));
    let alternatives = ["allOf", "anyOf", "oneOf"].into_iter().flat_map(|name| list(schema, name));
    of_one
        && children.chain(alternatives).all(can_be_structural)
        && properties(schema).all(|(_, property)| can_be_structural(property))
}

fn unsupported(schema: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for name in ["id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"] {
        let is_there = schema.get(name).is_some_and(|value| match name {
            "additionalItems" | "dependencies" | "$ref" => !value.is_null(),
            _ => is_set(value),
        });
        if is_there {
            errors.push(FieldError::forbidden(format!("{path}.{name}"), format!("{name} is not supported")));
        }
    }
    if text(schema, "type") == "null" {
        let why = "type cannot be set to null, use nullable as an alternative";
        errors.push(FieldError::forbidden(format!("{path}.type"), why));
    }
    if schema.get("items").and_then(Value::as_array).is_some_and(|items| !items.is_empty()) {
        let why = "items must be a schema object and not an array";
        errors.push(FieldError::forbidden(format!("{path}.items"), why));
    }
    errors
}

/// Collects the errors of a schema and its subschemas.
pub(super) fn visit(
    schema: &Value,
    path: &str,
    context: &Context,
    is_root: bool,
    found: &mut SchemaErrors,
) -> Result<(), Unsupported> {
    // Rules are compiled only if there are no errors here or below.
    let before = found.of_schema.len();
    standard(schema, path, context, &mut found.of_schema);
    if flag(schema, "uniqueItems") {
        let why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        found.of_schema.push(FieldError::forbidden(format!("{path}.uniqueItems"), why));
    }
    let additional = schema.get("additionalProperties").filter(|values| !values.is_null());
    if let Some(values) = additional {
        let path = format!("{path}.additionalProperties");
        if properties(schema).next().is_some() && *values != true {
            let why = "additionalProperties and properties are mutual exclusive";
            found.of_schema.push(FieldError::forbidden(path.as_str(), why));
        }
        let mut context = context.clone().times(count(schema, "maxProperties"));
        if context.is_in_metadata {
            let why = "inside additionalProperties applying to object metadata";
            context.forbidden_defaults = Some(why.to_owned());
        }
        if values.is_object() {
            visit(values, &path, &context, false, found)?;
        }
    }
    for (name, property) in properties(schema) {
        let mut context = context.clone();
        let map_type = text(schema, "x-kubernetes-map-type");
        if !["", "granular", "atomic"].contains(&map_type) {
            context = context.uncorrelated(path);
        }
        let is_resource = is_root || flag(schema, "x-kubernetes-embedded-resource");
        if is_resource && META_FIELDS.contains(&name.as_str()) {
            context.is_in_metadata = true;
            if is_root {
                context.forbidden_defaults = Some(format!("in top-level {name}"));
            }
        }
        visit(property, &format!("{path}.properties[{name}]"), &context, false, found)?;
    }
    let alternative = context.for_alternative();
    if let Some(not) = nested(schema, "not") {
        visit(not, &format!("{path}.not"), &alternative, false, found)?;
    }
    for name in ["allOf", "oneOf", "anyOf"] {
        for (index, schema) in list(schema, name).iter().enumerate() {
            visit(schema, &format!("{path}.{name}[{index}]"), &alternative, false, found)?;
        }
    }
    if let Some(items) = nested(schema, "items") {
        let mut context = context.clone().times(count(schema, "maxItems"));
        if text(schema, "x-kubernetes-list-type") != "map" {
            context = context.uncorrelated(path);
        }
        visit(items, &format!("{path}.items"), &context, false, found)?;
    }
    extensions(schema, path, &mut found.of_schema);
    rules::check(schema, path, &mut found.of_schema);
    if context.cardinality != Cardinality::Unknown && found.of_schema.len() == before {
        rules::compile(schema, path, context, is_root, found)?;
    }
    Ok(())
}

fn count(schema: &Value, name: &str) -> Option<u64> {
    schema.get(name).and_then(Value::as_u64)
}

/// Validates the standard OpenAPI fields of a schema.
///
/// Source: apiextensions-apiserver pkg/apis/apiextensions/validation/validation.go, `specStandardValidatorV3.validate`.
fn standard(schema: &Value, path: &str, context: &Context, errors: &mut Vec<FieldError>) {
    let kind = text(schema, "type");
    if !kind.is_empty() && !TYPES.contains(&kind) {
        let field = format!("{path}.type");
        errors.push(FieldError::not_supported(field, quote(kind), quoted(&TYPES)));
    }
    let has_default = schema.get("default").is_some_and(|default| !default.is_null());
    if let Some(reason) = context.forbidden_defaults.as_deref().filter(|_| has_default) {
        let why = format!("must not be set {reason}");
        errors.push(FieldError::forbidden(format!("{path}.default"), why));
    }
    errors.extend(unsupported(schema, path));
    if context.is_in_metadata && flag(schema, "x-kubernetes-embedded-resource") {
        let field = format!("{path}.x-kubernetes-embedded-resource");
        errors.push(FieldError::forbidden(field, "must not be used inside of resource meta"));
    }
}

pub(super) fn quoted(values: &[&str]) -> String {
    values.iter().map(|value| quote(value)).collect::<Vec<_>>().join(", ")
}

/// Validates the `x-kubernetes-*` fields.
fn extensions(schema: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let field = |name: &str| format!("{path}.{name}");
    if schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
        let field = field("x-kubernetes-preserve-unknown-fields");
        errors.push(FieldError::invalid(field, false, "must be true or undefined"));
    }
    let kind = text(schema, "type");
    let of_kind = |expected: &str, name: &str| {
        let why = format!("must be {expected} if {name} is specified");
        if kind.is_empty() {
            FieldError::required(field("type"), &why)
        } else {
            FieldError::invalid(field("type"), quote(kind), why)
        }
    };
    let given = |name: &str| schema.get(name).and_then(Value::as_str);
    if let Some(map_type) = given("x-kubernetes-map-type") {
        if kind != "object" {
            errors.push(of_kind("object", "x-kubernetes-map-type"));
        }
        let supported = ["atomic", "granular"];
        if !supported.contains(&map_type) {
            let field = field("x-kubernetes-map-type");
            errors.push(FieldError::not_supported(field, quote(map_type), quoted(&supported)));
        }
    }
    let list_type = given("x-kubernetes-list-type");
    let items = nested(schema, "items");
    if let Some(list_type) = list_type {
        if kind != "array" {
            errors.push(of_kind("array", "x-kubernetes-list-type"));
        } else if list_type == "set"
            && let Some(items) = items
        {
            errors.extend(not_atomic(items, path));
        }
        let supported = ["atomic", "set", "map"];
        if !supported.contains(&list_type) {
            let field = field("x-kubernetes-list-type");
            errors.push(FieldError::not_supported(field, quote(list_type), quoted(&supported)));
        }
    }
    keys(schema, list_type, items, path, errors);
}

fn not_atomic(items: &Value, path: &str) -> Option<FieldError> {
    let (name, is_atomic) = match text(items, "type") {
        "array" => {
            ("x-kubernetes-list-type", ["", "atomic"].contains(&text(items, "x-kubernetes-list-type")))
        }
        "object" => ("x-kubernetes-map-type", text(items, "x-kubernetes-map-type") == "atomic"),
        _ => return None,
    };
    // kube-apiserver shows the list type in both cases.
    let shown = items.get("x-kubernetes-list-type").unwrap_or(&Value::Null);
    let why = "must be atomic as item of a list with x-kubernetes-list-type=set";
    (!is_atomic).then(|| FieldError::invalid(format!("{path}.items.{name}"), shown, why))
}

/// Validates `x-kubernetes-list-map-keys`.
fn keys(
    schema: &Value,
    list_type: Option<&str>,
    items: Option<&Value>,
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    let field = |name: &str| format!("{path}.{name}");
    let keys: Vec<&str> =
        list(schema, "x-kubernetes-list-map-keys").iter().filter_map(Value::as_str).collect();
    if !keys.is_empty() && list_type != Some("map") {
        let why = "must be map if x-kubernetes-list-map-keys is non-empty";
        let field = field("x-kubernetes-list-type");
        errors.push(match list_type {
            None => FieldError::required(field, why),
            Some(other) => FieldError::invalid(field, quote(other), why),
        });
    }
    if list_type == Some("map") {
        if keys.is_empty() {
            let why = "must not be empty if x-kubernetes-list-type is map";
            errors.push(FieldError::required(field("x-kubernetes-list-map-keys"), why));
        }
        match items {
            None => {
                let why = "must have a schema if x-kubernetes-list-type is map";
                errors.push(FieldError::required(field("items"), why));
            }
            Some(items) if text(items, "type") != "object" => {
                let why = "must be object if parent array's x-kubernetes-list-type is map";
                errors.push(FieldError::invalid(field("items.type"), quote(text(items, "type")), why));
            }
            Some(items) => {
                let mut seen = HashSet::new();
                let shown = Value::from(keys.clone());
                for key in &keys {
                    let property = properties(items).find(|(name, _)| name == key).map(|(_, it)| it);
                    match property.map(|property| text(property, "type")) {
                        Some("array" | "object") => {
                            let field = format!("{path}.items.properties[{key}].type");
                            let why = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                            errors.push(FieldError::invalid(field, quote("object"), why));
                        }
                        Some(_) => {}
                        None => {
                            let why = "entries must all be names of item properties";
                            errors.push(FieldError::invalid(
                                field("x-kubernetes-list-map-keys"),
                                &shown,
                                why,
                            ));
                        }
                    }
                    if !seen.insert(*key) {
                        let why = "must not contain duplicate entries";
                        errors.push(FieldError::invalid(field("x-kubernetes-list-map-keys"), &shown, why));
                    }
                }
            }
        }
    }
    let (Some(list_type @ ("set" | "map")), Some(items)) = (list_type, items) else { return };
    if flag(items, "nullable") {
        let why = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
        errors.push(FieldError::forbidden(field("items.nullable"), why));
    }
    for key in keys.iter().filter(|_| list_type == "map") {
        let Some((_, property)) = properties(items).find(|(name, _)| name == key) else { continue };
        let is_required = list(items, "required").iter().any(|required| required == key);
        if !is_required && property.get("default").is_none_or(Value::is_null) {
            let why = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required \
                       property";
            errors.push(FieldError::required(format!("{path}.items.properties[{key}].default"), why));
        }
        if flag(property, "nullable") {
            let why = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            errors.push(FieldError::forbidden(format!("{path}.items.properties[{key}].nullable"), why));
        }
    }
}
