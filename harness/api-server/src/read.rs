//! Reads objects.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use kubernetes_types::selector::{Labels, Selector};
use kubernetes_types::status::{FieldError, Status, Unsupported};
use serde_json::Value;
use tokio::time::timeout;

use super::answer::{Answer, List};
use super::discovery::Resource;
use super::options::{not_an_integer, truth};
use super::query::Query;
use super::request::ObjectRequest;
use super::state::State;
use super::undecodable::{self, Unreadable};
use super::{create, scale, time_limit};

/// How many objects of a list conversion webhooks are asked for at the same time.
const CONVERSIONS: usize = 16;

/// How long a read may take, which waits for nothing but conversion webhooks.
///
/// Source: apiserver pkg/server/config.go, `RequestTimeout`.
const READING: Duration = Duration::from_secs(60);

/// GET of one object.
pub(super) async fn get(request: &ObjectRequest<'_>) -> Result<Answer, Box<Status>> {
    timeout(READING, get_one(request)).await.unwrap_or_else(|_elapsed| Err(time_limit::exceeded()))
}

async fn get_one(request: &ObjectRequest<'_>) -> Result<Answer, Box<Status>> {
    let target = &request.target;
    let resource = &target.resource;
    let state = &request.server.state;
    let Some(stored) = state.storage.at(&create::key(request, &target.name)) else {
        return Err(Box::new(Status::not_found(&resource.gvr.group, &resource.gvr.resource, &target.name)));
    };
    let object = state.in_version_of(&stored, resource).await;
    let object = object.map_err(|error| undecodable::of_read(error, &stored, resource))?;
    match target.subresource.as_str() {
        "" | "status" | "approval" => Ok(Answer::ok(object)),
        "scale" => Ok(Answer::ok(Arc::new(scale::of(&object, resource)))),
        other => {
            let what = format!("reading {}/{other}", resource.gvr.resource);
            Err(Box::new(Status::unsupported(&Unsupported { what })))
        }
    }
}

/// GET of a collection.
pub(super) async fn list(request: &ObjectRequest<'_>) -> Result<Answer, Box<Status>> {
    check_list_options(&request.query)?;
    let resource = &request.target.resource;
    let selected = timeout(READING, selected(request)).await;
    let (items, version) = selected.unwrap_or_else(|_elapsed| Err(time_limit::exceeded()))?;
    Ok(Answer::List(List {
        api_version: resource.kind.api_version(),
        kind: resource.list_kind.clone(),
        resource_version: version.to_string(),
        items,
        typed_items: resource.custom.is_some(),
    }))
}

/// A list is whole, whatever its `limit`; it has no second page.
///
/// Source: apiserver pkg/endpoints/handlers/get.go, `ListResource`, and pkg/storage/interfaces.go; apimachinery
/// pkg/apis/meta/internalversion/validation/validation.go, `ValidateListOptions`.
fn check_list_options(query: &Query) -> Result<(), Box<Status>> {
    let limit = query.first("limit").unwrap_or_default();
    if !limit.is_empty() && limit.parse::<i64>().is_err() {
        return Err(not_an_integer(limit));
    }
    if query.first("sendInitialEvents").is_some() {
        let error = FieldError::forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list");
        return Err(Box::new(Status::invalid("meta.k8s.io", "ListOptions", "", &[error])));
    }
    if query.first("continue").is_some_and(|token| !token.is_empty()) {
        let what = "the second page of a list (continue)".to_owned();
        return Err(Box::new(Status::unsupported(&Unsupported { what })));
    }
    let version = query.first("resourceVersion").unwrap_or_default();
    if !version.is_empty() {
        let wrong = |why| Box::new(Status::bad_request(format!("invalid resource version: {why}")));
        resource_version(version).map_err(wrong)?;
    }
    Ok(())
}

/// The number that a `resourceVersion` of the query is, or why it is none.
pub(super) fn resource_version(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_not_a_number| {
        let text = Value::from(text);
        format!("resourceVersion: Invalid value: {text}: strconv.ParseUint: parsing {text}: invalid syntax")
    })
}

/// Whether the query asks for a watch instead of a list.
pub(super) fn is_watch(query: &Query) -> bool {
    truth(query, "watch") == Some(true)
}

/// The objects that the path and the selectors of the query pick, in the version of the path, and the
/// `resourceVersion` at which these are all.
pub(super) async fn selected(request: &ObjectRequest<'_>) -> Result<(Vec<Arc<Value>>, u64), Box<Status>> {
    let target = &request.target;
    let resource = &target.resource;
    let selection = Selection::parse(&request.query, resource)?;
    let state = &request.server.state;
    let (stored, version) =
        state.storage.list_at_version(resource.storage_group(), &resource.gvr.resource, &target.namespace);
    // A webhook may change labels: what it is asked for is selected when it has answered.
    let is_late = |object: &Value| State::asks_webhook(object, resource);
    let mut meant = stored;
    meant.retain(|object| is_late(object) || selection.matches(object, state, resource));
    let converted = meant.into_iter().map(|object| async move {
        let converted = state.in_version_of(&object, resource).await;
        (object, converted)
    });
    let mut converted = futures::stream::iter(converted).buffered(CONVERSIONS);
    let (mut selected, mut unreadable) = (Vec::new(), Unreadable::default());
    while let Some((stored, object)) = converted.next().await {
        match object {
            Ok(object) if is_late(&stored) && !selection.matches_converted(&object) => {}
            Ok(object) => selected.push(object),
            Err(error) => unreadable.add(error, &stored, resource)?,
        }
    }
    unreadable.finish(resource)?;
    Ok((selected, version))
}

/// The selectors of a query.
#[derive(Debug)]
pub(super) struct Selection {
    labels: Selector,
    fields: Vec<FieldRequirement>,
}

impl Selection {
    /// Reads `labelSelector` and `fieldSelector`.
    ///
    /// # Errors
    /// 400 for what is no selector, 501 for `<` and `>`.
    pub(super) fn parse(query: &Query, resource: &Resource) -> Result<Self, Box<Status>> {
        Ok(Self {
            labels: label_selector(query.first("labelSelector").unwrap_or_default())?,
            fields: field_selector(query.first("fieldSelector").unwrap_or_default(), resource)?,
        })
    }

    /// Whether they pick an object that is in the version of the path.
    fn matches_converted(&self, object: &Value) -> bool {
        (self.labels.is_empty() || self.labels.matches(Labels::of(object).unwrap_or_default()))
            && self.fields.iter().all(|field| field.matches(object))
    }

    /// Whether the version of an object matters to them.
    pub(super) fn looks_at_version(&self) -> bool {
        !self.fields.iter().all(FieldRequirement::is_of_metadata)
    }

    /// Whether they pick this stored object, for whose version no webhook is asked. Its fields are those of the version of
    /// `resource`.
    ///
    /// Rule: SCH-16.
    pub(super) fn matches(&self, stored: &Arc<Value>, state: &State, resource: &Resource) -> bool {
        if !self.labels.is_empty() && !self.labels.matches(Labels::of(stored).unwrap_or_default()) {
            return false;
        }
        if resource.custom.is_none() || !self.looks_at_version() {
            return self.fields.iter().all(|field| field.matches(stored));
        }
        // What cannot be converted is reported when it is shown.
        let Ok(object) = state.in_version_of_at_once(stored, resource) else { return true };
        self.fields.iter().all(|field| field.matches(&object))
    }
}

/// One requirement of a field selector.
#[derive(Debug)]
struct FieldRequirement {
    /// A JSON pointer.
    pointer: String,
    equal: bool,
    value: String,
}

impl FieldRequirement {
    fn is_of_metadata(&self) -> bool {
        self.pointer.starts_with("/metadata/")
    }

    fn matches(&self, object: &Value) -> bool {
        let found = match object.pointer(&self.pointer) {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Bool(truth)) => truth.to_string(),
            Some(Value::Number(number)) => number.to_string(),
            // The source of an Event that names none is the component that reports it.
            None if self.pointer == EVENT_SOURCE => {
                let reporter = object.get("reportingComponent").and_then(Value::as_str);
                reporter.unwrap_or_default().to_owned()
            }
            Some(Value::Null | Value::Array(_) | Value::Object(_)) | None => unset(&self.pointer).to_owned(),
        };
        (found == self.value) == self.equal
    }
}

/// Where an Event of the core group says what it is from.
const EVENT_SOURCE: &str = "/source/component";

/// What a field that an object does not have is compared as.
fn unset(pointer: &str) -> &'static str {
    match pointer {
        "/spec/unschedulable" | "/spec/hostNetwork" => "false",
        "/status/replicas" | "/status/succeeded" => "0",
        _ => "",
    }
}

/// Whether a selector may name this field beside the name and the namespace.
///
/// Source: kubernetes pkg/apis/core/v1/conversion.go, pkg/apis/apps/v1/conversion.go, pkg/apis/events/v1/conversion.go and
/// pkg/apis/certificates/v1/conversion.go, `AddFieldLabelConversionFunc`.
fn selectable(resource: &str, path: &str) -> bool {
    let fields: &[&str] = match resource {
        "pods" => &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.nominatedNodeName",
        ],
        "nodes" => &["spec.unschedulable"],
        "namespaces" => &["status.phase"],
        "secrets" => &["type"],
        "events" => &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
        "events.events.k8s.io" => &[
            "regarding.kind",
            "regarding.namespace",
            "regarding.name",
            "regarding.uid",
            "regarding.apiVersion",
            "regarding.resourceVersion",
            "regarding.fieldPath",
            "reason",
            "reportingController",
            "type",
        ],
        "replicationcontrollers" | "replicasets.apps" => &["status.replicas"],
        "certificatesigningrequests.certificates.k8s.io" => &["spec.signerName"],
        _ => &[],
    };
    fields.contains(&path)
}

/// Where a stored object has the field of a selector: Events are stored as those of the core group.
fn pointer(resource: &str, path: &str) -> String {
    let path = match (resource, path.strip_prefix("regarding."), path) {
        ("events.events.k8s.io", Some(field), _) => format!("involvedObject.{field}"),
        ("events.events.k8s.io", None, "reportingController") => "reportingComponent".to_owned(),
        ("events", None, "source") => return EVENT_SOURCE.to_owned(),
        _ => path.to_owned(),
    };
    format!("/{}", path.replace('.', "/"))
}

/// Reads `a=b,c==d,e!=f`, where a backslash takes the meaning from a comma, an equals sign or another backslash.
///
/// Source: apimachinery pkg/fields/selector.go, `parseSelector`.
/// Rule: KND-12.
fn field_selector(text: &str, resource: &Resource) -> Result<Vec<FieldRequirement>, Box<Status>> {
    let mut terms = field_terms(text);
    terms.sort_unstable();
    let mut requirements = Vec::new();
    for term in terms.into_iter().filter(|term| !term.is_empty()) {
        let Some((path, operator, value)) = split_at_operator(term) else {
            let message = format!("invalid selector: '{text}'; can't understand '{term}'");
            return Err(Box::new(Status::bad_request(message)));
        };
        let value = unescaped(value).map_err(|message| Box::new(Status::bad_request(message)))?;
        requirements.push((path, operator != "!=", value));
    }
    let requirements = requirements.into_iter().map(|(path, equal, value)| {
        check_field(path, resource)?;
        Ok(FieldRequirement { pointer: pointer(&resource.gvr.group_resource(), path), equal, value })
    });
    requirements.collect()
}

/// Whether a selector may name a field.
///
/// # Errors
/// 400.
///
/// Source: apimachinery pkg/runtime/conversion.go, `DefaultMetaV1FieldSelectorConversion`; apiextensions-apiserver
/// pkg/apiserver/conversion/converter.go, `ConvertFieldLabel`.
/// Rule: SCH-16.
fn check_field(path: &str, resource: &Resource) -> Result<(), Box<Status>> {
    let group_resource = resource.gvr.group_resource();
    let is_known = if let Some(custom) = &resource.custom {
        path == "metadata.name"
            || (path == "metadata.namespace" && resource.namespaced)
            || custom.selectable.iter().any(|field| field == path)
    } else {
        ["metadata.name", "metadata.namespace"].contains(&path) || selectable(&group_resource, path)
    };
    if is_known {
        return Ok(());
    }
    Err(Box::new(Status::bad_request(
        if resource.custom.is_some() || group_resource == "events.events.k8s.io" {
            format!("field label not supported: {path}")
        } else {
            let path = Value::from(path);
            format!("{path} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")
        },
    )))
}

/// Splits at the commas without a backslash.
fn field_terms(text: &str) -> Vec<&str> {
    let mut is_escaped = false;
    text.split(|character: char| {
        let splits = character == ',' && !is_escaped;
        is_escaped = character == '\\' && !is_escaped;
        splits
    })
    .collect()
}

/// The field, the operator and the value, where the first operator stands.
fn split_at_operator(term: &str) -> Option<(&str, &str, &str)> {
    term.char_indices().find_map(|(at, _)| {
        let (path, rest) = term.split_at_checked(at)?;
        let operator = ["!=", "==", "="].into_iter().find(|operator| rest.starts_with(operator))?;
        Some((path, operator, rest.strip_prefix(operator)?))
    })
}

/// Source: apimachinery pkg/fields/selector.go, `UnescapeValue`.
fn unescaped(value: &str) -> Result<String, String> {
    let mut plain = String::with_capacity(value.len());
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some(escaped @ ('\\' | ',' | '=')) => plain.push(escaped),
                other => {
                    let sequence: String = ['\\'].into_iter().chain(other).collect();
                    return Err(format!("invalid field selector: invalid escape sequence: {sequence}"));
                }
            },
            ',' | '=' => {
                return Err(format!(
                    "invalid field selector: unescaped character in value: {}",
                    u32::from(character)
                ));
            }
            _ => plain.push(character),
        }
    }
    Ok(plain)
}

/// Reads `a=b,c!=d,e in (f,g),h notin (i),j,!k`.
///
/// Source: apimachinery pkg/labels/selector.go, `Parse`.
pub(super) fn label_selector(text: &str) -> Result<Selector, Box<Status>> {
    if terms(text).iter().any(|term| term.contains(['<', '>'])) {
        let what = "label selectors with < or >".to_owned();
        return Err(Box::new(Status::unsupported(&Unsupported { what })));
    }
    let mut expressions = Vec::new();
    let mut expression = |key: &str, operator: &str, values: Vec<&str>| {
        expressions.push(serde_json::json!({"key": key.trim(), "operator": operator, "values": values}));
    };
    for term in terms(text) {
        let set = |word: &str| {
            let (key, rest) = term.split_once(word)?;
            let values = rest.trim().strip_prefix('(')?.strip_suffix(')')?;
            Some((key, values.split(',').map(str::trim).collect::<Vec<_>>()))
        };
        if let Some((key, values)) = set(" notin ").or_else(|| set(" notin")) {
            expression(key, "NotIn", values);
        } else if let Some((key, values)) = set(" in ").or_else(|| set(" in")) {
            expression(key, "In", values);
        } else if let Some((key, value)) = term.split_once("!=") {
            expression(key, "NotIn", vec![value.trim()]);
        } else if let Some((key, value)) = term.split_once("==").or_else(|| term.split_once('=')) {
            expression(key, "In", vec![value.trim()]);
        } else if let Some(key) = term.strip_prefix('!') {
            expression(key, "DoesNotExist", vec![]);
        } else {
            expression(term, "Exists", vec![]);
        }
    }
    Selector::parse(&serde_json::json!({"matchExpressions": expressions}))
        .map_err(|error| Box::new(Status::bad_request(format!("unable to parse requirement: {error}"))))
}

/// Splits at the commas that are not in parentheses.
fn terms(text: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    text.split(|c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    })
    .map(str::trim)
    .filter(|term| !term.is_empty())
    .collect()
}
