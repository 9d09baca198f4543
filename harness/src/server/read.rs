//! Reads objects.

use std::sync::Arc;

use serde_json::Value;

use super::answer::{Answer, List};
use super::options::{not_an_integer, truth};
use super::query::Query;
use super::request::ObjectRequest;
use super::{create, scale};
use crate::selector::{Labels, Selector};
use crate::status::{FieldError, Status, Unsupported};

/// GET of one object.
pub(super) fn get(request: &ObjectRequest<'_>) -> Result<Answer, Box<Status>> {
    let target = &request.target;
    let resource = &target.resource;
    let state = &request.server.state;
    let Some(stored) = state.storage.at(&create::key(request, &target.name)) else {
        return Err(Box::new(Status::not_found(&resource.gvr.group, &resource.gvr.resource, &target.name)));
    };
    let object = state.in_version_of(&stored, resource).map_err(create::conversion_failed)?;
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
pub(super) fn list(request: &ObjectRequest<'_>) -> Result<Answer, Box<Status>> {
    check_list_options(&request.query)?;
    let resource = &request.target.resource;
    let (items, version) = selected(request)?;
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
pub(super) fn selected(request: &ObjectRequest<'_>) -> Result<(Vec<Arc<Value>>, u64), Box<Status>> {
    let target = &request.target;
    let resource = &target.resource;
    let selection = Selection::parse(&request.query, &resource.gvr.group_resource())?;
    let state = &request.server.state;
    let (stored, version) =
        state.storage.list_at_version(resource.storage_group(), &resource.gvr.resource, &target.namespace);
    let selected = stored
        .iter()
        .filter(|object| selection.matches(object))
        .map(|object| state.in_version_of(object, resource).map_err(create::conversion_failed))
        .collect::<Result<_, _>>()?;
    Ok((selected, version))
}

/// The selectors of a query.
#[derive(Debug)]
pub(super) struct Selection {
    labels: Selector,
    fields: Vec<FieldRequirement>,
}

impl Selection {
    /// Reads `labelSelector` and `fieldSelector`; `resource` is `RESOURCE.GROUP`.
    ///
    /// # Errors
    /// 400 for what is no selector, 501 for `<` and `>`.
    pub(super) fn parse(query: &Query, resource: &str) -> Result<Self, Box<Status>> {
        Ok(Self {
            labels: label_selector(query.first("labelSelector").unwrap_or_default())?,
            fields: field_selector(query.first("fieldSelector").unwrap_or_default(), resource)?,
        })
    }

    /// Whether they pick this object.
    pub(super) fn matches(&self, object: &Value) -> bool {
        (self.labels.is_empty() || self.labels.matches(Labels::of(object).unwrap_or_default()))
            && self.fields.iter().all(|field| field.matches(object))
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
    fn matches(&self, object: &Value) -> bool {
        let found = match object.pointer(&self.pointer) {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Bool(true)) => "true".to_owned(),
            Some(Value::Number(number)) => number.to_string(),
            Some(Value::Null | Value::Bool(false) | Value::Array(_) | Value::Object(_)) | None => {
                unset(&self.pointer).to_owned()
            }
        };
        (found == self.value) == self.equal
    }
}

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
/// Source: kubernetes pkg/apis/core/v1/conversion.go, pkg/apis/apps/v1/conversion.go and
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
            "type",
        ],
        "replicationcontrollers" | "replicasets.apps" => &["status.replicas"],
        "certificatesigningrequests.certificates.k8s.io" => &["spec.signerName"],
        _ => &[],
    };
    fields.contains(&path)
}

/// Source: apimachinery pkg/fields/selector.go, `parseSelector`.
fn field_selector(text: &str, resource: &str) -> Result<Vec<FieldRequirement>, Box<Status>> {
    let mut requirements = Vec::new();
    for term in text.split(',').filter(|term| !term.is_empty()) {
        let split =
            ["!=", "==", "="].iter().find_map(|operator| Some((term.split_once(operator)?, *operator)));
        let Some(((path, value), operator)) = split else {
            let message = format!("invalid selector: '{text}'; can't understand '{term}'");
            return Err(Box::new(Status::bad_request(message)));
        };
        if !["metadata.name", "metadata.namespace"].contains(&path) && !selectable(resource, path) {
            return Err(Box::new(Status::bad_request(format!(
                "{} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
                Value::from(path)
            ))));
        }
        requirements.push(FieldRequirement {
            pointer: format!("/{}", path.replace('.', "/")),
            equal: operator != "!=",
            value: value.to_owned(),
        });
    }
    Ok(requirements)
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
