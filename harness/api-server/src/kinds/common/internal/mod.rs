//! Formats objects in errors as kube-apiserver does: as internal types in Go's JSON with all fields.
//!
//! `harness/tools/internal.sh` writes `types.json` from upstream's types. For each type, the file lists the fields in
//! order, each with its name in errors, its path in the versioned object, its form, its type, and whether it is omitted
//! if empty. A path has a slash between two members, and is empty if the object itself is one of several types.
//!
//! Source: apimachinery pkg/util/diff/diff.go; pkg/util/validation/field/errors.go, `ErrorBody`; Go encoding/json.

pub(crate) mod comparison;

use std::collections::HashMap;
use std::sync::LazyLock;

use kubernetes_types::quoting::escape_html;
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use serde_json::ser::PrettyFormatter;

static TYPES: LazyLock<HashMap<String, Vec<Field>>> =
    LazyLock::new(|| match serde_json::from_str(include_str!("types.json")) {
        Ok(types) => types,
        Err(error) => panic!("types.json: {error}"),
    });

/// The name, path, form, and type of a field, and whether the field is omitted if empty.
#[derive(Debug, Deserialize)]
struct Field(String, String, Form, String, bool);

/// The form in which Go stores a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(crate) enum Form {
    /// A value type. An absent value is shown as the empty value.
    #[serde(rename = "")]
    Plain,
    /// A pointer. An absent value is shown as `null`, as for lists and maps.
    #[serde(rename = "*")]
    Pointer,
    #[serde(rename = "[]")]
    List,
    #[serde(rename = "{}")]
    Map,
}

/// A value of an internal type, such as `core.PodSpec`, or a collection of such values.
#[derive(Clone, Copy)]
struct InternalValue<'a> {
    form: Form,
    of: &'a str,
    value: &'a Value,
}

/// The maximum number of values in an object that an error contains. A value can take about thirty lines.
const MAX_VALUES: usize = 5_000;

/// Returns whether a value is too large for an error.
pub(crate) fn is_large(value: &Value) -> bool {
    fn count(value: &Value, left: &mut usize) -> bool {
        let Some(less) = left.checked_sub(1) else { return false };
        *left = less;
        match value {
            Value::Array(items) => items.iter().all(|item| count(item, left)),
            Value::Object(members) => members.values().all(|member| count(member, left)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
        }
    }
    let mut left = MAX_VALUES;
    !count(value, &mut left)
}

/// Formats a value of an internal type, such as `core.PodSpec`, on one line.
pub(crate) fn shown(form: Form, of: &str, value: &Value) -> String {
    // Keys are strings and memory is writable, so this cannot fail.
    escape_html(&serde_json::to_string(&InternalValue { form, of, value }).unwrap_or_default())
}

/// Returns the unified diff of two values of an internal type; `None` if the comparison would take too long.
pub(crate) fn difference(of: &str, old: &Value, new: &Value) -> Option<String> {
    let lines = |value| {
        let mut text = Vec::new();
        let formatter = PrettyFormatter::with_indent(b" ");
        let mut serializer = serde_json::Serializer::with_formatter(&mut text, formatter);
        // This cannot fail, as above.
        let _ = InternalValue { form: Form::Plain, of, value }.serialize(&mut serializer);
        escape_html(&String::from_utf8_lossy(&text))
    };
    comparison::unified(&lines(old), &lines(new))
}

impl Serialize for InternalValue<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { form, of, value } = *self;
        let plain = |value| InternalValue { form: Form::Plain, of, value };
        match (form, value) {
            (Form::List, Value::Array(items)) => serializer.collect_seq(items.iter().map(plain)),
            (Form::Map, Value::Object(members)) => {
                serializer.collect_map(members.iter().map(|(name, member)| (name, plain(member))))
            }
            (Form::List | Form::Map, _) | (Form::Pointer, Value::Null) => serializer.serialize_unit(),
            (Form::Plain | Form::Pointer, value) => match (of, value) {
                ("string", Value::Null) => serializer.serialize_str(""),
                ("bool", Value::Null) => serializer.serialize_bool(false),
                ("number", Value::Null) => serializer.serialize_u8(0),
                ("quantity", Value::Null) => serializer.serialize_str("0"),
                // A schema in a field that also allows a boolean.
                ("bool", Value::Object(_)) => serializer.serialize_bool(true),
                _ => match TYPES.get(of) {
                    // The value has another type of the union.
                    Some(fields)
                        if form == Form::Pointer && !value.is_object() && !is_one_of_several(fields) =>
                    {
                        serializer.serialize_unit()
                    }
                    Some(fields) => object(fields, value, serializer),
                    None => value.serialize(serializer),
                },
            },
        }
    }
}

/// Returns whether a type is a union. In Go, a union has a field for each possible type.
fn is_one_of_several(fields: &[Field]) -> bool {
    fields.iter().any(|Field(_, path, ..)| path.is_empty())
}

fn object<S: Serializer>(fields: &[Field], owner: &Value, serializer: S) -> Result<S::Ok, S::Error> {
    let mut members = serializer.serialize_map(None)?;
    for Field(name, path, form, of, is_optional) in fields {
        let path = path.split('/').filter(|member| !member.is_empty());
        let value = path.fold(owner, |owner, member| owner.get(member).unwrap_or(&Value::Null));
        let is_there = !is_optional || !value.is_null() && (*form == Form::Pointer || !is_empty(value));
        if is_there {
            members.serialize_entry(name, &InternalValue { form: *form, of, value })?;
        }
    }
    members.end()
}

/// Returns whether Go's JSON encoder omits a value with `omitempty`.
///
/// Source: Go encoding/json/encode.go, `isEmptyValue`.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::fields::Errors;
    use super::*;

    #[test]
    fn absent_fields_are_shown() {
        let toleration = r#"{"Key":"","Operator":"Exists","Value":"","Effect":"","TolerationSeconds":null}"#;
        assert_eq!(shown(Form::Pointer, "core.Toleration", &json!({"operator": "Exists"})), toleration);
        assert_eq!(shown(Form::Pointer, "core.Toleration", &Value::Null), "null");
        assert_eq!(shown(Form::Plain, "core.EventSource", &Value::Null), r#"{"Component":"","Host":""}"#);
        assert_eq!(shown(Form::List, "core.EventSource", &json!([{}])), r#"[{"Component":"","Host":""}]"#);
        let template = json!({"metadata": {"labels": {}, "name": "<n>"}, "spec": null});
        assert!(
            shown(Form::Pointer, "core.PodTemplateSpec", &template)
                .starts_with(r#"{"name":"\u003cn\u003e","Spec":{"Volumes":null"#)
        );
        assert_eq!(
            difference("core.EventSource", &json!({}), &json!({"host": "h"})).unwrap(),
            "@@ -1,4 +1,4 @@\n {\n  \"Component\": \"\",\n- \"Host\": \"\"\n+ \"Host\": \"h\"\n }\n"
        );
    }

    #[test]
    fn values_that_are_too_large_are_not_shown() {
        let of_size = |values| json!({"containers": vec![json!({}); values - 2]});
        for (values, is_told) in [(MAX_VALUES, true), (MAX_VALUES + 1, false)] {
            let mut errors = Errors::default();
            assert_eq!(!errors.shown(Form::Pointer, "core.PodSpec", &of_size(values)).is_empty(), is_told);
            assert_eq!(errors.into_list().is_ok(), is_told);
            let versions = json!(vec![json!({}); values - 1]);
            assert_eq!(
                crate::kinds::apiextensions::definitions::of_versions(&versions, &["why"]).is_ok(),
                is_told
            );
        }
    }

    #[test]
    fn total_size_of_messages_is_limited() {
        let long = json!({"host": "h".repeat(1 << 20)});
        for (messages, is_told) in [(7, true), (8, false)] {
            let mut errors = Errors::default();
            for _ in 0..messages {
                let _: String = errors.shown(Form::Pointer, "core.EventSource", &long);
            }
            assert_eq!(errors.into_list().is_ok(), is_told, "{messages}");
        }
    }
}
