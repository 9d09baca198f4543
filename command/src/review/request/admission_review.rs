//! Replays the request of an `AdmissionReview` that a webhook received.

use harness::attributes::{GroupVersionResource, Operation, UserInfo};
use harness::chain::{Request, RequestError};
use harness::server::{ApiServer, ResourceName};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Planned, before};
use crate::Failure;
use crate::documents::Document;
use crate::review::arguments::{DryRun, Review};

/// The `request` of an `AdmissionReview`: the fields that describe what the client requested.
///
/// Source: k8s.io/api admission/v1/types.go, `AdmissionRequest`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AdmissionRequest {
    operation: Operation,
    resource: GroupVersionResource,
    #[serde(default)]
    sub_resource: String,
    /// The resource that the client requested, if the webhook received an equivalent resource.
    request_resource: Option<GroupVersionResource>,
    request_sub_resource: Option<String>,
    #[serde(default)]
    name: String,
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    user_info: UserInfo,
    #[serde(default)]
    object: Option<Value>,
    #[serde(default)]
    old_object: Option<Value>,
    #[serde(default)]
    dry_run: Option<bool>,
    #[serde(default)]
    options: Option<Map<String, Value>>,
}

/// Plans the request that the review contains.
///
/// # Errors
/// Returns an error if the review does not contain a request, or if the command line contradicts it.
pub(super) fn plan(
    arguments: &Review,
    document: &Document,
    old: &[Document],
    server: &ApiServer,
) -> Result<Planned, Failure> {
    let place = &document.place;
    let given = [
        ("--operation", arguments.operation.is_some()),
        ("--subresource", arguments.subresource.is_some()),
        ("--namespace", arguments.namespace.is_some()),
    ];
    if let Some((option, _)) = given.iter().find(|(_, given)| *given) {
        let message = format!("an AdmissionReview already specifies the request: remove {option}");
        return Err(place.failure(message));
    }
    let Some(request) = document.object.get("request").filter(|request| request.is_object()) else {
        return Err(place.failure("the AdmissionReview has no `request`"));
    };
    let request = AdmissionRequest::deserialize(request)
        .map_err(|error| place.failure(format!("the AdmissionReview's `request`: {error}")))?;
    let name = request.request_resource.unwrap_or(request.resource);
    let resource = ResourceName::Named(name.clone());
    let known = server.resource(&resource).ok_or_else(|| {
        let unknown = RequestError::UnknownResource(name);
        place.failure(format!("{unknown}: pass its CustomResourceDefinition with --with FILE"))
    })?;
    let is_own_kind = |object: &Value| object.get("kind").is_some_and(|kind| *kind == known.kind.kind);
    let mut before_place = None;
    let mut existing = request.old_object.clone().filter(is_own_kind);
    if existing.is_none() {
        // A Scale does not specify its parent object.
        let object = request.object.as_ref().or(request.old_object.as_ref()).unwrap_or(&Value::Null);
        let old = before(old, object, &request.name);
        existing = old.map(|old| old.object.clone());
        before_place = old.map(|old| old.place.clone());
    }
    let options = request.options.unwrap_or_default();
    let (body, query) = match (request.operation, request.object) {
        (Operation::Create | Operation::Update, object) => (object, pairs(&options)),
        (Operation::Delete, _) => ((!options.is_empty()).then(|| options.into()), Vec::new()),
        (Operation::Connect, object) => {
            (None, object.as_ref().and_then(Value::as_object).map(pairs).unwrap_or_default())
        }
    };
    let request = Request {
        operation: request.operation,
        resource,
        namespace: request.namespace,
        name: request.name,
        subresource: request.request_sub_resource.unwrap_or(request.sub_resource),
        body,
        query: query.into_iter().chain(arguments.query.iter().cloned()).collect(),
        dry_run: request.dry_run == Some(true) || arguments.dry_run == DryRun::Server,
        user: if arguments.user.is_some() { arguments.user() } else { request.user_info },
    };
    Ok(Planned { place: place.clone(), request, before: existing, before_place, notes: Vec::new() })
}

/// Converts options to query parameters, except `apiVersion`, `kind`, and `dryRun`.
fn pairs(options: &Map<String, Value>) -> Vec<(String, String)> {
    let mut pairs = Vec::new();
    for (key, value) in options {
        let values = match value {
            _ if ["apiVersion", "kind", "dryRun"].contains(&key.as_str()) => continue,
            Value::Array(items) => items.as_slice(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
                std::slice::from_ref(value)
            }
        };
        for value in values {
            match value {
                Value::String(text) => pairs.push((key.clone(), text.clone())),
                Value::Bool(_) | Value::Number(_) => pairs.push((key.clone(), value.to_string())),
                Value::Null | Value::Array(_) | Value::Object(_) => {}
            }
        }
    }
    pairs
}
