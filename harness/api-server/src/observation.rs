//! What a [`RequestObserver`] gets of each request that could change something.

use std::sync::Arc;
use std::time::Duration;

use http::request::Parts;
use jiff::Timestamp;
use kubernetes_admission::attributes::{GroupVersionResource, Operation, UserInfo};
use kubernetes_admission::config::{Phase, Webhook};
use kubernetes_admission::event::Record;
use serde_json::Value;
use tokio::time::Instant;

use super::in_process::key;
use super::query::Query;
use super::request_info::{RequestInfo, RequestObject};
use super::{ApiServer, RequestObserver, Server};

/// A request for an object or a collection by any verb but `get`, `list` and `watch`, and all that led to its answer.
#[derive(Debug)]
#[non_exhaustive]
pub struct ObservedRequest {
    /// The Audit-ID.
    pub audit_id: String,
    /// When it came.
    pub received: Timestamp,
    /// How long it took.
    pub took: Duration,
    /// Who asked, after impersonation; empty if that is not known.
    pub user: UserInfo,
    /// The `User-Agent` header; empty without one.
    pub user_agent: String,
    /// Such as `create`, `patch` or `deletecollection`.
    pub verb: String,
    /// What admission was asked first; of a request that did not get there, what its verb says.
    pub operation: Operation,
    /// What the path names.
    pub resource: GroupVersionResource,
    /// Such as `status`; empty for the object itself.
    pub subresource: String,
    /// Empty for a cluster-scoped resource.
    pub namespace: String,
    /// Empty for a collection, and if the server chose no name.
    pub name: String,
    /// Whether nothing was to be stored.
    pub dry_run: bool,
    /// The body as it was sent: an object without defaults, a patch, or options.
    pub sent: Option<Value>,
    /// The object as the server read it, with the defaults of its version; none of a patch.
    pub read: Option<Value>,
    /// The object of this name before the request.
    pub old: Option<Arc<Value>>,
    /// The HTTP status code; 0 if the request was not answered, since its client went away or the server stopped.
    pub code: u16,
    /// The object or the Status of the answer; none of a list.
    pub answer: Option<Arc<Value>>,
    /// What the client was warned of.
    pub warnings: Vec<String>,
    /// What happened in admission.
    pub record: Record,
    /// All webhooks that there were when the request came, in dispatch order.
    pub webhooks: Vec<(Phase, Arc<Webhook>)>,
    /// The server that answered.
    pub server: ApiServer,
}

/// A request that is being answered. Dropped, it was not answered.
pub(super) struct Observation {
    observer: RequestObserver,
    started: Instant,
    /// None as soon as it was handed on.
    request: Option<Box<ObservedRequest>>,
}

/// How an observed request ended.
pub(super) struct Observed<'a> {
    pub(super) user: Option<&'a UserInfo>,
    pub(super) operation: Option<Operation>,
    pub(super) sent: Option<Value>,
    pub(super) read: Option<&'a Value>,
    pub(super) code: u16,
    pub(super) answer: Option<Arc<Value>>,
    pub(super) warnings: Vec<String>,
    pub(super) record: &'a Record,
}

impl Observation {
    /// None if nobody observes the server, or the request changes nothing.
    pub(super) fn begin(
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
        let resources = server.state.resources();
        let known = resources.get(&resource);
        let namespaced = known.is_none_or(|known| known.namespaced);
        let namespace = if namespaced { namespace.clone() } else { String::new() };
        let old = known.filter(|_| !name.is_empty());
        let old = old.and_then(|known| server.state.storage.at(&key(known, &namespace, name)));
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
            webhooks: server.admission.webhooks_in_order(),
            server: ApiServer { server: Arc::clone(server) },
        };
        Some(Self { observer, started: Instant::now(), request: Some(Box::new(request)) })
    }

    /// Hands the request on, beside the threads that answer, and waits for it: who has the answer finds what was observed.
    pub(super) async fn end(mut self, ended: Observed<'_>) {
        let Some(mut request) = self.request.take() else { return };
        let Observed { user, operation, sent, read, code, answer, warnings, record } = ended;
        request.took = self.started.elapsed();
        request.user = user.cloned().unwrap_or_default();
        request.operation = operation.unwrap_or(request.operation);
        if request.name.is_empty() && request.verb == "create" {
            let name = |object: Option<&Value>| {
                let name = object.map_or("", |object| super::metadata::text(object, "name"));
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
            // `DeleteOptions` are a body.
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
        // Once it has begun it ends, also if the client does not wait for it.
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
