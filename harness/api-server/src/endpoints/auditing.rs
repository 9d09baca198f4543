//! Logs the audit events of one request.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::ConnectInfo;
use http::header::USER_AGENT;
use http::request::Parts;
use jiff::Timestamp;
use kubernetes_admission::audit;
use kubernetes_admission::authorizer::AccessDecision;
use kubernetes_admission::event::Record;
use kubernetes_types::status::Status;
use serde_json::Value;
use tokio::time::Instant;

use super::accept::takes_errors;
use super::answer::ResponseContent;
use super::audit_log::{self, AnsweredRequest, FinalEvent, ObjectReference, Stage};
use super::audit_policy::{AuditSettings, Level};
use super::authentication::{Claim, Identity};
use super::context::Server;
use super::options::AuditSink;
use super::request_info::RequestInfo;
use crate::apimachinery::metadata;

/// The data for the audit events of a request that the server logs.
pub(crate) struct RequestAudit<'a> {
    sink: &'a AuditSink,
    audited: AuditSettings<'a>,
    /// Whether the server logs a request that ends without a response.
    logs_cut_off_requests: bool,
    parts: &'a Parts,
    info: &'a RequestInfo,
    audit_id: &'a str,
    source_ips: Vec<IpAddr>,
    received: Timestamp,
    started: Instant,
}

/// The result of a request. The final audit event describes it.
pub(crate) struct RequestEnd<'a> {
    pub(crate) stage: Stage,
    /// The client; `None` if it could not be authenticated.
    pub(crate) identity: Option<&'a Identity>,
    pub(crate) decision: Option<&'a AccessDecision>,
    /// Whether the resource is deprecated.
    pub(crate) is_deprecated: bool,
    /// The decoded request body.
    pub(crate) decoded: &'a mut Option<Value>,
    /// The audit annotations that the server added outside admission.
    pub(crate) annotations: BTreeMap<String, String>,
    pub(crate) record: &'a Record,
    pub(crate) code: u16,
    /// The Status in the response; `None` if the response is not a Status.
    pub(crate) status: Option<Status>,
    /// The response body for the event, as returned by [`RequestAudit::response_object`].
    pub(crate) object: Option<Value>,
}

impl<'a> RequestAudit<'a> {
    /// Creates the audit data of a request; `None` if the server does not log the request.
    pub(crate) fn new(
        server: &'a Server,
        parts: &'a Parts,
        info: &'a RequestInfo,
        audit_id: &'a str,
        received: Timestamp,
    ) -> Option<Self> {
        let sink = server.options.audit.as_ref()?;
        let user = parts.extensions.get::<Claim>().map(|claim| &claim.user);
        let audited = server.audit_policy.of_request(user, info)?;
        let logs_cut_off_requests = server.options.audit_policy.is_none();
        let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>().map(|peer| peer.0.ip());
        let source_ips = audit_log::source_ips(&parts.headers, peer);
        let started = Instant::now();
        Some(Self {
            sink,
            audited,
            logs_cut_off_requests,
            parts,
            info,
            audit_id,
            source_ips,
            received,
            started,
        })
    }

    /// Logs the stage `RequestReceived` unless the policy omits it.
    ///
    /// The returned guard logs a request that does not get a response, unless an audit policy is set.
    pub(crate) fn begin(&self) -> UnansweredGuard<'_> {
        if self.audited.logs(Stage::RequestReceived) {
            self.log_received();
        }
        UnansweredGuard(self)
    }

    fn log_received(&self) {
        let claim = self.parts.extensions.get::<Claim>();
        let identity = claim.map(|claim| Identity::from_user(claim.user.clone()));
        (self.sink)(&audit_log::event(&AnsweredRequest {
            identity: identity.as_ref(),
            ..self.answered(Stage::RequestReceived, self.reference(None))
        }));
    }

    /// Returns the response body that the event contains; `None` if the event does not contain a response body.
    ///
    /// Source: apiserver pkg/endpoints/handlers/responsewriters/writers.go, `WriteObjectNegotiated`.
    pub(crate) fn response_object(&self, answered: &Result<ResponseContent, Box<Status>>) -> Option<Value> {
        if self.audited.level < Level::RequestResponse {
            return None;
        }
        match answered {
            // kube-apiserver does not write this document with its object encoder.
            Ok(_) if self.info.path == "/version" => None,
            Ok(answer) => answer.document(),
            Err(_) if !takes_errors(&self.parts.headers) => None,
            Err(status) => serde_json::to_value(status).ok(),
        }
    }

    /// Logs the response. For a long-running response, returns the final event, which is logged when dropped.
    pub(crate) fn end(&self, mut ended: RequestEnd<'_>) -> Option<FinalEvent> {
        if self.audited.omit_managed_fields {
            ended.decoded.iter_mut().chain(&mut ended.object).for_each(remove_managed_fields);
        }
        let begins = ended.stage == Stage::ResponseStarted || self.info.is_long_running();
        let stage = if begins { Stage::ResponseStarted } else { Stage::ResponseComplete };
        let mut annotations = annotations(ended.record, ended.is_deprecated);
        annotations.append(&mut ended.annotations);
        if !begins {
            annotations.extend(audit::latencies(ended.record, self.started.elapsed()));
        }
        // The metadata of a patch or of delete options does not describe the object.
        let body = ended.decoded.as_ref().filter(|_| ["create", "update"].contains(&self.info.verb.as_str()));
        let event = audit_log::event(&AnsweredRequest {
            identity: ended.identity,
            code: ended.code,
            status: ended.status.as_ref().filter(|_| ended.code < 400 || takes_errors(&self.parts.headers)),
            request_object: ended.decoded.as_ref(),
            response_object: ended.object,
            completed: Timestamp::now(),
            decision: ended.decision,
            annotations,
            ..self.answered(stage, self.reference(body))
        });
        if self.audited.logs(stage) {
            (self.sink)(&event);
        }
        // Unauthenticated requests get no event after the response has started.
        let has_end = begins && ended.identity.is_some() && self.audited.logs(Stage::ResponseComplete);
        has_end.then(|| FinalEvent::new(Arc::clone(self.sink), event))
    }

    /// Returns an event with the fields that are known when the request is received.
    fn answered<'b>(&'b self, stage: Stage, object: Option<ObjectReference<'b>>) -> AnsweredRequest<'b> {
        let Self { audited, parts, info, audit_id, source_ips, received, .. } = self;
        let user_agent = parts.headers.get(USER_AGENT).and_then(|value| value.to_str().ok());
        AnsweredRequest {
            level: audited.level,
            audit_id,
            request_uri: parts.uri.path_and_query().map_or("", http::uri::PathAndQuery::as_str),
            verb: &info.verb,
            stage,
            identity: None,
            source_ips,
            user_agent: user_agent.unwrap_or_default(),
            object,
            code: 0,
            status: None,
            request_object: None,
            response_object: None,
            received: *received,
            completed: *received,
            decision: None,
            annotations: BTreeMap::new(),
        }
    }

    /// Returns the object reference of the request.
    ///
    /// A field that the path does not contain comes from `body`, the body of a creation or an update.
    fn reference<'b>(&'b self, body: Option<&'b Value>) -> Option<ObjectReference<'b>> {
        let object = self.info.object.as_ref()?;
        let in_body = |field| body.map_or("", |object| metadata::text(object, field));
        let either = |path: &'b str, field| if path.is_empty() { in_body(field) } else { path };
        Some(ObjectReference {
            resource: &object.resource,
            namespace: either(&object.namespace, "namespace"),
            name: either(&object.name, "name"),
            group: &object.group,
            version: &object.version,
            subresource: &object.subresource,
            uid: in_body("uid"),
            resource_version: in_body("resourceVersion"),
        })
    }
}

/// When dropped, logs a request without a response: the client disconnected or the server stopped.
pub(crate) struct UnansweredGuard<'a>(&'a RequestAudit<'a>);

impl UnansweredGuard<'_> {
    /// Disarms the guard. The caller must log the response of the request instead.
    pub(crate) fn forget(self) {
        std::mem::forget(self);
    }
}

impl Drop for UnansweredGuard<'_> {
    fn drop(&mut self) {
        if self.0.logs_cut_off_requests {
            self.0.log_received();
        }
    }
}

/// Removes `managedFields` from an object or from each item of a list.
fn remove_managed_fields(object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    object
        .get_mut("items")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
        .for_each(remove_managed_fields);
}

/// Source: apiserver pkg/endpoints/metrics/metrics.go, `MonitorRequest`.
fn annotations(record: &Record, is_deprecated: bool) -> BTreeMap<String, String> {
    let deprecated = is_deprecated.then(|| ("k8s.io/deprecated".to_owned(), "true".to_owned()));
    audit::annotations(record).into_iter().chain(deprecated).collect()
}
