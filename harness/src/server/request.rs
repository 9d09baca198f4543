//! One HTTP request: where it goes, and what comes back.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{ConnectInfo, Request as HttpRequest, State as Extracted};
use axum::response::Response;
use bytes::Bytes;
use http::header::{ACCEPT, USER_AGENT, WARNING};
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::admission::Passage;
use super::answer::{Answer, refusal};
use super::audit_log::{self, Answered, ObjectReference};
use super::authentication::Identity;
use super::discovery::Resources;
use super::route::{Route, Target, Verb, route, verb};
use super::{Server, body, connect, create, delete, metadata, read, update};
use crate::attributes::{Attributes, GroupVersionKind, Operation, UserInfo};
use crate::audit;
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
    /// The body as it was read, for the audit log.
    pub(super) decoded: Option<Value>,
    /// What the server itself warns of.
    pub(super) warnings: Vec<String>,
    pub(super) passage: Passage<'a>,
}

impl ObjectRequest<'_> {
    /// Keeps the body, as it was read, for the audit log, if there is one.
    pub(super) fn note_decoded(&mut self, body: &Value) {
        if self.server.options.audit.is_some() {
            self.decoded = Some(body.clone());
        }
    }

    /// The attributes of this request, without objects.
    pub(super) fn attributes(&self, operation: Operation, kind: &GroupVersionKind) -> Attributes {
        Attributes {
            operation,
            resource: self.target.resource.gvr.clone(),
            subresource: self.target.subresource.clone(),
            kind: kind.clone(),
            namespace: self.target.admitted_namespace().to_owned(),
            name: self.target.name.clone(),
            object: None,
            old_object: None,
            options: None,
            dry_run: false,
            user: self.user.clone(),
        }
    }
}

/// What a request came to, and what is told of it.
struct Outcome {
    answered: Result<Answer, Box<Status>>,
    /// As the audit log has it.
    verb: &'static str,
    target: Option<Target>,
    decoded: Option<Value>,
    /// What the server itself warns of.
    warnings: Vec<String>,
    record: Record,
}

impl Outcome {
    /// Of a request that gets no further.
    fn early(answered: Result<Answer, Box<Status>>, verb: &'static str, target: Option<Target>) -> Self {
        Self { answered, verb, target, decoded: None, warnings: Vec::new(), record: Record::default() }
    }
}

/// Answers one request, and tells the audit log of it.
pub(super) async fn answer(Extracted(server): Extracted<Arc<Server>>, request: HttpRequest) -> Response {
    let received = Timestamp::now();
    let (parts, incoming) = request.into_parts();
    let audit_id = audit_log::audit_id(&parts.headers);
    let outcome = outcome(&server, &parts, incoming).await;
    let status = match &outcome.answered {
        Ok(answer) => answer.status(),
        Err(status) => Some((**status).clone()),
    };
    let mut response = match outcome.answered {
        Ok(answer) => answer.into_response(),
        Err(status) => refusal(&status),
    };
    for warning in warnings::encode(warnings::texts(&outcome.record).chain(&outcome.warnings)) {
        if let Ok(value) = HeaderValue::from_bytes(warning.as_bytes()) {
            response.headers_mut().append(WARNING, value);
        }
    }
    if let Ok(value) = HeaderValue::from_str(&audit_id) {
        response.headers_mut().insert("audit-id", value);
    }
    if let (Some(sink), Some(identity)) = (&server.options.audit, parts.extensions.get::<Identity>()) {
        let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>().map(|peer| peer.0.ip());
        let decoded_name = outcome.decoded.as_ref().map_or("", |object| metadata::text(object, "name"));
        let object = outcome.target.as_ref().map(|target| ObjectReference {
            resource: &target.resource.gvr.resource,
            namespace: target.admitted_namespace(),
            name: if target.name.is_empty() { decoded_name } else { &target.name },
            group: &target.resource.gvr.group,
            version: &target.resource.gvr.version,
            subresource: &target.subresource,
        });
        let user_agent = parts.headers.get(USER_AGENT).and_then(|value| value.to_str().ok());
        let method = parts.method.as_str().to_ascii_lowercase();
        sink(&audit_log::event(&Answered {
            audit_id: &audit_id,
            request_uri: parts.uri.path_and_query().map_or("", PathAndQuery::as_str),
            verb: if outcome.verb.is_empty() { &method } else { outcome.verb },
            identity,
            source_ips: &audit_log::source_ips(&parts.headers, peer),
            user_agent: user_agent.unwrap_or_default(),
            object,
            code: response.status().as_u16(),
            status: status.as_ref(),
            request_object: outcome.decoded.as_ref(),
            received,
            completed: Timestamp::now(),
            annotations: audit::annotations(&outcome.record),
        }));
    }
    response
}

async fn outcome(server: &Server, parts: &Parts, incoming: Body) -> Outcome {
    let started = Instant::now();
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
            let answered = document(server, &resources, route, &parts.headers);
            return Outcome::early(answered, "", None);
        }
    };
    let query = Query::parse(parts.uri.query().unwrap_or_default());
    let user = parts.extensions.get::<Identity>().map(|identity| identity.effective().clone());
    let verb = verb(&parts.method, &target);
    let verb_name = verb.as_ref().map_or("", |verb| audited_verb(*verb, &parts.method, &query));
    let early = |status| Outcome::early(Err(status), verb_name, Some(target.clone()));
    let verb = match verb {
        Ok(verb) => verb,
        Err(status) => return early(status),
    };
    let time_limit = match time_limit(&query) {
        Ok(limit) => limit,
        Err(status) => return early(status),
    };
    let Ok(body) = axum::body::to_bytes(incoming, body::LIMIT).await else {
        let message = format!("Request entity too large: limit is {}", body::LIMIT);
        return early(Box::new(Status::failure(413, "RequestEntityTooLarge", message)));
    };
    let mut request = ObjectRequest {
        server,
        resources,
        target,
        query,
        headers: parts.headers.clone(),
        body,
        user: user.unwrap_or_default(),
        decoded: None,
        warnings: Vec::new(),
        passage: Passage {
            admission: &server.admission,
            started,
            deadline: started + time_limit,
            record: Record::default(),
        },
    };
    let answered = dispatch(verb, &mut request).await;
    let ObjectRequest { target, decoded, warnings, passage, .. } = request;
    if let Some(operation) = operation(verb) {
        server.admission.metrics.observe(operation, &passage.record);
    }
    Outcome { answered, verb: verb_name, target: Some(target), decoded, warnings, record: passage.record }
}

/// Source: apiserver pkg/endpoints/request/requestinfo.go.
fn audited_verb(verb: Verb, method: &Method, query: &Query) -> &'static str {
    match verb {
        Verb::Get => "get",
        Verb::List if read::is_watch(query) => "watch",
        Verb::List => "list",
        Verb::Create => "create",
        Verb::Update => "update",
        Verb::Patch => "patch",
        Verb::Delete => "delete",
        Verb::DeleteCollection => "deletecollection",
        Verb::Connect => match *method {
            Method::POST => "create",
            Method::PUT => "update",
            Method::PATCH => "patch",
            Method::DELETE => "delete",
            _ => "get",
        },
    }
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
/// Source: apiserver `pkg/server/filters/request_deadline.go`.
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
