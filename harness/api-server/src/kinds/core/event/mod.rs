//! Implements Events of both groups.

pub(crate) mod validation;

use kubernetes_admission::attributes::GroupVersionKind;
use kubernetes_types::json::{at, text};
use kubernetes_types::names;
use serde_json::Value;

use crate::kinds::common::cells::{Context, name, number, row, text_or};
use crate::kinds::common::change::Change;
use crate::kinds::common::fields::Errors;
use crate::kinds::common::{age, formats};
use crate::kinds::conversion::{Strategy, convert};
use crate::kinds::core::event;
use crate::kinds::kind::Kind;

/// The behavior of Events of both groups.
pub(crate) const KIND: Kind = Kind {
    group: "",
    resource: "events",
    kind: "Event",
    validate_name: |name, _| formats::path_segment_errors(name),
    has_core_finalizers: false,
    validates_metadata_last: true,
    is_created_by_update: true,
    ignores_propagation_policy: true,
    validate,
    cells: Some(cells),
    selectable_fields: Some(&[
        "metadata.name",
        "metadata.namespace",
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.apiVersion",
        "involvedObject.resourceVersion",
        "involvedObject.fieldPath",
        "reason",
        "reportingComponent",
        "source",
        "type",
    ]),
    stored_field: |path| (path == "source").then(|| "source.component".to_owned()),
    ..Kind::PLAIN
};

/// The Events of `events.k8s.io`. They are stored as Events of the core group.
pub(crate) const IN_EVENTS: Kind = Kind {
    group: "events.k8s.io",
    validate_name: |name, _| names::dns1123_subdomain(name),
    has_core_finalizers: true,
    validates_metadata_last: false,
    validate: validate_in_events,
    selectable_fields: Some(&[
        "metadata.name",
        "metadata.namespace",
        "regarding.kind",
        "regarding.namespace",
        "regarding.name",
        "regarding.uid",
        "regarding.apiVersion",
        "regarding.resourceVersion",
        "regarding.fieldPath",
        "reason",
        "reportingController",
        "type",
    ]),
    stored_field: field_in_core,
    ..KIND
};

fn validate(errors: &mut Errors, object: &Value, _: Option<Change<'_>>) {
    event::validation::event(errors, object, false);
}

fn validate_in_events(errors: &mut Errors, object: &Value, change: Option<Change<'_>>) {
    event::validation::event(errors, object, true);
    match change {
        None => event::validation::new_event(errors, object),
        Some(change) => event::validation::changed_event(errors, object, change),
    }
}

/// Returns the path of a field of `events.k8s.io` in an Event of the core group.
fn field_in_core(path: &str) -> Option<String> {
    match path.strip_prefix("regarding.") {
        Some(field) => Some(format!("involvedObject.{field}")),
        None => (path == "reportingController").then(|| "reportingComponent".to_owned()),
    }
}

pub(crate) fn cells(object: &Value, context: &Context<'_>) -> Vec<Value> {
    let version = GroupVersionKind::new("", "v1", "Event");
    let converted;
    let object = if text(object, &["apiVersion"]) == "events.k8s.io/v1" {
        converted = convert(object, &version, Strategy::Scheme).unwrap_or_default();
        &converted
    } else {
        object
    };
    let since = |path: &[&str]| age::since(context.now, at(object, path));
    let is_missing = |field| at(object, &[field]).is_null();
    let first = if is_missing("firstTimestamp") { since(&["eventTime"]) } else { since(&["firstTimestamp"]) };
    let mut last = if is_missing("lastTimestamp") { first.clone() } else { since(&["lastTimestamp"]) };
    let mut count = number(object, &["count"]);
    if !is_missing("series") {
        last = since(&["series", "lastObservedTime"]);
        count = number(object, &["series", "count"]);
    } else if count == 0 {
        count = 1;
    }
    let involved = |field| text(object, &["involvedObject", field]);
    let kind = involved("kind").to_lowercase();
    let target = if involved("name").is_empty() { kind } else { format!("{kind}/{}", involved("name")) };
    let component = text_or(object, &["source", "component"], text(object, &["reportingComponent"]));
    let source = match text_or(object, &["source", "host"], text(object, &["reportingInstance"])) {
        "" => component.to_owned(),
        instance => format!("{component}, {instance}"),
    };
    row![
        last,
        text(object, &["type"]),
        text(object, &["reason"]),
        target,
        involved("fieldPath"),
        source,
        text(object, &["message"]).trim(),
        first,
        count,
        name(object),
    ]
}
