//! Locates fields in objects.

use serde_json::Value;

use kubernetes_types::json::at;

/// Returns the JSON pointer of the `PodSpec` in `object`, if it has one.
pub fn pod_spec(object: &Value) -> Option<&'static str> {
    let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
    let pointer = match kind {
        "Pod" => "/spec",
        "PodTemplate" => "/template/spec",
        "CronJob" => "/spec/jobTemplate/spec/template/spec",
        "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet" | "ReplicationController" | "Job" => {
            "/spec/template/spec"
        }
        _ => return None,
    };
    object.pointer(pointer).filter(|spec| spec.is_object()).map(|_| pointer)
}

/// Returns a name, escaped as a segment of a JSON pointer.
///
/// Source: RFC 6901.
pub fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Returns the name in an escaped segment of a JSON pointer.
///
/// Source: RFC 6901.
pub fn unescaped(segment: &str) -> String {
    segment.replace("~1", "/").replace("~0", "~")
}

/// Returns the field of a JSON pointer without list positions.
///
/// For example, the field of `/spec/containers/0/env` is `spec.containers.env`.
pub fn field(pointer: &str) -> String {
    let names = pointer.split('/').skip(1).filter(|name| name.parse::<usize>().is_err());
    names.map(unescaped).collect::<Vec<_>>().join(".")
}

/// Removes the value at `pointer` and returns whether a value was removed.
pub fn remove(object: &mut Value, pointer: &str) -> bool {
    let Some((parent, last)) = pointer.rsplit_once('/') else { return false };
    let last = unescaped(last);
    match object.pointer_mut(parent) {
        Some(Value::Object(members)) => members.remove(&last).is_some(),
        Some(Value::Array(items)) => match last.parse::<usize>() {
            Ok(index) if index < items.len() => {
                items.remove(index);
                true
            }
            _ => false,
        },
        _ => false,
    }
}

/// Returns `NAMESPACE/NAME` of `object`. If it has no name, `generateName` and an asterisk replace the name.
pub fn object_name(object: &Value) -> String {
    let text = |field: &str| at(object, &["metadata", field]).as_str().filter(|text| !text.is_empty());
    let name = match (text("name"), text("generateName")) {
        (Some(name), _) => name.to_owned(),
        (None, Some(prefix)) => format!("{prefix}*"),
        (None, None) => "without a name".to_owned(),
    };
    match text("namespace") {
        Some(namespace) => format!("{namespace}/{name}"),
        None => name,
    }
}

/// Returns the kind and the name of `object`, such as `Pod shop/web`.
pub fn kind_and_name(object: &Value) -> String {
    format!("{} {}", at(object, &["kind"]).as_str().unwrap_or_default(), object_name(object))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pod_spec_is_found_for_each_kind() {
        let pod = json!({"kind": "Pod", "spec": {}});
        assert_eq!(pod_spec(&pod), Some("/spec"));
        let job = json!({"kind": "Job", "spec": {"template": {"spec": {}}}});
        assert_eq!(pod_spec(&job), Some("/spec/template/spec"));
        assert_eq!(pod_spec(&json!({"kind": "Job", "spec": {}})), None);
        assert_eq!(pod_spec(&json!({"kind": "ConfigMap"})), None);
    }

    #[test]
    fn members_and_items_are_removed_by_pointer() {
        let mut object = json!({"a": {"b/c": 1}, "l": [1, 2]});
        assert!(remove(&mut object, "/a/b~1c"));
        assert!(remove(&mut object, "/l/0"));
        assert!(!remove(&mut object, "/l/7"));
        assert!(!remove(&mut object, ""));
        assert_eq!(object, json!({"a": {}, "l": [2]}));
    }
}
