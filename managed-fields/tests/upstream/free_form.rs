//! Tests objects without a schema: their field ownership, and the results of an apply.

use std::collections::BTreeMap;

use kubernetes_managed_fields::{
    Atom, ConversionError, Error, FieldManager, Schema, Type, Versions, Writer, restore_times,
};
use serde_json::{Value, json};

/// A kind without a declared type.
struct FreeForm;

#[derive(Clone, Copy)]
enum Nothing {}

impl Schema for Nothing {
    fn atom(self) -> Atom<Self> {
        match self {}
    }

    fn field(self, _: &str) -> Option<Type<Self>> {
        match self {}
    }

    fn field_default(self, _: &str) -> Option<Value> {
        match self {}
    }

    fn keys(&self) -> Vec<&str> {
        match *self {}
    }
}

impl Versions for FreeForm {
    type Schema = Nothing;

    fn root(&self, api_version: &str) -> Option<Type<Nothing>> {
        (api_version == "example.com/v1").then_some(Type::Deduced)
    }

    fn convert(&self, _: &Value, api_version: &str) -> Result<Value, ConversionError> {
        Err(ConversionError::UnknownVersion(api_version.to_owned()))
    }

    fn empty(&self, api_version: &str) -> Value {
        json!({"apiVersion": api_version, "kind": "Widget"})
    }
}

fn manager(reset_fields: &BTreeMap<String, kubernetes_managed_fields::Filter>) -> FieldManager<'_, FreeForm> {
    FieldManager {
        versions: &FreeForm,
        api_version: "example.com/v1",
        kind: "Widget",
        subresource: "",
        reset_fields,
    }
}

fn widget(spec: &Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": spec})
}

fn by(manager: &str) -> Writer<'_> {
    Writer { manager, now: "2026-01-02T03:04:05Z" }
}

#[test]
fn the_creator_owns_fields_until_another_manager_changes_them() {
    let none = BTreeMap::new();
    let manager = manager(&none);
    let created = manager.update(None, widget(&json!({"a": 1, "b": [1]})), &by("one")).unwrap();
    assert!(created.is_timed);
    assert_eq!(
        created.object["metadata"]["managedFields"],
        json!([{
            "manager": "one",
            "operation": "Update",
            "apiVersion": "example.com/v1",
            "time": "2026-01-02T03:04:05Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": {".": {}, "f:a": {}, "f:b": {}}},
        }])
    );

    let mut live = created.object;
    live["metadata"]["uid"] = "u".into();
    let mut new = live.clone();
    new["spec"]["a"] = 2.into();
    let updated = manager.update(Some(&live), new, &by("two")).unwrap().object;
    let entries = &updated["metadata"]["managedFields"];
    assert_eq!(entries[0]["fieldsV1"], json!({"f:spec": {".": {}, "f:b": {}}}));
    assert_eq!(entries[1]["fieldsV1"], json!({"f:spec": {"f:a": {}}}));
}

#[test]
fn an_apply_conflicts_unless_forced_and_removes_fields_no_longer_applied() {
    let none = BTreeMap::new();
    let manager = manager(&none);
    let created = manager.apply(None, &widget(&json!({"a": 1, "b": 2})), &by("one"), false).unwrap().object;
    let conflict = manager.apply(Some(&created), &widget(&json!({"a": 2})), &by("two"), false);
    let Err(Error::Conflicts(conflicts)) = conflict else { panic!("{conflict:?}") };
    assert_eq!(conflicts.message(), "Apply failed with 1 conflict: conflict with \"one\": .spec.a");

    let forced = manager.apply(Some(&created), &widget(&json!({"a": 2})), &by("two"), true).unwrap().object;
    assert_eq!(forced["spec"], json!({"a": 2, "b": 2}));
    let less = manager.apply(Some(&forced), &widget(&json!({})), &by("one"), false).unwrap().object;
    assert_eq!(less["spec"], json!({"a": 2}));
}

#[test]
fn an_apply_without_changes_returns_the_same_object() {
    let none = BTreeMap::new();
    let manager = manager(&none);
    let created = manager.apply(None, &widget(&json!({"a": 1})), &by("one"), false).unwrap().object;
    let later = Writer { manager: "one", now: "2027-01-02T03:04:05Z" };
    let again = manager.apply(Some(&created), &widget(&json!({"a": 1})), &later, false).unwrap();
    assert!(!again.is_timed);
    assert_eq!(again.object, created);

    let mut touched = created.clone();
    touched["metadata"]["managedFields"][0]["time"] = "2027-01-02T03:04:05Z".into();
    restore_times(&created, &mut touched, |old, new| old == new);
    assert_eq!(touched, created);
}

#[test]
fn a_failed_update_keeps_the_managed_fields() {
    let none = BTreeMap::new();
    let good = manager(&none);
    let live = good.update(None, widget(&json!({"a": 1})), &by("one")).unwrap().object;
    // This version does not exist.
    let bad = FieldManager { api_version: "example.com/v2", ..manager(&none) };
    let error = bad.update(Some(&live), widget(&json!({"a": 2})), &by("two")).unwrap_err();
    let Error::Internal(message) = &error else { panic!("{error:?}") };
    assert!(
        message.starts_with("failed to convert new object (/w; example.com/v2, Kind=Widget)"),
        "{message}"
    );
    let written = bad.update_no_errors(Some(&live), widget(&json!({"a": 2})), &by("two"));
    assert!(!written.is_timed);
    assert_eq!(written.object["spec"], json!({"a": 2}));
    assert_eq!(written.object["metadata"]["managedFields"], live["metadata"]["managedFields"]);

    let created = bad.update_no_errors(None, widget(&json!({"a": 2})), &by("two"));
    assert_eq!(created.object, widget(&json!({"a": 2})));
}

#[test]
fn the_last_applied_annotation_is_kept_while_it_fits() {
    const LAST: &str = "kubectl.kubernetes.io/last-applied-configuration";
    let none = BTreeMap::new();
    let manager = manager(&none);
    let mut first = widget(&json!({"a": 1}));
    first["metadata"]["annotations"] = json!({LAST: "{}", "other": "kept"});
    let live = manager.update(None, first, &by("one")).unwrap().object;

    let small =
        manager.apply(Some(&live), &widget(&json!({"b": "<2>"})), &by("kubectl"), false).unwrap().object;
    let text = small["metadata"]["annotations"][LAST].as_str().unwrap();
    assert!(text.ends_with("\"spec\":{\"b\":\"\\u003c2\\u003e\"}}\n"), "{text}");

    let large = widget(&json!({"b": "b".repeat(256 * 1024)}));
    let large = manager.apply(Some(&small), &large, &by("kubectl"), false).unwrap().object;
    assert_eq!(large["metadata"]["annotations"], json!({"other": "kept"}));
    let other = manager.apply(Some(&live), &widget(&json!({"b": 2})), &by("other"), false).unwrap().object;
    assert_eq!(other["metadata"]["annotations"], live["metadata"]["annotations"]);
}
