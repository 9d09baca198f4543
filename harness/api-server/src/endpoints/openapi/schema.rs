//! Writes the schema of a custom resource for OpenAPI documents.
//!
//! Source: apiextensions-apiserver `pkg/apiserver/schema/kubeopenapi.go`, `pkg/apiserver/schema/unfold.go`,
//! `pkg/controller/openapi/v2/conversion.go`, `pkg/controller/openapi/builder/builder.go`; kube-openapi
//! `pkg/handler/default_pruning.go`.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::Format;
use super::pattern::Pattern;

/// The schema members that are copied unchanged, in document order. Members that contain schemas follow them.
const PLAIN: &[&str] = &[
    "description",
    "type",
    "nullable",
    "format",
    "title",
    "default",
    "maximum",
    "exclusiveMaximum",
    "minimum",
    "exclusiveMinimum",
    "maxLength",
    "minLength",
    "pattern",
    "maxItems",
    "minItems",
    "uniqueItems",
    "multipleOf",
    "enum",
    "maxProperties",
    "minProperties",
];
const EXTENSIONS: &[&str] = &[
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
];
const PRESERVES: &str = "x-kubernetes-preserve-unknown-fields";
const EMBEDDED: &str = "x-kubernetes-embedded-resource";

/// Returns the schema of a custom resource as JSON, with `extensions` at its root.
pub(super) fn of_object(schema: &Value, format: Format, extensions: &BTreeMap<String, String>) -> String {
    let writer = Writer { format, pattern: Pattern::for_format(format) };
    let mut text = String::new();
    let is_open = is_true(schema, PRESERVES) && format == Format::V2;
    if schema.is_null() || is_open {
        writer.write(&json!({"type": "object"}), &RootExtensions { properties: None, extensions }, &mut text);
    } else {
        let root = RootExtensions { properties: Some(&writer.pattern.of_object), extensions };
        writer.write(schema, &root, &mut text);
    }
    text
}

/// The members that are added to the schema at the root of an object.
struct RootExtensions<'a> {
    properties: Option<&'a BTreeMap<String, Box<str>>>,
    extensions: &'a BTreeMap<String, String>,
}

static NO_EXTENSIONS: BTreeMap<String, String> = BTreeMap::new();
const NOTHING: RootExtensions<'static> = RootExtensions { properties: None, extensions: &NO_EXTENSIONS };

struct Writer {
    format: Format,
    pattern: &'static Pattern,
}

fn is_true(schema: &Value, member: &str) -> bool {
    schema.get(member).and_then(Value::as_bool) == Some(true)
}

/// Returns whether kube-openapi omits a member with this value.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(_) | Value::Bool(true) | Value::Number(_) => false,
    }
}

impl Writer {
    fn write(&self, schema: &Value, root: &RootExtensions<'_>, text: &mut String) {
        let v2 = self.format == Format::V2;
        let is_nullable = v2 && is_true(schema, "nullable");
        let preserves = is_true(schema, PRESERVES);
        let is_closed = is_nullable || (v2 && preserves);
        let items = schema.get("items").filter(|items| items.is_object() && !is_closed);
        let kind = schema.get("type").and_then(Value::as_str).unwrap_or_default();
        let is_untyped =
            v2 && (is_nullable || (kind == "array" && items.is_none()) || (kind == "object" && preserves));
        let mut members = Members::new(text);
        for name in PLAIN {
            let left_out = match *name {
                "type" => is_untyped,
                "nullable" | "default" => v2,
                _ => false,
            };
            let is_shown = |value: &&Value| !value.is_null() && (*name == "default" || !is_zero(value));
            if let Some(value) = schema.get(name).filter(|value| !left_out && is_shown(value)) {
                members.add(name, &number(value));
            }
        }
        let is_embedded = is_true(schema, EMBEDDED) && !(v2 && preserves);
        let required = self.required(schema, is_embedded);
        if !required.is_empty() {
            members.add("required", &Value::from(required).to_string());
        }
        if let Some(items) = items {
            self.write(items, &NOTHING, members.begin("items"));
        }
        if !v2 {
            self.alternatives(schema, &mut members);
        }
        let embedded = is_embedded.then_some(&self.pattern.of_embedded);
        self.properties(schema, is_closed, root.properties.into_iter().chain(embedded), &mut members);
        match schema.get("additionalProperties") {
            Some(Value::Bool(allows)) => members.add("additionalProperties", &allows.to_string()),
            Some(values @ Value::Object(_)) => {
                self.write(values, &NOTHING, members.begin("additionalProperties"));
            }
            _ => {}
        }
        for name in ["externalDocs", "example"] {
            if let Some(value) = schema.get(name).filter(|value| !value.is_null()) {
                members.add(name, &value.to_string());
            }
        }
        let own = EXTENSIONS.iter().filter_map(|name| Some((*name, schema.get(name)?)));
        let own = own.filter(|(_, value)| !is_zero(value));
        let mut extensions: BTreeMap<&str, String> =
            own.map(|(name, value)| (name, self.extension(name, value))).collect();
        extensions.extend(root.extensions.iter().map(|(name, value)| (name.as_str(), value.clone())));
        for (name, value) in extensions {
            members.add(name, &value);
        }
        members.end();
    }

    fn extension(&self, name: &str, value: &Value) -> String {
        const RULE: &[&str] =
            &["rule", "message", "messageExpression", "reason", "fieldPath", "optionalOldSelf"];
        let Some(rules) = value.as_array().filter(|_| name == "x-kubernetes-validations") else {
            return value.to_string();
        };
        if self.format == Format::V2 {
            return value.to_string();
        }
        let rules: Vec<String> = rules
            .iter()
            .map(|rule| {
                let mut text = String::new();
                let mut members = Members::new(&mut text);
                for name in RULE {
                    if let Some(value) = rule.get(name).filter(|value| !value.is_null()) {
                        members.add(name, &value.to_string());
                    }
                }
                members.end();
                text
            })
            .collect();
        format!("[{}]", rules.join(","))
    }

    fn required(&self, schema: &Value, is_embedded: bool) -> Vec<String> {
        let names = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        let mut required: Vec<String> = names.filter_map(Value::as_str).map(str::to_owned).collect();
        if self.format == Format::V2 {
            let is_closed = is_true(schema, "nullable") || is_true(schema, PRESERVES);
            let properties = schema.get("properties").filter(|_| !is_closed);
            required.retain(|name| {
                !properties
                    .and_then(|all| all.get(name))
                    .is_some_and(|property| is_true(property, "nullable"))
            });
            if schema.get("additionalProperties").is_some_and(|values| is_true(values, "nullable")) {
                required.clear();
            }
        }
        if is_embedded {
            for name in ["kind", "apiVersion"] {
                if !required.iter().any(|known| known == name) {
                    required.push(name.to_owned());
                }
            }
        }
        required
    }

    /// Writes `allOf`, `oneOf`, `anyOf`, and `not`. Expresses `x-kubernetes-int-or-string` as alternatives.
    fn alternatives(&self, schema: &Value, members: &mut Members<'_>) {
        let list = |name: &str| schema.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
        let (mut all, mut any) = (list("allOf"), list("anyOf"));
        let either = || json!([{"type": "integer"}, {"type": "string"}]);
        let is_unfolded = Value::from(any.clone()) == either()
            || all.first().is_some_and(|first| first.get("anyOf") == Some(&either()));
        if is_true(schema, "x-kubernetes-int-or-string") && !is_unfolded {
            if schema.get("anyOf").is_none_or(Value::is_null) {
                any = either().as_array().cloned().unwrap_or_default();
            } else {
                all.insert(0, json!({"anyOf": either()}));
            }
        }
        for (name, schemas) in [("allOf", all), ("oneOf", list("oneOf")), ("anyOf", any)] {
            if schemas.is_empty() {
                continue;
            }
            let text = members.begin(name);
            text.push('[');
            for (index, schema) in schemas.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                self.write(schema, &NOTHING, text);
            }
            text.push(']');
        }
        if let Some(not) = schema.get("not").filter(|not| not.is_object()) {
            self.write(not, &NOTHING, members.begin("not"));
        }
    }

    /// Writes `properties`; the properties in `own` replace properties of the schema.
    fn properties<'a>(
        &self,
        schema: &Value,
        is_closed: bool,
        own: impl Iterator<Item = &'a BTreeMap<String, Box<str>>>,
        members: &mut Members<'_>,
    ) {
        let mut all: BTreeMap<&str, Result<&Value, &str>> = BTreeMap::new();
        let described = schema.get("properties").and_then(Value::as_object).filter(|_| !is_closed);
        all.extend(described.into_iter().flatten().map(|(name, schema)| (name.as_str(), Ok(schema))));
        all.extend(own.flatten().map(|(name, text)| (name.as_str(), Err(&**text))));
        if all.is_empty() {
            return;
        }
        let mut properties = Members::new(members.begin("properties"));
        for (name, schema) in all {
            match schema {
                Ok(schema) => self.write(schema, &NOTHING, properties.begin(name)),
                Err(text) => properties.add(name, text),
            }
        }
        properties.end();
    }
}

/// Formats a number as Go does.
fn number(value: &Value) -> String {
    let text = value.to_string();
    match text.strip_suffix(".0") {
        Some(whole) if value.is_number() => whole.to_owned(),
        _ => text,
    }
}

/// A writer for the members of a JSON object.
pub(super) struct Members<'a> {
    text: &'a mut String,
    separator: char,
}

impl<'a> Members<'a> {
    pub(super) fn new(text: &'a mut String) -> Self {
        Self { text, separator: '{' }
    }

    /// Writes the name of a member. Returns the buffer to which the caller writes the value.
    pub(super) fn begin(&mut self, name: &str) -> &mut String {
        self.text.push(self.separator);
        self.separator = ',';
        self.text.push_str(&Value::from(name).to_string());
        self.text.push(':');
        self.text
    }

    pub(super) fn add(&mut self, name: &str, value: &str) {
        self.begin(name).push_str(value);
    }

    pub(super) fn end(self) {
        if self.separator == '{' {
            self.text.push('{');
        }
        self.text.push('}');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asserts that the OpenAPI v3 and v2 documents contain `schema` as `v3` and `v2`.
    #[track_caller]
    fn check(schema: &Value, v3: &Value, v2: &Value) {
        for (format, expected) in [(Format::V3, v3), (Format::V2, v2)] {
            let mut text = String::new();
            Writer { format, pattern: Pattern::for_format(format) }.write(schema, &NOTHING, &mut text);
            let found: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(found, *expected, "{format:?}");
        }
    }

    #[test]
    fn nullable_and_open_schemas_have_no_type_in_v2() {
        let nullable = json!({"type": "string", "nullable": true});
        check(&nullable, &nullable, &json!({}));
        let map = json!({"type": "object", "additionalProperties": nullable});
        check(&map, &map, &json!({"type": "object", "additionalProperties": {}}));
        let open = json!({"type": "array", "items": {"type": "string"}, PRESERVES: true});
        check(&open, &open, &json!({PRESERVES: true}));
        let open = json!({"type": "object", PRESERVES: true});
        check(&open, &open, &json!({PRESERVES: true}));
    }

    #[test]
    fn integers_or_strings_are_alternatives_in_v3() {
        const EITHER: &str = "x-kubernetes-int-or-string";
        let kinds = json!([{"type": "integer"}, {"type": "string"}]);
        let v2 = json!({EITHER: true});
        check(&json!({EITHER: true}), &json!({"anyOf": kinds, EITHER: true}), &v2);
        check(&json!({EITHER: true, "anyOf": kinds}), &json!({"anyOf": kinds, EITHER: true}), &v2);
        let (own, all) = (json!([{"minLength": 1}]), json!([{"anyOf": kinds}]));
        check(&json!({EITHER: true, "anyOf": own}), &json!({"allOf": all, "anyOf": own, EITHER: true}), &v2);
    }

    #[test]
    fn zero_values_are_omitted() {
        let time =
            json!({"type": "string", "format": "date-time", "minLength": 0, "exclusiveMaximum": false});
        let shown = json!({"type": "string", "format": "date-time", "minLength": 0});
        check(&time, &shown, &shown);
        let number = json!({"type": "number", "minimum": 1.0, "exclusiveMinimum": true, "default": 1.5});
        let v3 = json!({"type": "number", "minimum": 1, "exclusiveMinimum": true, "default": 1.5});
        check(&number, &v3, &json!({"type": "number", "minimum": 1, "exclusiveMinimum": true}));
        check(
            &json!({"type": "object", "properties": {}, "required": []}),
            &json!({"type": "object"}),
            &json!({"type": "object"}),
        );
    }

    #[test]
    fn embedded_resources_have_the_fields_of_objects() {
        let embedded = json!({"type": "object", EMBEDDED: true, "properties": {"spec": {"type": "object"}}});
        let mut text = String::new();
        Writer { format: Format::V3, pattern: Pattern::for_format(Format::V3) }
            .write(&embedded, &NOTHING, &mut text);
        let found: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(found["required"], json!(["kind", "apiVersion"]));
        let properties: Vec<&String> = found["properties"].as_object().unwrap().keys().collect();
        assert_eq!(properties, ["apiVersion", "kind", "metadata", "spec"]);
        let open = json!({"type": "object", EMBEDDED: true, PRESERVES: true});
        let mut text = String::new();
        Writer { format: Format::V2, pattern: Pattern::for_format(Format::V2) }
            .write(&open, &NOTHING, &mut text);
        let found: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(found, json!({EMBEDDED: true, PRESERVES: true}));
    }
}
