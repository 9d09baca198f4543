//! Computes the table rows of Jobs.

use kubernetes_types::json::{at, text};
use serde_json::Value;

use crate::kinds::common::age;
use crate::kinds::common::cells::{
    Context, age_of, condition, containers, items, label_selector, name, number, row,
};

pub(crate) fn cells(object: &Value, context: &Context<'_>) -> Vec<Value> {
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
