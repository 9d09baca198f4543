//! Law: an apply that is repeated, or that fails, changes nothing.
//!
//! Repeated applies of an object that contains null are not checked. The resulting `fieldsV1` can be read, and sets
//! of fields satisfy the laws of sets.
//!
//! The input is an existing object, and the objects that the managers `one` and `two` apply, each as in [`documents`],
//! and then two `fieldsV1`; all parts are separated by `---`.

use kubernetes_managed_fields::Set;
use serde_json::{Value, json};

use super::stored::Stored;
use super::{documents, runtime, with_text};

/// Checks the law for one input.
///
/// # Panics
/// Panics if the law does not hold.
pub(super) fn check(input: &[u8]) {
    with_text(input, |text| {
        let [object, one, two, left, right] = documents::parts(text);
        check_sets(left.trim(), right.trim());
        let Some(stored) = documents::object(&object).and_then(Stored::new) else { return };
        runtime::block_on(check_applies(&stored, &one, &two));
    });
}

fn check_sets(left: &str, right: &str) {
    let Ok(left) = Set::from_json(left) else { return };
    assert_eq!(Set::from_value(&left.to_value()).as_ref(), Ok(&left), "it is written as another set");
    assert_eq!(left.paths().len(), left.len());
    assert!(left.paths().iter().all(|path| left.has(path)), "it lacks a path of its own");
    assert!(left.leaves().difference(&left).is_empty());
    let Ok(right) = Set::from_json(right) else { return };
    let (union, both) = (left.union(&right), left.intersection(&right));
    assert_eq!(union, right.union(&left));
    assert_eq!(both, right.intersection(&left));
    assert_eq!(union.len() + both.len(), left.len() + right.len());
    assert_eq!(left.difference(&right).union(&both), left);
    assert!(left.difference(&right).intersection(&right).is_empty());
    assert!(left.recursive_difference(&right).difference(&left).is_empty());
}

async fn check_applies(stored: &Stored, one: &str, two: &str) {
    for (manager, text) in [("one", one), ("two", two), ("one", one)] {
        let Some(applied) = documents::object(text) else { return };
        // A label or an annotation that is null is written each time.
        if has_null(&applied) {
            apply(stored, manager, true, &applied).await;
            continue;
        }
        // Without force it conflicts, or has the same result as with force.
        let polite = apply(stored, manager, false, &applied).await;
        let forced = apply(stored, manager, true, &applied).await;
        if let Some(polite) = polite {
            check_same(polite, forced.clone(), &applied);
        }
        let Some(object) = forced else { continue };
        check_same(object, apply(stored, manager, false, &applied).await, &applied);
    }
    // Conflicts with an apply do not affect an update.
    stored
        .patch(
            "fieldManager=three",
            "application/merge-patch+json",
            &json!({"metadata": {"labels": null}}).to_string(),
        )
        .await;
}

fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().any(has_null),
        Value::Object(members) => members.values().any(has_null),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Checks that applying the same object again changes nothing.
///
/// If the clock has advanced by a second since the manager's last apply, its entry may be moved behind the entry of
/// another manager. This is a write.
///
/// Source: apiserver pkg/endpoints/handlers/fieldmanager/equality.go, `IgnoreManagedFieldsTimestampsTransformer`.
fn check_same(mut before: Value, after: Option<Value>, applied: &Value) {
    let Some(mut after) = after else { panic!("{applied} is refused the second time") };
    if times(&before) != times(&after) {
        forget_times(&mut before);
        forget_times(&mut after);
    }
    assert_eq!(before, after, "{applied} is not idempotent");
}

fn entries(object: &Value) -> impl Iterator<Item = &Value> {
    object.pointer("/metadata/managedFields").and_then(Value::as_array).into_iter().flatten()
}

fn times(object: &Value) -> Vec<&Value> {
    entries(object).filter_map(|entry| entry.get("time")).collect()
}

fn forget_times(object: &mut Value) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    metadata.remove("resourceVersion");
    if let Some(Value::Array(entries)) = metadata.get_mut("managedFields") {
        for entry in entries.iter_mut().filter_map(Value::as_object_mut) {
            entry.remove("time");
        }
        entries.sort_by_key(Value::to_string);
    }
}

/// Applies an object and returns the resulting object; `None` if the server rejected the request.
async fn apply(stored: &Stored, manager: &str, force: bool, applied: &Value) -> Option<Value> {
    let query = format!("fieldManager={manager}&force={force}");
    let object = stored.patch(&query, "application/apply-patch+yaml", &applied.to_string()).await?;
    for entry in entries(&object) {
        let fields = entry.get("fieldsV1").unwrap_or(&Value::Null);
        let set = Set::from_value(fields).unwrap_or_else(|error| panic!("{fields}: {error}"));
        assert_eq!(set.to_value(), *fields, "it is not written as it is read");
    }
    Some(object)
}
