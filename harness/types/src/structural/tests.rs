//! Tests the limits on the cost of schemas and objects.

use std::fmt::Write as _;

use serde_json::json;

use super::*;

#[test]
fn defaults_that_take_too_much_memory_are_rejected() {
    let schema = json!({"type": "object", "properties": {"list": {"type": "array", "items": {
        "type": "object", "properties": {"text": {"type": "string", "default": "x".repeat(1 << 20)}},
    }}}});
    let compiled = Compiled::new(&schema).unwrap();
    let mut object = json!({"list": vec![json!({}); 100]});
    assert!(compiled.set_defaults(&mut object).unwrap_err().what.contains("more than 67108864 bytes"));
    let mut object = json!({"list": vec![json!({}); 2]});
    compiled.set_defaults(&mut object).unwrap();
    assert_eq!(object["list"][1]["text"].as_str().map(str::len), Some(1 << 20));
}

#[test]
fn many_errors_with_long_paths_are_rejected() {
    let schema = json!({"type": "object", "additionalProperties": {
        "type": "array", "items": {"type": "integer"},
    }});
    let compiled = Compiled::new(&schema).unwrap();
    let object = json!({"x".repeat(1 << 16): vec!["a"; 2000]});
    let refused = compiled.schema_errors(&object, None, Purpose::Object).unwrap_err();
    assert!(refused.what.contains("very long ones"), "{}", refused.what);
}

#[test]
fn paths_of_unknown_fields_are_reported_up_to_a_limit() {
    let compiled =
        Compiled::new(&json!({"type": "object", "properties": {"a": {"type": "object"}}})).unwrap();
    let mut inner = serde_json::Map::new();
    for index in 0..100 {
        let mut name = "x".repeat(1 << 16);
        write!(name, "{index}").unwrap();
        inner.insert(name, json!(1));
    }
    let mut object = json!({"a": inner, "b": 1});
    let unknown = compiled.decode(&mut object, false).unwrap();
    assert_eq!(object, json!({"a": {}}));
    assert!(unknown.len() < 70);
}

#[test]
fn a_deep_schema_is_compiled() {
    let mut schema = json!({"type": "integer", "default": 1});
    for _ in 0..60 {
        schema = json!({"type": "object", "default": {}, "properties": {"a": schema}});
    }
    let compiled = Compiled::new(&schema).unwrap();
    let mut object = json!({});
    compiled.set_defaults(&mut object).unwrap();
    assert!(compiled.schema_errors(&object, None, Purpose::Object).unwrap().is_empty());
    assert_eq!(object.pointer(&"/a".repeat(60)), Some(&json!(1)));
}
