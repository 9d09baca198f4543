//! Reads and writes the configuration that client-side `kubectl apply` stores in an annotation.

use serde_json::{Map, Value};

use crate::go::{self, Exponents};

/// The manager that takes over the fields in the annotation without conflicts.
pub(crate) const KUBECTL: &str = "kubectl";

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The maximum size, in bytes, of an object's annotations.
///
/// Source: apimachinery pkg/api/validation/objectmeta.go, `TotalAnnotationSizeLimitB`.
const TOTAL_ANNOTATION_SIZE_LIMIT_B: usize = 256 * 1024;

/// Returns the applied configuration, or `None` if the annotation is missing or empty.
pub(crate) fn annotation(object: &Value) -> Option<&str> {
    let annotations = object.get("metadata")?.get("annotations")?;
    annotations.get(ANNOTATION)?.as_str().filter(|text| !text.is_empty())
}

/// Writes the applied configuration into the annotation if the annotation exists.
///
/// An annotation that would be too large is removed.
///
/// Source: apimachinery pkg/util/managedfields/internal/lastappliedupdater.go, `buildLastApplied`; lastapplied.go,
/// `SetLastApplied`.
pub(crate) fn refresh(object: &mut Value, applied: &Value) {
    if annotation(object).is_none() {
        return;
    }
    let mut applied = applied.clone();
    match annotations(&mut applied) {
        Some(annotations) if annotations.values().all(Value::is_string) => {
            annotations.remove(ANNOTATION);
        }
        // Invalid annotations are dropped.
        _ => {
            let metadata = applied.get_mut("metadata").and_then(Value::as_object_mut);
            metadata.and_then(|metadata| metadata.remove("annotations"));
        }
    }
    let mut text = String::new();
    go::write_json(&mut text, &applied, Exponents::Json);
    text.push('\n');
    let Some(annotations) = annotations(object) else { return };
    annotations.insert(ANNOTATION.to_owned(), text.into());
    let size = |(name, value): (&String, &Value)| name.len() + value.as_str().map_or(0, str::len);
    if annotations.iter().map(size).sum::<usize>() > TOTAL_ANNOTATION_SIZE_LIMIT_B {
        annotations.remove(ANNOTATION);
    }
}

fn annotations(object: &mut Value) -> Option<&mut Map<String, Value>> {
    object.get_mut("metadata")?.get_mut("annotations")?.as_object_mut()
}
