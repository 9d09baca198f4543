//! The defaults that a `LimitRange` sets on the containers of a Pod.

use serde_json::{Map, Value, json};

use kubernetes_types::json::set;

/// Adds missing requests and limits to each container and lists them in an annotation.
///
/// Replaces an existing annotation, so that it lists only the defaults of the last `LimitRange` and mutating round.
///
/// Source: kubernetes plugin/pkg/admission/limitranger/admission.go, `mergePodResourceRequirements`.
pub(super) fn give(limit_range: &Value, pod: &mut Value) {
    let requests = of_containers(limit_range, "defaultRequest");
    let limits = of_containers(limit_range, "default");
    let mut given: Vec<String> = Vec::new();
    for (list, prefix) in [("containers", "container"), ("initContainers", "init container")] {
        let containers = pod.pointer_mut(&format!("/spec/{list}")).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            let name = container.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
            for (field, what, defaults) in [("requests", "request", &requests), ("limits", "limit", &limits)]
            {
                let added = merge(container, field, defaults);
                if !added.is_empty() {
                    given.push(format!("{} {what} for {prefix} {name}", added.join(", ")));
                }
            }
        }
    }
    if !given.is_empty() {
        annotate(pod, &format!("LimitRanger plugin set: {}", given.join("; ")));
    }
}

/// Returns the entries of `field` in all items of type Container; later items take precedence.
fn of_containers(limit_range: &Value, field: &str) -> Map<String, Value> {
    let items = limit_range.pointer("/spec/limits").and_then(Value::as_array);
    items
        .into_iter()
        .flatten()
        .filter(|item| item.get("type").and_then(Value::as_str) == Some("Container"))
        .filter_map(|item| item.get(field).and_then(Value::as_object))
        .flatten()
        .map(|(name, quantity)| (name.clone(), quantity.clone()))
        .collect()
}

/// Adds the missing entries of `resources.<field>` and returns their sorted names.
fn merge(container: &mut Value, field: &str, defaults: &Map<String, Value>) -> Vec<String> {
    let present = container.pointer(&format!("/resources/{field}"));
    let missing: Map<String, Value> = defaults
        .iter()
        .filter(|(name, _)| present.and_then(|list| list.get(name.as_str())).is_none_or(Value::is_null))
        .map(|(name, amount)| (name.clone(), amount.clone()))
        .collect();
    if missing.is_empty() {
        return Vec::new();
    }
    let Some(resources) = member(container, "resources") else { return Vec::new() };
    let names = missing.keys().cloned().collect();
    match resources.get_mut(field).and_then(Value::as_object_mut) {
        Some(list) => list.extend(missing),
        None => {
            set(resources, &[field], missing);
        }
    }
    names
}

fn annotate(pod: &mut Value, text: &str) {
    if let Some(annotations) = member(pod, "metadata").and_then(|metadata| member(metadata, "annotations")) {
        set(annotations, &["kubernetes.io/limit-ranger"], text);
    }
}

/// Returns the object at `object[field]`; creates it if absent. Returns `None` if the value is not an object.
fn member<'a>(object: &'a mut Value, field: &str) -> Option<&'a mut Value> {
    let member = object.as_object_mut()?.entry(field).or_insert(Value::Null);
    if member.is_null() {
        *member = json!({});
    }
    member.is_object().then_some(member)
}
