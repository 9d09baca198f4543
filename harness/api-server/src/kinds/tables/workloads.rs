//! Computes the table rows of workloads.
//!
//! Source: kubernetes pkg/printers/internalversion/printers.go.

use kubernetes_admission::attributes::GroupVersionKind;
use kubernetes_types::json::{at, text};
use serde_json::Value;

use crate::kinds::common::age;
use crate::kinds::common::cells::{
    Context, age_of, amount, condition, containers, count, is_true, items, label_selector, labels, name,
    number, present_or, row, selector,
};
use crate::kinds::conversion::{Strategy, convert};

pub(crate) fn pod_template(object: &Value, _: &Context<'_>) -> Vec<Value> {
    let (names, images) = containers(items(object, &["template", "spec", "containers"]));
    row![name(object), names, images, labels(at(object, &["template", "metadata", "labels"]))]
}

pub(crate) fn pod_disruption_budget(object: &Value, context: &Context<'_>) -> Vec<Value> {
    let limit = |field| match at(object, &["spec", field]) {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => "N/A".to_owned(),
    };
    row![
        name(object),
        limit("minAvailable"),
        limit("maxUnavailable"),
        number(object, &["status", "disruptionsAllowed"]),
        age_of(object, context),
    ]
}

/// Returns the cells of a kind that has `replicas`.
pub(crate) fn replicated(object: &Value, context: &Context<'_>, selector: String) -> Vec<Value> {
    let (names, images) = containers(items(object, &["spec", "template", "spec", "containers"]));
    row![
        name(object),
        number(object, &["spec", "replicas"]),
        number(object, &["status", "replicas"]),
        number(object, &["status", "readyReplicas"]),
        age_of(object, context),
        names,
        images,
        selector,
    ]
}

pub(crate) fn replication_controller(object: &Value, context: &Context<'_>) -> Vec<Value> {
    replicated(object, context, labels(at(object, &["spec", "selector"])))
}

pub(crate) fn replica_set(object: &Value, context: &Context<'_>) -> Vec<Value> {
    replicated(object, context, label_selector(at(object, &["spec", "selector"])))
}

/// Formats the ready and the desired replicas.
fn ready(object: &Value) -> String {
    let ready = number(object, &["status", "readyReplicas"]);
    format!("{ready}/{}", number(object, &["spec", "replicas"]))
}

pub(crate) fn deployment(object: &Value, context: &Context<'_>) -> Vec<Value> {
    let (names, images) = containers(items(object, &["spec", "template", "spec", "containers"]));
    row![
        name(object),
        ready(object),
        number(object, &["status", "updatedReplicas"]),
        number(object, &["status", "availableReplicas"]),
        age_of(object, context),
        names,
        images,
        selector(at(object, &["spec", "selector"])).unwrap_or_else(|| "<invalid>".to_owned()),
    ]
}

pub(crate) fn stateful_set(object: &Value, context: &Context<'_>) -> Vec<Value> {
    let (names, images) = containers(items(object, &["spec", "template", "spec", "containers"]));
    row![name(object), ready(object), age_of(object, context), names, images]
}

pub(crate) fn daemon_set(object: &Value, context: &Context<'_>) -> Vec<Value> {
    let pods = at(object, &["spec", "template", "spec"]);
    let (names, images) = containers(items(pods, &["containers"]));
    row![
        name(object),
        number(object, &["status", "desiredNumberScheduled"]),
        number(object, &["status", "currentNumberScheduled"]),
        number(object, &["status", "numberReady"]),
        number(object, &["status", "updatedNumberScheduled"]),
        number(object, &["status", "numberAvailable"]),
        labels(at(pods, &["nodeSelector"])),
        age_of(object, context),
        names,
        images,
        label_selector(at(object, &["spec", "selector"])),
    ]
}

pub(crate) fn job(object: &Value, context: &Context<'_>) -> Vec<Value> {
    let succeeded = number(object, &["status", "succeeded"]);
    let parallelism = number(object, &["spec", "parallelism"]);
    let completions = match at(object, &["spec", "completions"]).as_i64() {
        Some(completions) => format!("{succeeded}/{completions}"),
        None if parallelism > 1 => format!("{succeeded}/1 of {parallelism}"),
        None => format!("{succeeded}/1"),
    };
    let time = |field| age::at(at(object, &["status", field]));
    let duration = time("startTime").map(|start| {
        let end = time("completionTime").unwrap_or(context.now);
        age::human(end.duration_since(start))
    });
    let conditions = items(object, &["status", "conditions"]);
    let has = |kind: &str| condition(conditions, kind).is_some_and(|it| text(it, &["status"]) == "True");
    let is_deleted = !at(object, &["metadata", "deletionTimestamp"]).is_null();
    let status = match () {
        () if has("Complete") => "Complete",
        () if has("Failed") => "Failed",
        () if is_deleted => "Terminating",
        () if has("Suspended") => "Suspended",
        () if has("FailureTarget") => "FailureTarget",
        () if has("SuccessCriteriaMet") => "SuccessCriteriaMet",
        () => "Running",
    };
    let (names, images) = containers(items(object, &["spec", "template", "spec", "containers"]));
    row![
        name(object),
        status,
        completions,
        duration.unwrap_or_default(),
        age_of(object, context),
        names,
        images,
        label_selector(at(object, &["spec", "selector"])),
    ]
}

pub(crate) fn cron_job(object: &Value, context: &Context<'_>) -> Vec<Value> {
    let job = at(object, &["spec", "jobTemplate", "spec"]);
    let (names, images) = containers(items(job, &["template", "spec", "containers"]));
    let last = at(object, &["status", "lastScheduleTime"]);
    let suspend = match at(object, &["spec", "suspend"]).as_bool() {
        Some(true) => "True",
        Some(false) => "False",
        None => "<unset>",
    };
    row![
        name(object),
        text(object, &["spec", "schedule"]),
        present_or(object, &["spec", "timeZone"], "<none>"),
        suspend,
        count(at(object, &["status", "active"])),
        if last.is_null() { "<none>".to_owned() } else { age::since(context.now, last) },
        age_of(object, context),
        names,
        images,
        label_selector(at(job, &["selector"])),
    ]
}

pub(crate) fn controller_revision(object: &Value, context: &Context<'_>) -> Vec<Value> {
    let owners = items(object, &["metadata", "ownerReferences"]);
    let controller = owners.iter().find(|owner| is_true(owner, &["controller"]));
    let controller = controller.map_or_else(
        || "<none>".to_owned(),
        |owner| {
            let group = text(owner, &["apiVersion"]).rsplit_once('/').map_or("", |(group, _)| group);
            let dot = if group.is_empty() { "" } else { "." };
            let kind = format!("{}{dot}{group}", text(owner, &["kind"])).to_lowercase();
            format!("{kind}/{}", text(owner, &["name"]))
        },
    );
    row![name(object), controller, number(object, &["revision"]), age_of(object, context)]
}

pub(crate) fn scale(object: &Value, context: &Context<'_>) -> Vec<Value> {
    row![
        name(object),
        number(object, &["spec", "replicas"]),
        number(object, &["status", "replicas"]),
        age_of(object, context),
    ]
}

pub(crate) fn horizontal_pod_autoscaler(object: &Value, context: &Context<'_>) -> Vec<Value> {
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
