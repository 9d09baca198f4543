//! Maps the kinds and resources of a case to paths.

use http::Method;
use serde_json::{Map, Value, json};

use crate::case::{PatchFormat, Request, Verb};
use crate::names::{CASE_LABEL, Names};
use crate::transport::Message;

/// The cluster-scoped resources other than namespaces.
const CLUSTER_SCOPED: [&str; 17] = [
    "namespaces",
    "nodes",
    "persistentvolumes",
    "customresourcedefinitions",
    "mutatingwebhookconfigurations",
    "validatingwebhookconfigurations",
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
    "mutatingadmissionpolicies",
    "mutatingadmissionpolicybindings",
    "clusterroles",
    "clusterrolebindings",
    "priorityclasses",
    "subjectaccessreviews",
    "storageclasses",
    "ingressclasses",
    "runtimeclasses",
];

/// The resources whose objects may omit `apiVersion` and `kind` in a case, each with its kind.
const SHORT: [(&str, &str); 4] =
    [("configmaps", "ConfigMap"), ("secrets", "Secret"), ("pods", "Pod"), ("namespaces", "Namespace")];

/// Returns the path for creating an object of `cluster`, and the object with the label of the case.
pub fn placed(object: &Value, cluster: &[Value], names: &Names) -> (String, Value) {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("/apiVersion"), text("/kind"));
    let definition = cluster.iter().find(|it| {
        it["kind"] == "CustomResourceDefinition"
            && it.pointer("/spec/names/kind").and_then(Value::as_str) == Some(kind)
            && it.pointer("/spec/group").and_then(Value::as_str) == api_version.split('/').next()
    });
    let (resource, is_cluster_scoped) = if let Some(definition) = definition {
        let plural = definition["spec"]["names"]["plural"].as_str().unwrap_or_default();
        (plural.to_owned(), definition["spec"]["scope"] == "Cluster")
    } else {
        let resource = plural(kind);
        let is_cluster_scoped = CLUSTER_SCOPED.contains(&resource.as_str());
        (resource, is_cluster_scoped)
    };
    let mut object = object.clone();
    if kind == "Namespace" {
        let labels = member(member(&mut object, "metadata"), "labels");
        if labels.get(CASE_LABEL).is_none() {
            labels[CASE_LABEL] = json!(names.id());
        }
    }
    let root = root(api_version);
    let path = if is_cluster_scoped {
        format!("{root}/{resource}")
    } else {
        let namespace = match object.pointer("/metadata/namespace").and_then(Value::as_str) {
            Some(namespace) => namespace.to_owned(),
            None => names.namespace(),
        };
        format!("{root}/namespaces/{namespace}/{resource}")
    };
    (path, object)
}

/// Converts a request of a case to the message to send.
pub fn message(request: &Request, names: &Names) -> Message {
    let (api_version, resource) = match request.resource.rsplit_once('/') {
        Some((api_version, resource)) => (api_version, resource),
        None => ("v1", request.resource.as_str()),
    };
    let namespace = match &request.namespace {
        Some(namespace) => namespace.clone(),
        None if CLUSTER_SCOPED.contains(&resource) => String::new(),
        None => names.namespace(),
    };
    let mut uri = root(api_version);
    if !namespace.is_empty() {
        uri.push_str("/namespaces/");
        uri.push_str(&namespace);
    }
    uri.push('/');
    uri.push_str(resource);
    let is_collection = match request.verb {
        Verb::Create => request.subresource.is_empty(),
        Verb::DeleteCollection | Verb::Watch => true,
        Verb::Get | Verb::Update | Verb::Patch | Verb::Delete | Verb::Connect => request.name.is_empty(),
    };
    if !is_collection {
        uri.push('/');
        uri.push_str(&request.name);
    }
    if !request.subresource.is_empty() {
        uri.push('/');
        uri.push_str(&request.subresource);
    }
    let mut query: Vec<String> = request.query.iter().map(|(key, value)| format!("{key}={value}")).collect();
    if request.dry_run {
        query.push("dryRun=All".to_owned());
    }
    if !query.is_empty() {
        uri.push('?');
        uri.push_str(&query.join("&"));
    }
    if !request.path.is_empty() {
        uri.clone_from(&request.path);
    }
    Message {
        method: match request.verb {
            Verb::Create | Verb::Connect => Method::POST,
            Verb::Get | Verb::Watch => Method::GET,
            Verb::Update => Method::PUT,
            Verb::Patch => Method::PATCH,
            Verb::Delete | Verb::DeleteCollection => Method::DELETE,
        },
        uri,
        content_type: match request.patch {
            None => "application/json",
            Some(PatchFormat::Json) => "application/json-patch+json",
            Some(PatchFormat::Merge) => "application/merge-patch+json",
            Some(PatchFormat::Strategic) => "application/strategic-merge-patch+json",
            Some(PatchFormat::Apply) => "application/apply-patch+yaml",
        },
        body: if request.path.is_empty() { body(request, resource) } else { None },
        text: request.text.clone(),
        headers: impersonation(request).into_iter().chain(request.headers.clone()).collect(),
    }
}

/// Returns the request body, after adding the fields that a case may omit.
fn body(request: &Request, resource: &str) -> Option<Value> {
    let is_object = matches!(request.verb, Verb::Create | Verb::Update) && request.subresource.is_empty();
    if !is_object {
        return request.body.clone();
    }
    let mut body = request.body.clone().unwrap_or_else(|| Value::Object(Map::new()));
    if let Some((_, kind)) = SHORT.iter().find(|(known, _)| *known == resource)
        && request.resource == resource
        && body.is_object()
        && body.get("kind").is_none()
    {
        body["apiVersion"] = json!("v1");
        body["kind"] = json!(kind);
    }
    if !request.name.is_empty() && body.is_object() {
        let metadata = member(&mut body, "metadata");
        if metadata.get("name").is_none() && metadata.get("generateName").is_none() {
            metadata["name"] = json!(request.name);
        }
    }
    Some(body)
}

fn impersonation(request: &Request) -> Vec<(String, String)> {
    let Some(user) = &request.user else { return Vec::new() };
    let mut headers = vec![("Impersonate-User".to_owned(), user.name.clone())];
    if user.groups.is_empty() && request.by.is_none() {
        headers.push(("Impersonate-Group".to_owned(), "system:masters".to_owned()));
    }
    headers.extend(user.groups.iter().map(|group| ("Impersonate-Group".to_owned(), group.clone())));
    if !user.uid.is_empty() {
        headers.push(("Impersonate-Uid".to_owned(), user.uid.clone()));
    }
    headers.extend(user.extra.iter().map(|(key, value)| (format!("Impersonate-Extra-{key}"), value.clone())));
    headers
}

/// Returns a resource, such as `example.com/v1/widgets`, in each version that its definition serves.
///
/// Returns only the resource itself if no definition in `cluster` defines it.
pub(crate) fn in_all_versions(resource: &str, cluster: &[Value]) -> Vec<String> {
    let parts: Vec<&str> = resource.split('/').collect();
    let [group, _, plural] = parts[..] else { return vec![resource.to_owned()] };
    let definition = cluster.iter().find(|object| {
        object["kind"] == "CustomResourceDefinition"
            && object["spec"]["group"] == group
            && object["spec"]["names"]["plural"] == plural
    });
    let Some(definition) = definition else { return vec![resource.to_owned()] };
    let versions = definition["spec"]["versions"].as_array().into_iter().flatten();
    let served = versions.filter(|version| version["served"] == true).filter_map(|it| it["name"].as_str());
    served.map(|version| format!("{group}/{version}/{plural}")).collect()
}

/// Returns the member `key` for modification, after creating an object if it is missing.
pub(crate) fn member<'a>(value: &'a mut Value, key: &str) -> &'a mut Value {
    if !value.get(key).is_some_and(Value::is_object) {
        value[key] = json!({});
    }
    &mut value[key]
}

fn root(api_version: &str) -> String {
    if api_version.contains('/') { format!("/apis/{api_version}") } else { format!("/api/{api_version}") }
}

fn plural(kind: &str) -> String {
    let kind = kind.to_lowercase();
    match kind.strip_suffix('y') {
        Some(stem) if kind.ends_with("cy") || kind.ends_with("ty") => format!("{stem}ies"),
        _ if kind.ends_with('s') => format!("{kind}es"),
        _ => format!("{kind}s"),
    }
}

/// Returns the verb, resource, subresource, and name of a request, such as `create pods`.
pub(crate) fn title(request: &Request) -> String {
    let verb = match request.verb {
        Verb::Create => "create",
        Verb::Get => "get",
        Verb::Update => "update",
        Verb::Patch => "patch",
        Verb::Delete => "delete",
        Verb::DeleteCollection => "deletecollection",
        Verb::Connect => "connect",
        Verb::Watch => "watch",
    };
    let what = if request.path.is_empty() { &request.resource } else { &request.path };
    let mut title = format!("{verb} {what}");
    for part in [&request.subresource, &request.name] {
        if !part.is_empty() {
            title.push(' ');
            title.push_str(part);
        }
    }
    title
}
