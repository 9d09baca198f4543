//! Reports events that kube-apiserver writes to its log, or that might surprise users of a server without controllers.

use std::sync::Arc;

use kubernetes_admission::event::{CallResult, Record};
use kubernetes_types::quoting::quote;

use super::context::Server;
use super::request_info::RequestInfo;
use crate::apimachinery::metadata;
use crate::registry::services::ServiceName;
use crate::storage::Key;

/// Receives notices before the response is sent.
pub type NoticeSink = Arc<dyn Fn(Notice) + Send + Sync>;

/// An event during a request that is worth logging.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a log must decide about each of them")]
pub enum Notice {
    /// A call to a webhook failed, and the request continued because of the webhook's failure policy.
    FailedOpen {
        /// The name of the webhook.
        webhook: String,
        /// The reason for the failure, from [`CallFailure::reason`](kubernetes_admission::event::CallFailure::reason).
        reason: String,
    },
    /// A call to a webhook failed because its Service does not exist and has no address of its own.
    UnknownService {
        /// The name of the webhook.
        webhook: String,
        /// The Service in the `clientConfig` of the webhook.
        service: ServiceName,
    },
    /// The server keeps a deleted namespace, because no namespace controller runs.
    NamespaceStays {
        /// The name of the namespace.
        name: String,
    },
}

/// Sends the notices about a request that has ended.
pub(super) fn send(server: &Server, info: &RequestInfo, record: &Record) {
    let Some(sink) = &server.options.notices else { return };
    for called in record.calls() {
        if let CallResult::Failed { failure, .. } = &called.result
            && let Some(service) = unknown_service(&failure.reason)
        {
            sink(Notice::UnknownService { webhook: called.webhook.name.clone(), service });
        }
        if let CallResult::Failed { failure, failed_open: true } = &called.result
            && !failure.reason.ends_with("context canceled")
        {
            let (webhook, reason) = (called.webhook.name.clone(), failure.reason.clone());
            sink(Notice::FailedOpen { webhook, reason });
        }
    }
    if let Some(name) = deleted_namespace(server, info) {
        sink(Notice::NamespaceStays { name });
    }
}

/// Returns the Service that a call did not find, such as in `Post "https://hook.shop.svc:443/": service "hook" not found`.
fn unknown_service(reason: &str) -> Option<ServiceName> {
    let (url, error) = reason.split_once("Post \"https://")?.1.split_once("\": ")?;
    let (name, rest) = url.split([':', '/', '?']).next()?.split_once('.')?;
    let namespace = rest.strip_suffix(".svc")?.to_owned();
    let is_unknown = error == format!("service {} not found", quote(name));
    is_unknown.then(|| ServiceName { namespace, name: name.to_owned() })
}

/// Returns the namespace that the request has deleted and that is still stored.
fn deleted_namespace(server: &Server, info: &RequestInfo) -> Option<String> {
    let object = info.object.as_ref()?;
    let is_deletion = info.verb == "delete"
        && object.resource == "namespaces"
        && object.group.is_empty()
        && object.version == "v1"
        && object.subresource.is_empty();
    if !is_deletion || server.options.controllers.is_some() {
        return None;
    }
    let stored = server.registry.state.storage.at(&Key::cluster_scoped("", "namespaces", &object.name))?;
    (!metadata::text(&stored, "deletionTimestamp").is_empty()).then(|| object.name.clone())
}
