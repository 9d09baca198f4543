//! Converts metrics between `autoscaling/v2` and `autoscaling/v1`.
//!
//! Source: kubernetes pkg/apis/autoscaling/v1/conversion.go.

use serde_json::{Map, Value, json};

/// The location of a metric. It determines the amounts of the metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MetricLocation {
    /// The metric is in `spec.metrics` and has target amounts.
    Spec,
    /// The metric is in `status.currentMetrics` and has measured amounts.
    Status,
}

/// The fields of a metric source in both versions.
struct Source {
    /// The name of the source's field in both versions.
    name: &'static str,
    /// The `autoscaling/v1` name of `metric.selector`; `None` for a resource metric, which does not have a selector.
    selector: Option<&'static str>,
    /// The amounts in the `target` of `autoscaling/v2`.
    target: &'static [Amount],
    /// The amounts in the `current` of `autoscaling/v2`.
    current: &'static [Amount],
}

/// A number or a quantity, with its field names in both versions.
///
/// In `autoscaling/v1`, it is a field of the source; in `autoscaling/v2`, a field of `target` or `current`.
struct Amount {
    old: &'static str,
    new: &'static str,
    presence: Presence,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Presence {
    /// A quantity or number that is a pointer in the Go type.
    Optional,
    /// A quantity that is written as zero if it is not set.
    Always,
}

const fn optional(old: &'static str, new: &'static str) -> Amount {
    Amount { old, new, presence: Presence::Optional }
}

const fn always(old: &'static str, new: &'static str) -> Amount {
    Amount { old, new, presence: Presence::Always }
}

const SOURCES: [Source; 5] = [
    Source { name: "containerResource", selector: None, target: RESOURCE_TARGET, current: RESOURCE_CURRENT },
    Source {
        name: "external",
        selector: Some("metricSelector"),
        target: &[optional("targetValue", "value"), optional("targetAverageValue", "averageValue")],
        current: &[always("currentValue", "value"), optional("currentAverageValue", "averageValue")],
    },
    Source {
        name: OBJECT,
        selector: Some("selector"),
        target: &[always("targetValue", "value"), optional("averageValue", "averageValue")],
        current: &[always("currentValue", "value"), optional("averageValue", "averageValue")],
    },
    Source {
        name: "pods",
        selector: Some("selector"),
        target: &[always("targetAverageValue", "averageValue")],
        current: &[always("currentAverageValue", "averageValue")],
    },
    Source { name: "resource", selector: None, target: RESOURCE_TARGET, current: RESOURCE_CURRENT },
];

const OBJECT: &str = "object";

const RESOURCE_TARGET: &[Amount] = &[
    optional("targetAverageUtilization", "averageUtilization"),
    optional("targetAverageValue", "averageValue"),
];

const RESOURCE_CURRENT: &[Amount] = &[
    optional("currentAverageUtilization", "averageUtilization"),
    always("currentAverageValue", "averageValue"),
];

/// Converts a metric of `autoscaling/v2` to its form in an `autoscaling/v1` annotation.
pub(crate) fn to_version_1(metric: &Value, place: MetricLocation) -> Value {
    each_source(metric, |source, new| {
        let mut old = match source.selector {
            Some(selector) => {
                let metric = new.get("metric");
                let mut old = Map::new();
                insert_text(&mut old, "metricName", metric, "name");
                insert(&mut old, selector, metric, "selector");
                old
            }
            None => resource(new),
        };
        if source.name == OBJECT {
            insert_object(&mut old, "target", new, "describedObject");
        }
        let (member, amounts) = place.amounts(source);
        for amount in amounts {
            amount.insert(&mut old, amount.old, new.get(member), amount.new);
        }
        old
    })
}

/// Converts a metric in an `autoscaling/v1` annotation to `autoscaling/v2`.
pub(crate) fn to_version_2(metric: &Value, place: MetricLocation) -> Value {
    each_source(metric, |source, old| {
        let mut new = match source.selector {
            Some(selector) => {
                let mut metric = Map::new();
                insert_text(&mut metric, "name", Some(old), "metricName");
                insert(&mut metric, "selector", Some(old), selector);
                Map::from_iter([("metric".to_owned(), Value::Object(metric))])
            }
            None => resource(old),
        };
        if source.name == OBJECT {
            insert_object(&mut new, "describedObject", old, "target");
        }
        let (member, amounts) = place.amounts(source);
        let mut found = Map::new();
        for amount in amounts {
            amount.insert(&mut found, amount.new, Some(old), amount.old);
        }
        if place == MetricLocation::Spec {
            name_type(&mut found, source);
        }
        new.insert(member.to_owned(), Value::Object(found));
        new
    })
}

impl MetricLocation {
    /// Returns the `autoscaling/v2` field that contains the amounts of a source, and the list of these amounts.
    fn amounts(self, source: &Source) -> (&'static str, &'static [Amount]) {
        match self {
            Self::Spec => ("target", source.target),
            Self::Status => ("current", source.current),
        }
    }
}

impl Amount {
    fn insert(&self, to: &mut Map<String, Value>, name: &str, from: Option<&Value>, field: &str) {
        let zero = || (self.presence == Presence::Always).then(|| json!("0"));
        if let Some(value) = member(from, field).cloned().or_else(zero) {
            to.insert(name.to_owned(), value);
        }
    }
}

/// Sets the `type` of a target. The type is implicit in `autoscaling/v1`.
fn name_type(target: &mut Map<String, Value>, source: &Source) {
    let target_type = if source.name == OBJECT && target.contains_key("averageValue") {
        // Zero is an unset value, which `autoscaling/v1` cannot omit.
        if target.get("value").is_some_and(|value| value == "0") {
            target.remove("value");
        }
        "AverageValue"
    } else if target.contains_key("value") {
        "Value"
    } else if target.contains_key("averageUtilization") {
        "Utilization"
    } else {
        "AverageValue"
    };
    target.insert("type".to_owned(), json!(target_type));
}

/// Returns the metric with each of its sources rewritten by `rewrite`.
fn each_source(metric: &Value, rewrite: impl Fn(&Source, &Value) -> Map<String, Value>) -> Value {
    let mut result = Map::new();
    insert(&mut result, "type", Some(metric), "type");
    for source in &SOURCES {
        if let Some(value) = metric.get(source.name).filter(|value| value.is_object()) {
            result.insert(source.name.to_owned(), Value::Object(rewrite(source, value)));
        }
    }
    Value::Object(result)
}

/// Returns the names of a resource and its container. They are the same in both versions.
fn resource(source: &Value) -> Map<String, Value> {
    let mut names = Map::new();
    insert_text(&mut names, "name", Some(source), "name");
    insert(&mut names, "container", Some(source), "container");
    names
}

/// Sets `to[name] = from[field]` if the field exists.
fn insert(to: &mut Map<String, Value>, name: &str, from: Option<&Value>, field: &str) {
    if let Some(value) = member(from, field) {
        to.insert(name.to_owned(), value.clone());
    }
}

/// Sets `to[name] = from[field]`, or to an empty string if the field does not exist.
fn insert_text(to: &mut Map<String, Value>, name: &str, from: Option<&Value>, field: &str) {
    let text = from.and_then(|from| from.get(field)).cloned().unwrap_or_else(|| json!(""));
    to.insert(name.to_owned(), text);
}

/// Sets `to[name] = from[field]`, or to an empty object if the field does not exist.
fn insert_object(to: &mut Map<String, Value>, name: &str, from: &Value, field: &str) {
    let reference = from.get(field).cloned().unwrap_or_else(|| json!({}));
    to.insert(name.to_owned(), reference);
}

fn member<'a>(object: Option<&'a Value>, field: &str) -> Option<&'a Value> {
    object?.get(field).filter(|value| !value.is_null())
}
