//! Reads configuration files of kube-apiserver.
//!
//! Each file contains one object of `apiserver.config.k8s.io`. Decoding is strict.

use std::path::Path;

use harness::json::json_type;
use serde_json::{Map, Value};

/// Reads the only object in a YAML or JSON file.
///
/// # Errors
/// Returns an error if the file cannot be read or does not contain an object.
pub(crate) fn object(file: &Path) -> Result<Map<String, Value>, String> {
    match document(file)? {
        Value::Object(members) => Ok(members),
        Value::Null => Err("Object 'Kind' is missing in ''".to_owned()),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err("expected an object with apiVersion and kind".to_owned())
        }
    }
}

/// Reads the content of a YAML or JSON file; returns null for an empty file.
///
/// # Errors
/// Returns an error if the file cannot be read, or is neither YAML nor JSON.
pub(crate) fn document(file: &Path) -> Result<Value, String> {
    let bytes = output::read_for_server(file).map_err(|error| error.to_string())?;
    let text = String::from_utf8(bytes).map_err(|_error| "this is not UTF-8 text".to_owned())?;
    serde_saphyr::from_str(&text).map_err(|error| error.without_snippet().to_string())
}

/// Returns the API version of the object, which must be one of `versions`. Error messages contain the first version.
///
/// # Errors
/// Returns an error if the kind or version is different or missing.
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

/// Returns the string in `field`, or an empty string if the field is missing.
///
/// `path` is the name of the field in Go's error messages.
///
/// # Errors
/// Returns an error if the value is not a string.
pub(crate) fn text(object: &Map<String, Value>, field: &str, path: &str) -> Result<String, String> {
    match object.get(field) {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(other) => Err(mistyped(other, path, "string")),
    }
}

/// Returns the error of Go's decoder for a value of the wrong type.
pub(crate) fn mistyped(value: &Value, path: &str, expected: &str) -> String {
    let found = json_type(value);
    format!("json: cannot unmarshal {found} into Go struct field {path} of type {expected}")
}

/// Returns an error for each field that is not in `known`.
pub(crate) fn unknown_fields(object: &Map<String, Value>, path: &str, known: &[&str]) -> Vec<String> {
    let unknown = object.keys().filter(|name| !known.contains(&name.as_str()));
    unknown.map(|name| format!("unknown field \"{path}{name}\"")).collect()
}

/// Returns the strict decoder's error for unknown fields.
pub(crate) fn strict(unknown: &[String]) -> String {
    format!("strict decoding error: {}", unknown.join(", "))
}
