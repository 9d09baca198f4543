//! Remarks about a webhook call that kube-apiserver's messages do not contain.

use harness::event::{CallResult, Called};
use harness::server::{ApiServer, UnknownField};
use harness::verify::similar_name::most_similar;
use serde_json::Value;

use crate::request_report::{patch_alone, shown};

/// The maximum number of fields that are named.
const MAX_FIELDS: usize = 5;

/// Returns the remarks about a call: fields that its patch sets and the API server drops.
pub(crate) fn call_notes(called: &Called, server: &ApiServer) -> Vec<String> {
    dropped_fields(called, server)
}

/// Returns a remark for each field of the object after the call that its kind does not have.
///
/// Only the patch can have set such a field: the object in the review does not have it. The body of a `scale` of a custom
/// resource is not an object of the kind that it names, so its fields are unknown.
fn dropped_fields(called: &Called, server: &ApiServer) -> Vec<String> {
    if !matches!(called.result, CallResult::Allowed { patch: Some(_), .. }) {
        return Vec::new();
    }
    let Some((before, after)) = shown(called).and_then(|before| {
        let after = patch_alone(called, &before)?;
        Some((before, after))
    }) else {
        return Vec::new();
    };
    let kind = after.get("kind").and_then(Value::as_str).unwrap_or_default();
    if kind == "Scale" {
        return Vec::new();
    }
    let fields = server.added_unknown_fields(&before, &after);
    let mut notes: Vec<String> =
        fields.iter().take(MAX_FIELDS).map(|field| dropped_field(field, kind)).collect();
    if let Some(more) = fields.len().checked_sub(MAX_FIELDS).filter(|more| *more > 0) {
        notes.push(format!("the API server drops {more} more fields that {kind} does not have"));
    }
    notes
}

fn dropped_field(field: &UnknownField, kind: &str) -> String {
    let similar = most_similar(field.name(), field.known.iter().map(String::as_str));
    let similar = similar.map(|name| format!(" (did you mean {name}?)")).unwrap_or_default();
    format!("{} is not a field of {kind}: the API server drops it{similar}", field.path)
}
