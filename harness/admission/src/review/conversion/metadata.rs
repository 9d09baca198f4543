//! What of the metadata a conversion webhook may change: labels and annotations.

use serde_json::{Map, Value};

use kubernetes_types::names;
use kubernetes_types::quoting::{go_type, quote};

/// The most bytes that all annotations together may have.
const ANNOTATIONS_LIMIT: usize = 256 * 1024;

/// Whether `converted` is the object `original`: its kind, name, namespace and uid.
///
/// # Errors
/// What differs.
///
/// Source: apiextensions-apiserver `pkg/apiserver/conversion/webhook_converter.go`, `validateConvertedObject`.
/// Rule: CNV-06.
pub(super) fn check_identity(original: &Value, converted: &Value) -> Result<(), String> {
    let text = |object, pointer| Value::pointer(object, pointer).and_then(Value::as_str).unwrap_or_default();
    for (what, pointer) in [
        ("kind", "/kind"),
        ("name", "/metadata/name"),
        ("namespace", "/metadata/namespace"),
        ("UID", "/metadata/uid"),
    ] {
        let (expected, found) = (text(original, pointer), text(converted, pointer));
        if expected != found {
            return Err(format!("must have the same {what}: {expected} != {found}"));
        }
    }
    Ok(())
}

/// Gives `converted` the metadata of `original`, but its own labels and annotations.
///
/// # Errors
/// What is wrong with its metadata.
///
/// Source: apiextensions-apiserver `pkg/apiserver/conversion/webhook_converter.go`, `restoreObjectMeta`.
/// Rule: CNV-07.
pub(super) fn restore(original: &Value, converted: &mut Map<String, Value>) -> Result<(), String> {
    let answered = match converted.get_mut("metadata") {
        None => return Err("missing metadata in converted object".to_owned()),
        Some(Value::Object(metadata)) => std::mem::take(metadata),
        Some(other) => {
            return Err(format!("invalid metadata of type {} in converted object", go_type(other)));
        }
    };
    let mut restored = match original.get("metadata") {
        None => Map::new(),
        Some(Value::Object(metadata)) => metadata.clone(),
        Some(other) => return Err(format!("invalid metadata of type {} in input object", go_type(other))),
    };
    for field in ["labels", "annotations"] {
        let answered = match answered.get(field) {
            None | Some(Value::Null) => {
                restored.remove(field);
                continue;
            }
            Some(Value::Object(answered)) => answered,
            Some(other) => {
                return Err(format!(
                    "invalid metadata.{field} of type {} in converted object",
                    go_type(other)
                ));
            }
        };
        let before = match restored.get(field) {
            None | Some(Value::Null) => None,
            Some(Value::Object(before)) => Some(before),
            Some(other) => {
                return Err(format!(
                    "invalid metadata.{field} of type {} in original object",
                    go_type(other)
                ));
            }
        };
        for (key, value) in answered {
            if !value.is_string() {
                let found = go_type(value);
                return Err(format!(
                    "metadata.{field}[{key}] must be a string, but is {found} in converted object"
                ));
            }
        }
        if before.map_or(!answered.is_empty(), |before| before != answered) {
            let wrong = if field == "labels" { wrong_labels(answered) } else { wrong_annotations(answered) };
            aggregate(wrong)?;
        }
        let answered = Value::Object(answered.clone());
        restored.insert(field.to_owned(), answered);
    }
    converted.insert("metadata".to_owned(), Value::Object(restored));
    Ok(())
}

/// Source: apimachinery pkg/apis/meta/v1/validation/validation.go, `ValidateLabels`.
fn wrong_labels(labels: &Map<String, Value>) -> Vec<String> {
    let mut wrong = Vec::new();
    for (key, value) in labels {
        let invalid =
            |text: &str, why: String| format!("metadata.labels: Invalid value: {}: {why}", quote(text));
        wrong.extend(names::label_key(key).into_iter().map(|why| invalid(key, why)));
        let value = value.as_str().unwrap_or_default();
        wrong.extend(names::label_value(value).into_iter().map(|why| invalid(value, why)));
    }
    wrong
}

/// Upstream calls the field by the wrong name.
///
/// Source: apimachinery pkg/api/validation/objectmeta.go, `ValidateAnnotations`.
fn wrong_annotations(annotations: &Map<String, Value>) -> Vec<String> {
    const FIELD: &str = "metadata.annotation";
    let mut wrong = Vec::new();
    let mut bytes = 0;
    for (key, value) in annotations {
        let invalid = |why: String| format!("{FIELD}: Invalid value: {}: {why}", quote(key));
        wrong.extend(names::label_key(&key.to_lowercase()).into_iter().map(invalid));
        bytes += key.len() + value.as_str().map_or(0, str::len);
    }
    if bytes > ANNOTATIONS_LIMIT {
        wrong.push(format!("{FIELD}: Too long: may not be more than {ANNOTATIONS_LIMIT} bytes"));
    }
    wrong
}

/// Several errors as one, each once.
///
/// Source: apimachinery pkg/util/errors/errors.go, `aggregate.Error`.
fn aggregate(mut errors: Vec<String>) -> Result<(), String> {
    let mut seen = std::collections::HashSet::new();
    errors.retain(|error| seen.insert(error.clone()));
    match errors.as_slice() {
        [] => Ok(()),
        [only] => Err(only.clone()),
        several => Err(format!("[{}]", several.join(", "))),
    }
}
