//! Computes the table rows of namespaces, nodes, configuration, RBAC, and other cluster resources.
//!
//! Source: kubernetes pkg/printers/internalversion/printers.go.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use jiff::SignedDuration;
use kubernetes_admission::attributes::GroupVersionKind;
use kubernetes_types::json::{at, text};
use serde_json::{Value, json};

use crate::kinds::common::age;
use crate::kinds::common::cells::{
    Context, age_of, amount, condition, count, created, is_true, items, joined, labels, name, number,
    present_or, row, text_or,
};
use crate::kinds::conversion::{Strategy, convert};
use crate::kinds::tables::COLUMNS;

fn described(kind: &str, index: usize) -> Value {
    let columns = COLUMNS.get(kind).and_then(|columns| columns.get(index));
    columns.map_or(Value::Null, |column| at(column, &["description"]).clone())
}

fn column(name: &str, kind: &str, description: impl Into<Value>, priority: i64) -> Value {
    let format = if name == "Name" { "name" } else { "" };
    json!({"name": name, "type": kind, "format": format, "description": description.into(), "priority": priority})
}

/// The columns of API services.
///
/// Source: kube-aggregator pkg/registry/apiservice/etcd/etcd.go, `ConvertToTable`.
pub(crate) static API_SERVICE_COLUMNS: LazyLock<Value> = LazyLock::new(|| {
    let service = "The reference to the service that hosts this API endpoint.";
    Value::from(vec![
        column("Name", "string", described("default", 0), 0),
        column("Service", "string", service, 0),
        column("Available", "string", "Whether this service is available.", 0),
        column("Age", "string", described("default", 1), 0),
    ])
});

/// The columns of custom resource definitions.
///
/// Source: apiextensions-apiserver pkg/registry/customresourcedefinition/tableconvertor/tableconvertor.go.
pub(crate) static DEFINITION_COLUMNS: LazyLock<Value> = LazyLock::new(|| {
    Value::from(vec![
        column("Name", "string", described("default", 0), 0),
        column("Scope", "string", "Cluster/Namespaced", 0),
        column("Versions", "string", "Served versions", 0),
        column("Created At", "date", described("default", 1), 0),
        column("Group", "string", "API group", 1),
        column("Kind", "string", "CustomResource kind", 1),
        column("ShortNames", "string", "Short names", 1),
        column("Established", "boolean", "Established status", 1),
    ])
});

/// Returns the status of a condition; `None` if the condition does not exist.
fn status_of<'a>(object: &'a Value, kind: &str) -> Option<&'a str> {
    condition(items(object, &["status", "conditions"]), kind).map(|condition| text(condition, &["status"]))
}

pub(crate) fn api_service(object: &Value, context: &Context<'_>) -> Vec<Value> {
    let service = at(object, &["spec", "service"]);
    let service = if service.is_null() {
        "Local".to_owned()
    } else {
        format!("{}/{}", text(service, &["namespace"]), text(service, &["name"]))
    };
    let available = condition(items(object, &["status", "conditions"]), "Available");
    let available = available.map_or_else(
        || "Unknown".to_owned(),
        |condition| match (text(condition, &["status"]), text(condition, &["reason"])) {
            (status, reason) if status == "True" || reason.is_empty() => status.to_owned(),
            (status, reason) => format!("{status} ({reason})"),
        },
    );
    row![name(object), service, available, age_of(object, context)]
}

pub(crate) fn definition(object: &Value, _: &Context<'_>) -> Vec<Value> {
    let served = items(object, &["spec", "versions"]).iter().filter(|version| is_true(version, &["served"]));
    let label = |version: &Value| {
        let storage = if is_true(version, &["storage"]) { "(storage)" } else { "" };
        format!("{}{storage}", text(version, &["name"]))
    };
    let mut versions: Vec<String> = served.map(label).collect();
    versions.sort_unstable();
    row![
        name(object),
        text(object, &["spec", "scope"]),
        versions.join(","),
        created(object),
        text(object, &["spec", "group"]),
        text(object, &["spec", "names", "kind"]),
        joined(items(object, &["spec", "names", "shortNames"]), &[]),
        status_of(object, "Established") == Some("True"),
    ]
}

pub(crate) fn namespace(object: &Value, context: &Context<'_>) -> Vec<Value> {
    row![name(object), text(object, &["status", "phase"]), age_of(object, context)]
}

pub(crate) fn node(object: &Value, context: &Context<'_>) -> Vec<Value> {
    // The last condition of a type wins.
    let conditions = items(object, &["status", "conditions"]).iter().rev();
    let mut ready = conditions.filter(|condition| text(condition, &["type"]) == "Ready");
    let status = match ready.next().map(|condition| text(condition, &["status"])) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    };
    let disabled = if is_true(object, &["spec", "unschedulable"]) { ",SchedulingDisabled" } else { "" };
    let roles: BTreeSet<&str> = at(object, &["metadata", "labels"])
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| match key.strip_prefix("node-role.kubernetes.io/") {
            None if key == "kubernetes.io/role" => value.as_str(),
            role => role,
        })
        .filter(|role| !role.is_empty())
        .collect();
    let roles = roles.into_iter().collect::<Vec<_>>().join(",");
    let addresses = items(object, &["status", "addresses"]);
    let address = |kind| condition(addresses, kind).map_or("<none>", |address| text(address, &["address"]));
    let info = at(object, &["status", "nodeInfo"]);
    let known = |field| text_or(info, &[field], "<unknown>");
    let architecture = match text(info, &["architecture"]) {
        "" => String::new(),
        architecture => format!(" ({architecture})"),
    };
    row![
        name(object),
        format!("{status}{disabled}"),
        if roles.is_empty() { "<none>".to_owned() } else { roles },
        age_of(object, context),
        text(info, &["kubeletVersion"]),
        address("InternalIP"),
        address("ExternalIP"),
        known("osImage"),
        format!("{}{architecture}", known("kernelVersion")),
        known("containerRuntimeVersion"),
    ]
}

pub(crate) fn config_map(object: &Value, context: &Context<'_>) -> Vec<Value> {
    let entries = count(at(object, &["data"])) + count(at(object, &["binaryData"]));
    row![name(object), entries, age_of(object, context)]
}

pub(crate) fn secret(object: &Value, context: &Context<'_>) -> Vec<Value> {
    row![name(object), text(object, &["type"]), count(at(object, &["data"])), age_of(object, context)]
}

pub(crate) fn name_and_age(object: &Value, context: &Context<'_>) -> Vec<Value> {
    row![name(object), age_of(object, context)]
}

pub(crate) fn event(object: &Value, context: &Context<'_>) -> Vec<Value> {
    let version = GroupVersionKind::new("", "v1", "Event");
    let converted;
    let object = if text(object, &["apiVersion"]) == "events.k8s.io/v1" {
        converted = convert(object, &version, Strategy::Scheme).unwrap_or_default();
        &converted
    } else {
        object
    };
    let since = |path: &[&str]| age::since(context.now, at(object, path));
    let is_missing = |field| at(object, &[field]).is_null();
    let first = if is_missing("firstTimestamp") { since(&["eventTime"]) } else { since(&["firstTimestamp"]) };
    let mut last = if is_missing("lastTimestamp") { first.clone() } else { since(&["lastTimestamp"]) };
    let mut count = number(object, &["count"]);
    if !is_missing("series") {
        last = since(&["series", "lastObservedTime"]);
        count = number(object, &["series", "count"]);
    } else if count == 0 {
        count = 1;
    }
    let involved = |field| text(object, &["involvedObject", field]);
    let kind = involved("kind").to_lowercase();
    let target = if involved("name").is_empty() { kind } else { format!("{kind}/{}", involved("name")) };
    let component = text_or(object, &["source", "component"], text(object, &["reportingComponent"]));
    let source = match text_or(object, &["source", "host"], text(object, &["reportingInstance"])) {
        "" => component.to_owned(),
        instance => format!("{component}, {instance}"),
    };
    row![
        last,
        text(object, &["type"]),
        text(object, &["reason"]),
        target,
        involved("fieldPath"),
        source,
        text(object, &["message"]).trim(),
        first,
        count,
        name(object),
    ]
}

pub(crate) fn binding(object: &Value, context: &Context<'_>) -> Vec<Value> {
    let subjects = |kind: &str| {
        let subjects = items(object, &["subjects"]).iter();
        let names = subjects.filter(|subject| text(subject, &["kind"]) == kind).map(|subject| match kind {
            "ServiceAccount" => format!("{}/{}", text(subject, &["namespace"]), text(subject, &["name"])),
            _ => text(subject, &["name"]).to_owned(),
        });
        names.collect::<Vec<_>>().join(", ")
    };
    let role = at(object, &["roleRef"]);
    row![
        name(object),
        format!("{}/{}", text(role, &["kind"]), text(role, &["name"])),
        age_of(object, context),
        subjects("User"),
        subjects("Group"),
        subjects("ServiceAccount"),
    ]
}

pub(crate) fn signing_request(object: &Value, context: &Context<'_>) -> Vec<Value> {
    let has = |kind| condition(items(object, &["status", "conditions"]), kind).is_some();
    let mut status = match (has("Denied"), has("Approved")) {
        (true, _) => "Denied",
        (false, true) => "Approved",
        (false, false) => "Pending",
    }
    .to_owned();
    if has("Failed") {
        status.push_str(",Failed");
    }
    if !text(object, &["status", "certificate"]).is_empty() {
        status.push_str(",Issued");
    }
    let duration = at(object, &["spec", "expirationSeconds"]).as_i64();
    let duration = duration.map(|seconds| age::human(SignedDuration::from_secs(seconds)));
    row![
        name(object),
        age_of(object, context),
        text_or(object, &["spec", "signerName"], "<none>"),
        text(object, &["spec", "username"]),
        duration.unwrap_or_else(|| "<none>".to_owned()),
        status,
    ]
}

pub(crate) fn trust_bundle(object: &Value, _: &Context<'_>) -> Vec<Value> {
    row![name(object), text_or(object, &["spec", "signerName"], "<none>")]
}

pub(crate) fn pod_certificate_request(object: &Value, _: &Context<'_>) -> Vec<Value> {
    let conditions = items(object, &["status", "conditions"]).iter().rev();
    let mut kinds = conditions.map(|condition| text(condition, &["type"]));
    let state = kinds.find(|kind| ["Issued", "Denied", "Failed"].contains(kind));
    row![
        name(object),
        text(object, &["spec", "podName"]),
        text(object, &["spec", "serviceAccountName"]),
        text(object, &["spec", "nodeName"]),
        text(object, &["spec", "signerName"]),
        state.unwrap_or("Pending"),
        labels(at(object, &["spec", "unverifiedUserAnnotations"])),
    ]
}

pub(crate) fn component_status(object: &Value, _: &Context<'_>) -> Vec<Value> {
    let healthy = condition(items(object, &["conditions"]), "Healthy").unwrap_or(&Value::Null);
    let status = match at(healthy, &["status"]).as_str() {
        Some("True") => "Healthy",
        Some(_) => "Unhealthy",
        None => "Unknown",
    };
    row![name(object), status, text(healthy, &["message"]), text(healthy, &["error"])]
}

pub(crate) fn webhooks(object: &Value, context: &Context<'_>) -> Vec<Value> {
    row![name(object), items(object, &["webhooks"]).len(), age_of(object, context)]
}

pub(crate) fn validating_policy(object: &Value, context: &Context<'_>) -> Vec<Value> {
    policy(object, context, "validations")
}

pub(crate) fn mutating_policy(object: &Value, context: &Context<'_>) -> Vec<Value> {
    policy(object, context, "mutations")
}

pub(crate) fn policy(object: &Value, context: &Context<'_>, rules: &str) -> Vec<Value> {
    let kind = at(object, &["spec", "paramKind"]);
    let kind = if kind.is_null() {
        "<unset>".to_owned()
    } else {
        format!("{}/{}", text(kind, &["apiVersion"]), text(kind, &["kind"]))
    };
    row![name(object), items(object, &["spec", rules]).len(), kind, age_of(object, context)]
}

pub(crate) fn policy_binding(object: &Value, context: &Context<'_>) -> Vec<Value> {
    let reference = at(object, &["spec", "paramRef"]);
    let selector = at(reference, &["selector"]);
    let parameter = match (text(reference, &["name"]), text(reference, &["namespace"])) {
        ("", _) if selector.is_null() => "<unset>".to_owned(),
        ("", _) => go_selector(selector),
        (name, "") => format!("*/{name}"),
        (name, namespace) => format!("{namespace}/{name}"),
    };
    row![name(object), text(object, &["spec", "policyName"]), parameter, age_of(object, context)]
}

/// Formats a `LabelSelector` as Go's verb `%v` does.
///
/// Source: apimachinery pkg/apis/meta/v1/generated.pb.go, `String`.
fn go_selector(selector: &Value) -> String {
    let labels = at(selector, &["matchLabels"]).as_object().into_iter().flatten();
    let labels: Vec<String> =
        labels.map(|(key, value)| format!("{key}: {},", value.as_str().unwrap_or_default())).collect();
    let labels = labels.concat();
    let expression = |it: &Value| {
        let values = items(it, &["values"]).iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ");
        let (key, operator) = (text(it, &["key"]), text(it, &["operator"]));
        format!("LabelSelectorRequirement{{Key:{key},Operator:{operator},Values:[{values}],}},")
    };
    let expressions: String = items(selector, &["matchExpressions"]).iter().map(expression).collect();
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{labels}}},\
         MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )
}

pub(crate) fn lease(object: &Value, context: &Context<'_>) -> Vec<Value> {
    row![name(object), text(object, &["spec", "holderIdentity"]), age_of(object, context)]
}

pub(crate) fn quota(object: &Value, context: &Context<'_>) -> Vec<Value> {
    let (mut requests, mut limits) = (Vec::new(), Vec::new());
    for (resource, hard) in at(object, &["status", "hard"]).as_object().into_iter().flatten() {
        let used = amount(at(object, &["status", "used", resource]));
        let list = if resource.starts_with("limits.") { &mut limits } else { &mut requests };
        list.push(format!("{resource}: {used}/{}", amount(hard)));
    }
    row![name(object), requests.join(", "), limits.join(", "), age_of(object, context)]
}

pub(crate) fn priority_class(object: &Value, context: &Context<'_>) -> Vec<Value> {
    row![
        name(object),
        number(object, &["value"]),
        is_true(object, &["globalDefault"]),
        age_of(object, context),
        text(object, &["preemptionPolicy"]),
    ]
}

pub(crate) fn runtime_class(object: &Value, context: &Context<'_>) -> Vec<Value> {
    row![name(object), text(object, &["handler"]), age_of(object, context)]
}

pub(crate) fn flow_schema(object: &Value, context: &Context<'_>) -> Vec<Value> {
    row![
        name(object),
        text(object, &["spec", "priorityLevelConfiguration", "name"]),
        number(object, &["spec", "matchingPrecedence"]),
        present_or(object, &["spec", "distinguisherMethod", "type"], "<none>"),
        age_of(object, context),
        status_of(object, "Dangling").unwrap_or("?"),
    ]
}

pub(crate) fn priority_level(object: &Value, context: &Context<'_>) -> Vec<Value> {
    let limited = at(object, &["spec", "limited"]);
    let queuing = at(limited, &["limitResponse", "queuing"]);
    let number = |parent: &Value, field| {
        if parent.is_null() { Value::from("<none>") } else { number(parent, &[field]).into() }
    };
    row![
        name(object),
        text(object, &["spec", "type"]),
        number(limited, "nominalConcurrencyShares"),
        number(queuing, "queues"),
        number(queuing, "handSize"),
        number(queuing, "queueLengthLimit"),
        age_of(object, context),
    ]
}

pub(crate) fn resource_claim(object: &Value, context: &Context<'_>) -> Vec<Value> {
    let is_deleted = !at(object, &["metadata", "deletionTimestamp"]).is_null();
    let is_allocated = !at(object, &["status", "allocation"]).is_null();
    let is_reserved = is_allocated && !items(object, &["status", "reservedFor"]).is_empty();
    let states = [
        (is_deleted, "deleted"),
        (!is_deleted && !is_allocated, "pending"),
        (is_allocated, "allocated"),
        (is_reserved, "reserved"),
    ];
    let states: Vec<&str> = states.into_iter().filter(|(is, _)| *is).map(|(_, state)| state).collect();
    row![name(object), states.join(","), age_of(object, context)]
}

pub(crate) fn resource_slice(object: &Value, context: &Context<'_>) -> Vec<Value> {
    row![
        name(object),
        text(object, &["spec", "nodeName"]),
        text(object, &["spec", "driver"]),
        text(object, &["spec", "pool", "name"]),
        age_of(object, context),
    ]
}

pub(crate) fn device_taint(object: &Value, context: &Context<'_>) -> Vec<Value> {
    let taint = at(object, &["spec", "taint"]);
    let added = at(taint, &["timeAdded"]);
    row![
        name(object),
        text(taint, &["key"]),
        text(taint, &["value"]),
        text(taint, &["effect"]),
        if added.is_null() { String::new() } else { age::since(context.now, added) },
        age_of(object, context),
    ]
}

pub(crate) fn migration(object: &Value, _: &Context<'_>) -> Vec<Value> {
    let resource = at(object, &["spec", "resource"]);
    let dot = if text(resource, &["group"]).is_empty() { "" } else { "." };
    let conditions = items(object, &["status", "conditions"]).iter().rev();
    let mut kinds = conditions
        .filter(|condition| text(condition, &["status"]) == "True")
        .map(|condition| text(condition, &["type"]));
    let status = kinds.find(|kind| ["Running", "Failed", "Succeeded"].contains(kind));
    row![
        name(object),
        format!("{}{dot}{}", text(resource, &["resource"]), text(resource, &["group"])),
        status.unwrap_or("Unknown"),
    ]
}
