//! Checks whether Go can decode an object into its type, and returns Go's errors.

use serde_json::{Map, Value};

use super::METADATA;
use super::table::{Field, Form, Kind, MESSAGES, Message, Shape};
use super::walk::is_type_meta;
use crate::go_base64;
use crate::go_time::{self, Layout};
use crate::group_version::GroupVersionKind;
use crate::json::json_type;
use crate::json_numbers;
use crate::quantity::{Quantity, QuantityError};

/// Checks that every field of an object of `kind` has the type that it has in Go.
///
/// If several fields have the wrong type, only the alphabetically first is reported. Names are case-sensitive. `path`
/// is the position of the object in a surrounding object: empty, or with a trailing dot, such as `items.`.
///
/// # Errors
/// Returns the error of Go's decoder if a field has the wrong type.
///
/// Source: sigs.k8s.io/json internal/golang/encoding/json/decode.go, a fork of Go encoding/json/decode.go.
pub fn type_error(object: &Map<String, Value>, kind: &GroupVersionKind, path: &str) -> Result<(), String> {
    let Some(message) = MESSAGES.of_kind(kind) else { return Ok(()) };
    let mut decoder = Decoder::default();
    let root = path.strip_suffix('.').map(|name| FieldPosition { owner: None, name, above: None });
    decoder.members(MESSAGES.get(message), object, root.as_ref())?;
    decoder.saved.map_or(Ok(()), Err)
}

/// Checks the metadata of an object as [`type_error`] does. For a custom resource, only the metadata has a Go type.
///
/// # Errors
/// Returns the error of Go's decoder if a field has the wrong type.
///
/// Source: apiextensions-apiserver pkg/apiserver/schema/objectmeta/coerce.go, `GetObjectMetaWithOptions`.
pub fn metadata_type_error(metadata: &Value) -> Result<(), String> {
    let members = match metadata {
        Value::Null => return Ok(()),
        Value::Object(members) => members,
        other @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
            let found = json_type(other);
            return Err(format!("json: cannot unmarshal {found} into Go value of type v1.ObjectMeta"));
        }
    };
    let Some(message) = MESSAGES.named(METADATA) else { return Ok(()) };
    let mut decoder = Decoder::default();
    decoder.members(MESSAGES.get(message), members, None)?;
    decoder.saved.map_or(Ok(()), Err)
}

/// Returns whether Go can decode one member of the metadata of an object.
pub fn is_metadata(name: &str, value: &Value) -> bool {
    let Some(message) = MESSAGES.named(METADATA) else { return true };
    let mut decoder = Decoder::default();
    decoder.member(MESSAGES.get(message), name, value, None).is_ok() && decoder.saved.is_none()
}

/// The position of a value: its field, or the field whose list or map contains the value.
#[derive(Clone, Copy)]
struct FieldPosition<'a> {
    /// The struct that contains the field; `None` for a placeholder field above the object.
    owner: Option<&'static Message>,
    name: &'a str,
    above: Option<&'a FieldPosition<'a>>,
}

impl FieldPosition<'_> {
    /// Returns the path of Go field names. It includes embedded structs, but not list indexes or map keys.
    fn path(&self) -> String {
        let above = self.above.map(|above| above.path() + ".").unwrap_or_default();
        let within = self.owner.map(|owner| embedded_path(owner, self.name)).unwrap_or_default();
        above + &within + self.name
    }
}

/// Returns the Go names of the embedded structs that contain a member, each with a trailing dot.
fn embedded_path(owner: &'static Message, name: &str) -> String {
    if owner.fields.iter().any(|field| field.name == name) {
        return String::new();
    }
    if owner.is_kind && is_type_meta(name) {
        return "TypeMeta.".to_owned();
    }
    let found = owner.embedded().find(|(_, embedded)| embedded.member(name).is_some());
    found
        .map(|(_, embedded)| format!("{}.{}", embedded.name, embedded_path(embedded, name)))
        .unwrap_or_default()
}

/// Decodes a value. If a value has the wrong type, decoding continues.
///
/// An error from an `UnmarshalJSON` method ends the decoding and is reported instead of the first wrong type.
#[derive(Default)]
struct Decoder {
    /// The error for the first value of the wrong type.
    saved: Option<String>,
    /// The struct to name in error messages, inside a field whose type has an `UnmarshalJSON` method.
    named: Option<&'static Message>,
}

impl Decoder {
    fn members(
        &mut self,
        message: &'static Message,
        members: &Map<String, Value>,
        above: Option<&FieldPosition<'_>>,
    ) -> Result<(), String> {
        members.iter().try_for_each(|(name, value)| self.member(message, name, value, above))
    }

    fn member(
        &mut self,
        message: &'static Message,
        name: &str,
        value: &Value,
        above: Option<&FieldPosition<'_>>,
    ) -> Result<(), String> {
        let position = FieldPosition { owner: Some(message), name, above };
        if let Some(field) = message.member(name) {
            return self.field(field, value, &position);
        }
        if message.is_kind && is_type_meta(name) {
            self.text(value, "string", &position);
        }
        Ok(())
    }

    fn field(
        &mut self,
        field: &'static Field,
        value: &Value,
        position: &FieldPosition<'_>,
    ) -> Result<(), String> {
        match (field.shape, value) {
            // Null leaves the field unchanged.
            (_, Value::Null) => Ok(()),
            (Shape::List, Value::Array(items)) => {
                items.iter().try_for_each(|item| self.value(field, item, position))
            }
            (Shape::Map, Value::Object(entries)) => {
                entries.values().try_for_each(|entry| self.value(field, entry, position))
            }
            (Shape::List | Shape::Map, _) => {
                self.wrong(value, &field.go_type(), position);
                Ok(())
            }
            (Shape::Plain | Shape::Optional, _) => self.value(field, value, position),
        }
    }

    /// Decodes a value of the field's kind, ignoring whether the field is a list or a map.
    fn value(
        &mut self,
        field: &'static Field,
        value: &Value,
        position: &FieldPosition<'_>,
    ) -> Result<(), String> {
        let go_type = field.go_item_type();
        match (field.kind, value) {
            (_, Value::Null)
            | (Kind::Bool, Value::Bool(_))
            | (Kind::IntOrString, Value::String(_))
            | (Kind::Json, _) => {}
            (Kind::Message(id), _) => return self.message(MESSAGES.get(id), value, position),
            (Kind::String, _) => self.text(value, go_type, position),
            (Kind::Int32, Value::Number(number)) => {
                if number.as_i64().is_none_or(|number| i32::try_from(number).is_err()) {
                    self.wrong_text(&format!("number {number}"), go_type, position);
                }
            }
            (Kind::Int64, Value::Number(number)) => {
                if !number.is_i64() {
                    self.wrong_text(&format!("number {number}"), go_type, position);
                }
            }
            (Kind::Double, Value::Number(number)) => {
                if json_numbers::is_stand_in(number) {
                    self.wrong_text(&format!("number {number}"), go_type, position);
                }
            }
            (Kind::Bytes, Value::String(text)) => {
                if let Err(text) = go_base64::decode(text) {
                    self.saved.get_or_insert(text);
                }
            }
            (Kind::Bytes, Value::Array(items)) => items.iter().for_each(|item| match item {
                Value::Null => {}
                Value::Number(number) => {
                    if number.as_u64().is_none_or(|number| u8::try_from(number).is_err()) {
                        self.wrong_text(&format!("number {number}"), "uint8", position);
                    }
                }
                Value::Bool(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
                    self.wrong(item, "uint8", position);
                }
            }),
            (Kind::Quantity, _) => {
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                match Quantity::parse(text.trim()) {
                    // Quantities with very many digits are kept as they are: kube-apiserver would need minutes to parse
                    // them.
                    Ok(_) | Err(QuantityError::TooLarge) => {}
                    Err(error) => return Err(error.to_string()),
                }
            }
            (Kind::Time, Value::String(text)) => drop(go_time::parse(text, Layout::Seconds)?),
            (Kind::MicroTime, Value::String(text)) => drop(go_time::parse(text, Layout::Micros)?),
            (Kind::Time | Kind::MicroTime, _) => {
                return Err(self.text_of(json_type(value), "string", position));
            }
            (Kind::IntOrString, Value::Number(number)) => {
                if number.as_i64().is_none_or(|number| i32::try_from(number).is_err()) {
                    return Err(self.text_of(&format!("number {number}"), "int32", position));
                }
            }
            (Kind::IntOrString, _) => return Err(self.text_of(json_type(value), "int32", position)),
            (Kind::Bool | Kind::Int32 | Kind::Int64 | Kind::Double | Kind::Bytes, _) => {
                self.wrong(value, go_type, position);
            }
        }
        Ok(())
    }

    fn message(
        &mut self,
        message: &'static Message,
        value: &Value,
        position: &FieldPosition<'_>,
    ) -> Result<(), String> {
        match (message.form, message.fields.as_slice(), value) {
            (Form::Object, _, Value::Object(members)) => self.members(message, members, Some(position)),
            // A named list type, such as `ExtraValue`, or arbitrary JSON.
            (Form::Value, [only], _) if only.kind == Kind::Json => Ok(()),
            (Form::Value, [only], Value::Array(_)) => self.field(only, value, position),
            (Form::Object, _, _) | (Form::Value, [_], _) => {
                self.wrong(value, message.go, position);
                Ok(())
            }
            (Form::Value, fields, _) => self.one_of(fields, value, position),
        }
    }

    /// Decodes a value whose type has an `UnmarshalJSON` method. All errors in the value come from that method.
    ///
    /// Source: apiextensions-apiserver pkg/apis/apiextensions/v1/marshal.go.
    fn one_of(
        &mut self,
        fields: &'static [Field],
        value: &Value,
        position: &FieldPosition<'_>,
    ) -> Result<(), String> {
        let mut inner = Self { saved: None, named: self.named.or(position.owner) };
        let list = fields.iter().find(|field| field.shape == Shape::List);
        let object = fields.iter().find(|field| matches!(field.kind, Kind::Message(_)));
        match (value, list, object) {
            (Value::Object(_), _, Some(object)) => inner.value(object, value, position)?,
            (Value::Array(_), Some(list), _) => inner.field(list, value, position)?,
            (Value::Bool(_), _, _) => {}
            (_, _, _) if fields.iter().any(|field| field.kind == Kind::Bool) => {
                return Err("boolean or JSON schema expected".to_owned());
            }
            (_, _, _) => {}
        }
        inner.saved.map_or(Ok(()), Err)
    }

    fn text(&mut self, value: &Value, go_type: &str, position: &FieldPosition<'_>) {
        if !value.is_string() && !value.is_null() {
            self.wrong(value, go_type, position);
        }
    }

    fn wrong(&mut self, value: &Value, go_type: &str, position: &FieldPosition<'_>) {
        self.wrong_text(json_type(value), go_type, position);
    }

    /// Records the error for a value of the wrong type. Go continues, but reports only the first error.
    fn wrong_text(&mut self, found: &str, go_type: &str, position: &FieldPosition<'_>) {
        if self.saved.is_none() {
            self.saved = Some(self.text_of(found, go_type, position));
        }
    }

    fn text_of(&self, found: &str, go_type: &str, position: &FieldPosition<'_>) -> String {
        let owner = self.named.or(position.owner).map_or("", |owner| owner.name);
        let path = position.path();
        format!("json: cannot unmarshal {found} into Go struct field {owner}.{path} of type {go_type}")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(api_version: &str, kind: &str, object: &Value, expect: &str) {
        let kind = GroupVersionKind::from_object(&json!({"apiVersion": api_version, "kind": kind}));
        let found = type_error(object.as_object().unwrap(), &kind, "");
        assert_eq!(found.err().unwrap_or_default(), expect, "{object}");
    }

    fn unmarshal(text: &str) -> String {
        format!("json: cannot unmarshal {text}")
    }

    // Recorded from kube-apiserver 1.37.1.
    #[test]
    fn a_wrong_type_is_reported_as_in_go() {
        check("v1", "ConfigMap", &json!({"data": {"a": "b"}, "metadata": null, "bogus": 1}), "");
        for (object, text) in [
            (
                json!({"metadata": {"labels": 1}}),
                "number into Go struct field ObjectMeta.metadata.labels of type map[string]string",
            ),
            (
                json!({"metadata": "x"}),
                "string into Go struct field ConfigMap.metadata of type v1.ObjectMeta",
            ),
            (json!({"data": {"k": 1}}), "number into Go struct field ConfigMap.data of type string"),
        ] {
            check("v1", "ConfigMap", &object, &unmarshal(text));
        }
        check("v1", "ConfigMap", &json!({"binaryData": {"a": "!"}}), "illegal base64 data at input byte 0");
        check(
            "v1",
            "Pod",
            &json!({"spec": {"containers": "x"}}),
            &unmarshal("string into Go struct field PodSpec.spec.containers of type []v1.Container"),
        );
    }

    #[test]
    fn errors_of_unmarshalers_take_precedence_over_wrong_types() {
        let limits = |limits: Value| json!({"metadata": 1, "spec": {"overhead": limits}});
        check("v1", "Pod", &limits(json!({"cpu": "x"})), &Quantity::parse("x").unwrap_err().to_string());
        check(
            "v1",
            "Pod",
            &json!({"metadata": {"creationTimestamp": 1}}),
            &unmarshal("number into Go struct field ObjectMeta.metadata.creationTimestamp of type string"),
        );
    }

    #[test]
    fn embedded_structs_are_part_of_the_path() {
        check(
            "v1",
            "Pod",
            &json!({"spec": {"volumes": [{"emptyDir": 1}]}}),
            &unmarshal(
                "number into Go struct field Volume.spec.volumes.VolumeSource.emptyDir of type \
                 v1.EmptyDirVolumeSource",
            ),
        );
    }

    #[test]
    fn schemas_in_definitions_have_separate_paths() {
        let schema = |schema: Value| json!({"spec": {"versions": [{"schema": {"openAPIV3Schema": schema}}]}});
        let check = |object: Value, text: &str| {
            check("apiextensions.k8s.io/v1", "CustomResourceDefinition", &schema(object), text);
        };
        check(json!({"additionalProperties": 1}), "boolean or JSON schema expected");
        check(
            json!({"items": {"type": 1}}),
            &unmarshal(
                "number into Go struct field \
                 JSONSchemaProps.spec.versions.schema.openAPIV3Schema.items.type of type string",
            ),
        );
    }
}
