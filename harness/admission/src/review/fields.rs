//! Fields of a JSON document as Go's decoder puts them into a struct: absent and `null` leave the zero value, a wrong
//! type is an error that names the Go type.

use std::collections::BTreeMap;

use kubernetes_types::go_base64;
use kubernetes_types::json::json_type;
use kubernetes_types::status::{Status, StatusCause, StatusDetails};
use serde_json::{Map, Value};

use super::decode::DecodeError;

/// A JSON object that is being read into a Go struct.
///
/// Rule: RSP-02.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    object: &'a Map<String, Value>,
    /// The struct's name in Go, without its package.
    go_struct: &'a str,
    /// The path from the document's root, with a dot at its end unless it is empty.
    path: String,
}

impl<'a> Fields<'a> {
    /// The members of `object`, which is decoded into the Go type `go_struct`.
    pub fn root(object: &'a Map<String, Value>, go_struct: &'a str) -> Self {
        Self::under(object, go_struct, "")
    }

    /// The same of an object whose fields are under `path`, which ends in a dot unless it is empty.
    pub(crate) fn under(object: &'a Map<String, Value>, go_struct: &'a str, path: &str) -> Self {
        Self { object, go_struct, path: path.to_owned() }
    }

    /// The members of the object in `field`, which has `go_type` in Go and belongs to `go_struct`; none where it is missing or null.
    ///
    /// # Errors
    /// What Go says of a value of another type.
    pub fn object(
        &self,
        field: &str,
        go_type: &str,
        go_struct: &'a str,
    ) -> Result<Option<Self>, DecodeError> {
        match self.present(field) {
            None => Ok(None),
            Some(Value::Object(object)) => {
                Ok(Some(Self { object, go_struct, path: format!("{}{field}.", self.path) }))
            }
            Some(other) => Err(self.wrong(field, other, go_type)),
        }
    }

    /// The string in `field`; none where it is missing or null.
    ///
    /// # Errors
    /// What Go says of a value of another type.
    pub fn string(&self, field: &str, go_type: &str) -> Result<Option<String>, DecodeError> {
        match self.present(field) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(other) => Err(self.wrong(field, other, go_type)),
        }
    }

    pub(crate) fn boolean(&self, field: &str) -> Result<bool, DecodeError> {
        match self.present(field) {
            None => Ok(false),
            Some(Value::Bool(value)) => Ok(*value),
            Some(other) => Err(self.wrong(field, other, "bool")),
        }
    }

    fn int32(&self, field: &str) -> Result<i32, DecodeError> {
        match self.present(field) {
            None => Ok(0),
            Some(Value::Number(number)) => number
                .as_i64()
                .and_then(|number| i32::try_from(number).ok())
                .ok_or_else(|| self.wrong_text(field, &format!("number {number}"), "int32")),
            Some(other) => Err(self.wrong(field, other, "int32")),
        }
    }

    pub(crate) fn strings(&self, field: &str) -> Result<Vec<String>, DecodeError> {
        match self.present(field) {
            None => Ok(Vec::new()),
            Some(Value::Array(items)) => items
                .iter()
                .map(|item| match item {
                    Value::Null => Ok(String::new()),
                    Value::String(text) => Ok(text.clone()),
                    other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                        Err(self.wrong(field, other, "string"))
                    }
                })
                .collect(),
            Some(other) => Err(self.wrong(field, other, "[]string")),
        }
    }

    pub(crate) fn string_map(&self, field: &str) -> Result<BTreeMap<String, String>, DecodeError> {
        match self.present(field) {
            None => Ok(BTreeMap::new()),
            Some(Value::Object(entries)) => entries
                .iter()
                .map(|(key, value)| match value {
                    Value::Null => Ok((key.clone(), String::new())),
                    Value::String(text) => Ok((key.clone(), text.clone())),
                    other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                        Err(self.wrong(field, other, "string"))
                    }
                })
                .collect(),
            Some(other) => Err(self.wrong(field, other, "map[string]string")),
        }
    }

    /// The items of a list, whatever they are; none where it is missing.
    pub(crate) fn values(&self, field: &str, go_type: &str) -> Result<Vec<Value>, DecodeError> {
        match self.present(field) {
            None => Ok(Vec::new()),
            Some(Value::Array(items)) => Ok(items.clone()),
            Some(other) => Err(self.wrong(field, other, go_type)),
        }
    }

    /// Bytes: base64, or an array of small numbers, as Go takes both for a `[]byte`.
    pub(crate) fn bytes(&self, field: &str) -> Result<Vec<u8>, DecodeError> {
        match self.present(field) {
            None => Ok(Vec::new()),
            Some(Value::String(text)) => go_base64::decode(text).map_err(DecodeError::new),
            Some(Value::Array(items)) => items
                .iter()
                .map(|item| match item {
                    Value::Null => Ok(0),
                    Value::Number(number) => number
                        .as_u64()
                        .and_then(|number| u8::try_from(number).ok())
                        .ok_or_else(|| self.wrong_text(field, &format!("number {number}"), "uint8")),
                    other @ (Value::Bool(_) | Value::String(_) | Value::Array(_) | Value::Object(_)) => {
                        Err(self.wrong(field, other, "uint8"))
                    }
                })
                .collect(),
            Some(other) => Err(self.wrong(field, other, "[]uint8")),
        }
    }

    fn present(&self, field: &str) -> Option<&'a Value> {
        self.object.get(field).filter(|value| !value.is_null())
    }

    fn wrong(&self, field: &str, value: &Value, go_type: &str) -> DecodeError {
        self.wrong_text(field, json_type(value), go_type)
    }

    fn wrong_text(&self, field: &str, value: &str, go_type: &str) -> DecodeError {
        let Self { go_struct, path, .. } = self;
        DecodeError::new(format!(
            "json: cannot unmarshal {value} into Go struct field {go_struct}.{path}{field} of type {go_type}"
        ))
    }
}

/// The Status in `fields`.
///
/// Source: apimachinery pkg/apis/meta/v1/types.go, `Status`.
pub(super) fn status(fields: &Fields<'_>) -> Result<Status, DecodeError> {
    let text =
        |fields: &Fields<'_>, field, go_type| fields.string(field, go_type).map(Option::unwrap_or_default);
    let details = fields
        .object("details", "v1.StatusDetails", "StatusDetails")?
        .map(|details| {
            Ok(StatusDetails {
                name: text(&details, "name", "string")?,
                group: text(&details, "group", "string")?,
                kind: text(&details, "kind", "string")?,
                uid: text(&details, "uid", "types.UID")?,
                causes: causes(&details)?,
                retry_after_seconds: details.int32("retryAfterSeconds")?,
            })
        })
        .transpose()?;
    let mut metadata = Map::new();
    if let Some(list) = fields.object("metadata", "v1.ListMeta", "ListMeta")? {
        for field in ["selfLink", "resourceVersion", "continue"] {
            if let Some(value) = list.string(field, "string")?.filter(|value| !value.is_empty()) {
                metadata.insert(field.to_owned(), Value::String(value));
            }
        }
    }
    Ok(Status {
        kind: text(fields, "kind", "string")?,
        api_version: text(fields, "apiVersion", "string")?,
        metadata: Value::Object(metadata),
        status: text(fields, "status", "string")?,
        message: text(fields, "message", "string")?,
        reason: text(fields, "reason", "v1.StatusReason")?,
        details,
        code: fields.int32("code")?,
    })
}

fn causes(details: &Fields<'_>) -> Result<Vec<StatusCause>, DecodeError> {
    let items = match details.present("causes") {
        None => return Ok(Vec::new()),
        Some(Value::Array(items)) => items,
        Some(other) => return Err(details.wrong("causes", other, "[]v1.StatusCause")),
    };
    items
        .iter()
        .map(|item| match item {
            Value::Null => Ok(StatusCause::default()),
            Value::Object(object) => {
                let cause =
                    Fields { object, go_struct: "StatusCause", path: format!("{}causes.", details.path) };
                let text = |field, go_type| cause.string(field, go_type).map(Option::unwrap_or_default);
                Ok(StatusCause {
                    reason: text("reason", "v1.CauseType")?,
                    message: text("message", "string")?,
                    field: text("field", "string")?,
                })
            }
            other @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
                Err(details.wrong("causes", other, "v1.StatusCause"))
            }
        })
        .collect()
}
