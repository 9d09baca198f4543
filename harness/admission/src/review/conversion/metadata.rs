//! Checks the metadata of converted objects: a conversion webhook may change only labels and annotations.

use serde_json::{Map, Value};

use kubernetes_types::names;
use kubernetes_types::quoting::{go_type, quote};

/// The maximum total size, in bytes, of all annotations.
const TOTAL_ANNOTATION_SIZE_LIMIT_B: usize = 256 * 1024;

/// Checks that `converted` has the kind, name, namespace, and UID of `original`.
///
/// # Errors
/// Returns a message about the first difference.
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

/// Copies the metadata of `original` to `converted`, except for its labels and annotations.
///
/// # Errors
/// Returns an error message if the metadata is invalid.
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

/// Returns the errors in labels.
///
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

/// Returns the errors in annotations. As in upstream, the messages name the field `metadata.annotation`.
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
    if bytes > TOTAL_ANNOTATION_SIZE_LIMIT_B {
        wrong.push(format!("{FIELD}: Too long: may not be more than {TOTAL_ANNOTATION_SIZE_LIMIT_B} bytes"));
    }
    wrong
}

/// Combines all errors into one error without duplicates. Succeeds if there are none.
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn kind_name_namespace_and_uid_must_not_change() {
        let original =
            json!({"kind": "Widget", "metadata": {"name": "a", "namespace": "b", "uid": "c", "labels": {}}});
        assert_eq!(check_identity(&original, &original), Ok(()));
        for (pointer, error) in [
            ("/kind", "must have the same kind: Widget != x"),
            ("/metadata/name", "must have the same name: a != x"),
            ("/metadata/namespace", "must have the same namespace: b != x"),
            ("/metadata/uid", "must have the same UID: c != x"),
        ] {
            let mut converted = original.clone();
            *converted.pointer_mut(pointer).expect("a field") = json!("x");
            assert_eq!(check_identity(&original, &converted), Err(error.to_owned()));
        }
    }

    /// Returns the metadata that replaces `original` after a webhook returned the metadata `answered`.
    fn restored(original: &Value, answered: &Value) -> Result<Value, String> {
        let mut converted = Map::from_iter([("metadata".to_owned(), answered.clone())]);
        restore(&json!({"metadata": original}), &mut converted)?;
        Ok(converted.remove("metadata").unwrap_or_default())
    }

    #[test]
    fn only_labels_and_annotations_may_change() {
        let original = json!({"name": "a", "labels": {"a": "b"}, "annotations": {"c": "d"}});
        let answered = json!({"name": "x", "generation": 2, "labels": {"e": "f"}});
        assert_eq!(restored(&original, &answered), Ok(json!({"name": "a", "labels": {"e": "f"}})));
        let answered = json!({"labels": null, "annotations": {"c": "g"}});
        assert_eq!(restored(&original, &answered), Ok(json!({"name": "a", "annotations": {"c": "g"}})));
        assert_eq!(restored(&json!({}), &json!({"labels": {}})), Ok(json!({"labels": {}})));
    }

    #[test]
    fn only_changed_labels_and_annotations_are_validated() {
        let wrong = json!({"labels": {"a_": "b"}, "annotations": {"-": "b"}});
        assert_eq!(restored(&wrong, &wrong), Ok(wrong.clone()));
        let of = |field: &str| json!({field: wrong[field]});
        let error = restored(&json!({}), &of("labels")).expect_err("a wrong label");
        assert!(
            error.starts_with("metadata.labels: Invalid value: \"a_\": name part must consist"),
            "{error}"
        );
        let error = restored(&json!({}), &of("annotations")).expect_err("a wrong annotation");
        assert!(error.starts_with("metadata.annotation: Invalid value: \"-\": name part must"), "{error}");
        let error = restored(&json!({}), &json!({"labels": {"a": "-", "b": "-", "c_": "d"}}))
            .expect_err("two wrong labels");
        assert!(error.starts_with("[metadata.labels: Invalid value: \"-\": a valid label must"), "{error}");
        assert_eq!(error.matches("Invalid value: \"-\"").count(), 1, "{error}");
    }

    #[test]
    fn annotations_have_a_total_size_limit() {
        let of_size = |bytes: usize| json!({"annotations": {"ab": "c", "d": "e".repeat(bytes - 4)}});
        assert!(restored(&json!({}), &of_size(TOTAL_ANNOTATION_SIZE_LIMIT_B)).is_ok());
        assert_eq!(
            restored(&json!({}), &of_size(TOTAL_ANNOTATION_SIZE_LIMIT_B + 1)),
            Err("metadata.annotation: Too long: may not be more than 262144 bytes".to_owned())
        );
    }

    #[test]
    fn metadata_of_another_type_is_an_error() {
        let object = |metadata| Map::from_iter([("metadata".to_owned(), metadata)]);
        let nothing = restore(&json!({}), &mut Map::new());
        assert_eq!(nothing, Err("missing metadata in converted object".to_owned()));
        assert_eq!(
            restore(&json!({}), &mut object(json!([]))),
            Err("invalid metadata of type []interface {} in converted object".to_owned())
        );
        assert_eq!(
            restore(&json!({"metadata": "a"}), &mut object(json!({}))),
            Err("invalid metadata of type string in input object".to_owned())
        );
        assert_eq!(
            restored(&json!({}), &json!({"labels": {"a": 1}})),
            Err("metadata.labels[a] must be a string, but is int64 in converted object".to_owned())
        );
    }
}
