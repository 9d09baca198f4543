//! Implements Events of both groups.

use crate::kinds::common::change::Change;
use crate::kinds::common::fields::Errors;
use crate::kinds::kind::Kind;
use kubernetes_types::names;
use serde_json::Value;

/// The behavior of Events of both groups.
pub(crate) const KIND: Kind = Kind {
    group: "",
    resource: "events",
    kind: "Event",
    validate_name: |name, _| crate::kinds::object_names::path_segment_errors(name),
    has_core_finalizers: false,
    validates_metadata_last: true,
    is_created_by_update: true,
    ignores_propagation_policy: true,
    validate: validate,
    cells: Some(crate::kinds::tables::cluster::event),
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
    crate::kinds::validation::events::event(errors, object, false);
}

fn validate_in_events(errors: &mut Errors, object: &Value, change: Option<Change<'_>>) {
    crate::kinds::validation::events::event(errors, object, true);
    match change {
        None => crate::kinds::validation::events::new_event(errors, object),
        Some(change) => crate::kinds::validation::events::changed_event(errors, object, change),
    }
}

/// Returns the path of a field of `events.k8s.io` in an Event of the core group.
fn field_in_core(path: &str) -> Option<String> {
    match path.strip_prefix("regarding.") {
        Some(field) => Some(format!("involvedObject.{field}")),
        None => (path == "reportingController").then(|| "reportingComponent".to_owned()),
    }
}
