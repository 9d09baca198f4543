//! Converts unstructured objects to Go types. Strategic merge patches and applies include this conversion.
//!
//! Source: apimachinery pkg/runtime/converter.go, `fromUnstructured`.

use serde_json::{Map, Value};

use super::table::{Field, Form, Kind, MESSAGES, Message, Shape};
use super::walk::is_type_meta;
use crate::go_base64;
use crate::go_time::{self, Layout};
use crate::group_version::GroupVersionKind;
use crate::json::json_type;
use crate::quantity::{Quantity, QuantityError};
use crate::unstructured::{integer, low_bits};

/// The result of a conversion.
///
/// The error is kube-apiserver's message, or `None` if its result or message is not known.
type Conversion = Result<(), Option<String>>;

/// Converts an object to the Go type of `kind`. Numbers become the integers that Go's conversion returns.
///
/// Rule: APY-24.
///
/// # Errors
/// Returns kube-apiserver's message, or `None` for a value whose conversion admit does not support.
pub fn from_unstructured(object: &mut Map<String, Value>, kind: &GroupVersionKind) -> Conversion {
    MESSAGES.of_kind(kind).map_or(Ok(()), |message| members(MESSAGES.get(message), object))
}

fn members(message: &'static Message, object: &mut Map<String, Value>) -> Conversion {
    object.iter_mut().try_for_each(|(name, value)| match message.member(name) {
        Some(field) => of_field(field, value),
        None if message.is_kind && is_type_meta(name) && !value.is_null() => text(value, "string"),
        None => Ok(()),
    })
}

fn of_field(field: &'static Field, value: &mut Value) -> Conversion {
    match (field.shape, value) {
        (_, Value::Null) => Ok(()),
        (Shape::List, Value::Array(items)) => items.iter_mut().try_for_each(|item| of_value(field, item)),
        (Shape::Map, Value::Object(entries)) => {
            entries.values_mut().try_for_each(|entry| of_value(field, entry))
        }
        (Shape::List, value) => wrong(format!("cannot restore slice from {}", go_kind(value))),
        (Shape::Map, value) => wrong(format!("cannot restore map from {}", go_kind(value))),
        (Shape::Plain | Shape::Optional, value) => of_value(field, value),
    }
}

fn of_value(field: &'static Field, value: &mut Value) -> Conversion {
    let go_type = field.go_item_type();
    if let (Kind::Int32 | Kind::Int64, Value::Number(number)) = (field.kind, &*value) {
        let integer = integer(number, go_type).map_err(Some)?;
        // Go keeps the lower 32 bits.
        *value = if field.kind == Kind::Int32 { low_bits(integer).into() } else { integer.into() };
        return Ok(());
    }
    if let Kind::Message(id) = field.kind
        && !value.is_null()
    {
        return of_message(MESSAGES.get(id), value);
    }
    match (field.kind, &*value) {
        (_, Value::Null)
        | (Kind::Bool, Value::Bool(_))
        | (Kind::Double, Value::Number(_))
        | (Kind::IntOrString, Value::String(_))
        | (Kind::Json | Kind::Message(_), _) => Ok(()),
        (Kind::String, _) => text(value, go_type),
        (Kind::Bool, _) => wrong("unrecognized type: bool".to_owned()),
        (Kind::Double, _) => wrong("unrecognized type: float64".to_owned()),
        (Kind::Int32, _) => wrong("unrecognized type: int32".to_owned()),
        (Kind::Int64, _) => wrong("unrecognized type: int64".to_owned()),
        (Kind::Bytes, Value::String(text)) => match go_base64::decode(text) {
            Ok(_) => Ok(()),
            Err(why) => wrong(format!("error decoding from json: {why}")),
        },
        (Kind::Bytes, Value::Array(_)) => Err(None),
        (Kind::Bytes, _) => wrong(format!("cannot restore slice from {}", go_kind(value))),
        (Kind::Quantity, _) => {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            match Quantity::parse(text.trim()) {
                Ok(_) | Err(QuantityError::TooLarge) => Ok(()),
                Err(error) => wrong(error.to_string()),
            }
        }
        (Kind::Time, Value::String(text)) => go_time::parse(text, Layout::Seconds).map(drop).map_err(Some),
        (Kind::MicroTime, Value::String(text)) => {
            go_time::parse(text, Layout::Micros).map(drop).map_err(Some)
        }
        (Kind::Time | Kind::MicroTime, _) => unmarshal(json_type(value), "string"),
        (Kind::IntOrString, Value::Number(number)) => {
            if number.as_i64().is_some_and(|number| i32::try_from(number).is_ok()) {
                return Ok(());
            }
            unmarshal(&format!("number {number}"), "int32")
        }
        (Kind::IntOrString, _) => unmarshal(json_type(value), "int32"),
    }
}

fn of_message(message: &'static Message, value: &mut Value) -> Conversion {
    match (message.form, message.fields.as_slice(), value) {
        (Form::Object, _, Value::Object(object)) => members(message, object),
        (Form::Object, _, value) => wrong(format!("cannot restore struct from: {}", go_kind(value))),
        (Form::Value, [only], _) if only.kind == Kind::Json => Ok(()),
        (Form::Value, [only], value) => of_field(only, value),
        (Form::Value, _, _) => Err(None),
    }
}

fn text(value: &Value, go_type: &str) -> Conversion {
    match value {
        Value::Null | Value::String(_) => Ok(()),
        // Go can convert an integer to a string, so the message differs.
        Value::Number(number) if number.is_i64() => wrong(format!("cannot convert int64 to {go_type}")),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            wrong("unrecognized type: string".to_owned())
        }
    }
}

fn unmarshal(found: &str, go_type: &str) -> Conversion {
    wrong(format!("json: cannot unmarshal {found} into Go value of type {go_type}"))
}

fn wrong(why: String) -> Conversion {
    Err(Some(why))
}

/// Returns the `reflect.Kind` of an unstructured value in Go.
fn go_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "invalid",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(api_version: &str, kind: &str, object: &Value, expected: Result<(), Option<&str>>) {
        let kind = GroupVersionKind::from_object(&json!({"apiVersion": api_version, "kind": kind}));
        let found = from_unstructured(object.clone().as_object_mut().unwrap(), &kind);
        assert_eq!(found, expected.map_err(|why| why.map(str::to_owned)), "{object}");
    }

    #[test]
    fn messages_are_those_of_the_converter() {
        for (object, expected) in [
            (json!({"data": {"a": "b", "c": null}, "metadata": {"name": "x"}, "other": 1}), Ok(())),
            (json!({"data": 5}), Err("cannot restore map from int64")),
            (json!({"data": [1]}), Err("cannot restore map from slice")),
            (json!({"data": {"a": 5}}), Err("cannot convert int64 to string")),
            (json!({"data": {"a": {"b": 1}}}), Err("unrecognized type: string")),
            (json!({"immutable": "yes"}), Err("unrecognized type: bool")),
            (json!({"metadata": "x"}), Err("cannot restore struct from: string")),
            (json!({"metadata": {"generation": 1.5}}), Err("cannot convert float64 to int64")),
            (
                json!({"metadata": {"ownerReferences": [{"uid": 5}]}}),
                Err("cannot convert int64 to types.UID"),
            ),
            (
                json!({"binaryData": {"a": "!!"}}),
                Err("error decoding from json: illegal base64 data at input byte 0"),
            ),
            (json!({"binaryData": {"a": 5}}), Err("cannot restore slice from int64")),
            (
                json!({"metadata": {"creationTimestamp": 5}}),
                Err("json: cannot unmarshal number into Go value of type string"),
            ),
            (json!({"kind": 5}), Err("cannot convert int64 to string")),
        ] {
            check("v1", "ConfigMap", &object, expected.map_err(Some));
        }
    }

    #[test]
    fn integers_keep_their_lower_bits() {
        let deployment = GroupVersionKind::new("apps", "v1", "Deployment");
        for (given, expected) in [
            (json!(2), 2),
            (json!(3_000_000_000_u32), -1_294_967_296),
            (json!(-4_294_967_295_i64), 1),
            (json!(u64::MAX), 0),
            (json!(1.0), 1),
            (json!(3e9), -1_294_967_296),
            (json!(1e300), 0),
        ] {
            let mut object = json!({"spec": {"replicas": given}});
            assert_eq!(from_unstructured(object.as_object_mut().unwrap(), &deployment), Ok(()));
            assert_eq!(object["spec"]["replicas"], expected, "{given}");
        }
    }
}
