//! V14: a webhook keeps unknown fields.

use std::sync::Arc;

use kubernetes_admission::attributes::GroupVersionKind;
use kubernetes_admission::event::CallResult;
use kubernetes_admission::patch::Patch;
use kubernetes_types::json::at;
use kubernetes_types::schema;
use serde_json::Value;

use crate::check::{Audience, Check, Observed, Probe, Repeatability, Severity, Skipped, Violation};
use crate::comparison::{self, Difference};
use crate::environment::{Outcome, Verdict};
use crate::object_probe::ObjectProbe;
use crate::rejection;

/// The name of a field that does not exist in any version of any kind.
const UNKNOWN: &str = "admitUnknownField";

pub(super) const CHECK: Check = Check {
    id: "V14",
    title: "unknown fields: fields that the webhook does not know are kept and do not cause a denial",
    severity: Severity::Error,
    why: "A webhook that decodes the object into its own types, changes them, and returns the difference \
          deletes every field that its client library does not know. Examples are restartPolicy of \
          sidecars, new volume types, and fields of custom resources. It works until the cluster is \
          upgraded. Denying objects with unknown fields is the same mistake in reverse.",
    help: "Decode the object to read it, but write the patch operations yourself, and do not decode strictly. In Go: \
           `admission.Patched(\"\", jsonpatch.NewOperation(\"add\", path, value))` instead of \
           `PatchResponseFromRaw`.",
    source: "Admission Webhook Good Practices, Plan for future updates to fields; kubernetes/website#47465",
    audience: Audience::All,
    repeatability: Repeatability::Same,
    probe: Probe::Object(|object_probe| Box::pin(run(object_probe))),
};

async fn run(object_probe: &ObjectProbe<'_>) -> Observed {
    let first = object_probe.admitted(&object_probe.alone(), object_probe.request).await?;
    let mut object = object_probe.object().clone();
    match object_probe.environment.cluster_fixture.schema_of(&object_probe.request.kind) {
        Some(schema) => plant_by(&schema, &mut object),
        None if plant(&mut object, &object_probe.request.kind) => {}
        None => {
            return Err(Skipped::not_checked(
                "the fields of the kind are unknown: add its CustomResourceDefinition with -c",
            ));
        }
    }
    let outcome =
        object_probe.outcome(&object_probe.alone(), &object_probe.with_object(object.clone())).await;
    let steps = [Arc::clone(&outcome)];
    match outcome.verdict() {
        Verdict::Admitted => {}
        Verdict::Denied(status) => {
            let message =
                format!("the webhook denies an object only because of unknown fields: {}", status.message);
            return Ok(vec![
                Violation::new("denies unknown fields", message).with_sent(Some(object)).with_steps(steps),
            ]);
        }
        Verdict::Failed(reason) => {
            let message = format!("the webhook fails only because of unknown fields: {reason}");
            return Ok(vec![
                Violation::new("fails on unknown fields", message).with_sent(Some(object)).with_steps(steps),
            ]);
        }
        Verdict::NoConditions(_) => return Err(Skipped::no_conditions()),
        // Without unknown fields, the API server accepts the webhook's result.
        Verdict::ServerError(status) => {
            let meaning = "without the unknown fields, it accepts the result";
            let message = rejection::message("the webhook's result", &status.message, meaning);
            return Ok(vec![
                Violation::new("breaks on unknown fields", message).with_sent(Some(object)).with_steps(steps),
            ]);
        }
        Verdict::Unsupported(what) => return Err(Skipped::not_checked(what)),
    }
    let (what, known) = ("an object with unknown fields", std::slice::from_ref(&first));
    if let Some(rejected) = rejection::rejection(object_probe.environment, what, &outcome, known) {
        return Ok(vec![rejected.with_sent(Some(object))]);
    }
    let mut lost = Vec::new();
    if let Some(found) = patched(&outcome, &object)? {
        missing(&object, &found, "", &mut lost);
    }
    if lost.is_empty() {
        return Ok(Vec::new());
    }
    let message = format!("the webhook removes fields that it does not know: {}", super::fields(&lost));
    let violation = Violation::new("drops unknown fields", message).with_differences(lost);
    Ok(vec![violation.with_sent(Some(object)).with_steps(steps)])
}

/// Returns the object after the webhook's patch only, because the server itself would drop unknown fields.
fn patched(outcome: &Outcome, object: &Value) -> Result<Option<Value>, Skipped> {
    let operations = outcome.calls().find_map(|called| {
        if let CallResult::Allowed { patch: Some(operations), .. } = &called.result {
            Some(operations.to_vec())
        } else {
            None
        }
    });
    let Some(operations) = operations else { return Ok(None) };
    let patch = Patch::decode(Value::from(operations).to_string().as_bytes());
    let patch = patch.map_err(|error| Skipped::not_checked(error.to_string()))?;
    patch.apply(object).map(Some).map_err(|error| Skipped::not_checked(error.to_string()))
}

/// Adds an unknown field to every struct of a built-in `kind`, and returns whether `kind` has a known schema.
fn plant(object: &mut Value, kind: &GroupVersionKind) -> bool {
    schema::for_each_struct(object, kind, &mut |members| {
        members.insert(UNKNOWN.to_owned(), "kept".into());
    })
}

/// Adds an unknown field to every struct of a custom resource, that is, wherever its schema has properties.
///
/// Maps and values without a schema do not have fields.
fn plant_by(schema: &Value, object: &mut Value) {
    let Some(members) = object.as_object_mut() else { return };
    for (name, member) in members {
        match name.as_str() {
            // The server defines these fields, regardless of the schema.
            "apiVersion" | "kind" | "metadata" => {}
            _ => plant_below(at(schema, &["properties", name]), member),
        }
    }
}

fn plant_below(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (name, member) in members.iter_mut() {
                let below = schema["properties"].get(name).unwrap_or(&schema["additionalProperties"]);
                plant_below(below, member);
            }
            if schema.get("properties").is_some() {
                members.insert(UNKNOWN.to_owned(), "kept".into());
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| plant_below(&schema["items"], item)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Finds the structs of `before` that `after` still contains, but without their unknown field.
fn missing(before: &Value, after: &Value, path: &str, lost: &mut Vec<Difference>) {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            for (name, before) in before {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                match after.get(name) {
                    Some(after) => missing(before, after, &path, lost),
                    None if name == UNKNOWN => {
                        lost.push(Difference { path, expected: Some(before.clone()), found: None });
                    }
                    None => {}
                }
            }
        }
        (Value::Array(before), Value::Array(after)) => {
            for (index, item) in before.iter().enumerate() {
                let key = comparison::key(item);
                let counterpart = match &key {
                    Some(_) => after.iter().find(|other| comparison::key(other) == key),
                    None => after.get(index),
                };
                if let Some(counterpart) = counterpart {
                    let key = key.unwrap_or_else(|| index.to_string());
                    missing(item, counterpart, &format!("{path}[{key}]"), lost);
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check_planted(object: &Value, expected: &Value) {
        let mut planted = object.clone();
        assert!(plant(&mut planted, &GroupVersionKind::from_object(object)));
        assert_eq!(planted, *expected);
    }

    #[test]
    fn unknown_fields_are_added_to_structs_and_not_to_maps() {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"a": "b"}},
            "spec": {"nodeSelector": {}, "containers": [{"name": "app", "resources": {"limits": {"cpu": "1"}}}]},
        });
        let expected = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"a": "b"}}, UNKNOWN: "kept",
            "spec": {"nodeSelector": {}, UNKNOWN: "kept", "containers": [{
                "name": "app", UNKNOWN: "kept", "resources": {UNKNOWN: "kept", "limits": {"cpu": "1"}},
            }]},
        });
        check_planted(&pod, &expected);
    }

    #[test]
    fn schema_properties_are_treated_as_a_map() {
        let definition = |schema: Value| {
            json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "spec": {"versions": [{"schema": {"openAPIV3Schema": schema}}]}})
        };
        let given = definition(json!({
            "properties": {"a": {"default": {"b": {}}}, "c": {"items": {}}, "d": {"additionalProperties": true}},
        }));
        let mut expected = definition(json!({UNKNOWN: "kept", "properties": {
            "a": {UNKNOWN: "kept", "default": {"b": {}}},
            "c": {UNKNOWN: "kept", "items": {UNKNOWN: "kept"}},
            "d": {UNKNOWN: "kept", "additionalProperties": true},
        }}));
        for place in ["", "/spec", "/spec/versions/0", "/spec/versions/0/schema"] {
            expected.pointer_mut(place).expect("it is there")[UNKNOWN] = "kept".into();
        }
        check_planted(&given, &expected);
    }

    #[test]
    fn unknown_kind_gets_no_fields() {
        let kind = GroupVersionKind::from_object(&json!({"apiVersion": "example.com/v1", "kind": "Unknown"}));
        let mut object = json!({"spec": {}});
        assert!(!plant(&mut object, &kind));
        assert_eq!(object, json!({"spec": {}}));
    }

    #[test]
    fn fields_of_a_removed_struct_are_not_counted() {
        let before = json!({"spec": {UNKNOWN: 1, "containers": [{"name": "a", UNKNOWN: 1}, {"name": "b", UNKNOWN: 1}]}});
        let after = json!({"spec": {UNKNOWN: 1, "containers": [{"name": "b"}]}});
        let mut lost = Vec::new();
        missing(&before, &after, "", &mut lost);
        let paths: Vec<&str> = lost.iter().map(|difference| difference.path.as_str()).collect();
        assert_eq!(paths, ["spec.containers[b].admitUnknownField"]);
    }

    #[test]
    fn maps_of_a_custom_resource_get_no_fields() {
        let struct_of = |properties: Value| json!({"type": "object", "properties": properties});
        let text = json!({"type": "string"});
        let map = json!({"type": "object", "additionalProperties": struct_of(json!({"a": text}))});
        let free = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let list = json!({"type": "array", "items": struct_of(json!({"b": text}))});
        let spec = struct_of(json!({"map": map, "free": free, "list": list}));
        let schema = struct_of(json!({"spec": spec}));
        let mut object = json!({"apiVersion": "e/v1", "kind": "K", "metadata": {"labels": {}},
            "spec": {"map": {"x": {}}, "free": {}, "list": [{}]}});
        plant_by(&schema, &mut object);
        let kept = json!({UNKNOWN: "kept"});
        let expected = json!({"map": {"x": kept}, "free": {}, "list": [kept], UNKNOWN: "kept"});
        assert_eq!(object["spec"], expected);
        assert_eq!(object["metadata"], json!({"labels": {}}));
        assert_eq!(object.get(UNKNOWN), None);
    }
}
