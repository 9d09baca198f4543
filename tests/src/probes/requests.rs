//! Reconstructs the request that a review describes, and the objects that must exist before the request.

use harness::verify::corpus;
use http::Method;
use serde_json::{Value, json};

use crate::transport::Message;

/// The fields that the server sets on stored objects.
const CHOSEN: [&str; 6] = [
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "generation",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
];

/// A namespace that replaces the namespace of the corpus, so that reviews do not conflict.
pub(super) struct ProbeNamespace {
    pub(super) namespace: String,
}

impl ProbeNamespace {
    /// Returns the request after moving it to this namespace.
    pub(super) fn moved_in(&self, request: &Value) -> Value {
        moved(request, corpus::NAMESPACE, &self.namespace)
    }

    /// Returns the request after moving it back to the namespace of the corpus.
    pub(super) fn moved_back(&self, request: &Value) -> Value {
        moved(request, &self.namespace, corpus::NAMESPACE)
    }
}

/// The JSON pointers to the namespace in a request.
const NAMESPACES: [&str; 7] = [
    "/namespace",
    "/object/metadata/namespace",
    "/oldObject/metadata/namespace",
    "/object/involvedObject/namespace",
    "/oldObject/involvedObject/namespace",
    "/object/regarding/namespace",
    "/oldObject/regarding/namespace",
];

fn moved(request: &Value, from: &str, to: &str) -> Value {
    let mut request = request.clone();
    for pointer in NAMESPACES {
        if let Some(namespace) = request.pointer_mut(pointer)
            && namespace == from
        {
            *namespace = json!(to);
        }
    }
    request
}

/// Returns the request that a review describes; `stored` is the existing object.
pub(super) fn request(review: &Value, stored: Option<&Value>) -> Message {
    let (name, subresource) = (text(review, "/name"), text(review, "/subResource"));
    let mut path = collection(review);
    let operation = text(review, "/operation");
    let is_one = !name.is_empty() && (operation != "CREATE" || !subresource.is_empty());
    if is_one {
        path = format!("{path}/{name}");
    }
    if !subresource.is_empty() {
        path = format!("{path}/{subresource}");
    }
    let mut body = review["object"].clone();
    if operation == "CREATE" {
        take_generated(&mut body);
    }
    if let (Some(stored), "UPDATE") = (stored, operation) {
        let uid = text(stored, "/metadata/uid");
        if let Some(spec) = body.get_mut("spec") {
            rename(spec, text(review, "/oldObject/metadata/uid"), uid);
        }
        for field in ["uid", "resourceVersion", "creationTimestamp"] {
            // A probe changes fields of the object, not those that the server set.
            if body["metadata"][field] == review["oldObject"]["metadata"][field]
                && !body["metadata"][field].is_null()
            {
                body["metadata"][field] = stored["metadata"][field].clone();
            }
        }
    }
    // The server sets the UID precondition itself where it uses one.
    let mut options = review["options"].clone();
    if let Some(members) = options.as_object_mut() {
        members.remove("preconditions");
    }
    let mut query = Vec::new();
    if review["dryRun"] == true {
        query.push("dryRun=All".to_owned());
    }
    let (method, body) = match operation {
        "CREATE" => (Method::POST, Some(body)),
        "UPDATE" => (Method::PUT, Some(body)),
        "DELETE" => {
            if name.is_empty() {
                // Selects only the one object of the collection: others belong to the server.
                let name = text(review, "/oldObject/metadata/name");
                query.push(format!("fieldSelector=metadata.name={name}"));
            }
            (Method::DELETE, Some(options))
        }
        _ => {
            // A proxy request has a longer path.
            path.push_str(text(review, "/object/path"));
            query.extend(parameters(&body));
            (Method::POST, None)
        }
    };
    if !query.is_empty() {
        path = format!("{path}?{}", query.join("&"));
    }
    let mut message = Message::new(method, path, body);
    message.headers = impersonation(&review["userInfo"]);
    message
}

/// Returns the options of a connection as query parameters.
fn parameters(options: &Value) -> Vec<String> {
    let members = options.as_object().into_iter().flatten();
    let options = members.filter(|(key, _)| !["apiVersion", "kind", "path"].contains(&key.as_str()));
    let parameters = options.flat_map(|(key, value)| {
        let values = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
        values.iter().map(move |value| match value.as_str() {
            Some(text) => format!("{key}={text}"),
            None => format!("{key}={value}"),
        })
    });
    parameters.collect()
}

pub(super) fn rename(value: &mut Value, from: &str, to: &str) {
    match value {
        Value::String(text) if text == from => to.clone_into(text),
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, from, to)),
        Value::Object(members) => members.values_mut().for_each(|member| rename(member, from, to)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns the headers that impersonate a user. On this server, every authenticated user is an administrator.
pub(super) fn impersonation(user: &Value) -> Vec<(String, String)> {
    let header = |name: &str, value: &Value| (name.to_owned(), value.as_str().unwrap_or_default().to_owned());
    let mut headers = vec![header("Impersonate-User", &user["username"])];
    if user["uid"].is_string() {
        headers.push(header("Impersonate-Uid", &user["uid"]));
    }
    headers.extend(
        user["groups"].as_array().into_iter().flatten().map(|group| header("Impersonate-Group", group)),
    );
    for (key, values) in user["extra"].as_object().into_iter().flatten() {
        let name = format!("Impersonate-Extra-{}", key.replace('/', "%2F"));
        headers.extend(values.as_array().into_iter().flatten().map(|value| header(&name, value)));
    }
    headers
}

pub(super) fn collection(review: &Value) -> String {
    let resource =
        if review["requestResource"].is_object() { &review["requestResource"] } else { &review["resource"] };
    let (group, version, plural) =
        (text(resource, "/group"), text(resource, "/version"), text(resource, "/resource"));
    let root = if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
    match text(review, "/namespace") {
        namespace if !namespace.is_empty() && plural != "namespaces" => {
            format!("{root}/namespaces/{namespace}/{plural}")
        }
        _ => format!("{root}/{plural}"),
    }
}

/// Returns the object to create before the request: the old object, or the parent of a subresource.
///
/// Returns `None` if the request does not need an object.
pub(super) fn before(review: &Value) -> Option<Value> {
    let mut object = match (&review["oldObject"], text(review, "/subResource")) {
        (Value::Object(_), "scale") => scaled(review),
        (old @ Value::Object(_), _) => old.clone(),
        (_, "") => return None,
        _ => parent(review),
    };
    object["metadata"].as_object_mut()?.retain(|field, _| !CHOSEN.contains(&field.as_str()));
    take_generated(&mut object);
    Some(object)
}

/// Removes the generated fields of a Job, because clients must not set them.
///
/// Source: kubernetes pkg/registry/batch/job/strategy.go, `generateSelector`.
fn take_generated(object: &mut Value) {
    if object["kind"] != "Job" {
        return;
    }
    if let Some(spec) = object["spec"].as_object_mut() {
        spec.remove("selector");
    }
    let labels = object.pointer_mut("/spec/template/metadata/labels").and_then(Value::as_object_mut);
    if let Some(labels) = labels {
        labels.retain(|label, _| !label.ends_with("controller-uid") && !label.ends_with("job-name"));
    }
}

/// Returns the object whose scale is under review.
fn scaled(review: &Value) -> Value {
    let selector = json!({"matchLabels": {"app": "app"}});
    let containers = json!([{"name": "app", "image": "example.com/app:1"}]);
    let template = json!({"metadata": {"labels": {"app": "app"}}, "spec": {"containers": containers}});
    let (api_version, kind) = match text(review, "/resource/resource") {
        "deployments" => ("apps/v1", "Deployment"),
        "replicasets" => ("apps/v1", "ReplicaSet"),
        "statefulsets" => ("apps/v1", "StatefulSet"),
        _ => ("v1", "ReplicationController"),
    };
    let selector = if api_version == "v1" { selector["matchLabels"].clone() } else { selector };
    let replicas = |part: &str| review["oldObject"][part]["replicas"].clone();
    json!({
        "apiVersion": api_version, "kind": kind, "metadata": {"name": review["name"]},
        "spec": {"replicas": replicas("spec"), "selector": selector, "template": template},
        "status": {"replicas": replicas("status")},
    })
}

/// Returns the object that contains the subresource of a CREATE or a CONNECT.
fn parent(review: &Value) -> Value {
    let metadata = json!({"name": review["name"]});
    match text(review, "/resource/resource") {
        "pods" => json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata,
            "spec": {"containers": [{"name": "app", "image": "example.com/app:1"}]}}),
        "services" => {
            json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": [{"port": 80}]}})
        }
        "nodes" => json!({"apiVersion": "v1", "kind": "Node", "metadata": metadata}),
        "serviceaccounts" => json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}),
        _ => Value::Null,
    }
}

pub(super) fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}
