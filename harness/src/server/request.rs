//! One HTTP request: where it goes, and what comes back.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request as HttpRequest, State as Extracted};
use axum::response::Response;
use bytes::Bytes;
use http::header::{ACCEPT, WARNING};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::admission::Passage;
use super::answer::{Answer, refusal};
use super::authentication::Identity;
use super::discovery::Resources;
use super::route::{Route, Target, Verb, route, verb};
use super::{Server, body, connect, create, delete, read, update};
use crate::attributes::{Attributes, GroupVersionKind, Operation, UserInfo};
use crate::event::Record;
use crate::status::{Status, Unsupported};
use crate::warnings;

/// How long a request may take.
///
/// Source: apiserver pkg/endpoints/handlers/rest.go, `requestTimeoutUpperBound`.
const TIME_LIMIT: Duration = Duration::from_secs(34);

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// The query of a request, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Query {
    pairs: Vec<(String, Vec<String>)>,
}

impl Query {
    fn parse(query: &str) -> Self {
        let mut pairs: Vec<(String, Vec<String>)> = Vec::new();
        for (key, value) in url::form_urlencoded::parse(query.as_bytes()) {
            match pairs.iter_mut().find(|(known, _)| *known == key) {
                Some((_, values)) => values.push(value.into_owned()),
                None => pairs.push((key.into_owned(), vec![value.into_owned()])),
            }
        }
        Self { pairs }
    }

    pub(super) fn all(&self, key: &str) -> &[String] {
        self.pairs.iter().find(|(known, _)| known == key).map_or(&[], |(_, values)| values)
    }

    pub(super) fn first(&self, key: &str) -> Option<&str> {
        self.all(key).first().map(String::as_str)
    }
}

/// A request for a [`Target`].
#[derive(Debug)]
pub(super) struct ObjectRequest<'a> {
    pub(super) server: &'a Server,
    pub(super) resources: Arc<Resources>,
    pub(super) target: Target,
    pub(super) query: Query,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    pub(super) user: UserInfo,
    pub(super) passage: Passage<'a>,
}

impl ObjectRequest<'_> {
    /// The attributes of this request, without objects.
    pub(super) fn attributes(&self, operation: Operation, kind: &GroupVersionKind) -> Attributes {
        let resource = &self.target.resource;
        // A Namespace is in itself: its own name stands for its namespace.
        let is_namespace = resource.gvr.group.is_empty() && resource.gvr.resource == "namespaces";
        let namespace = if is_namespace { &self.target.name } else { &self.target.namespace };
        Attributes {
            operation,
            resource: resource.gvr.clone(),
            subresource: self.target.subresource.clone(),
            kind: kind.clone(),
            namespace: namespace.clone(),
            name: self.target.name.clone(),
            object: None,
            old_object: None,
            options: None,
            dry_run: false,
            user: self.user.clone(),
        }
    }
}

/// Answers one request.
pub(super) async fn answer(Extracted(server): Extracted<Arc<Server>>, request: HttpRequest) -> Response {
    let started = Instant::now();
    let (parts, incoming) = request.into_parts();
    let resources = server.state.resources();
    let target = match route(parts.uri.path(), &resources) {
        Route::Object(target) => target,
        route @ (Route::CoreVersions
        | Route::Groups
        | Route::Group(_)
        | Route::Version(_, _)
        | Route::ServerVersion
        | Route::Health
        | Route::Metrics
        | Route::OpenApi
        | Route::NoResource
        | Route::NoPath) => {
            return match document(&server, &resources, route, &parts.headers) {
                Ok(answer) => answer.into_response(),
                Err(status) => refusal(&status),
            };
        }
    };
    let body = match axum::body::to_bytes(axum::body::Body::new(incoming), body::LIMIT).await {
        Ok(body) => body,
        Err(_) => {
            let message = format!("Request entity too large: limit is {}", body::LIMIT);
            return refusal(&Status::failure(413, "RequestEntityTooLarge", message));
        }
    };
    let query = Query::parse(parts.uri.query().unwrap_or_default());
    let user = parts.extensions.get::<Identity>().map(|identity| identity.effective().clone());
    let time_limit = match time_limit(&query) {
        Ok(limit) => limit,
        Err(status) => return refusal(&status),
    };
    let mut request = ObjectRequest {
        server: &server,
        resources,
        target,
        query,
        headers: parts.headers,
        body,
        user: user.unwrap_or_default(),
        passage: Passage {
            admission: &server.admission,
            started,
            deadline: started + time_limit,
            record: Record::default(),
        },
    };
    let (operation, answered) = match verb(&parts.method, &request.target) {
        Ok(verb) => (operation(verb), dispatch(verb, &mut request).await),
        Err(status) => (None, Err(status)),
    };
    if let Some(operation) = operation {
        server.admission.metrics.observe(operation, &request.passage.record);
    }
    let mut response = match answered {
        Ok(answer) => answer.into_response(),
        Err(status) => refusal(&status),
    };
    for warning in warnings::headers(&request.passage.record) {
        if let Ok(value) = HeaderValue::from_bytes(warning.as_bytes()) {
            response.headers_mut().append(WARNING, value);
        }
    }
    response
}

async fn dispatch(verb: Verb, request: &mut ObjectRequest<'_>) -> Result<Answer, Box<Status>> {
    match verb {
        Verb::Get => read::get(request),
        Verb::List => read::list(request),
        Verb::Create => create::create(request).await,
        Verb::Update => update::update(request).await,
        Verb::Patch => update::patch(request).await,
        Verb::Delete => delete::delete(request).await,
        Verb::DeleteCollection => delete::delete_collection(request).await,
        Verb::Connect => connect::connect(request).await,
    }
}

fn operation(verb: Verb) -> Option<Operation> {
    match verb {
        Verb::Get | Verb::List => None,
        Verb::Create => Some(Operation::Create),
        Verb::Update | Verb::Patch => Some(Operation::Update),
        Verb::Delete | Verb::DeleteCollection => Some(Operation::Delete),
        Verb::Connect => Some(Operation::Connect),
    }
}

/// `?timeout=`, as far as it is shorter than the server's own limit.
///
/// Source: apiserver pkg/server/filters/request_deadline.go.
fn time_limit(query: &Query) -> Result<Duration, Box<Status>> {
    let Some(text) = query.first("timeout").filter(|text| !text.is_empty()) else { return Ok(TIME_LIMIT) };
    let bad =
        || Box::new(Status::bad_request(format!("invalid timeout specified in the request URL: {text}")));
    let (number, unit) = text.split_at(text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len()));
    let number: f64 = number.parse().ok().ok_or_else(bad)?;
    let seconds = match unit {
        "ms" => number / 1000.0,
        "s" => number,
        "m" => number * 60.0,
        "h" => number * 3600.0,
        _ if number == 0.0 => 0.0,
        _ => return Err(bad()),
    };
    let limit = Duration::try_from_secs_f64(seconds).ok().ok_or_else(bad)?;
    Ok(if limit.is_zero() { TIME_LIMIT } else { limit.min(TIME_LIMIT) })
}

/// What is not an object: discovery, health, metrics.
fn document(
    server: &Server,
    resources: &Resources,
    route: Route,
    headers: &HeaderMap,
) -> Result<Answer, Box<Status>> {
    let object = |value: Value| Answer::ok(Arc::new(value));
    let accept = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    let aggregated = accept
        .split(',')
        .map(|accepted| accepted.replace(' ', ""))
        .any(|accepted| accepted.starts_with(AGGREGATED));
    match route {
        Route::CoreVersions if aggregated => Ok(Answer::Document(AGGREGATED, resources.aggregated_core())),
        Route::Groups if aggregated => Ok(Answer::Document(AGGREGATED, resources.aggregated_groups())),
        Route::CoreVersions => {
            Ok(object(json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []})))
        }
        Route::Groups => Ok(object(resources.group_list())),
        Route::Group(group) => resources.group(&group).map(object).ok_or_else(no_resource),
        Route::Version(group, version) => {
            resources.version(&group, &version).map(object).ok_or_else(no_resource)
        }
        Route::ServerVersion => Ok(object(json!({
            "major": "1",
            "minor": "37",
            "emulationMajor": "1",
            "emulationMinor": "37",
            "minCompatibilityMajor": "1",
            "minCompatibilityMinor": "36",
            "gitVersion": format!("v{}+admit", crate::KUBERNETES_VERSION),
            "gitCommit": "",
            "gitTreeState": "",
            "buildDate": "1970-01-01T00:00:00Z",
            "goVersion": "",
            "compiler": "rustc",
            "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
        }))),
        Route::Health => Ok(Answer::Text(StatusCode::OK, "ok".to_owned())),
        Route::Metrics => Ok(Answer::Text(StatusCode::OK, server.admission.metrics.render())),
        Route::OpenApi => {
            Err(Box::new(Status::unsupported(&Unsupported { what: "OpenAPI documents".to_owned() })))
        }
        Route::NoPath => Ok(Answer::Text(StatusCode::NOT_FOUND, "404 page not found\n".to_owned())),
        Route::NoResource | Route::Object(_) => Err(no_resource()),
    }
}

/// Source: apimachinery pkg/api/errors/errors.go, `NewGenericServerResponse`.
fn no_resource() -> Box<Status> {
    let mut status = Status::failure(404, "NotFound", "the server could not find the requested resource");
    status.details = Some(crate::status::StatusDetails::default());
    Box::new(status)
}
