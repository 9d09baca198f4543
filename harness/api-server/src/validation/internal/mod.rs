//! Objects as kube-apiserver shows them in errors: its internal types in Go's JSON, with all of their fields.
//!
//! `types.json` is written by `harness/tools/internal.sh` from upstream's types: of each its fields in order, as the name that
//! is shown, the path of the field in the versioned object (with a slash between two members), its form and its type.
//!
//! Source: apimachinery pkg/util/diff/diff.go; pkg/util/validation/field/errors.go, `ErrorBody`; Go encoding/json.

mod comparison;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

use kubernetes_types::quoting::encode;
use serde::Deserialize;
use serde_json::Value;

static TYPES: LazyLock<HashMap<String, Vec<Field>>> =
    LazyLock::new(|| match serde_json::from_str(include_str!("types.json")) {
        Ok(types) => types,
        Err(error) => panic!("types.json: {error}"),
    });

#[derive(Debug, Deserialize)]
struct Field(String, String, Form, String);

#[derive(Clone, Copy, Debug, Deserialize)]
enum Form {
    #[serde(rename = "")]
    Plain,
    #[serde(rename = "*")]
    Pointer,
    #[serde(rename = "[]")]
    List,
    #[serde(rename = "{}")]
    Map,
    #[serde(rename = "?")]
    PlainUnlessEmpty,
    #[serde(rename = "?*")]
    PointerUnlessEmpty,
    #[serde(rename = "?[]")]
    ListUnlessEmpty,
    #[serde(rename = "?{}")]
    MapUnlessEmpty,
}

/// JSON whose members have an order.
enum Shown<'a> {
    Scalar(Cow<'static, str>),
    List(Vec<Shown<'a>>),
    Object(Vec<(&'a str, Shown<'a>)>),
}

/// How many values an object may consist of that is shown: each may become some thirty lines.
const MOST_VALUES: usize = 5_000;

/// Whether a value is too large to be shown.
pub(super) fn is_large(value: &Value) -> bool {
    fn count(value: &Value, left: &mut usize) -> bool {
        let Some(less) = left.checked_sub(1) else { return false };
        *left = less;
        match value {
            Value::Array(items) => items.iter().all(|item| count(item, left)),
            Value::Object(members) => members.values().all(|member| count(member, left)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
        }
    }
    let mut left = MOST_VALUES;
    !count(value, &mut left)
}

/// A value of an internal type, such as `core.PodSpec`, on one line; `null` where there is none.
pub(super) fn shown(of: &str, value: &Value) -> String {
    if value.is_null() { "null".to_owned() } else { shown_value(of, value) }
}

/// The same of a field that is not a pointer: where it is absent, it is empty.
pub(super) fn shown_value(of: &str, value: &Value) -> String {
    let mut text = String::new();
    of_type(of, value).write(&mut text, None);
    text
}

/// A list of values of an internal type, on one line; `null` where there is none.
pub(super) fn shown_list(of: &str, values: &Value) -> String {
    let Some(values) = values.as_array() else { return "null".to_owned() };
    let values: Vec<String> = values.iter().map(|value| shown_value(of, value)).collect();
    format!("[{}]", values.join(","))
}

/// What is different in two values of an internal type, in the unified format with three lines around; none if that would take
/// too long.
pub(super) fn difference(of: &str, old: &Value, new: &Value) -> Option<String> {
    let lines = |value| {
        let mut text = String::new();
        of_type(of, value).write(&mut text, Some(0));
        text.split('\n').map(str::to_owned).collect::<Vec<String>>()
    };
    comparison::unified(&lines(old), &lines(new))
}

fn of_type<'a>(of: &str, value: &'a Value) -> Shown<'a> {
    let fields = match (of, value) {
        ("string", Value::Null) => return Shown::Scalar("\"\"".into()),
        ("bool", Value::Null) => return Shown::Scalar("false".into()),
        ("number", Value::Null) => return Shown::Scalar("0".into()),
        ("quantity", Value::Null) => return Shown::Scalar("\"0\"".into()),
        _ => TYPES.get(of),
    };
    let Some(fields) = fields else { return Shown::Scalar(encode(value).into()) };
    Shown::Object(fields.iter().filter_map(|field| field.shown(value)).collect())
}

impl Field {
    fn shown<'a>(&'static self, owner: &'a Value) -> Option<(&'a str, Shown<'a>)> {
        let Self(name, path, form, of) = self;
        let value = path.split('/').fold(owner, |owner, member| owner.get(member).unwrap_or(&Value::Null));
        let is_empty = match value {
            Value::Null => true,
            Value::Bool(flag) => !flag,
            Value::Number(number) => number.as_f64() == Some(0.0),
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(members) => members.is_empty(),
        };
        let shown = match form {
            Form::PlainUnlessEmpty | Form::ListUnlessEmpty | Form::MapUnlessEmpty if is_empty => return None,
            Form::PointerUnlessEmpty if value.is_null() => return None,
            Form::Pointer if value.is_null() => Shown::null(),
            Form::Plain | Form::PlainUnlessEmpty | Form::Pointer | Form::PointerUnlessEmpty => {
                of_type(of, value)
            }
            Form::List | Form::ListUnlessEmpty => value.as_array().map_or_else(Shown::null, |items| {
                Shown::List(items.iter().map(|item| of_type(of, item)).collect())
            }),
            Form::Map | Form::MapUnlessEmpty => value.as_object().map_or_else(Shown::null, |members| {
                let member = |(name, member): (&'a String, &'a Value)| (name.as_str(), of_type(of, member));
                Shown::Object(members.iter().map(member).collect())
            }),
        };
        Some((name, shown))
    }
}

impl Shown<'_> {
    fn null() -> Self {
        Self::Scalar("null".into())
    }

    /// Writes it: with `depth`, each item and member on a line of its own, with so many spaces more before it.
    fn write(&self, text: &mut String, depth: Option<usize>) {
        let inner = depth.map(|depth| depth + 1);
        let line = |text: &mut String, depth: Option<usize>| {
            if let Some(depth) = depth {
                text.push('\n');
                text.extend(std::iter::repeat_n(' ', depth));
            }
        };
        match self {
            Self::Scalar(scalar) => text.push_str(scalar),
            Self::List(items) if items.is_empty() => text.push_str("[]"),
            Self::List(items) => {
                text.push('[');
                for (index, item) in items.iter().enumerate() {
                    text.push_str(if index == 0 { "" } else { "," });
                    line(text, inner);
                    item.write(text, inner);
                }
                line(text, depth);
                text.push(']');
            }
            Self::Object(members) if members.is_empty() => text.push_str("{}"),
            Self::Object(members) => {
                text.push('{');
                for (index, (name, member)) in members.iter().enumerate() {
                    text.push_str(if index == 0 { "" } else { "," });
                    line(text, inner);
                    text.push_str(&encode(&Value::from(*name)));
                    text.push_str(if depth.is_some() { ": " } else { ":" });
                    member.write(text, inner);
                }
                line(text, depth);
                text.push('}');
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::fields::Errors;
    use super::*;

    #[test]
    fn all_fields_are_shown_whether_they_are_there_or_not() {
        let toleration = r#"{"Key":"","Operator":"Exists","Value":"","Effect":"","TolerationSeconds":null}"#;
        assert_eq!(shown("core.Toleration", &json!({"operator": "Exists"})), toleration);
        assert_eq!(shown("core.Toleration", &Value::Null), "null");
        assert_eq!(shown_value("core.EventSource", &Value::Null), r#"{"Component":"","Host":""}"#);
        assert_eq!(shown_list("core.EventSource", &json!([{}])), r#"[{"Component":"","Host":""}]"#);
        let template = json!({"metadata": {"labels": {}, "name": "<n>"}, "spec": null});
        assert!(
            shown("core.PodTemplateSpec", &template)
                .starts_with(r#"{"name":"\u003cn\u003e","Spec":{"Volumes":null"#)
        );
        assert_eq!(
            difference("core.EventSource", &json!({}), &json!({"host": "h"})).unwrap(),
            "@@ -1,4 +1,4 @@\n {\n  \"Component\": \"\",\n- \"Host\": \"\"\n+ \"Host\": \"h\"\n }\n"
        );
    }

    #[test]
    fn very_many_values_are_not_shown() {
        let of_size = |values| json!({"containers": vec![json!({}); values - 2]});
        for (values, is_told) in [(MOST_VALUES, true), (MOST_VALUES + 1, false)] {
            let mut errors = Errors::default();
            assert_eq!(!errors.shown("core.PodSpec", &of_size(values)).is_empty(), is_told);
            assert_eq!(errors.into_list().is_ok(), is_told);
        }
    }
}
