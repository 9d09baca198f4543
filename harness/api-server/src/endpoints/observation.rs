//! The requests that a [`RequestObserver`] receives.

use std::sync::Arc;
use std::time::Duration;

use http::request::Parts;
use jiff::Timestamp;
use kubernetes_admission::attributes::{GroupVersionResource, Operation, UserInfo};
use kubernetes_admission::config::{Phase, Webhook};
use kubernetes_admission::event::Record;
use serde_json::Value;
use tokio::time::Instant;

use super::context::{ApiServer, Server};
use super::options::RequestObserver;
use super::request_info::{RequestInfo, RequestObject};
use crate::apimachinery::query::Query;

/// A mutating request for an object or a collection, with the data that determined its response.
///
/// The verb is not `get`, `list`, or `watch`.
#[derive(Debug)]
#[non_exhaustive]
pub struct ObservedRequest {
    /// The Audit-ID.
    pub audit_id: String,
    /// The time when the request was received.
    pub received: Timestamp,
    /// The duration of the request.
    pub took: Duration,
    /// The effective user after impersonation; empty if unknown.
    pub user: UserInfo,
    /// The `User-Agent` header; empty if absent.
    pub user_agent: String,
    /// The verb, such as `create`, `patch`, or `deletecollection`.
    pub verb: String,
    /// The operation of the first admission run; the operation of the verb if the request did not reach admission.
    pub operation: Operation,
    /// The resource in the path.
    pub resource: GroupVersionResource,
    /// The subresource, such as `status`; empty for the object itself.
    pub subresource: String,
    /// The namespace; empty for a cluster-scoped resource.
    pub namespace: String,
    /// The name of the object; empty for a collection, or if neither the client nor the server set a name.
    pub name: String,
    /// Whether the request was a dry run.
    pub dry_run: bool,
    /// The body as the client sent it: an object without defaults, a patch, or options.
    pub sent: Option<Value>,
    /// The decoded object with the defaults of its API version; `None` for a patch.
    pub read: Option<Value>,
    /// The existing object before the request.
    pub old: Option<Arc<Value>>,
    /// The HTTP status code; 0 if the request ended without a response.
    ///
    /// This happens if the client disconnects or the server stops.
    pub code: u16,
    /// The object or Status in the response; `None` for a list.
    pub answer: Option<Arc<Value>>,
    /// The warnings in the response.
    pub warnings: Vec<String>,
    /// The admission record.
    pub record: Record,
    /// All webhooks that were registered when the request was received, in dispatch order.
    pub webhooks: Vec<(Phase, Arc<Webhook>)>,
    /// The server that answered the request.
    pub server: ApiServer,
}

/// A request that the server is processing. Dropping the value reports that the request got no response.
pub(crate) struct Observation {
    observer: RequestObserver,
    started: Instant,
    /// The observed request; `None` after it has been passed to the observer.
    request: Option<Box<ObservedRequest>>,
}

/// The result of an observed request.
pub(crate) struct ObservedResult<'a> {
    pub(crate) user: Option<&'a UserInfo>,
    pub(crate) operation: Option<Operation>,
    pub(crate) sent: Option<Value>,
    pub(crate) read: Option<&'a Value>,
    pub(crate) code: u16,
    pub(crate) answer: Option<Arc<Value>>,
    pub(crate) warnings: Vec<String>,
    pub(crate) record: &'a Record,
}

impl Observation {
    /// Starts to observe a request.
    ///
    /// Returns `None` if the server does not have an observer or the request cannot change an object.
    pub(crate) fn begin(
        server: &Arc<Server>,
        parts: &Parts,
        info: &RequestInfo,
        query: &Query,
        audit_id: &str,
        received: Timestamp,
    ) -> Option<Self> {
        let observer = server.options.observer.clone()?;
        let object = info.object.as_ref()?;
        let connects = super::route::is_connection(&object.subresource);
        let operation = match info.verb.as_str() {
            "get" | "create" if connects => Operation::Connect,
            "create" => Operation::Create,
            "update" | "patch" => Operation::Update,
            "delete" | "deletecollection" => Operation::Delete,
            _ => return None,
        };
        let RequestObject { group, version, resource, namespace, name, subresource } = object;
        let resource = GroupVersionResource::new(group, version, resource);
        let resources = server.registry.state.resources();
        let known = resources.get(&resource);
        let namespaced = known.is_none_or(|known| known.namespaced);
        let namespace = if namespaced { namespace.clone() } else { String::new() };
        let old = known.filter(|_| !name.is_empty());
        let old = old.and_then(|known| server.registry.state.storage.at(&known.key(&namespace, name)));
        let user_agent = parts.headers.get(http::header::USER_AGENT).and_then(|value| value.to_str().ok());
        let request = ObservedRequest {
            audit_id: audit_id.to_owned(),
            received,
            took: Duration::ZERO,
            user: UserInfo::default(),
            user_agent: user_agent.unwrap_or_default().to_owned(),
            verb: info.verb.clone(),
            operation,
            resource,
            subresource: subresource.clone(),
            namespace,
            name: name.clone(),
            dry_run: query.all("dryRun").iter().any(|which| which == "All"),
            sent: None,
            read: None,
            old,
            code: 0,
            answer: None,
            warnings: Vec::new(),
            record: Record::default(),
            webhooks: server.registry.admission.webhooks_in_order(),
            server: ApiServer { server: Arc::clone(server) },
        };
        Some(Self { observer, started: Instant::now(), request: Some(Box::new(request)) })
    }

    /// Passes the request to the observer on a separate thread and waits until the observer returns.
    ///
    /// A client that has received the response can therefore rely on the observation.
    pub(crate) async fn end(mut self, ended: ObservedResult<'_>) {
        let Some(mut request) = self.request.take() else { return };
        let ObservedResult { user, operation, sent, read, code, answer, warnings, record } = ended;
        request.took = self.started.elapsed();
        request.user = user.cloned().unwrap_or_default();
        request.operation = operation.unwrap_or(request.operation);
        if request.name.is_empty() && request.verb == "create" {
            let name = |object: Option<&Value>| {
                let name = object.map_or("", |object| crate::apimachinery::metadata::text(object, "name"));
                Some(name.to_owned()).filter(|name| !name.is_empty())
            };
            let is_object = |answer: &&Value| answer.get("kind").is_none_or(|kind| kind != "Status");
            let answered = name(answer.as_deref().filter(is_object));
            request.name = answered.or_else(|| name(read)).unwrap_or_default();
        }
        let asks_for_a_dry_run = |body: &Value| {
            let stages = body.get("dryRun").and_then(Value::as_array);
            stages.is_some_and(|stages| stages.iter().any(|stage| stage == "All"))
        };
        if request.operation == Operation::Delete {
            // `DeleteOptions` are in the body.
            request.dry_run |= read.is_some_and(asks_for_a_dry_run);
        }
        let is_patch = request.verb == "patch";
        request.sent = sent.or_else(|| read.cloned());
        request.read = read.filter(|_| !is_patch).cloned();
        request.code = code;
        request.answer = answer;
        request.warnings = warnings;
        request.record = record.clone();
        let observer = Arc::clone(&self.observer);
        // The observer runs to completion even if the client disconnects.
        if let Err(error) = tokio::task::spawn_blocking(move || observer(*request)).await
            && let Ok(panic) = error.try_into_panic()
        {
            std::panic::resume_unwind(panic);
        }
    }
}

impl Drop for Observation {
    fn drop(&mut self) {
        if let Some(mut request) = self.request.take() {
            request.took = self.started.elapsed();
            (self.observer)(*request);
        }
    }
}
