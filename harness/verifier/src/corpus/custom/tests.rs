//! Tests generated objects and near misses.

use std::collections::BTreeSet;

use super::*;

fn version(schema: &Value) -> Version {
    Version::new("example.com/v1".to_owned(), "Widget".to_owned(), schema.clone())
}

/// Returns a version whose schema has one required field with the given schema.
fn of_field(schema: &Value) -> Version {
    version(&json!({"type": "object", "required": ["field"], "properties": {"field": schema}}))
}

fn a_cluster() -> Value {
    json!({"type": "object", "required": ["spec"], "properties": {
        "spec": {
            "type": "object", "required": ["name", "replicas", "nodes"], "minProperties": 3,
            "properties": {
                "name": {"type": "string", "pattern": "^[a-z]([-a-z0-9]*[a-z0-9])?$", "minLength": 3, "maxLength": 20},
                "version": {"type": "string", "pattern": r"^v\d+\.\d+(\.\d+)?(-(alpha|beta)\d*)?$"},
                "size": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}],
                    "pattern": r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"},
                "replicas": {"type": "integer", "format": "int32", "minimum": 3, "maximum": 9, "multipleOf": 3},
                "ratio": {"type": "number", "minimum": 0, "exclusiveMinimum": true, "maximum": 1},
                "since": {"type": "string", "format": "date-time"},
                "mode": {"type": "string", "enum": ["Fast", "Slow"], "default": "Fast"},
                "labels": {"type": "object", "maxProperties": 4,
                    "additionalProperties": {"type": "string", "maxLength": 63}},
                "zones": {"type": "array", "x-kubernetes-list-type": "set", "maxItems": 3,
                    "items": {"type": "string", "enum": ["a", "b", "c"]}},
                "nodes": {"type": "array", "x-kubernetes-list-type": "map", "minItems": 2,
                    "x-kubernetes-list-map-keys": ["host", "port"], "items": {
                        "type": "object", "required": ["host", "port"], "properties": {
                            "host": {"type": "string", "format": "hostname"},
                            "port": {"type": "integer", "minimum": 1, "maximum": 65535},
                        },
                    }},
                "source": {
                    "type": "object",
                    "properties": {"file": {"type": "string"}, "secret": {"type": "string", "minLength": 1}},
                    "oneOf": [{"required": ["file"]}, {"required": ["secret"]}],
                },
            },
            "x-kubernetes-validations": [
                {"rule": "!has(self.mode) || self.mode != 'Slow' || self.replicas > 3"},
            ],
        },
        "status": {"type": "object"},
    }})
}

#[test]
fn generated_objects_are_valid() {
    let version = version(&a_cluster());
    let Made { valid, left_out } = version.made();
    assert_eq!(valid.len(), COUNT, "{left_out:#?}");
    let specs: Vec<&Value> = valid.iter().map(|object| &object["spec"]).collect();
    let values = |field: &str| -> BTreeSet<String> {
        specs.iter().filter_map(|spec| spec.get(field)).map(Value::to_string).collect()
    };
    for field in ["name", "version", "size", "replicas", "ratio", "since", "mode", "labels", "zones"] {
        assert!(values(field).len() > 1, "{field}: {:?}", values(field));
    }
    assert!(specs.iter().any(|spec| spec["source"].get("file").is_some()));
    assert!(specs.iter().any(|spec| spec["source"].get("secret").is_some()));
    assert!(specs.iter().any(|spec| spec.get("mode").is_none()));
    assert!(valid.iter().all(|object| object.get("status").is_none()));
    assert_eq!(valid[0]["apiVersion"], "example.com/v1");
}

#[test]
fn parts_that_a_rule_rejects_are_removed() {
    let version = version(&json!({"type": "object", "required": ["spec"], "properties": {"spec": {
        "type": "object", "required": ["replicas", "jobs"], "properties": {
            "replicas": {"type": "integer"},
            "jobs": {"type": "array", "minItems": 1, "items": {
                "type": "object", "required": ["name"], "properties": {
                    "name": {"type": "string"},
                    "policy": {"type": "object", "properties": {"limit": {"type": "integer", "minimum": 1}},
                        "x-kubernetes-validations": [{"rule": "!has(self.limit) || self.limit % 2 == 0"}]},
                },
            }},
        },
    }}}));
    let Made { valid, left_out } = version.made();
    assert_eq!((valid.len(), left_out), (COUNT, BTreeMap::new()));
    assert!(valid.iter().all(|object| object["spec"]["jobs"][0]["name"].is_string()));
}

#[test]
fn objects_that_a_rule_rejects_are_counted() {
    let version = version(&json!({"type": "object", "properties": {"spec": {
        "type": "object", "required": ["size", "kind"],
        "properties": {"size": {"type": "integer", "minimum": 1}, "kind": {"type": "string"}},
        "x-kubernetes-validations": [{"rule": "self.size % 2 == 0", "message": "size must be even"}],
    }}, "required": ["spec"]}));
    let Made { valid, left_out } = version.made();
    assert_eq!(valid.len(), COUNT);
    assert!(valid.iter().all(|object| object["spec"]["size"].as_i64().unwrap() % 2 == 0), "{valid:?}");
    let reasons: Vec<&String> = left_out.keys().collect();
    let [reason] = reasons.as_slice() else { panic!("{left_out:?}") };
    assert!(reason.contains("example.com/v1 Widget") && reason.ends_with("size must be even"), "{reason}");
    assert!(left_out.values().sum::<u64>() >= 9);
}

#[test]
fn objects_that_cannot_be_generated_are_counted() {
    let schema = json!({"type": "string", "pattern": "^a", "maxLength": 0});
    let Made { valid, left_out } = of_field(&schema).made();
    assert!(valid.is_empty());
    assert_eq!(left_out.values().sum::<u64>(), ATTEMPTS as u64);
}

#[test]
fn near_misses_are_rejected_for_one_reason() {
    let version = version(&a_cluster());
    let valid = version.made().valid;
    let near_misses = version.near_misses(&valid);
    let what: BTreeSet<&str> = near_misses.iter().map(|near_miss| near_miss.what.as_str()).collect();
    for expected in [
        "/spec type",
        "/spec minProperties",
        "/spec required name",
        "/spec/name pattern",
        "/spec/name minLength",
        "/spec/name maxLength",
        "/spec/replicas minimum",
        "/spec/replicas maximum",
        "/spec/replicas multipleOf",
        "/spec/ratio minimum",
        "/spec/since format date-time",
        "/spec/mode enum",
        "/spec/labels maxProperties",
        "/spec/labels/key maxLength",
        "/spec/zones maxItems",
        "/spec/zones list-type set",
        "/spec/nodes minItems",
        "/spec/nodes list-type map",
        "/spec/nodes/0 required port",
        "/spec/nodes/0/port maximum",
    ] {
        assert!(what.contains(expected), "{expected}: {what:#?}");
    }
    for near_miss in &near_misses {
        let (_, errors) = version.judged(near_miss.object.clone()).unwrap();
        assert!(!errors.is_empty(), "{}", near_miss.what);
    }
}

#[test]
fn texts_match_common_patterns() {
    for (pattern, least, most) in [
        (r"^$|^https?://.+", 9, 100),
        (r"^[A-Z][a-zA-Z0-9_]*$", 1, 5),
        (r"^(([0-9]{1,3}\.){3}[0-9]{1,3})$", 0, 15),
        (r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$", 40, 253),
        (r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$", 0, 20),
        (r"^arn:aws[a-z-]*:iam::\d{12}:role/.+$", 0, 200),
        (r"^\d{4}-\d{2}-\d{2}$", 10, 10),
        ("[a-z]+", 30, 40),
        (r"^[^/\s]+/[^/\s]+$", 3, 3),
        (r"(?i)^true$", 0, 4),
        (r"\S", 0, 10),
        (r"^(0|1|true|false|on|off)$", 5, 5),
        (r"^[0-9a-f]{64}$", 0, 64),
    ] {
        let text = pattern::text(pattern, 0, least, most);
        let text = text.unwrap_or_else(|| panic!("no text for {pattern}"));
        assert!(pattern::is_match(pattern, &text), "{pattern}: {text}");
        assert!((least..=most).contains(&text.chars().count()), "{pattern}: {text}");
    }
}

#[test]
fn large_patterns_terminate() {
    for pattern in ["^((a{900}){900}){900}$", "^(((a*)*)*)*b{1000}$", r"^\p{Greek}{1000}(x|y){1000}$", "(("] {
        let text = pattern::text(pattern, 0, 0, 5);
        assert!(text.is_none(), "{pattern}: {text:?}");
    }
}

#[test]
fn limits_are_respected() {
    for (schema, expected) in [
        (json!({"type": "string", "minLength": 6}), json!("textxx")),
        (json!({"type": "string", "maxLength": 2}), json!("te")),
        (json!({"type": "number", "maximum": 0.5}), json!(0.5)),
        (json!({"type": "integer", "minimum": 1, "exclusiveMinimum": true}), json!(2)),
        (json!({"type": "integer", "minimum": 5, "multipleOf": 4}), json!(8)),
        (json!({"type": "integer", "maximum": -3}), json!(-3)),
        (json!({"type": "string", "format": "date-time"}), json!("2026-01-01T00:00:00Z")),
        (json!({"x-kubernetes-int-or-string": true}), json!(1)),
        (json!({"type": "string", "default": "d"}), json!("d")),
        (
            json!({"type": "array", "minItems": 2, "x-kubernetes-list-type": "set", "items": {"type": "integer"}}),
            json!([1, 2]),
        ),
    ] {
        let object = of_field(&schema).object(0);
        assert_eq!(object["field"], expected, "{schema}");
    }
}

#[test]
fn every_format_has_texts() {
    for (format, _) in strings::FORMATS {
        assert!(kubernetes_cel::schema::is_known_format(format), "{format}");
        let version = of_field(&json!({"type": "string", "format": format}));
        let Made { valid, left_out } = version.made();
        assert_eq!(valid.len(), COUNT, "{format}: {left_out:?}");
    }
}
