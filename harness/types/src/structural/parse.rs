//! Parses the schema of a stored definition.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use kubernetes_cel::regexp::{Regexp, RegexpError};
use kubernetes_cel::schema::is_known_format;
use serde_json::{Map, Number, Value};

use super::node::{Additional, ListType, Pattern, Schema, ValueValidation, Within};
use crate::schema;
use crate::status::Unsupported;

/// Parses the schema of a validated definition.
///
/// # Errors
/// Returns [`Unsupported`] if the schema uses a feature that admit does not support.
///
/// Source: apiextensions-apiserver pkg/apiserver/schema/convert.go, `NewStructural`; pkg/apiserver/validation/validation.go,
/// `ConvertJSONSchemaPropsWithPostProcess`.
pub(super) fn parse(schema: &Value) -> Result<Schema, Unsupported> {
    Parser::default().schema(schema)
}

/// Parses schemas and compiles each distinct pattern once.
#[derive(Default)]
struct Parser {
    patterns: HashMap<String, Arc<Pattern>>,
}

impl Parser {
    fn schema(&mut self, schema: &Value) -> Result<Schema, Unsupported> {
        let empty = Map::new();
        let members = schema.as_object().unwrap_or(&empty);
        let flag = |name: &str| members.get(name).and_then(Value::as_bool).unwrap_or_default();
        let text = |name: &str| members.get(name).and_then(Value::as_str).unwrap_or_default();
        let mut properties = BTreeMap::new();
        for (name, property) in members.get("properties").and_then(Value::as_object).into_iter().flatten() {
            properties.insert(name.clone(), self.schema(property)?);
        }
        let default = members.get("default").filter(|default| !default.is_null()).cloned();
        let mut parsed = Schema {
            kind: text("type").to_owned(),
            int_or_string: flag("x-kubernetes-int-or-string"),
            nullable: flag("nullable"),
            default: default.map(|mut default| {
                schema::normalize_numbers(&mut default);
                default
            }),
            preserve_unknown_fields: flag("x-kubernetes-preserve-unknown-fields"),
            embedded_resource: flag("x-kubernetes-embedded-resource"),
            list_type: match text("x-kubernetes-list-type") {
                "set" => ListType::Set,
                "map" => ListType::Map,
                _ => ListType::Atomic,
            },
            list_map_keys: texts(members.get("x-kubernetes-list-map-keys")),
            is_atomic: text("x-kubernetes-map-type") == "atomic",
            given_format: text("format").to_owned(),
            items: self.nested(members.get("items"))?,
            properties,
            within: Within::default(),
            additional: match members.get("additionalProperties") {
                None | Some(Value::Null) => Additional::Absent,
                Some(Value::Bool(allowed)) => Additional::Flag(*allowed),
                Some(values) => Additional::Schema(Box::new(self.schema(values)?)),
            },
            values: self.values(members)?,
        };
        parsed.look_within();
        Ok(parsed)
    }

    fn nested(&mut self, schema: Option<&Value>) -> Result<Option<Box<Schema>>, Unsupported> {
        schema.filter(|schema| schema.is_object()).map(|schema| self.schema(schema).map(Box::new)).transpose()
    }

    fn alternatives(&mut self, schemas: Option<&Value>) -> Result<Vec<Schema>, Unsupported> {
        let schemas = schemas.and_then(Value::as_array).into_iter().flatten();
        schemas.map(|schema| self.schema(schema)).collect()
    }

    /// Parses the fields that validate a value; returns `None` if the schema has none of them.
    fn values(&mut self, members: &Map<String, Value>) -> Result<Option<Box<ValueValidation>>, Unsupported> {
        const NAMES: [&str; 21] = [
            "format",
            "maximum",
            "exclusiveMaximum",
            "minimum",
            "exclusiveMinimum",
            "multipleOf",
            "maxLength",
            "minLength",
            "pattern",
            "maxItems",
            "minItems",
            "uniqueItems",
            "maxProperties",
            "minProperties",
            "required",
            "enum",
            "allOf",
            "anyOf",
            "oneOf",
            "not",
            "nullable",
        ];
        if !NAMES.iter().any(|name| members.contains_key(*name)) {
            return Ok(None);
        }
        let flag = |name: &str| members.get(name).and_then(Value::as_bool).unwrap_or_default();
        let integer = |name: &str| members.get(name).and_then(Value::as_i64);
        let number = |name: &str| members.get(name).and_then(Value::as_number).cloned();
        let text = |name: &str| members.get(name).and_then(Value::as_str).unwrap_or_default();
        let mut values = members.get("enum").and_then(Value::as_array).cloned().unwrap_or_default();
        values.iter_mut().for_each(schema::normalize_numbers);
        let kind = if flag("x-kubernetes-int-or-string") { "" } else { text("type") };
        Ok(Some(Box::new(ValueValidation {
            format: meant_format(kind, text("format")).to_owned(),
            maximum: number("maximum"),
            exclusive_maximum: flag("exclusiveMaximum"),
            minimum: number("minimum"),
            exclusive_minimum: flag("exclusiveMinimum"),
            multiple_of: number("multipleOf"),
            max_length: integer("maxLength"),
            min_length: integer("minLength"),
            pattern: self.pattern(text("pattern"))?,
            max_items: integer("maxItems"),
            min_items: integer("minItems"),
            unique_items: flag("uniqueItems"),
            max_properties: integer("maxProperties"),
            min_properties: integer("minProperties"),
            required: texts(members.get("required")),
            values,
            all_of: self.alternatives(members.get("allOf"))?,
            any_of: self.alternatives(members.get("anyOf"))?,
            one_of: self.alternatives(members.get("oneOf"))?,
            not: self.nested(members.get("not"))?,
        })))
    }

    fn pattern(&mut self, text: &str) -> Result<Option<Arc<Pattern>>, Unsupported> {
        if text.is_empty() {
            return Ok(None);
        }
        if let Some(known) = self.patterns.get(text) {
            return Ok(Some(Arc::clone(known)));
        }
        let regexp = Regexp::new(text).map_err(|error| {
            let what = if let RegexpError::Invalid(why) = error {
                format!("the pattern {}: {why}", Value::from(text))
            } else {
                format!("a pattern that is so large: {}", Value::from(text))
            };
            Unsupported { what }
        })?;
        let pattern = Arc::new(Pattern { text: text.to_owned(), regexp });
        self.patterns.insert(text.to_owned(), Arc::clone(&pattern));
        Ok(Some(pattern))
    }
}

/// Returns `format`, or an empty string if the format does not apply to values of the type `kind`.
///
/// Source: apiextensions-apiserver pkg/apiserver/validation/formats.go, `StripUnsupportedFormatsPostProcessorForVersion`.
fn meant_format<'f>(kind: &str, format: &'f str) -> &'f str {
    let is_meant = match kind {
        "" | "string" => is_known_format(format),
        "integer" => ["int32", "int64"].contains(&format),
        "number" => ["float", "double"].contains(&format),
        _ => false,
    };
    if is_meant { format } else { "" }
}

fn texts(list: Option<&Value>) -> Vec<String> {
    let items = list.and_then(Value::as_array).into_iter().flatten();
    items.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Converts a number to a float.
pub(super) fn float(number: &Number) -> f64 {
    number.as_f64().unwrap_or_default()
}
