//! Finds the differences between two reviews, except for differences that any two requests have.

use serde_json::Value;

use crate::difference::differences;

/// The fields that the server sets for each request or object.
const CHOSEN: [&str; 5] = ["uid", "resourceVersion", "creationTimestamp", "managedFields", "selfLink"];
/// The prefix of the IP addresses of Services.
const ADDRESSES: &str = "10.0.0.";
/// The prefix of the names of token volumes.
const TOKEN_VOLUME: &str = "kube-api-access-";

/// The JSON pointers to fields with timestamps.
const TIMES: [&str; 2] = ["/metadata/deletionTimestamp", "/status/lastPhaseTransitionTime"];

/// Returns the request of a review without values that differ between any two requests.
pub(super) fn comparable(request: &Value) -> Value {
    let mut request = request.clone();
    if let Some(members) = request.as_object_mut() {
        members.remove("uid");
        if let Some(uid) =
            members.get_mut("options").and_then(|options| options.pointer_mut("/preconditions/uid"))
        {
            *uid = "the object's".into();
        }
        if let Some(user) = members.get_mut("userInfo") {
            *user = user["username"].take();
        }
    }
    for object in ["object", "oldObject"] {
        let uid = request.pointer(&format!("/{object}/metadata/uid")).and_then(Value::as_str);
        let uid = uid.unwrap_or_default().to_owned();
        if let Some(spec) = request.pointer_mut(&format!("/{object}/spec")).filter(|_| !uid.is_empty()) {
            super::requests::rename(spec, &uid, "the object's uid");
        }
        let conditions =
            request.pointer_mut(&format!("/{object}/status/conditions")).and_then(Value::as_array_mut);
        for condition in conditions.into_iter().flatten().filter_map(Value::as_object_mut) {
            condition.retain(|name, time| !name.ends_with("Time") || time.is_null());
        }
        for time in TIMES {
            if let Some(time) = request.pointer_mut(&format!("/{object}{time}")) {
                *time = "some time".into();
            }
        }
        if let Some(metadata) =
            request.pointer_mut(&format!("/{object}/metadata")).and_then(Value::as_object_mut)
        {
            metadata.retain(|name, _| !CHOSEN.contains(&name.as_str()));
        }
    }
    rename(&mut request);
    request
}

fn rename(value: &mut Value) {
    match value {
        Value::String(text) if text.starts_with(ADDRESSES) => *text = format!("{ADDRESSES}10"),
        Value::String(text) if text.starts_with(TOKEN_VOLUME) => *text = format!("{TOKEN_VOLUME}x7k2p"),
        Value::Array(items) => items.iter_mut().for_each(rename),
        Value::Object(members) => members.values_mut().for_each(rename),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The known differences: fields that the server's controllers write, and requests that the server sends several times.
const KNOWN: [(&str, &str); 5] = [
    ("flowschemas", "status.conditions"),
    ("customresourcedefinitions", "status.conditions"),
    ("customresourcedefinitions", "metadata.finalizers"),
    // In the newer group, an event requires a time, which an event of the older group does not have: mutating webhooks
    // see events without it.
    ("events", "eventTime"),
    // The first review has the Pod as stored, the second one the Pod as marked for deletion.
    ("pods", "DELETE"),
];

/// Returns whether a difference at `path`, or a message of the server, is a known difference.
pub(super) fn is_known(request: &Value, path: &str) -> bool {
    KNOWN.iter().any(|(resource, part)| {
        request["resource"]["resource"] == *resource && (path.contains(part) || request["operation"] == *part)
    })
}

/// Describes the differences between the request of a probe and the request of the server, one path at a time.
pub(super) fn between(sent: &Value, server: &Value) -> Vec<String> {
    let told = |side: Option<Value>| side.map_or_else(|| "nothing".to_owned(), |value| value.to_string());
    let found = differences(&comparable(sent), &comparable(server)).into_iter();
    let found = found.filter(|difference| !is_known(sent, &difference.path));
    found
        .map(|it| format!("{}: {} is sent, by the server {}", it.path, told(it.expected), told(it.actual)))
        .collect()
}
