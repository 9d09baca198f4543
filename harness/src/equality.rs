//! Whether two objects mean the same to the API server.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::quantity;

/// Whether `a` and `b` are the same object to the API server, which decides whether a patch changed anything.
///
/// A custom resource is a free-form map: only the same JSON is the same object. A built-in type is compared as its Go
/// struct: an absent, a null and an empty map or list are the same, quantities compare by value, times by instant.
/// Which fields are what is told by their names.
///
/// Source: apimachinery pkg/api/equality/semantic.go, `Semantic`, and
/// `third_party/forked/golang/reflect/deep_equal.go`.
/// Rule: MUT-13.
pub fn semantically_equal(a: &Value, b: &Value, built_in: bool) -> bool {
    if built_in { same(a, b, Field::Other) } else { a == b }
}

/// What the name of a field says about its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    /// A map from names to quantities, as `limits`.
    Quantities,
    Quantity,
    Time,
    /// A map from texts to texts, as `labels`: an empty text is one.
    Texts,
    /// A member of such a map: null is read as the empty text.
    Text,
    /// A struct or a text behind a pointer, as `securityContext`: an empty one is not the same as none.
    Pointer,
    /// JSON that the server does not look into.
    Opaque,
    /// A boolean or a number without a pointer: false or zero is the same as nothing.
    Plain,
    Other,
}

impl Field {
    fn named(name: &str) -> Self {
        match name {
            "limits"
            | "requests"
            | "capacity"
            | "allocatable"
            | "hard"
            | "used"
            | "default"
            | "defaultRequest"
            | "min"
            | "max"
            | "maxLimitRequestRatio"
            | "overhead" => Self::Quantities,
            "sizeLimit" | "divisor" | "averageValue" => Self::Quantity,
            "labels" | "annotations" | "data" | "stringData" | "binaryData" | "matchLabels"
            | "nodeSelector" => Self::Texts,
            "fieldsV1" | "parameters" => Self::Opaque,
            "time" => Self::Time,
            _ if PLAIN.contains(&name) => Self::Plain,
            _ if POINTERS.contains(&name) => Self::Pointer,
            _ if name.ends_with("Time") || name.ends_with("Timestamp") => Self::Time,
            _ => Self::Other,
        }
    }

    /// What a member of an object in this field is.
    fn member(self, name: &str) -> Self {
        match self {
            Self::Quantities => Self::Quantity,
            Self::Texts => Self::Text,
            Self::Text | Self::Opaque => Self::Opaque,
            Self::Quantity | Self::Time | Self::Pointer | Self::Plain | Self::Other => Self::named(name),
        }
    }

    /// Whether `value` is the same as nothing in this field.
    fn is_nothing(self, value: &Value) -> bool {
        match value {
            Value::Null => true,
            Value::Array(values) => !matches!(self, Self::Opaque | Self::Text) && values.is_empty(),
            Value::Object(members) => match self {
                Self::Opaque | Self::Text | Self::Pointer => false,
                Self::Texts | Self::Quantities => members.is_empty(),
                Self::Quantity | Self::Time | Self::Plain | Self::Other => {
                    members.iter().all(|(name, value)| self.member(name).is_nothing(value))
                }
            },
            Value::Bool(value) => self == Self::Plain && !value,
            Value::Number(value) => self == Self::Plain && value.as_u64() == Some(0),
            // A text without a pointer; the members of maps of texts are opaque.
            Value::String(value) => !matches!(self, Self::Opaque | Self::Pointer) && value.is_empty(),
        }
    }
}

fn same(a: &Value, b: &Value, field: Field) -> bool {
    match (field, a, b) {
        (Field::Opaque, _, _) => a == b,
        (Field::Text, Value::Null, Value::String(text)) | (Field::Text, Value::String(text), Value::Null) => {
            text.is_empty()
        }
        (Field::Quantity, Value::String(_) | Value::Number(_), Value::String(_) | Value::Number(_)) => {
            a == b || quantity::of(a).zip(quantity::of(b)).is_some_and(|(a, b)| a == b)
        }
        (Field::Time, Value::String(a), Value::String(b)) => {
            a == b || instant(a).zip(instant(b)).is_some_and(|(a, b)| a == b)
        }
        (_, Value::Object(a), Value::Object(b)) => same_members(a, b, field),
        (_, Value::Array(a), Value::Array(b)) => {
            // The elements of a list are what the field is: `rules`, `containers`.
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b, field))
        }
        (_, a, b) => a == b || (field.is_nothing(a) && field.is_nothing(b)),
    }
}

fn same_members(a: &Map<String, Value>, b: &Map<String, Value>, field: Field) -> bool {
    let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    names.into_iter().all(|name| match (field, a.get(name), b.get(name)) {
        // The keys of a map count even where the values are empty; those of a struct do not.
        (Field::Texts | Field::Quantities, a, b) => {
            a.zip(b).is_some_and(|(a, b)| same(a, b, field.member(name)))
        }
        (_, a, b) => same(a.unwrap_or(&Value::Null), b.unwrap_or(&Value::Null), field.member(name)),
    })
}

fn instant(text: &str) -> Option<Timestamp> {
    text.parse().ok()
}

/// Booleans and numbers that are no pointers in Go, and left out when they are false or zero.
const PLAIN: &[&str] = &[
    "generation",
    "hostIPC",
    "hostNetwork",
    "hostPID",
    "hostPort",
    "initialDelaySeconds",
    "minReadySeconds",
    "nodePort",
    "observedGeneration",
    "paused",
    "publishNotReadyAddresses",
    "readOnly",
    "stdin",
    "stdinOnce",
    "tty",
    "unschedulable",
];

/// Structs and texts that are pointers in Go.
const POINTERS: &[&str] = &[
    "affinity",
    "behavior",
    "capabilities",
    "configMap",
    "configMapKeyRef",
    "configMapRef",
    "csi",
    "dnsConfig",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "exec",
    "fieldRef",
    "grpc",
    "hostPath",
    "httpGet",
    "ingressClassName",
    "labelSelector",
    "lifecycle",
    "livenessProbe",
    "loadBalancerClass",
    "namespaceSelector",
    "nfs",
    "nodeAffinity",
    "objectSelector",
    "os",
    "persistentVolumeClaim",
    "podAffinity",
    "podAntiAffinity",
    "postStart",
    "preStop",
    "projected",
    "readinessProbe",
    "resourceFieldRef",
    "rollingUpdate",
    "runtimeClassName",
    "seLinuxOptions",
    "seccompProfile",
    "secret",
    "secretKeyRef",
    "secretRef",
    "securityContext",
    "startupProbe",
    "storageClassName",
    "tcpSocket",
    "valueFrom",
    "windowsOptions",
];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(a: &Value, b: &Value, expect: bool) {
        assert_eq!(semantically_equal(a, b, true), expect, "{a} and {b}");
        assert_eq!(semantically_equal(b, a, true), expect, "{b} and {a}");
    }

    #[test]
    fn absent_null_and_empty_are_the_same_in_a_built_in_object() {
        for nothing in [json!(null), json!({}), json!([])] {
            check(&json!({"metadata": {"annotations": nothing}}), &json!({"metadata": {}}), true);
        }
        check(&json!({"status": {}}), &json!({}), true);
        check(&json!({"status": {"conditions": []}}), &json!({}), true);
        check(&json!({"a": {"b": 1}}), &json!({}), false);
    }

    #[test]
    fn only_the_same_json_is_the_same_custom_resource() {
        let same = |a: Value, b: Value| semantically_equal(&a, &b, false);
        assert!(!same(json!({"metadata": {"annotations": {}}}), json!({"metadata": {}})));
        assert!(!same(json!({"a": null}), json!({})));
        assert!(!same(json!({"a": 1}), json!({"a": 1.0})));
        assert!(!same(json!({"limits": {"cpu": "1"}}), json!({"limits": {"cpu": "1000m"}})));
        assert!(same(json!({"a": [1, {"b": null}]}), json!({"a": [1, {"b": null}]})));
    }

    #[test]
    fn an_empty_struct_behind_a_pointer_is_not_nothing() {
        check(&json!({"spec": {"securityContext": {}}}), &json!({"spec": {}}), false);
        check(
            &json!({"volumes": [{"name": "v", "emptyDir": {}}]}),
            &json!({"volumes": [{"name": "v"}]}),
            false,
        );
        check(&json!({"emptyDir": {"medium": null}}), &json!({"emptyDir": {}}), true);
    }

    #[test]
    fn the_keys_of_a_map_count_although_their_values_are_empty() {
        check(&json!({"metadata": {"labels": {"a": ""}}}), &json!({"metadata": {"labels": {}}}), false);
        check(&json!({"metadata": {"labels": {"a": ""}}}), &json!({"metadata": {}}), false);
        check(&json!({"data": {"a": "1"}}), &json!({"data": {"a": "2"}}), false);
    }

    #[test]
    fn quantities_compare_by_value_where_a_quantity_is_expected() {
        let limits = |cpu: Value| json!({"spec": {"containers": [{"resources": {"limits": {"cpu": cpu}}}]}});
        check(&limits(json!("1")), &limits(json!("1000m")), true);
        check(&limits(json!(1)), &limits(json!("1")), true);
        check(&limits(json!("1")), &limits(json!("2")), false);
        check(
            &json!({"metadata": {"labels": {"limits": "1"}}}),
            &json!({"metadata": {"labels": {"limits": "1000m"}}}),
            false,
        );
        check(&json!({"data": {"cpu": "1"}}), &json!({"data": {"cpu": "1000m"}}), false);
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

    /// Whether kube-apiserver 1.37.1 said that such an addition to a Pod is no change.
    #[test]
    fn what_the_server_takes_for_no_change_to_a_pod_is_none() {
        for (member, value, same) in [
            ("hostNetwork", json!(false), true),
            ("hostPID", json!(false), true),
            ("tty", json!(false), true),
            ("generation", json!(0), true),
            ("nodeName", json!(""), true),
            ("workingDir", json!(""), true),
            ("generateName", json!(""), true),
            ("nodeSelector", json!({}), true),
            ("schedulingGates", json!([]), true),
            ("status", json!({}), true),
            ("status", json!({"conditions": []}), true),
            ("activeDeadlineSeconds", json!(null), true),
            ("hostNetwork", json!(true), false),
            ("automountServiceAccountToken", json!(false), false),
            ("setHostnameAsFQDN", json!(false), false),
            ("immutable", json!(false), false),
            ("affinity", json!({}), false),
            ("securityContext", json!({}), false),
            ("lifecycle", json!({}), false),
            ("livenessProbe", json!({}), false),
            ("dnsConfig", json!({}), false),
            ("os", json!({}), false),
            ("hostAliases", json!([{}]), false),
        ] {
            check(&json!({"spec": {"a": 1, member: value}}), &json!({"spec": {"a": 1}}), same);
        }
        check(&json!({"emptyDir": {"medium": ""}}), &json!({"emptyDir": {}}), true);
    }

    #[test]
    fn the_fields_that_somebody_manages_are_compared_as_they_are() {
        let managed = |fields: Value| json!({"metadata": {"managedFields": [{"fieldsV1": fields}]}});
        check(&managed(json!({"f:a": {}})), &managed(json!({})), false);
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(json!(null)),
            any::<bool>().prop_map(Value::from),
            (0..3).prop_map(Value::from),
            "[0-9]{1,2}m?".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 12, 3, |inner| {
            let name = prop::sample::select(vec!["limits", "labels", "a", "startTime", "emptyDir", "stdin"]);
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map(name.prop_map(ToOwned::to_owned), inner, 0..3)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn every_object_equals_itself_and_equality_goes_both_ways(a in any_value(), b in any_value()) {
            prop_assert!(semantically_equal(&a, &a, true));
            prop_assert_eq!(semantically_equal(&a, &b, true), semantically_equal(&b, &a, true));
            if semantically_equal(&a, &b, false) {
                prop_assert!(semantically_equal(&a, &b, true));
            }
        }
    }
}
