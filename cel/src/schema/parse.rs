//! Parses schemas from JSON.
//!
//! Source: apiextensions-apiserver `pkg/apis/apiextensions/v1/types_jsonschema.go` and pkg/apiserver/schema/convert.go.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json};

use super::{Kind, ListType, Schema, escape};

/// The error for JSON that is not a structural schema.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{what}", place(path))]
pub struct SchemaError {
    /// The path of the invalid part, such as `properties.spec.items`, or an empty string for the whole schema.
    pub path: String,
    /// The reason why the part is invalid.
    pub what: String,
}

fn place(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!("{path}: ") }
}

impl SchemaError {
    fn new(what: impl Into<String>) -> Self {
        Self { path: String::new(), what: what.into() }
    }

    fn within(self, parent: &str) -> Self {
        let path = if self.path.is_empty() { parent.to_owned() } else { format!("{parent}.{}", self.path) };
        Self { path, ..self }
    }
}

/// The keywords that structural schemas do not allow.
const UNSUPPORTED: [&str; 7] =
    ["id", "$schema", "$ref", "patternProperties", "dependencies", "additionalItems", "definitions"];

impl Schema {
    /// Parses a schema. Null members count as absent, and unknown members are ignored.
    ///
    /// # Errors
    ///
    /// Returns an error if a member has the wrong type, or if structural schemas do not allow the member.
    pub fn from_json(json: &Json) -> Result<Self, SchemaError> {
        let Some(members) = json.as_object() else { return Err(SchemaError::new("must be an object")) };
        let reader = Reader(members);
        if let Some(name) = UNSUPPORTED.iter().find(|name| reader.is_set(name)) {
            return Err(SchemaError::new(format!("'{name}' is not supported")));
        }
        let schema = Self {
            kind: reader.kind()?,
            format: reader.text("format")?,
            nullable: reader.flag("nullable")?,
            items: reader.items()?,
            properties: reader.properties()?,
            additional_properties: reader.additional_properties()?,
            required: reader.texts("required")?,
            values: reader.read("enum", "an array", Json::as_array)?.cloned().unwrap_or_default(),
            has_default: reader.get("default").is_some(),
            max_length: reader.integer("maxLength")?,
            max_items: reader.integer("maxItems")?,
            max_properties: reader.integer("maxProperties")?,
            list_type: reader.list_type()?,
        };
        let is_resource = reader.flag("x-kubernetes-embedded-resource")?;
        Ok(if is_resource { schema.of_resource() } else { schema })
    }
}

/// The members of a schema.
struct Reader<'j>(&'j Map<String, Json>);

impl<'j> Reader<'j> {
    fn get(&self, name: &str) -> Option<&'j Json> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    /// Returns whether a member has a non-empty value.
    fn is_set(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| match value {
            Json::String(text) => !text.is_empty(),
            Json::Object(members) => !members.is_empty() || name == "additionalItems",
            _ => true,
        })
    }

    fn read<T>(
        &self,
        name: &str,
        expected: &str,
        read: impl Fn(&'j Json) -> Option<T>,
    ) -> Result<Option<T>, SchemaError> {
        let Some(value) = self.get(name) else { return Ok(None) };
        match read(value) {
            Some(value) => Ok(Some(value)),
            None => Err(SchemaError::new(format!("must be {expected}")).within(name)),
        }
    }

    fn text(&self, name: &str) -> Result<String, SchemaError> {
        Ok(self.read(name, "a string", Json::as_str)?.unwrap_or_default().to_owned())
    }

    fn flag(&self, name: &str) -> Result<bool, SchemaError> {
        Ok(self.read(name, "a boolean", Json::as_bool)?.unwrap_or_default())
    }

    fn integer(&self, name: &str) -> Result<Option<i64>, SchemaError> {
        self.read(name, "an integer", Json::as_i64)
    }

    fn texts(&self, name: &str) -> Result<Vec<String>, SchemaError> {
        let texts = |value: &Json| {
            value.as_array()?.iter().map(|text| Some(text.as_str()?.to_owned())).collect::<Option<Vec<_>>>()
        };
        Ok(self.read(name, "an array of strings", texts)?.unwrap_or_default())
    }

    fn kind(&self) -> Result<Kind, SchemaError> {
        const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
        let preserves = self.read(PRESERVE, "a boolean", Json::as_bool)?;
        if preserves == Some(false) {
            return Err(SchemaError::new(format!("'{PRESERVE}' must be true or undefined")));
        }
        let name = self.text("type")?;
        if self.flag("x-kubernetes-int-or-string")? {
            return Ok(Kind::IntOrString);
        }
        Ok(match name.as_str() {
            "object" => Kind::Object,
            "array" => Kind::Array,
            "string" => Kind::String,
            "number" => Kind::Number,
            "integer" => Kind::Integer,
            "boolean" => Kind::Boolean,
            _ if preserves.is_some() => Kind::Preserved,
            _ => Kind::Other(name),
        })
    }

    fn items(&self) -> Result<Option<Box<Schema>>, SchemaError> {
        let Some(items) = self.get("items") else { return Ok(None) };
        if items.is_array() {
            return Err(SchemaError::new("must be a schema, but is an array").within("items"));
        }
        nested("items", items)
    }

    fn properties(&self) -> Result<BTreeMap<String, Schema>, SchemaError> {
        let properties = self.read("properties", "an object", Json::as_object)?;
        let schema = |(name, schema): (&String, &Json)| match Schema::from_json(schema) {
            Ok(schema) => Ok((name.clone(), schema)),
            Err(error) => Err(error.within(name).within("properties")),
        };
        properties.into_iter().flatten().map(schema).collect()
    }

    fn additional_properties(&self) -> Result<Option<Box<Schema>>, SchemaError> {
        match self.get("additionalProperties") {
            None | Some(Json::Bool(_)) => Ok(None),
            Some(schema) => nested("additionalProperties", schema),
        }
    }

    fn list_type(&self) -> Result<ListType, SchemaError> {
        let keys = self.texts("x-kubernetes-list-map-keys")?;
        let name = self.text("x-kubernetes-list-type")?;
        Ok(match name.as_str() {
            "" | "atomic" => ListType::Atomic,
            "set" => ListType::Set,
            "map" => {
                let escaped = |key: String| match escape(&key) {
                    Some(escaped) => escaped.into_owned(),
                    None => key,
                };
                ListType::Map(keys.into_iter().map(escaped).collect())
            }
            _ => ListType::Other(name),
        })
    }
}

fn nested(name: &str, json: &Json) -> Result<Option<Box<Schema>>, SchemaError> {
    match Schema::from_json(json) {
        Ok(schema) => Ok(Some(Box::new(schema))),
        Err(error) => Err(error.within(name)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn invalid_schema_error_has_its_path() {
        let cases = [
            (json!([]), "must be an object"),
            (
                json!({"properties": {"a": {"items": {"type": 1}}}}),
                "properties.a.items.type: must be a string",
            ),
            (json!({"items": [{"type": "string"}]}), "items: must be a schema, but is an array"),
            (
                json!({"additionalProperties": {"maxLength": 1.5}}),
                "additionalProperties.maxLength: must be an integer",
            ),
            (json!({"properties": {"a": {"$ref": "#/b"}}}), "properties.a: '$ref' is not supported"),
            (json!({"required": ["a", 1]}), "required: must be an array of strings"),
            (
                json!({"x-kubernetes-preserve-unknown-fields": false}),
                "'x-kubernetes-preserve-unknown-fields' must be true or undefined",
            ),
        ];
        for (json, expected) in cases {
            let error = Schema::from_json(&json).expect_err("it is no schema");
            assert_eq!(error.to_string(), expected);
        }
    }

    #[test]
    fn null_is_equivalent_to_absent() {
        let json =
            json!({"type": "object", "properties": null, "default": null, "maxLength": null, "$ref": ""});
        let schema = Schema::from_json(&json).expect("it is a schema");
        assert!(!schema.has_default && !schema.has_properties() && schema.max_length.is_none());
    }
}
