//! Reads fields of a JSON document as Go's decoder reads a struct.
//!
//! Absent fields and `null` yield the zero value; a wrong type is an error that names the Go type.

use std::collections::BTreeMap;

use kubernetes_types::go_base64;
use kubernetes_types::json::json_type;
use kubernetes_types::status::{Status, StatusCause, StatusDetails};
use serde_json::{Map, Value};

use super::decode::DecodeError;

/// A JSON object that is being decoded into a Go struct.
///
/// Rule: RSP-02.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    object: &'a Map<String, Value>,
    /// The name of the Go struct, without its package.
    go_struct: &'a str,
    /// The path from the root of the document, with a trailing dot unless it is empty.
    path: String,
}

impl<'a> Fields<'a> {
    /// Creates a reader for `object`. Go decodes the object into the type `go_struct`.
    pub fn root(object: &'a Map<String, Value>, go_struct: &'a str) -> Self {
        Self::under(object, go_struct, "")
    }

    /// Creates a reader for the object at `path`. The path must have a trailing dot unless it is empty.
    pub(crate) fn under(object: &'a Map<String, Value>, go_struct: &'a str, path: &str) -> Self {
        Self { object, go_struct, path: path.to_owned() }
    }

    /// Returns the object in `field`, of the Go types `go_type` and `go_struct`; `None` if it is missing or null.
    ///
    /// # Errors
    /// Returns Go's error if the value has a different type.
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

    /// Returns the string in `field`; `None` if it is missing or null.
    ///
    /// # Errors
    /// Returns Go's error if the value has a different type.
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

    /// Returns the items of the list in `field`; empty if the list is missing. The items may have any type.
    pub(crate) fn values(&self, field: &str, go_type: &str) -> Result<Vec<Value>, DecodeError> {
        match self.present(field) {
            None => Ok(Vec::new()),
            Some(Value::Array(items)) => Ok(items.clone()),
            Some(other) => Err(self.wrong(field, other, go_type)),
        }
    }

    /// Returns the bytes in `field`, from base64 or from an array of small numbers: Go accepts both for a `[]byte`.
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

/// Decodes `fields` into a Status.
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read<T>(
        document: &Value,
        read: impl FnOnce(&Fields<'_>) -> Result<T, DecodeError>,
    ) -> Result<T, String> {
        let object = document.as_object().expect("an object");
        read(&Fields::root(object, "Struct")).map_err(DecodeError::into_text)
    }

    #[test]
    fn null_items_of_a_list_are_empty_strings() {
        let strings = |list: Value| read(&json!({"list": list}), |fields| fields.strings("list"));
        assert_eq!(strings(json!(["a", null])), Ok(vec!["a".to_owned(), String::new()]));
        assert_eq!(strings(Value::Null), Ok(Vec::new()));
        let wrong = |what, go_type| {
            Err(format!("json: cannot unmarshal {what} into Go struct field Struct.list of type {go_type}"))
        };
        assert_eq!(strings(json!(["a", 1])), wrong("number", "string"));
        assert_eq!(strings(json!("a")), wrong("string", "[]string"));
    }

    #[test]
    fn every_field_of_a_status_is_read() {
        let cause = json!({"reason": "FieldValueInvalid", "message": "no", "field": "spec"});
        let document = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {"resourceVersion": "7", "continue": "", "remainingItemCount": 3},
            "status": "Failure",
            "message": "denied",
            "reason": "Invalid",
            "details": {
                "name": "n", "group": "g", "kind": "k", "uid": "u", "causes": [cause, null], "retryAfterSeconds": 2
            },
            "code": 422,
        });
        let read = read(&document, status).expect("a Status");
        assert_eq!(read.metadata, json!({"resourceVersion": "7"}));
        let details = read.details.expect("details");
        assert_eq!(
            (details.name, details.group, details.kind, details.uid, details.retry_after_seconds),
            ("n".to_owned(), "g".to_owned(), "k".to_owned(), "u".to_owned(), 2)
        );
        let texts: Vec<_> =
            details.causes.into_iter().map(|cause| [cause.reason, cause.message, cause.field]).collect();
        assert_eq!(texts, [["FieldValueInvalid", "no", "spec"], ["", "", ""]]);
        let texts = [read.kind, read.api_version, read.status, read.message, read.reason];
        assert_eq!(texts, ["Status", "v1", "Failure", "denied", "Invalid"]);
        assert_eq!(read.code, 422);
    }

    #[test]
    fn a_cause_of_the_wrong_type_is_reported_with_its_path() {
        let error = |causes: Value| read(&json!({"details": {"causes": causes}}), status).err();
        assert_eq!(
            error(json!(["no"])).as_deref(),
            Some(
                "json: cannot unmarshal string into Go struct field StatusDetails.details.causes of type \
                 v1.StatusCause"
            )
        );
        assert_eq!(
            error(json!([{"field": 1}])).as_deref(),
            Some(
                "json: cannot unmarshal number into Go struct field StatusCause.details.causes.field of type \
                 string"
            )
        );
        assert_eq!(error(json!([])), None);
    }
}
