//! Implements the table columns of custom resources: `additionalPrinterColumns`.
//!
//! Source: apiextensions-apiserver pkg/registry/customresource/tableconvertor/tableconvertor.go;
//! pkg/apiserver/helpers.go.

use std::sync::Arc;

use jiff::Timestamp;
use kubernetes_types::json::{at, text};
use kubernetes_types::quoting::encode;
use kubernetes_types::status::Unsupported;
use serde_json::{Value, json};

use crate::kinds::common::columns::COLUMNS;
use crate::kinds::common::json_path::parser::Unreadable;
use crate::kinds::common::json_path::{Found, Path};
use crate::kinds::common::{age, cells};

/// The columns of one version of a definition.
#[derive(Clone, Debug)]
pub(crate) struct CustomColumns {
    definitions: Value,
    columns: Vec<Column>,
}

#[derive(Clone, Debug)]
struct Column {
    kind: String,
    path: Path,
}

impl CustomColumns {
    /// Parses the columns of a version of a definition.
    ///
    /// If the version does not define columns, returns the column `Age`.
    ///
    /// Rule: TBL-09.
    pub(crate) fn for_version(version: &Value) -> Result<Arc<Self>, Unsupported> {
        match at(version, &["additionalPrinterColumns"]).as_array() {
            Some(columns) if !columns.is_empty() => Self::new(columns),
            _ => Self::new(&[age_column()]),
        }
    }

    /// Returns the columns for the scale subresource of a version.
    pub(crate) fn for_scale(version: &Value) -> Result<Arc<Self>, Unsupported> {
        let mut columns = Vec::new();
        for (field, name, description, path) in [
            ("specReplicasPath", "Desired", "Number of desired replicas", ".spec.replicas"),
            ("statusReplicasPath", "Available", "Number of actual replicas", ".status.replicas"),
        ] {
            if !text(version, &["subresources", "scale", field]).is_empty() {
                columns.push(
                    json!({"name": name, "type": "integer", "description": description, "jsonPath": path}),
                );
            }
        }
        columns.push(age_column());
        Self::new(&columns)
    }

    fn new(columns: &[Value]) -> Result<Arc<Self>, Unsupported> {
        let mut definitions = vec![json!({
            "name": "Name", "type": "string", "format": "name", "description": described(0), "priority": 0,
        })];
        let mut parsed = Vec::new();
        for column in columns {
            let path = text(column, &["jsonPath"]);
            let parsed_path = match Path::parse(path) {
                Ok(path) => path,
                // Upstream omits this column and all columns after it.
                Err(Unreadable::Invalid) => break,
                Err(Unreadable::Unsupported) => {
                    return Err(Unsupported { what: format!("Tables with the JSONPath `{path}`") });
                }
            };
            let default = format!("Custom resource definition column (in JSONPath format): {path}");
            definitions.push(json!({
                "name": text(column, &["name"]),
                "type": text(column, &["type"]),
                "format": text(column, &["format"]),
                "description": cells::text_or(column, &["description"], &default),
                "priority": cells::number(column, &["priority"]),
            }));
            parsed.push(Column { kind: text(column, &["type"]).to_owned(), path: parsed_path });
        }
        Ok(Arc::new(Self { definitions: definitions.into(), columns: parsed }))
    }

    pub(crate) const fn definitions(&self) -> &Value {
        &self.definitions
    }

    /// Returns the cells of a row: the name, then one cell for each column.
    ///
    /// Rule: TBL-10.
    pub(crate) fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        let cell = |column: &Column| match (column.path.first(object), column.kind.as_str()) {
            (Some(Found::Value(value)), "string") => printed(value).into(),
            (Some(Found::Integer(integer)), "string") => integer.to_string().into(),
            (Some(Found::Byte(byte)), "string") => byte.to_string().into(),
            (Some(Found::Value(value)), kind) => typed(value, kind, now),
            // Upstream omits values that do not have the Go type of a JSON value.
            (None | Some(Found::Integer(_) | Found::Byte(_)), _) => Value::Null,
        };
        std::iter::once(cells::name(object).into()).chain(self.columns.iter().map(cell)).collect()
    }
}

fn described(index: usize) -> Value {
    let columns = COLUMNS.get("default").and_then(|columns| columns.get(index));
    columns.map_or(Value::Null, |column| at(column, &["description"]).clone())
}

fn age_column() -> Value {
    json!({"name": "Age", "type": "date", "description": described(1), "jsonPath": ".metadata.creationTimestamp"})
}

/// Formats a value for a column of the type `string`.
///
/// Source: client-go util/jsonpath/jsonpath.go, `PrintResults`.
fn printed(value: &Value) -> String {
    match value {
        Value::Null => "<no value>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (None, Some(float)) => go_float(float),
            _ => number.to_string(),
        },
        Value::Bool(truth) => truth.to_string(),
        Value::Array(_) | Value::Object(_) => encode(value),
    }
}

/// Converts a float64 as Go's JSON encoder does: omits a fraction of zero.
fn go_number(float: f64) -> Value {
    if float.fract() == 0.0 && float.abs() < 9e18 { truncated(float).into() } else { float.into() }
}

/// Formats a float64 as Go's `fmt.Fprint` does.
fn go_float(float: f64) -> String {
    if float == 0.0 || (1e-4..1e21).contains(&float.abs()) {
        return float.to_string();
    }
    let text = format!("{float:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
    format!("{digits}e{sign}{exponent:0>2}")
}

/// Converts a value to a cell of a column of the type `kind`.
///
/// Source: `cellForJSONValue`.
fn typed(value: &Value, kind: &str, now: Timestamp) -> Value {
    match (kind, value) {
        ("integer", Value::Number(number)) => match (number.as_i64(), number.as_f64()) {
            (Some(integer), _) => integer.into(),
            (None, Some(float)) => truncated(float).into(),
            (None, None) => Value::Null,
        },
        ("number", Value::Number(number)) => number.as_f64().map_or(Value::Null, go_number),
        ("boolean", Value::Bool(_)) => value.clone(),
        // An empty time is the zero time.
        ("date", Value::String(text)) if text.is_empty() || text == "null" => "<unknown>".into(),
        ("date", Value::String(_)) => match age::at(value) {
            Some(_) => age::since(now, value).into(),
            None => "<invalid>".into(),
        },
        _ => Value::Null,
    }
}

#[expect(clippy::cast_possible_truncation, reason = "Go truncates, too")]
const fn truncated(float: f64) -> i64 {
    float as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_printed_like_go() {
        for (value, expected) in [
            (json!(null), "<no value>"),
            (json!("a<b"), "a<b"),
            (json!(true), "true"),
            (json!(12), "12"),
            (json!(1.5), "1.5"),
            (json!(1e21), "1e+21"),
            (json!(0.00001), "1e-05"),
            (json!({"b": 1, "a": ["<"]}), r#"{"a":["\u003c"],"b":1}"#),
        ] {
            assert_eq!(printed(&value), expected);
        }
    }

    #[test]
    fn value_of_another_type_has_no_cell() {
        let now = "2026-01-01T00:00:10Z".parse().unwrap();
        for (value, kind, expected) in [
            (json!("1"), "integer", json!(null)),
            (json!(1.9), "integer", json!(1)),
            (json!("true"), "boolean", json!(null)),
            (json!("2026-01-01T00:00:00Z"), "date", json!("10s")),
            (json!("yesterday"), "date", json!("<invalid>")),
            (json!(""), "date", json!("<unknown>")),
            (json!({}), "object", json!(null)),
        ] {
            assert_eq!(typed(&value, kind, now), expected);
        }
    }
}
