//! The metrics of `autoscaling/v2` in the words of `autoscaling/v1`, and back.
//!
//! Source: kubernetes pkg/apis/autoscaling/v1/conversion.go.

use serde_json::{Map, Value, json};

/// The members of a metric that hold its source or its status.
const SOURCES: [&str; 5] = ["containerResource", "external", "object", "pods", "resource"];

/// One of `spec.metrics` as the annotation has it.
pub(super) fn spec_to_version_1(metric: &Value) -> Value {
    each_source(metric, |kind, source, old| {
        let target = source.get("target");
        match kind {
            "object" => {
                old.insert(
                    "target".to_owned(),
                    source.get("describedObject").cloned().unwrap_or_else(|| json!({})),
                );
                identify(source, "selector", old);
                old.insert("targetValue".to_owned(), quantity(target, "value"));
                copy(target, "averageValue", old, "averageValue");
            }
            "pods" => {
                identify(source, "selector", old);
                old.insert("targetAverageValue".to_owned(), quantity(target, "averageValue"));
            }
            "external" => {
                identify(source, "metricSelector", old);
                copy(target, "value", old, "targetValue");
                copy(target, "averageValue", old, "targetAverageValue");
            }
            _ => {
                name(source, old);
                copy(target, "averageUtilization", old, "targetAverageUtilization");
                copy(target, "averageValue", old, "targetAverageValue");
            }
        }
    })
}

/// One of the metrics of the annotation as `spec.metrics` has it.
pub(super) fn spec_to_version_2(metric: &Value) -> Value {
    each_source(metric, |kind, source, new| {
        let mut target = Map::new();
        let from = Some(source);
        match kind {
            "object" => {
                new.insert(
                    "describedObject".to_owned(),
                    source.get("target").cloned().unwrap_or_else(|| json!({})),
                );
                identified(source, "selector", new);
                let value = quantity(from, "targetValue");
                if copy(from, "averageValue", &mut target, "averageValue") {
                    target.insert("type".to_owned(), json!("AverageValue"));
                    if value != "0" {
                        target.insert("value".to_owned(), value);
                    }
                } else {
                    target.insert("type".to_owned(), json!("Value"));
                    target.insert("value".to_owned(), value);
                }
            }
            "pods" => {
                identified(source, "selector", new);
                target.insert("type".to_owned(), json!("AverageValue"));
                target.insert("averageValue".to_owned(), quantity(from, "targetAverageValue"));
            }
            "external" => {
                identified(source, "metricSelector", new);
                copy(from, "targetAverageValue", &mut target, "averageValue");
                let has_value = copy(from, "targetValue", &mut target, "value");
                target.insert("type".to_owned(), json!(if has_value { "Value" } else { "AverageValue" }));
            }
            _ => {
                name(source, new);
                copy(from, "targetAverageValue", &mut target, "averageValue");
                let utilization = copy(from, "targetAverageUtilization", &mut target, "averageUtilization");
                target.insert(
                    "type".to_owned(),
                    json!(if utilization { "Utilization" } else { "AverageValue" }),
                );
            }
        }
        new.insert("target".to_owned(), Value::Object(target));
    })
}

/// One of `status.currentMetrics` as the annotation has it.
pub(super) fn status_to_version_1(metric: &Value) -> Value {
    each_source(metric, |kind, source, old| {
        let current = source.get("current");
        match kind {
            "object" => {
                old.insert(
                    "target".to_owned(),
                    source.get("describedObject").cloned().unwrap_or_else(|| json!({})),
                );
                identify(source, "selector", old);
                old.insert("currentValue".to_owned(), quantity(current, "value"));
                copy(current, "averageValue", old, "averageValue");
            }
            "pods" => {
                identify(source, "selector", old);
                old.insert("currentAverageValue".to_owned(), quantity(current, "averageValue"));
            }
            "external" => {
                identify(source, "metricSelector", old);
                old.insert("currentValue".to_owned(), quantity(current, "value"));
                copy(current, "averageValue", old, "currentAverageValue");
            }
            _ => {
                name(source, old);
                copy(current, "averageUtilization", old, "currentAverageUtilization");
                old.insert("currentAverageValue".to_owned(), quantity(current, "averageValue"));
            }
        }
    })
}

/// One of the statuses of the annotation as `status.currentMetrics` has it. Values that `autoscaling/v1` cannot leave
/// out come back as zero.
pub(super) fn status_to_version_2(metric: &Value) -> Value {
    each_source(metric, |kind, source, new| {
        let mut current = Map::new();
        let from = Some(source);
        match kind {
            "object" => {
                new.insert(
                    "describedObject".to_owned(),
                    source.get("target").cloned().unwrap_or_else(|| json!({})),
                );
                identified(source, "selector", new);
                current.insert("value".to_owned(), quantity(from, "currentValue"));
                copy(from, "averageValue", &mut current, "averageValue");
            }
            "pods" => {
                identified(source, "selector", new);
                current.insert("averageValue".to_owned(), quantity(from, "currentAverageValue"));
            }
            "external" => {
                identified(source, "metricSelector", new);
                current.insert("value".to_owned(), quantity(from, "currentValue"));
                copy(from, "currentAverageValue", &mut current, "averageValue");
            }
            _ => {
                name(source, new);
                copy(from, "currentAverageUtilization", &mut current, "averageUtilization");
                current.insert("averageValue".to_owned(), quantity(from, "currentAverageValue"));
            }
        }
        new.insert("current".to_owned(), Value::Object(current));
    })
}

/// The metric with each of its sources rewritten by `rewrite`.
fn each_source(metric: &Value, rewrite: impl Fn(&str, &Value, &mut Map<String, Value>)) -> Value {
    let mut result = Map::new();
    copy(Some(metric), "type", &mut result, "type");
    for kind in SOURCES {
        if let Some(source) = metric.get(kind).filter(|source| source.is_object()) {
            let mut rewritten = Map::new();
            rewrite(kind, source, &mut rewritten);
            result.insert(kind.to_owned(), Value::Object(rewritten));
        }
    }
    Value::Object(result)
}

/// `metric.name` and `metric.selector` in the older words.
fn identify(source: &Value, selector: &str, old: &mut Map<String, Value>) {
    let metric = source.get("metric");
    let name = metric.and_then(|metric| metric.get("name")).cloned().unwrap_or_else(|| json!(""));
    old.insert("metricName".to_owned(), name);
    copy(metric, "selector", old, selector);
}

/// `metricName` and its selector in the newer words.
fn identified(source: &Value, selector: &str, new: &mut Map<String, Value>) {
    let mut metric = Map::new();
    metric.insert("name".to_owned(), source.get("metricName").cloned().unwrap_or_else(|| json!("")));
    copy(Some(source), selector, &mut metric, "selector");
    new.insert("metric".to_owned(), Value::Object(metric));
}

/// The names of a resource and of its container.
fn name(source: &Value, result: &mut Map<String, Value>) {
    result.insert("name".to_owned(), source.get("name").cloned().unwrap_or_else(|| json!("")));
    copy(Some(source), "container", result, "container");
}

/// A quantity that is zero when it is missing.
fn quantity(object: Option<&Value>, field: &str) -> Value {
    let value = object.and_then(|object| object.get(field)).filter(|value| !value.is_null());
    value.cloned().unwrap_or_else(|| json!("0"))
}

/// Copies a member; says whether there is one.
fn copy(object: Option<&Value>, field: &str, to: &mut Map<String, Value>, name: &str) -> bool {
    let value = object.and_then(|object| object.get(field)).filter(|value| !value.is_null());
    if let Some(value) = value {
        to.insert(name.to_owned(), value.clone());
    }
    value.is_some()
}
