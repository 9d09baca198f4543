//! Computes the table rows of `HorizontalPodAutoscaler`s.

use kubernetes_admission::attributes::GroupVersionKind;
use kubernetes_types::json::{at, text};
use serde_json::Value;

use crate::kinds::common::cells::{Context, age_of, amount, items, name, number, row};
use crate::kinds::conversion::{Strategy, convert};

pub(crate) fn cells(object: &Value, context: &Context<'_>) -> Vec<Value> {
    let version = GroupVersionKind::new("autoscaling", "v2", "HorizontalPodAutoscaler");
    let converted;
    let object = if text(object, &["apiVersion"]) == "autoscaling/v1" {
        converted = convert(object, &version, Strategy::Scheme).unwrap_or_default();
        &converted
    } else {
        object
    };
    let target = at(object, &["spec", "scaleTargetRef"]);
    let least = at(object, &["spec", "minReplicas"]).as_i64();
    row![
        name(object),
        format!("{}/{}", text(target, &["kind"]), text(target, &["name"])),
        metrics(items(object, &["spec", "metrics"]), items(object, &["status", "currentMetrics"])),
        least.map_or_else(|| "<unset>".to_owned(), |least| least.to_string()),
        number(object, &["spec", "maxReplicas"]),
        number(object, &["status", "currentReplicas"]),
        age_of(object, context),
    ]
}

/// Formats the current and target values of metrics.
///
/// Source: `formatHPAMetrics`.
fn metrics(specs: &[Value], statuses: &[Value]) -> String {
    const MAX_METRICS: usize = 2;
    if specs.is_empty() {
        return "<none>".to_owned();
    }
    let texts = specs.iter().enumerate().map(|(index, spec)| metric(spec, statuses.get(index)));
    let list: Vec<String> = texts.collect();
    let shown = list.get(..MAX_METRICS).unwrap_or(&list).join(", ");
    match list.len().checked_sub(MAX_METRICS) {
        Some(more) if more > 0 => format!("{shown} + {more} more..."),
        _ => shown,
    }
}

fn metric(spec: &Value, status: Option<&Value>) -> String {
    let unknown = || "<unknown>".to_owned();
    let kind = text(spec, &["type"]);
    let field = match kind {
        "External" => "external",
        "Pods" => "pods",
        "Object" => "object",
        "Resource" => "resource",
        "ContainerResource" => "containerResource",
        _ => return "<unknown type>".to_owned(),
    };
    let target = at(spec, &[field, "target"]);
    let current = status.map(|status| at(status, &[field])).filter(|source| !source.is_null());
    let current = current.map(|source| at(source, &["current"]));
    let average = at(target, &["averageValue"]);
    let present = |field: &str| current.map(|it| at(it, &[field])).filter(|value| !value.is_null());
    match kind {
        "External" | "Object" if !average.is_null() => {
            format!("{}/{} (avg)", present("averageValue").map_or_else(unknown, amount), amount(average))
        }
        "External" | "Object" => {
            let value = current.map_or_else(unknown, |it| amount(at(it, &["value"])));
            format!("{value}/{}", amount(at(target, &["value"])))
        }
        "Pods" => {
            let value = current.map_or_else(unknown, |it| amount(at(it, &["averageValue"])));
            format!("{value}/{}", amount(average))
        }
        _ => {
            let name = text(spec, &[field, "name"]);
            if !average.is_null() {
                let value = current.map_or_else(unknown, |it| amount(at(it, &["averageValue"])));
                return format!("{name}: {value}/{}", amount(average));
            }
            let percent = |value: &Value| format!("{}%", value.as_i64().unwrap_or_default());
            let value = present("averageUtilization").map_or_else(unknown, percent);
            let wanted = Some(at(target, &["averageUtilization"])).filter(|value| !value.is_null());
            format!("{name}: {value}/{}", wanted.map_or_else(|| "<auto>".to_owned(), percent))
        }
    }
}
