//! Processes one HTTP request.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request as HttpRequest, State as Extracted};
use axum::response::Response;
use bytes::Bytes;
use http::header::WARNING;
use http::request::Parts;
use http::{HeaderValue, StatusCode, Version};
use jiff::Timestamp;
use kubernetes_admission::attributes::UserInfo;
use kubernetes_admission::authorizer::Authorizer;
use kubernetes_admission::event::Record;
use kubernetes_admission::{converter, warnings};
use kubernetes_types::status::Status;
use tokio::time::Instant;
use tracing::{Instrument as _, Span, info};

use super::accept::{AvailableForms, MediaScope, MediaType, Representation, error_media_type, negotiate};
use super::answer::{ResponseContent, refusal};
use super::audit_log;
use super::auditing::{RequestAudit, RequestEnd, UnansweredGuard};
use super::authentication::{AuthenticationFailure, Claim, Identity};
use super::authorization;
use super::context::Server;
use super::dispatch::PreparedRequest;
use super::documents;
use super::incoming::Incoming;
use super::notices;
use super::observation::{Observation, ObservedResult};
use super::outcome::RequestTrace;
use super::outcome::{self, Outcome};
use super::request_info::RequestInfo;
use super::route::{Route, route, verb};
use crate::apimachinery::client_disconnect;
use crate::apimachinery::client_disconnect::ClientDisconnect;
use crate::apimachinery::limits::{Effect, LARGE_BYTES};
use crate::apimachinery::off_thread;
use crate::apimachinery::query::Query;
use crate::apimachinery::time_limit::{REQUEST_TIMEOUT_UPPER_BOUND, time_limit};
use crate::endpoints::{route, spans, watch_paths, websocket};
use crate::kinds::discovery::Resources;
use crate::kinds::tables;
use crate::registry::patches;
use crate::registry::request::{BodyRetention, Target, Verb};

/// Responds to one request from a connection.
pub(crate) async fn answer(Extracted(server): Extracted<Arc<Server>>, request: HttpRequest) -> Response {
    let (mut parts, body) = request.into_parts();
    let client_disconnect = server.options.audit.as_ref().filter(|_| !parts.method.is_safe()).map(|_| {
        let client_disconnect = Arc::new(ClientDisconnect::default());
        parts.extensions.insert(Arc::clone(&client_disconnect));
        client_disconnect
    });
    let background_tasks = server.background_tasks.clone();
    let answering = async move {
        let keep = outcome::retention_for_audit(&server);
        let mut body = Incoming::Stream(body);
        let authorizer = Arc::clone(&server.registry.state.authorizer);
        let (response, _) = respond(&server, &parts, &mut body, keep, &authorizer).await;
        // An unauthenticated client may send only a few bytes, which all requests of an HTTP/2 connection share.
        if response.status() != StatusCode::UNAUTHORIZED || parts.version <= Version::HTTP_11 {
            body.drain(&parts).await;
        }
        response
    };
    match client_disconnect {
        Some(client_disconnect) => {
            client_disconnect::run_to_completion(&background_tasks, client_disconnect, answering).await
        }
        None => answering.await,
    }
}

/// Responds to one request and logs it to the audit log.
///
/// Rule: WRN-04.
pub(crate) async fn respond(
    server: &Arc<Server>,
    parts: &Parts,
    body: &mut Incoming,
    keep: BodyRetention,
    authorizer: &Arc<dyn Authorizer>,
) -> (Response, RequestTrace) {
    let received = Timestamp::now();
    let audit_id = audit_log::audit_id(&parts.headers);
    let query = Query::parse(parts.uri.query().unwrap_or_default());
    let info = RequestInfo::new(&parts.method, parts.uri.path(), &query);
    let observation = Observation::begin(server, parts, &info, &query, &audit_id, received);
    let keep = if observation.is_some() { BodyRetention::Observed } else { keep };
    let received_request =
        ParsedRequest { parts, info: &info, audit_id: &audit_id, query, body, keep, authorizer };
    let auditing = RequestAudit::new(server, parts, &info, &audit_id, received);
    let unanswered = auditing.as_ref().map(RequestAudit::begin);
    let span = spans::request(parts, &info, &audit_id, server.options.spans.as_deref());
    let answering = authorize_and_handle(server, received_request).instrument(span.clone());
    let (mut outcome, conversions) = Box::pin(converter::record_conversions(answering)).await;
    outcome.record.conversions = conversions;
    unanswered.into_iter().for_each(UnansweredGuard::forget);
    let status = match &outcome.answered {
        Ok(answer) => answer.status(),
        Err(status) => Some((**status).clone()),
    };
    let response_object = auditing.as_ref().and_then(|auditing| auditing.response_object(&outcome.answered));
    let mut connection = None;
    let mut is_upgrade = false;
    let is_answered = outcome.answered.is_ok();
    let operation = std::mem::replace(&mut outcome.operation, Span::none());
    if is_answered {
        info!(parent: &operation, "About to write a response");
    }
    let mut response = match outcome.answered {
        Ok(ResponseContent::Watch(watch)) if websocket::is_requested(&parts.headers) => {
            is_upgrade = true;
            let response;
            (response, connection) = websocket::handshake(watch, parts);
            response
        }
        Ok(answer) => {
            let (reservation, may_refuse) = (outcome.reservation, parts.method.is_safe());
            let media_type = outcome.media_type;
            let is_large = answer.is_large();
            let encode = async move { answer.into_response(reservation, may_refuse, media_type) };
            if is_large { off_thread::run(encode).await } else { encode.await }
        }
        Err(status) => {
            let query = Query::parse(parts.uri.query().unwrap_or_default());
            refusal(&status, error_media_type(&parts.headers, &query))
        }
    };
    if is_answered {
        info!(parent: &operation, "Writing http response done");
    }
    let told = outcome.early_warnings.iter().chain(warnings::texts(&outcome.record)).chain(&outcome.warnings);
    let warned: Vec<String> = told.cloned().collect();
    for warning in warnings::encode(&warned) {
        if let Ok(value) = HeaderValue::from_bytes(warning.as_bytes()) {
            response.headers_mut().append(WARNING, value);
        }
    }
    spans::answered(&span, response.status());
    if let Ok(value) = HeaderValue::from_str(&audit_id) {
        response.headers_mut().insert("audit-id", value);
    }
    if let Some(observation) = observation {
        let refused = status.as_ref().and_then(|status| serde_json::to_value(status).ok()).map(Arc::new);
        let ended = ObservedResult {
            user: outcome.identity.as_ref().map(Identity::effective),
            operation: outcome.admitted,
            sent: outcome.sent.take(),
            read: outcome.decoded.as_ref(),
            code: response.status().as_u16(),
            answer: outcome.object.take().or(refused),
            warnings: warned,
            record: &outcome.record,
        };
        observation.end(ended).await;
    }
    let end = auditing.as_ref().and_then(|auditing| {
        // As in kube-apiserver, the audit event of an upgrade has the code 101, even if the handshake fails.
        let code = if is_upgrade { StatusCode::SWITCHING_PROTOCOLS } else { response.status() };
        auditing.end(RequestEnd {
            stage: outcome.stage,
            identity: outcome.identity.as_ref(),
            decision: outcome.decision.as_ref(),
            is_deprecated: outcome.is_deprecated,
            decoded: &mut outcome.decoded,
            annotations: std::mem::take(&mut outcome.annotations),
            record: &outcome.record,
            code: code.as_u16(),
            status,
            object: response_object,
        })
    });
    report(server, &info, (&audit_id, received), &outcome.record);
    match (connection, end) {
        (Some(connection), end) => connection.start(end),
        (None, Some(end)) => response = response.map(|body| audit_log::with_final_event(body, end)),
        (None, None) => {}
    }
    (response, RequestTrace { record: outcome.record, body: outcome.decoded })
}

/// Passes the admission record to the sinks of the server.
fn report(server: &Server, info: &RequestInfo, (audit_id, received): (&str, Timestamp), record: &Record) {
    if let Some(sink) = &server.options.record {
        sink(audit_id, received, record);
    }
    notices::send(server, info, record);
}

/// A request with its parsed path and query.
struct ParsedRequest<'a> {
    parts: &'a Parts,
    info: &'a RequestInfo,
    audit_id: &'a str,
    query: Query,
    body: &'a mut Incoming,
    keep: BodyRetention,
    authorizer: &'a Arc<dyn Authorizer>,
}

/// Authenticates and authorizes a request before checking whether its path exists.
///
/// Source: apiserver pkg/server/config.go, `DefaultBuildHandlerChain`.
/// Rule: RBAC-10.
async fn authorize_and_handle(server: &Arc<Server>, received: ParsedRequest<'_>) -> Outcome {
    let ParsedRequest { parts, info, authorizer, .. } = received;
    let time_limit = match time_limit(&received.query) {
        Err(status) if !info.is_long_running() => return Outcome::refused(status, None),
        limit => limit.unwrap_or(REQUEST_TIMEOUT_UPPER_BOUND),
    };
    if let Some(refused) = parts.extensions.get::<AuthenticationFailure>() {
        return Outcome::refused(refused.status.clone(), refused.user.clone());
    }
    let Some(Claim { user, wanted, annotations }) = parts.extensions.get::<Claim>().cloned() else {
        return Outcome::refused(Box::new(Status::failure(401, "Unauthorized", "Unauthorized")), None);
    };
    let mut identity = Identity::from_user(user);
    if let Some(wanted) = wanted {
        match server.impersonation.resolve(&**authorizer, &identity.user, &wanted, info) {
            Ok(impersonated) => identity.impersonated = Some(impersonated),
            Err(status) => return Outcome::refused(status, Some(identity.user)),
        }
    }
    let (decision, allowed) = authorization::authorize(&**authorizer, identity.effective(), info);
    let outcome = match allowed {
        Ok(()) => outcome(server, received, identity.effective(), time_limit).await,
        Err(status) => Outcome::new(Err(status)),
    };
    let annotations = annotations.into_iter().chain(outcome.annotations).collect();
    Outcome { identity: Some(identity), decision: Some(decision), annotations, ..outcome }
}

/// Responds to a request that is not for an object.
async fn answer_document(
    server: &Arc<Server>,
    resources: &Resources,
    route: Route,
    query: Query,
    parts: &Parts,
) -> Outcome {
    let deprecation = if let Route::NoSubresource(gvr, _) = &route {
        resources.get(gvr).and_then(|resource| resource.deprecation()).map(str::to_owned)
    } else {
        None
    };
    let early_warnings = deprecation.into_iter().collect();
    let (answered, media_type) = match documents::answer(server, resources, route, query, parts).await {
        Ok((answer, media_type)) => (Ok(answer), media_type),
        Err(status) => (Err(status), MediaType::Json),
    };
    Outcome { media_type, early_warnings, ..Outcome::new(answered) }
}

/// Returns the media types and representations in which the server can respond to a request.
fn available_forms(verb: Verb, info: &RequestInfo, target: &Target) -> AvailableForms {
    AvailableForms {
        scope: MediaScope::for_verb(verb, info.is_long_running()),
        has_table: tables::has_table(&target.resource, &target.subresource),
        is_custom: target.resource.custom.is_some(),
    }
}

async fn outcome(
    server: &Arc<Server>,
    received: ParsedRequest<'_>,
    user: &UserInfo,
    time_limit: Duration,
) -> Outcome {
    let ParsedRequest { parts, info, audit_id, mut query, body, keep, authorizer } = received;
    let started = Instant::now();
    let effect = if parts.method.is_safe() { Effect::Reads } else { Effect::Mutates };
    let share = match &*body {
        Incoming::Stream(_) if !info.is_long_running() => server.registry.in_flight.begin(effect),
        Incoming::Stream(_) | Incoming::InMemory(_) => Ok(server.registry.in_flight.share()),
    };
    let mut reservation = match share {
        Ok(reservation) => reservation,
        Err(status) => return Outcome::new(Err(status)),
    };
    let resources = server.registry.state.resources();
    let mut target = match route(parts.uri.path(), &resources) {
        Route::Object(target) => target,
        Route::Watch(target) => match watch_paths::as_list(target, &parts.method, &mut query) {
            Ok(target) => target,
            Err(status) => return Outcome::new(Err(status)),
        },
        route @ (Route::Index
        | Route::CoreVersions
        | Route::Groups
        | Route::Group(_)
        | Route::Version(_, _)
        | Route::ServerVersion
        | Route::Health(_)
        | Route::Metrics
        | Route::Slis
        | Route::ZPage(_)
        | Route::OpenApi(_)
        | Route::OpenId(_)
        | Route::NoSubresource(..)
        | Route::NotEstablished
        | Route::Remote
        | Route::NoResource
        | Route::NoPath) => {
            let outcome = answer_document(server, &resources, route, query, parts).await;
            return Outcome { reservation: Some(reservation), ..outcome };
        }
    };
    route::drop_name_of_creation(&parts.method, &mut target);
    let verb = match verb(&parts.method, &target) {
        Ok(verb) => verb,
        Err(_) if target.resource.custom.is_some() => {
            return Outcome::new(route::method_of_custom(&target, &info.verb, &parts.headers));
        }
        Err(status) => return Outcome::new(Err(status)),
    };
    let operation = spans::operation(verb, parts, info, audit_id);
    let work = async {
        if verb == Verb::Patch {
            patches::check_media_type(&target.resource, &parts.headers)?;
        }
        route::check_name(verb, &target)?;
        let accepted = negotiate(&parts.headers, &query, available_forms(verb, info, &target))?;
        let options = match accepted.representation {
            Representation::Table(options) => Some(options.with_query(&query)),
            Representation::Whole | Representation::Metadata(_) => None,
        };
        let (resource, subresource) = (Arc::clone(&target.resource), target.subresource.clone());
        let came_over_a_connection = matches!(body, Incoming::Stream(_));
        let deadline = started + time_limit;
        let body = if matches!(verb, Verb::Get | Verb::List) {
            Bytes::new()
        } else {
            spans::read(body.read(&mut reservation, deadline).await)?
        };
        // The body is complete, so a slow client does not occupy a thread.
        let is_beside = came_over_a_connection && body.len() > LARGE_BYTES;
        let work = PreparedRequest {
            server: Arc::clone(server),
            authorizer: Arc::clone(authorizer),
            verb,
            target,
            query,
            headers: parts.headers.clone(),
            body,
            user: user.clone(),
            keep,
            reservation,
            started,
            deadline,
            client_disconnect: parts.extensions.get().filter(|_| verb != Verb::Connect).cloned(),
        };
        let mut outcome = if is_beside { off_thread::run(work.run()).await } else { work.run().await };
        outcome.keep_object(keep);
        outcome.encode_as(accepted.media_type);
        if let Representation::Metadata(options) = accepted.representation {
            outcome.answered = outcome.answered.and_then(|answer| answer.into_metadata(options, &resource));
        }
        if let Some(options) = options {
            outcome.answered = outcome
                .answered
                .and_then(|answer| answer.into_table(&resource, &subresource, options?, Timestamp::now()));
        }
        Ok(outcome)
    };
    let outcome = work.instrument(operation.clone()).await;
    Outcome { operation, ..outcome.unwrap_or_else(|status| Outcome::new(Err(status))) }
}
