//! Tests that large or deep input does not exhaust the stack, memory, or time.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::thread;

use kubernetes_managed_fields::{
    Duplicates, Error, FieldManager, Filter, Set, Writer, compare, field_set, merge, validate,
};
use serde_json::{Value, json};

use crate::schemas::{Schemas, Widgets};

/// Returns a manager of widgets without reset fields.
fn manager<'a>(versions: &'a Widgets<'a>) -> FieldManager<'a, Widgets<'a>> {
    static NONE: BTreeMap<String, Filter> = BTreeMap::new();
    FieldManager {
        versions,
        api_version: "example.com/v1",
        kind: "Widget",
        subresource: "",
        reset_fields: &NONE,
    }
}

/// Returns `fieldsV1` with fields nested `depth` levels deep.
fn deep(depth: usize) -> String {
    format!("{}{{}}{}", "{\"f:a\":".repeat(depth), "}".repeat(depth))
}

#[test]
fn fields_that_are_too_deep_are_an_error() {
    let error = Set::from_json(&deep(1_000_000)).unwrap_err();
    assert!(error.starts_with("incrementDepth: exceeded max depth"), "{error}");
    for value in ["[", "{\"a\":"] {
        let key = json!({format!("v:{}", value.repeat(1_000_000)): {}}).to_string();
        let error = Set::from_json(&key).unwrap_err();
        assert!(error.contains("incrementDepth: exceeded max depth"), "{error}");
    }
}

#[test]
fn fields_that_are_not_too_deep_fit_on_a_small_stack() {
    let walk = || {
        let set = Set::from_json(&deep(499)).unwrap();
        let other = Set::from_json(&deep(300)).unwrap();
        assert_eq!(set.union(&other).difference(&other).len(), 1);
        assert_eq!(set.intersection(&set), set);
        assert!(set.recursive_difference(&other).is_empty());
        assert_eq!(set.leaves().paths().len(), 1);
        assert_eq!(Set::from_value(&set.to_value()).unwrap(), set);
    };
    thread::Builder::new().stack_size(1 << 20).spawn(walk).unwrap().join().unwrap();
}

#[test]
fn items_in_the_worst_order_do_not_take_quadratic_time() {
    let count = 300_000;
    let mut text = String::from("{");
    for number in (0..count).rev() {
        write!(text, "\"v:{number}\":{{}},").unwrap();
    }
    text.push_str("\"f:last\":{}}");
    let set = Set::from_json(&text).unwrap();
    assert_eq!(set.len(), count + 1);

    let schemas = Schemas::read(include_str!("../schemas.json"));
    let spec = schemas.named("widgets", "spec");
    let names = |numbers: &mut dyn Iterator<Item = usize>| json!({"names": numbers.map(|number| number.to_string()).collect::<Vec<_>>()});
    let (up, down) = (names(&mut (0..count / 3)), names(&mut (0..count / 3).rev()));
    assert_eq!(field_set(&down, spec).len(), count / 3);
    assert!(compare(&up, &down, spec).unwrap().is_same());
    assert_eq!(merge(&up, &down, spec).unwrap(), down);
}

#[test]
fn errors_below_a_long_name_are_not_all_listed() {
    let schemas = Schemas::read(include_str!("../schemas.json"));
    let widget = schemas.named("widgets", "spec");
    let env: Vec<_> = (0..50_000).map(|number| json!({"name": number.to_string(), "value": 1})).collect();
    let value = json!({"containers": [{"name": "n".repeat(1_000_000), "env": env}]});
    let errors = validate(&value, widget, Duplicates::Refused).unwrap_err();
    assert!(!errors.errors().is_empty());
    assert!(errors.to_string().len() < 4_000_000);
    // The errors that a merge ignores do not take memory, either.
    let items: Vec<_> = (0..50_000).map(|_| json!([])).collect();
    let value = json!({"containers": [{"name": "n".repeat(1_000_000), "env": items}]});
    assert!(merge(&json!({}), &value, widget).is_ok());
}

#[test]
fn conflicts_below_a_long_name_are_not_all_listed() {
    let schemas = Schemas::read(include_str!("../schemas.json"));
    let versions = Widgets(&schemas);
    let manager = manager(&versions);
    let widget = |value: &str| {
        let members: BTreeMap<_, _> = (0..50_000).map(|number| (number.to_string(), value)).collect();
        json!({
            "apiVersion": "example.com/v1",
            "kind": "Widget",
            "metadata": {"name": "w"},
            "spec": {"free": {"n".repeat(1_000_000): members}},
        })
    };
    let by = |manager| Writer { manager, now: "2026-01-02T03:04:05Z" };
    let live = manager.apply(None, &widget("a"), &by("one"), false).unwrap().object;
    let refused = manager.apply(Some(&live), &widget("b"), &by("two"), false);
    let Err(Error::Conflicts(conflicts)) = refused else { panic!("it is no conflict") };
    assert!(conflicts.message().starts_with("Apply failed with 50000 conflicts: conflicts with \"one\":"));
    assert!(conflicts.message().len() < 4_000_000);
    assert!(!conflicts.causes().is_empty());
}

#[test]
fn many_managers_do_not_take_quadratic_time() {
    let schemas = Schemas::read(include_str!("../schemas.json"));
    let versions = Widgets(&schemas);
    let manager = manager(&versions);
    let entry = |number: usize| {
        json!({
            "manager": number.to_string(),
            "operation": "Apply",
            // Half of the managers are in versions that do not exist.
            "apiVersion": if number.is_multiple_of(2) { "example.com/v1".to_owned() } else { format!("example.com/v{number}") },
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": {"f:limits": {format!("f:{number}"): {}}}},
        })
    };
    let entries: Vec<_> = (0..20_000).map(entry).collect();
    let limits =
        |value: u32| (0..50_000).map(|number| (number.to_string(), Value::from(value))).collect::<Value>();
    let object = |value: u32| {
        json!({
            "apiVersion": "example.com/v1",
            "kind": "Widget",
            "metadata": {"name": "w", "uid": "u"},
            "spec": {"limits": limits(value)},
        })
    };
    let mut live = object(1);
    live["metadata"]["managedFields"] = entries.into();
    let by = Writer { manager: "two", now: "2026-01-02T03:04:05Z" };
    let written = manager.update(Some(&live), object(2), &by).unwrap();
    assert_eq!(written.object["metadata"]["managedFields"].as_array().map(Vec::len), Some(1));
}
