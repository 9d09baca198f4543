//! Validates Events.

use kubernetes_types::quoting::{encode, quote};
use serde_json::Value;

use crate::kinds::common::change::Change;
use crate::kinds::common::fields::{Errors, IMMUTABLE, Path, get, int, set, text};
use crate::kinds::common::formats;
use crate::kinds::common::internal::Form;

/// Validates an Event; `is_strict` selects the stricter rules of `events.k8s.io`.
///
/// Source: kubernetes pkg/apis/core/validation/events.go.
/// Rule: VLO-35.
pub(crate) fn event(errors: &mut Errors, object: &Value, is_strict: bool) {
    let field = |core: &'static str, strict: &'static str| if is_strict { strict } else { core };
    let of = |name| text(object, name);
    let namespace = text(get(object, "metadata"), "namespace");
    let involved = text(get(object, field("involvedObject", "regarding")), "namespace");
    let path = Path::new("involvedObject");
    let path = path.child("namespace");
    let mut unlike = |matches: bool| {
        if !matches {
            errors.invalid_text(&path, involved, "does not match event.namespace");
        }
    };
    if set(object, "eventTime").is_none() {
        unlike(if involved.is_empty() {
            ["", "default"].contains(&namespace)
        } else {
            namespace == involved
        });
    } else {
        unlike(!involved.is_empty() || ["default", "kube-system"].contains(&namespace));
        let name = field("reportingComponent", "reportingController");
        let path = Path::new(name);
        if of(name).is_empty() {
            errors.required(&path, "");
        }
        formats::qualified_name(errors, &path, of(name));
        bounded(errors, "reportingInstance", of("reportingInstance"), 128);
        bounded(errors, "action", of("action"), 128);
        bounded(errors, "reason", of("reason"), 128);
        if of(field("message", "note")).len() > 1024 {
            errors.invalid_text(&Path::new("message"), "", "can have at most 1024 characters");
        }
    }
}

fn bounded(errors: &mut Errors, field: &str, found: &str, most: usize) {
    let path = Path::new(field);
    if found.is_empty() {
        errors.required(&path, "");
    }
    if found.len() > most {
        errors.invalid_text(&path, "", format!("can have at most {most} characters"));
    }
}

fn series(errors: &mut Errors, event: &Value) {
    if let Some(series) = set(event, "series") {
        if int(series, "count").unwrap_or(0) < 2 {
            errors.invalid_text(&Path::new("series.count"), "", "should be at least 2");
        }
        if set(series, "lastObservedTime").is_none() {
            errors.required(&Path::new("series.lastObservedTime"), "");
        }
    }
}

/// Validates a new Event of `events.k8s.io`.
///
/// Source: kubernetes pkg/apis/core/validation/events.go, `ValidateEventCreate`.
/// Rule: VLO-35.
pub(crate) fn new_event(errors: &mut Errors, event: &Value) {
    series(errors, event);
    if set(event, "eventTime").is_none() {
        errors.required(&Path::new("eventTime"), "");
    }
    let kind = text(event, "type");
    if !["Normal", "Warning"].contains(&kind) {
        errors.invalid_text(&Path::new("type"), "", format!("has invalid value: {kind}"));
    }
    let source = get(event, "deprecatedSource");
    let unwanted = [
        ("firstTimestamp", set(event, "deprecatedFirstTimestamp").is_some()),
        ("lastTimestamp", set(event, "deprecatedLastTimestamp").is_some()),
        ("count", int(event, "deprecatedCount").unwrap_or(0) != 0),
        ("source", ["component", "host"].iter().any(|field| !text(source, field).is_empty())),
    ];
    for (field, _) in unwanted.into_iter().filter(|(_, is_set)| *is_set) {
        errors.invalid_text(&Path::new(field), "", "needs to be unset");
    }
}

/// Validates an update of an Event of `events.k8s.io`. An update may change only the series.
///
/// Errors contain the field names of the internal type.
///
/// Source: kubernetes pkg/apis/core/validation/events.go, `ValidateEventUpdate`.
/// Rule: VLO-41.
pub(crate) fn changed_event(errors: &mut Errors, event: &Value, change: Change<'_>) {
    if !change.is_same(&["series"]) {
        series(errors, event);
    }
    let fields = [
        ("regarding", "involvedObject"),
        ("reason", "reason"),
        ("note", "message"),
        ("deprecatedSource", "source"),
        ("deprecatedFirstTimestamp", "firstTimestamp"),
        ("deprecatedLastTimestamp", "lastTimestamp"),
        ("deprecatedCount", "count"),
        ("type", "type"),
        ("eventTime", "eventTime"),
        ("action", "action"),
        ("related", "related"),
        ("reportingController", "reportingController"),
        ("reportingInstance", "reportingInstance"),
    ];
    for (field, shown_field) in fields.into_iter().filter(|(field, _)| !change.is_same(&[field])) {
        let value = get(event, field);
        let shown = match field {
            "regarding" => errors.shown(Form::Plain, "core.ObjectReference", value),
            "related" => errors.shown(Form::Pointer, "core.ObjectReference", value),
            "deprecatedSource" => errors.shown(Form::Plain, "core.EventSource", value),
            "deprecatedCount" => int(event, field).unwrap_or(0).to_string(),
            "deprecatedFirstTimestamp" | "deprecatedLastTimestamp" | "eventTime" => encode(value),
            _ => quote(text(event, field)),
        };
        errors.invalid(&Path::new(shown_field), shown, IMMUTABLE);
    }
}
