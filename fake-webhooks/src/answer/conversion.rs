//! Creates responses to a `ConversionReview`.

use serde_json::{Map, Value, json};

use super::reply::{Answer, Reply};
use crate::json::set;
use crate::{ConversionRejection, Convert, ConvertedLists, Pointer};

/// The fields of a `ConversionReview` that the response depends on.
struct ConversionRequest<'a> {
    api_version: &'a str,
    uid: &'a str,
    desired: &'a str,
    objects: &'a [Value],
}

impl<'a> ConversionRequest<'a> {
    fn read(review: &'a Value) -> Result<Self, String> {
        let text = |pointer: &str| {
            let text = review.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty());
            text.ok_or_else(|| format!("`{}` is missing", pointer.trim_start_matches('/').replace('/', ".")))
        };
        if text("/kind")? != "ConversionReview" {
            return Err("`kind` is not `ConversionReview`".to_owned());
        }
        Ok(Self {
            api_version: text("/apiVersion")?,
            uid: text("/request/uid")?,
            desired: text("/request/desiredAPIVersion")?,
            objects: review
                .pointer("/request/objects")
                .and_then(Value::as_array)
                .ok_or("`request.objects` is missing")?,
        })
    }
}

/// Returns the fake's response to a `ConversionReview`.
pub(super) fn converted(parameters: &Convert, review: &Value) -> Answer {
    let request = match ConversionRequest::read(review) {
        Ok(request) => request,
        Err(fault) => {
            let text = format!("not a ConversionReview: {fault}");
            return Answer::Reply(Reply::text(http::StatusCode::BAD_REQUEST, text.clone(), text));
        }
    };
    if parameters.limit.is_some_and(|limit| request.objects.len() > limit) {
        let text = format!("{} objects are too many", request.objects.len());
        return Answer::Reply(Reply::text(http::StatusCode::PAYLOAD_TOO_LARGE, text.clone(), text));
    }
    let lacks =
        |needed: &&Pointer| request.objects.iter().any(|object| object.pointer(needed.as_str()).is_none());
    if let Some(needed) = parameters.needs.iter().find(lacks) {
        let text = format!("an object has no {needed}");
        return Answer::Reply(Reply::text(http::StatusCode::INTERNAL_SERVER_ERROR, text.clone(), text));
    }
    let version = version_of(request.desired);
    let is_known = parameters.versions.is_empty() || parameters.versions.iter().any(|known| known == version);
    let is_same = request.objects.iter().any(|object| api_version_of(object) == request.desired);
    let refusal = match (is_known, parameters.same.filter(|_| is_same)) {
        (false, _) => {
            Some((parameters.unknown, format!("objects cannot be converted to {}", request.desired)))
        }
        (true, Some(how)) => Some((how, format!("an object is of {} already", request.desired))),
        (true, None) => None,
    };
    let failure = match refusal {
        Some((ConversionRejection::Error, text)) => {
            return Answer::Reply(Reply::text(http::StatusCode::INTERNAL_SERVER_ERROR, text.clone(), text));
        }
        Some((ConversionRejection::Failure, text)) => Some(text),
        None => parameters.fail.clone(),
    };
    let (response, summary) = if let Some(message) = failure {
        let response = json!({"uid": request.uid, "result": {"status": "Failure", "message": message}});
        (response, format!("conversion failed: {message}"))
    } else {
        let objects = converted_list(parameters, request.objects, request.desired);
        let summary = format!("converted {} to {}", objects.len(), request.desired);
        let result = json!({"status": "Success"});
        (json!({"uid": request.uid, "result": result, "convertedObjects": objects}), summary)
    };
    let mut answer =
        json!({"apiVersion": request.api_version, "kind": "ConversionReview", "response": response});
    for (pointer, value) in &parameters.review {
        place(&mut answer, pointer, value.clone());
    }
    Answer::Reply(Reply::json(&answer, summary))
}

fn api_version_of(object: &Value) -> &str {
    object.get("apiVersion").and_then(Value::as_str).unwrap_or_default()
}

/// Returns the version in an `apiVersion`, such as `v1` for `apps/v1`.
fn version_of(api_version: &str) -> &str {
    api_version.rsplit('/').next().unwrap_or_default()
}

fn converted_list(parameters: &Convert, objects: &[Value], desired: &str) -> Vec<Value> {
    let taken = if parameters.lists == ConvertedLists::FirstOnly { 1 } else { objects.len() };
    let mut carried = None;
    let mut converted: Vec<Value> = Vec::new();
    for object in objects.iter().take(taken) {
        let mut object = converted_object(parameters, object, desired);
        if let Some(pointer) = &parameters.carries {
            match (object.pointer(pointer.as_str()), &carried) {
                (Some(value), _) => carried = Some(value.clone()),
                (None, Some(value)) => place(&mut object, pointer, Value::clone(value)),
                (None, None) => {}
            }
        }
        converted.push(object);
    }
    if parameters.lists == ConvertedLists::Reversed {
        converted.reverse();
    }
    converted
}

fn converted_object(parameters: &Convert, object: &Value, desired: &str) -> Value {
    let from = version_of(api_version_of(object));
    let to = version_of(desired);
    let mut converted = object.clone();
    let claimed = parameters.to.as_ref().map(|version| match desired.rsplit_once('/') {
        Some((group, _)) => format!("{group}/{version}"),
        None => version.clone(),
    });
    set(&mut converted, &["apiVersion"], claimed.as_deref().unwrap_or(desired));
    for it in &parameters.moves {
        if from == it.version && to != it.version {
            moved(&mut converted, &it.to, &it.from);
        } else if from != it.version && to == it.version {
            moved(&mut converted, &it.from, &it.to);
        }
    }
    if let Some(annotation) = &parameters.trail {
        let before = object.pointer("/metadata/annotations").and_then(|all| all.get(annotation));
        let trail = match before.and_then(Value::as_str) {
            Some(before) => format!("{before},{to}"),
            None => format!("{from},{to}"),
        };
        set(&mut converted, &["metadata", "annotations", annotation], trail);
    }
    for (pointer, value) in &parameters.objects {
        place(&mut converted, pointer, value.clone());
    }
    converted
}

fn moved(object: &mut Value, from: &Pointer, to: &Pointer) {
    if let Some(value) = object.pointer(from.as_str()).cloned() {
        place(object, from, Value::Null);
        place(object, to, value);
    }
}

/// Sets the value at `pointer`, or removes it if `value` is null.
///
/// Missing objects are created, but missing list items are not.
fn place(document: &mut Value, pointer: &Pointer, value: Value) {
    let names: Vec<String> =
        pointer.as_str().split('/').skip(1).map(|name| name.replace("~1", "/").replace("~0", "~")).collect();
    let Some((last, way)) = names.split_last() else { return };
    let mut here = document;
    for name in way {
        here = match here {
            Value::Array(items) => match name.parse::<usize>().ok().and_then(|index| items.get_mut(index)) {
                Some(item) => item,
                None => return,
            },
            Value::Object(members) => members.entry(name.clone()).or_insert_with(|| json!({})),
            other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
                *other = Value::Object(Map::new());
                let Some(members) = other.as_object_mut() else { return };
                members.entry(name.clone()).or_insert_with(|| json!({}))
            }
        };
    }
    match here {
        Value::Array(items) => {
            let Some(index) = last.parse::<usize>().ok().filter(|index| *index < items.len()) else { return };
            if value.is_null() {
                items.remove(index);
            } else if let Some(item) = items.get_mut(index) {
                *item = value;
            }
        }
        Value::Object(members) if value.is_null() => {
            members.remove(last);
        }
        Value::Object(members) => {
            members.insert(last.clone(), value);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn review(objects: &Value) -> Value {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
            "request": {"uid": "u", "desiredAPIVersion": "example.com/v2", "objects": objects},
        })
    }

    #[track_caller]
    fn check(parameters: &Value, objects: &Value, expected: &Value) {
        let parameters: Convert = serde_json::from_value(parameters.clone()).unwrap();
        let Answer::Reply(reply) = converted(&parameters, &review(objects)) else { panic!("a reply") };
        let answer: Value = serde_json::from_slice(&reply.body).unwrap();
        assert_eq!(answer["response"], *expected, "{answer:#}");
    }

    #[test]
    fn objects_get_the_requested_version() {
        let v1 = json!({"apiVersion": "example.com/v1", "kind": "Foo", "spec": {"size": 2}});
        check(
            &json!({"moves": [{"version": "v2", "from": "/spec/size", "to": "/spec/replicas"}], "trail": "way"}),
            &json!([v1]),
            &json!({"uid": "u", "result": {"status": "Success"}, "convertedObjects": [{
                "apiVersion": "example.com/v2", "kind": "Foo", "spec": {"replicas": 2},
                "metadata": {"annotations": {"way": "v1,v2"}},
            }]}),
        );
    }

    #[test]
    fn lists_can_be_reordered_or_truncated() {
        let [one, two] = [json!({"apiVersion": "g/v1", "a": 1}), json!({"apiVersion": "g/v1", "b": 2})];
        let success = |objects: Value| json!({"uid": "u", "result": {"status": "Success"}, "convertedObjects": objects});
        let both = json!([one, two]);
        let [first, second] = [
            json!({"apiVersion": "example.com/v2", "a": 1}),
            json!({"apiVersion": "example.com/v2", "b": 2}),
        ];
        check(&json!({"lists": "reversed"}), &both, &success(json!([second, first])));
        check(&json!({"lists": "first-only"}), &both, &success(json!([first])));
        let carried = json!({"apiVersion": "example.com/v2", "a": 1, "b": 2});
        check(&json!({"carries": "/a"}), &both, &success(json!([first, carried])));
        let other = json!({"apiVersion": "example.com/v7", "a": 1});
        check(&json!({"to": "v7"}), &json!([one]), &success(json!([other])));
    }

    #[test]
    fn unsupported_version_is_rejected() {
        let message = "objects cannot be converted to example.com/v2";
        let failure = json!({"uid": "u", "result": {"status": "Failure", "message": message}});
        check(&json!({"versions": ["v1", "v3"]}), &json!([]), &failure);
        let parameters: Convert =
            serde_json::from_value(json!({"versions": ["v1"], "unknown": "error"})).unwrap();
        let Answer::Reply(reply) = converted(&parameters, &review(&json!([]))) else { panic!("a reply") };
        assert_eq!(reply.status, 500);
    }

    #[test]
    fn any_field_of_the_response_can_be_overridden() {
        check(
            &json!({
                "objects": {"/metadata/name": "other", "/spec": null},
                "review": {"/response/uid": null, "/response/convertedObjects/0/kind": "Bar"},
            }),
            &json!([{"apiVersion": "example.com/v1", "kind": "Foo", "spec": {}}]),
            &json!({"result": {"status": "Success"}, "convertedObjects": [
                {"apiVersion": "example.com/v2", "kind": "Bar", "metadata": {"name": "other"}},
            ]}),
        );
        check(
            &json!({"fail": "no"}),
            &json!([]),
            &json!({"uid": "u", "result": {"status": "Failure", "message": "no"}}),
        );
    }

    #[test]
    fn other_bodies_are_a_bad_request() {
        let admission = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"});
        let Answer::Reply(reply) = converted(&Convert::default(), &admission) else { panic!("a reply") };
        assert_eq!(reply.status, 400);
        assert_eq!(reply.body, "not a ConversionReview: `kind` is not `ConversionReview`");
    }
}
