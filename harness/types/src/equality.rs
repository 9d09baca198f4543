//! Compares objects for semantic equality, as the API server defines it.

use serde_json::{Map, Number, Value};

use crate::go_base64;
use crate::go_time::{self, Layout};
use crate::group_version::GroupVersionKind;
use crate::quantity;
use crate::schema::{Field, Form, Kind, MESSAGES, Message, Shape, Type};

/// Returns whether the API server considers `a` and `b` equal objects of `kind`.
///
/// The result determines whether a patch changed anything.
///
/// Custom resources are unstructured: they are equal if their JSON is equal. Built-in types are compared as Go structs.
/// Absent, null, and empty maps or lists are equal; an absent field equals its zero value unless it is a pointer;
/// quantities compare by value, and times by instant. Fields that the type does not have are ignored.
///
/// Source: apimachinery pkg/api/equality/semantic.go, `Semantic`, and
/// `third_party/forked/golang/reflect/deep_equal.go`.
///
/// Rule: MUT-13.
pub fn semantically_equal(a: &Value, b: &Value, kind: &GroupVersionKind) -> bool {
    same(a, b, Type::for_kind(kind))
}

/// Returns whether two values of the same type are equal; [`Value::Null`] represents an absent value.
pub fn same(a: &Value, b: &Value, of: Type) -> bool {
    match of {
        Type::Free => a == b,
        Type::ApiVersionOrKind => text(a) == text(b),
        Type::Object(message) => same_messages(a, b, message),
        Type::Item(field) => same_values(a, b, field.kind),
        Type::Field(field) => match field.shape {
            Shape::Plain => same_values(a, b, field.kind),
            Shape::Optional => match (a.is_null(), b.is_null()) {
                (false, false) => same_values(a, b, field.kind),
                (a, b) => a == b,
            },
            Shape::List => same_lists(a, b, field),
            Shape::Map => same_maps(a, b, field),
        },
    }
}

/// Returns whether two lists are equal, including the order of their elements.
fn same_lists(a: &Value, b: &Value, field: &'static Field) -> bool {
    match (list(a), list(b)) {
        (Some(a), Some(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b, Type::Item(field)))
        }
        _ => a == b,
    }
}

/// Returns whether two maps are equal. Keys with empty values are also compared.
fn same_maps(a: &Value, b: &Value, field: &'static Field) -> bool {
    let none = Map::new();
    match (members(a, &none), members(b, &none)) {
        (Some(a), Some(b)) => {
            let same_entry =
                |(name, a): (&String, &Value)| b.get(name).is_some_and(|b| same(a, b, Type::Item(field)));
            a.len() == b.len() && a.iter().all(same_entry)
        }
        _ => a == b,
    }
}

/// Returns whether two values that are not pointers are equal. Null is the zero value.
fn same_values(a: &Value, b: &Value, kind: Kind) -> bool {
    let same = match kind {
        Kind::Message(id) => return same_messages(a, b, MESSAGES.get(id)),
        Kind::String => text(a).zip(text(b)).map(|(a, b)| a == b),
        Kind::Bool => Some(a.as_bool().unwrap_or_default() == b.as_bool().unwrap_or_default())
            .filter(|_| is(a, Value::is_boolean) && is(b, Value::is_boolean)),
        Kind::Int32 | Kind::Int64 | Kind::IntOrString | Kind::Double => {
            number(a).zip(number(b)).map(|(a, b)| a == b || a.as_f64() == b.as_f64() && kind == Kind::Double)
        }
        Kind::Bytes => go_base64::bytes(a).ok().zip(go_base64::bytes(b).ok()).map(|(a, b)| a == b),
        Kind::Quantity => amount(a).zip(amount(b)).map(|(a, b)| a == b),
        Kind::Time => same_times(a, b, Layout::Seconds),
        Kind::MicroTime => same_times(a, b, Layout::Micros),
        Kind::Json => None,
    };
    // A value of the wrong type equals only itself.
    same.unwrap_or_else(|| a == b)
}

fn same_messages(a: &Value, b: &Value, message: &'static Message) -> bool {
    if message.form == Form::Value {
        return same_forms(a, b, message);
    }
    let none = Map::new();
    let (Some(a), Some(b)) = (members(a, &none), members(b, &none)) else { return a == b };
    let added = b.keys().filter(|name| !a.contains_key(*name));
    a.keys().chain(added).all(|name| match Type::Object(message).member(name) {
        Type::Free => true,
        of @ (Type::ApiVersionOrKind | Type::Object(_) | Type::Field(_) | Type::Item(_)) => {
            same(a.get(name).unwrap_or(&Value::Null), b.get(name).unwrap_or(&Value::Null), of)
        }
    })
}

/// Returns whether two values of a type with several JSON forms are equal; values in different forms are never equal.
fn same_forms(a: &Value, b: &Value, message: &'static Message) -> bool {
    if let [only] = message.fields.as_slice() {
        return same(a, b, Type::Field(only));
    }
    let field = |fits: fn(&Field) -> bool| message.fields.iter().find(|field| fits(field));
    match (a, b) {
        (Value::Array(_), Value::Array(_)) => field(|field| field.shape == Shape::List),
        (Value::Object(_), Value::Object(_)) => field(|field| field.shape != Shape::List),
        _ => None,
    }
    .map_or_else(|| a == b, |field| same(a, b, Type::Field(field)))
}

fn same_times(a: &Value, b: &Value, layout: Layout) -> Option<bool> {
    let instant = |value: &Value| match value {
        Value::Null => Some(None),
        Value::String(text) => go_time::parse(text, layout).ok().map(Some),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => None,
    };
    instant(a).zip(instant(b)).map(|(a, b)| a == b)
}

fn is(value: &Value, of: fn(&Value) -> bool) -> bool {
    value.is_null() || of(value)
}

fn text(value: &Value) -> Option<&str> {
    if value.is_null() { Some("") } else { value.as_str() }
}

fn number(value: &Value) -> Option<Number> {
    match value {
        Value::Null => Some(0.into()),
        Value::Number(number) => Some(number.clone()),
        Value::Bool(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

fn amount(value: &Value) -> Option<quantity::Quantity> {
    if value.is_null() { Some(quantity::Quantity::ZERO) } else { quantity::from_value(value) }
}

fn list(value: &Value) -> Option<&[Value]> {
    if value.is_null() { Some(&[]) } else { value.as_array().map(Vec::as_slice) }
}

fn members<'a>(value: &'a Value, none: &'a Map<String, Value>) -> Option<&'a Map<String, Value>> {
    if value.is_null() { Some(none) } else { value.as_object() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn kind(api_version: &str, kind: &str) -> GroupVersionKind {
        GroupVersionKind::from_object(&json!({"apiVersion": api_version, "kind": kind}))
    }

    #[track_caller]
    fn check_of(kind: &GroupVersionKind, a: &Value, b: &Value, expect: bool) {
        assert_eq!(semantically_equal(a, b, kind), expect, "{a} and {b}");
        assert_eq!(semantically_equal(b, a, kind), expect, "{b} and {a}");
    }

    #[track_caller]
    fn check(a: &Value, b: &Value, expect: bool) {
        check_of(&kind("v1", "Pod"), a, b, expect);
    }

    #[test]
    fn absent_null_and_empty_are_equal_in_a_built_in_object() {
        for nothing in [json!(null), json!({})] {
            check(&json!({"metadata": {"annotations": nothing}}), &json!({"metadata": {}}), true);
        }
        check(&json!({"status": {}}), &json!({}), true);
        check(&json!({"status": {"conditions": []}}), &json!({}), true);
        check(&json!({"spec": {"hostNetwork": true}}), &json!({}), false);
        check(&json!({"bogus": {"b": 1}}), &json!({}), true);
    }

    #[test]
    fn custom_resources_are_equal_only_if_their_json_is() {
        let same = |a: Value, b: Value| semantically_equal(&a, &b, &kind("example.com/v1", "Pod"));
        assert!(!same(json!({"metadata": {"annotations": {}}}), json!({"metadata": {}})));
        assert!(!same(json!({"a": null}), json!({})));
        assert!(!same(json!({"a": 1}), json!({"a": 1.0})));
        assert!(!same(json!({"limits": {"cpu": "1"}}), json!({"limits": {"cpu": "1000m"}})));
        assert!(same(json!({"a": [1, {"b": null}]}), json!({"a": [1, {"b": null}]})));
    }

    #[test]
    fn map_keys_with_empty_values_are_compared() {
        let labels = |labels: Value| json!({"metadata": {"labels": labels}});
        check(&labels(json!({"a": ""})), &labels(json!({})), false);
        check(&labels(json!({"a": ""})), &json!({"metadata": {}}), false);
        check(&labels(json!({"a": ""})), &labels(json!({"a": null})), true);
        check(&labels(json!({"a": "1"})), &labels(json!({"a": "2"})), false);
        check(&labels(json!({"a": "1"})), &labels(json!({"b": "1"})), false);
    }

    #[test]
    fn quantities_compare_by_value_where_a_quantity_is_expected() {
        let limits = |cpu: Value| json!({"spec": {"containers": [{"resources": {"limits": {"cpu": cpu}}}]}});
        check(&limits(json!("1")), &limits(json!("1000m")), true);
        check(&limits(json!(1)), &limits(json!("1")), true);
        check(&limits(json!("1")), &limits(json!("2")), false);
        let labels = |text: &str| json!({"metadata": {"labels": {"limits": text}}});
        check(&labels("1"), &labels("1000m"), false);
        let data = |text: &str| json!({"data": {"cpu": text}});
        check_of(&kind("v1", "ConfigMap"), &data("1"), &data("1000m"), false);
        let parameters = |text: &str| json!({"parameters": {"max": text}});
        check_of(&kind("storage.k8s.io/v1", "StorageClass"), &parameters("1"), &parameters("1000m"), false);
    }

    #[test]
    fn times_compare_by_instant_where_a_time_is_expected() {
        let started = |time: &str| json!({"status": {"startTime": time}});
        check(&started("2026-01-01T00:00:00Z"), &started("2026-01-01T01:00:00+01:00"), true);
        check(&started("2026-01-01T00:00:00Z"), &started("2026-01-01T00:00:00.5Z"), false);
        let annotated = |time: &str| json!({"metadata": {"annotations": {"time": time}}});
        check(&annotated("2026-01-01T00:00:00Z"), &annotated("2026-01-01T01:00:00+01:00"), false);
        check(&json!({"metadata": {"creationTimestamp": null}}), &json!({"metadata": {}}), true);
    }

    #[test]
    fn bytes_compare_by_value() {
        let data = |bytes: Value| json!({"data": {"a": bytes}});
        check_of(&kind("v1", "Secret"), &data(json!("aGk=")), &data(json!([104, 105])), true);
        check_of(&kind("v1", "Secret"), &data(json!("aGk=")), &data(json!("aG\nk=")), true);
        check_of(&kind("v1", "Secret"), &data(json!("aGk=")), &data(json!("aGo=")), false);
    }

    /// Checks whether added members change a Pod. The expected results are from kube-apiserver 1.37.1.
    #[test]
    fn additions_that_the_server_ignores_do_not_change_a_pod() {
        for (parent, member, value, same) in [
            ("spec", "hostNetwork", json!(false), true),
            ("spec", "hostPID", json!(false), true),
            ("container", "tty", json!(false), true),
            ("metadata", "generation", json!(0), true),
            ("spec", "nodeName", json!(""), true),
            ("container", "workingDir", json!(""), true),
            ("metadata", "generateName", json!(""), true),
            ("spec", "nodeSelector", json!({}), true),
            ("spec", "schedulingGates", json!([]), true),
            ("", "status", json!({}), true),
            ("", "status", json!({"conditions": []}), true),
            ("spec", "activeDeadlineSeconds", json!(null), true),
            ("spec", "hostNetwork", json!(true), false),
            ("spec", "automountServiceAccountToken", json!(false), false),
            ("spec", "setHostnameAsFQDN", json!(false), false),
            ("spec", "affinity", json!({}), false),
            ("spec", "securityContext", json!({}), false),
            ("container", "lifecycle", json!({}), false),
            ("container", "livenessProbe", json!({}), false),
            ("spec", "dnsConfig", json!({}), false),
            ("spec", "os", json!({}), false),
            ("spec", "hostAliases", json!([{}]), false),
            ("volume", "emptyDir", json!({}), false),
        ] {
            let object = |members: Value| match parent {
                "" => members,
                "container" => json!({"spec": {"containers": [members]}}),
                "volume" => json!({"spec": {"volumes": [members]}}),
                parent => json!({parent: members}),
            };
            check(&object(json!({member: value})), &object(json!({})), same);
        }
        let empty_dir = |members: Value| json!({"spec": {"volumes": [{"emptyDir": members}]}});
        check(&empty_dir(json!({"medium": ""})), &empty_dir(json!({})), true);
        let immutable = json!({"immutable": false});
        check_of(&kind("v1", "ConfigMap"), &immutable, &json!({}), false);
    }

    #[test]
    fn arbitrary_json_is_compared_literally() {
        let managed = |fields: Value| json!({"metadata": {"managedFields": [{"fieldsV1": fields}]}});
        check(&managed(json!({"f:a": {}})), &managed(json!({})), false);
        let schema = |schema: Value| json!({"spec": {"versions": [{"schema": {"openAPIV3Schema": schema}}]}});
        let definition = kind("apiextensions.k8s.io/v1", "CustomResourceDefinition");
        for (a, b, same) in [
            (json!({"default": {"a": null}}), json!({"default": {}}), false),
            (json!({"items": {"type": ""}}), json!({"items": {}}), true),
            (json!({"items": {}}), json!({}), false),
            (json!({"additionalProperties": true}), json!({"additionalProperties": {}}), false),
        ] {
            check_of(&definition, &schema(a), &schema(b), same);
        }
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(json!(null)),
            any::<bool>().prop_map(Value::from),
            (0..3).prop_map(Value::from),
            "[0-9]{1,2}m?".prop_map(Value::from),
        ];
        leaf.prop_recursive(5, 16, 3, |inner| {
            let names =
                ["metadata", "spec", "status", "labels", "overhead", "containers", "startTime", "tty", "a"];
            let name = prop::sample::select(names.to_vec());
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map(name.prop_map(ToOwned::to_owned), inner, 0..3)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn equality_is_reflexive_and_symmetric(a in any_value(), b in any_value()) {
            let pod = kind("v1", "Pod");
            prop_assert!(semantically_equal(&a, &a, &pod));
            prop_assert_eq!(semantically_equal(&a, &b, &pod), semantically_equal(&b, &a, &pod));
        }
    }
}
