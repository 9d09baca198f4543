//! Configuration files of kube-apiserver: one object of `apiserver.config.k8s.io` each, decoded strictly.

use std::path::Path;

use harness::json::json_type;
use serde_json::{Map, Value};

/// The one object in a file of YAML or JSON.
///
/// # Errors
/// The file cannot be read, or is no object.
pub(crate) fn object(file: &Path) -> Result<Map<String, Value>, String> {
    match document(file)? {
        Value::Object(members) => Ok(members),
        Value::Null => Err("Object 'Kind' is missing in ''".to_owned()),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err("expected an object with apiVersion and kind".to_owned())
        }
    }
}

/// What is in a file of YAML or JSON; null if there is nothing.
///
/// # Errors
/// The file cannot be read, or is neither.
pub(crate) fn document(file: &Path) -> Result<Value, String> {
    let bytes = output::read(file).map_err(|error| error.to_string())?;
    let text = String::from_utf8(bytes).map_err(|_error| "this is not UTF-8 text".to_owned())?;
    serde_saphyr::from_str(&text).map_err(|error| error.without_snippet().to_string())
}

/// The version of the object, which has to be one of these, the first one best.
///
/// # Errors
/// It has another kind or version, or none.
pub(crate) fn check_kind<'a>(
    object: &'a Map<String, Value>,
    wanted: &str,
    versions: &[&str],
) -> Result<&'a str, String> {
    let text = |field: &str| object.get(field).and_then(Value::as_str).filter(|text| !text.is_empty());
    let best = versions.first().copied().unwrap_or_default();
    match (text("apiVersion"), text("kind")) {
        (_, None) => Err(format!("kind: is required: {wanted} of {best}")),
        (None, _) => Err(format!("apiVersion: is required: {best}")),
        (Some(version), Some(kind)) if kind == wanted && versions.contains(&version) => Ok(version),
        (Some(version), Some(kind)) => Err(format!(
            "no kind {kind:?} is registered for version {version:?}: expected {wanted} of {best}"
        )),
    }
}

/// A field with a text; empty if it is not there. `path` is what Go calls the field.
///
/// # Errors
/// It is no text.
pub(crate) fn text(object: &Map<String, Value>, field: &str, path: &str) -> Result<String, String> {
    match object.get(field) {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(other) => Err(mistyped(other, path, "string")),
    }
}

/// That a value has the wrong type, in the words of Go's decoder.
pub(crate) fn mistyped(value: &Value, path: &str, expected: &str) -> String {
    let found = json_type(value);
    format!("json: cannot unmarshal {found} into Go struct field {path} of type {expected}")
}

/// What is wrong with the fields beside `known`, one text for each.
pub(crate) fn unknown_fields(object: &Map<String, Value>, path: &str, known: &[&str]) -> Vec<String> {
    let unknown = object.keys().filter(|name| !known.contains(&name.as_str()));
    unknown.map(|name| format!("unknown field \"{path}{name}\"")).collect()
}

/// That there are unknown fields.
pub(crate) fn strict(unknown: &[String]) -> String {
    format!("strict decoding error: {}", unknown.join(", "))
}
