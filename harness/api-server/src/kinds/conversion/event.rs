//! Converts Events between the core group and `events.k8s.io`. Some fields have different names in the two groups.

use serde_json::{Map, Value, json};

/// The field names that differ: in the core group and in `events.k8s.io`.
///
/// Source: kubernetes pkg/apis/events/v1/conversion.go.
const NAMES: [(&str, &str); 7] = [
    ("count", "deprecatedCount"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("involvedObject", "regarding"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
];

/// Converts an event of the core group to `events.k8s.io`.
pub(crate) fn from_core(object: &Value) -> Value {
    let mut event = renamed(object, |name| NAMES.iter().find(|(core, _)| *core == name).map(|(_, new)| *new));
    for field in ["deprecatedFirstTimestamp", "deprecatedLastTimestamp", "eventTime"] {
        event.entry(field).or_insert(Value::Null);
    }
    for field in ["deprecatedSource", "regarding"] {
        event.entry(field).or_insert_with(|| json!({}));
    }
    for field in ["reportingController", "reportingInstance"] {
        if event.get(field).is_some_and(|value| value == "") {
            event.remove(field);
        }
    }
    Value::Object(event)
}

/// Converts an event of `events.k8s.io` to the core group.
pub(crate) fn to_core(object: &Value) -> Value {
    let mut event = renamed(object, |name| NAMES.iter().find(|(_, new)| *new == name).map(|(core, _)| *core));
    for field in ["eventTime", "firstTimestamp", "lastTimestamp"] {
        event.entry(field).or_insert(Value::Null);
    }
    for field in ["involvedObject", "source"] {
        event.entry(field).or_insert_with(|| json!({}));
    }
    for field in ["reportingComponent", "reportingInstance"] {
        event.entry(field).or_insert_with(|| json!(""));
    }
    Value::Object(event)
}

fn renamed(object: &Value, rename: impl Fn(&str) -> Option<&'static str>) -> Map<String, Value> {
    let members = object.as_object().into_iter().flatten();
    members.map(|(name, value)| (rename(name).unwrap_or(name).to_owned(), value.clone())).collect()
}
