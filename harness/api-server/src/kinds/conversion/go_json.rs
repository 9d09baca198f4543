//! Encodes JSON for annotations with the fields in the order in which the Go structs declare them.

use kubernetes_types::quoting::{encode, escape_html};
use serde_json::Value;

/// A total order of fields. It matches the order in each Go struct in a `HorizontalPodAutoscaler` annotation.
const ORDER: &[&str] = &[
    // A metric and its sources.
    "type",
    "status",
    "lastTransitionTime",
    "reason",
    "message",
    "observedGeneration",
    "object",
    "pods",
    "resource",
    "containerResource",
    "external",
    "kind",
    "name",
    "apiVersion",
    "target",
    "metricName",
    "metricSelector",
    "targetValue",
    "currentValue",
    "targetAverageUtilization",
    "currentAverageUtilization",
    "targetAverageValue",
    "currentAverageValue",
    "selector",
    "averageValue",
    "container",
    // A label selector.
    "matchLabels",
    "matchExpressions",
    "key",
    "operator",
    "values",
    // A behavior; its internal Go type has no JSON names.
    "ScaleUp",
    "ScaleDown",
    "StabilizationWindowSeconds",
    "SelectPolicy",
    "Policies",
    "Tolerance",
    "Type",
    "Value",
    "PeriodSeconds",
];

/// Encodes `value` with its fields in the order in which the Go structs declare them.
///
/// Source: Go's encoding/json, `Marshal`: `<`, `>`, `&`, U+2028 and U+2029 are escaped, maps are sorted.
pub(crate) fn text(value: &Value) -> String {
    let mut text = String::new();
    write(value, Keys::OfStruct, &mut text);
    text
}

#[derive(Clone, Copy)]
enum Keys {
    OfStruct,
    OfMap,
}

fn write(value: &Value, keys: Keys, text: &mut String) {
    match value {
        Value::Object(members) => {
            let mut sorted: Vec<(&String, &Value)> = members.iter().collect();
            if let Keys::OfStruct = keys {
                sorted
                    .sort_by_key(|(name, _)| ORDER.iter().position(|key| key == name).unwrap_or(ORDER.len()));
            }
            text.push('{');
            for (index, (name, member)) in sorted.into_iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                text.push_str(&escape_html(&Value::from(name.as_str()).to_string()));
                text.push(':');
                let keys = if name == "matchLabels" { Keys::OfMap } else { Keys::OfStruct };
                write(member, keys, text);
            }
            text.push('}');
        }
        Value::Array(entries) => {
            text.push('[');
            for (index, entry) in entries.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write(entry, Keys::OfStruct, text);
            }
            text.push(']');
        }
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => text.push_str(&encode(value)),
    }
}
