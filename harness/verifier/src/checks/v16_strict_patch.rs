//! V16: a patch follows RFC 6902, not only the API server's library.

use std::sync::Arc;

use serde_json::Value;

use super::webhook_response::WebhookResponse;
use crate::check::{Audience, Check, Observed, Probe, Repeatability, Severity, Skipped, Violation};
use crate::object_probe::ObjectProbe;
use crate::shape;

pub(super) const CHECK: Check = Check {
    id: "V16",
    title: "patch strictness: the patch follows RFC 6902 even where kube-apiserver's library is lenient",
    severity: Severity::Warning,
    why: "kube-apiserver's JSON patch library adds the value when `replace` finds no target, counts -1 from \
          the end, and treats a missing value as null. This behavior is not guaranteed. Other consumers of \
          the patch (tests, policy engines, simulators of MutatingAdmissionPolicy) reject it, and it \
          usually shows that the webhook expects a field that the object does not have.",
    help: "Use `add` for fields that may be absent, and existing indexes or `-` for list items.",
    source: "RFC 6902, section 4; RFC 6901, section 4; gopkg.in/evanphx/json-patch.v4 patch.go",
    audience: Audience::Mutating,
    repeatability: Repeatability::Same,
    probe: Probe::Object(|object_probe| Box::pin(run(object_probe))),
};

/// The kind and the message of an error in a patch operation.
type Fault = (&'static str, String);

async fn run(object_probe: &ObjectProbe<'_>) -> Observed {
    let webhook_response = WebhookResponse::to_creation(object_probe).await?;
    let patch = webhook_response.patch()?;
    // Other checks report a patch that even the lenient library rejects.
    if let Err(error) = patch.apply(webhook_response.object()) {
        return Err(Skipped::not_checked(format!("the patch does not apply: {error}")));
    }
    let mut document = webhook_response.object().clone();
    for (index, operation) in patch.operations().iter().enumerate() {
        if let Err((kind, message)) = perform(operation, &mut document) {
            let message = format!("operation {index} of the patch, {operation}: {message}");
            return Ok(vec![
                Violation::new(kind, message).with_steps([Arc::clone(&webhook_response.outcome)]),
            ]);
        }
    }
    Ok(Vec::new())
}

/// Applies one operation exactly as RFC 6902 specifies.
fn perform(operation: &Value, document: &mut Value) -> Result<(), Fault> {
    let value = || {
        let missing = || ("value missing", "the value is missing".to_owned());
        operation.get("value").cloned().ok_or_else(missing)
    };
    let path = pointer(operation, "path")?;
    match operation["op"].as_str() {
        Some("add") => add(document, path, value()?),
        Some("remove") => remove(document, path).map(drop),
        Some("replace") => {
            let value = value()?;
            *find(document, path)? = value;
            Ok(())
        }
        Some("test") => {
            let (expected, found) = (value()?, find(document, path)?);
            if *found == expected { Ok(()) } else { Err(("test", format!("the current value is {found}"))) }
        }
        Some("copy") => {
            let from = pointer(operation, "from")?;
            let value = find(document, from)?.clone();
            add(document, path, value)
        }
        Some("move") => {
            let from = pointer(operation, "from")?;
            if path.strip_prefix(from).is_some_and(|rest| rest.starts_with('/')) {
                return Err(("move into itself", "it moves a value into itself".to_owned()));
            }
            let value = remove(document, from)?;
            add(document, path, value)
        }
        _ => Err(("op", "the op is unknown".to_owned())),
    }
}

/// Returns the JSON pointer in the member `field` of an operation, if it is valid.
///
/// Source: RFC 6901, section 3.
fn pointer<'a>(operation: &'a Value, field: &str) -> Result<&'a str, Fault> {
    let Some(text) = operation.get(field).and_then(Value::as_str) else {
        return Err(("pointer", format!("{field} is missing")));
    };
    let is_escaped = text.split('~').skip(1).all(|rest| rest.starts_with(['0', '1']));
    if (text.is_empty() || text.starts_with('/')) && is_escaped {
        Ok(text)
    } else {
        Err(("pointer", format!("{field} is not a JSON pointer")))
    }
}

/// Parses `segment` as an index into a list of `length` items.
fn index(segment: &str, length: usize) -> Result<usize, Fault> {
    let is_number = segment == "0"
        || (!segment.is_empty()
            && !segment.starts_with('0')
            && segment.bytes().all(|byte| byte.is_ascii_digit()));
    if !is_number {
        return Err((
            "index",
            format!("invalid list index {segment}: must be digits without a leading zero"),
        ));
    }
    match segment.parse::<usize>() {
        Ok(index) if index < length => Ok(index),
        Ok(_) | Err(_) => Err(beyond(length)),
    }
}

fn beyond(length: usize) -> Fault {
    ("index", format!("the list has {length} items"))
}

fn nothing(path: &str) -> Fault {
    ("path not found", format!("the object has no value at {path}"))
}

fn find<'a>(document: &'a mut Value, path: &str) -> Result<&'a mut Value, Fault> {
    let mut place = document;
    for segment in path.split('/').skip(1) {
        place = match place {
            Value::Object(members) => {
                members.get_mut(&shape::unescaped(segment)).ok_or_else(|| nothing(path))?
            }
            Value::Array(items) => {
                let length = items.len();
                items.get_mut(index(segment, length)?).ok_or_else(|| beyond(length))?
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                return Err(nothing(path));
            }
        };
    }
    Ok(place)
}

fn add(document: &mut Value, path: &str, value: Value) -> Result<(), Fault> {
    let Some((parent, last)) = path.rsplit_once('/') else {
        *document = value;
        return Ok(());
    };
    match find(document, parent)? {
        Value::Object(members) => {
            members.insert(shape::unescaped(last), value);
        }
        Value::Array(items) if last == "-" => items.push(value),
        Value::Array(items) => {
            let index = index(last, items.len() + 1)?;
            items.insert(index, value);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return Err(nothing(parent)),
    }
    Ok(())
}

fn remove(document: &mut Value, path: &str) -> Result<Value, Fault> {
    let value = find(document, path)?.clone();
    shape::remove(document, path);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(operation: &Value, expected: &Result<Value, &str>) {
        let mut document = json!({"a": {"b/c": 1}, "l": [1, 2]});
        let done = perform(operation, &mut document).map_err(|(kind, _)| kind);
        assert_eq!(done.map(|()| document), *expected, "{operation}");
    }

    #[test]
    fn operations_allowed_by_the_rfc_are_applied() {
        check(
            &json!({"op": "add", "path": "/l/-", "value": 3}),
            &Ok(json!({"a": {"b/c": 1}, "l": [1, 2, 3]})),
        );
        check(
            &json!({"op": "add", "path": "/l/2", "value": 3}),
            &Ok(json!({"a": {"b/c": 1}, "l": [1, 2, 3]})),
        );
        check(&json!({"op": "add", "path": "/a", "value": null}), &Ok(json!({"a": null, "l": [1, 2]})));
        check(
            &json!({"op": "replace", "path": "/a/b~1c", "value": 2}),
            &Ok(json!({"a": {"b/c": 2}, "l": [1, 2]})),
        );
        check(&json!({"op": "remove", "path": "/l/0"}), &Ok(json!({"a": {"b/c": 1}, "l": [2]})));
        check(
            &json!({"op": "move", "from": "/a/b~1c", "path": "/m"}),
            &Ok(json!({"a": {}, "l": [1, 2], "m": 1})),
        );
        check(
            &json!({"op": "copy", "from": "/l/1", "path": "/l/0"}),
            &Ok(json!({"a": {"b/c": 1}, "l": [2, 1, 2]})),
        );
        check(&json!({"op": "test", "path": "/l/1", "value": 2}), &Ok(json!({"a": {"b/c": 1}, "l": [1, 2]})));
        check(&json!({"op": "replace", "path": "", "value": 7}), &Ok(json!(7)));
    }

    #[test]
    fn lenient_operations_are_errors() {
        check(&json!({"op": "replace", "path": "/a/x", "value": 1}), &Err("path not found"));
        check(&json!({"op": "remove", "path": "/l/-1"}), &Err("index"));
        check(&json!({"op": "remove", "path": "/l/01"}), &Err("index"));
        check(&json!({"op": "add", "path": "/l/7", "value": 1}), &Err("index"));
        check(&json!({"op": "add", "path": "/x"}), &Err("value missing"));
        check(&json!({"op": "add", "path": "/a~2", "value": 1}), &Err("pointer"));
        check(&json!({"op": "add", "path": "a", "value": 1}), &Err("pointer"));
        check(&json!({"op": "copy", "from": "/x", "path": "/y"}), &Err("path not found"));
        check(&json!({"op": "move", "from": "/a", "path": "/a/b"}), &Err("move into itself"));
        check(&json!({"op": "test", "path": "/l/1", "value": 1}), &Err("test"));
        check(&json!({"op": "merge", "path": "/a"}), &Err("op"));
    }
}
