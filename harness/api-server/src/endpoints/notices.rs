//! Reports events that kube-apiserver writes to its log, or that might surprise users of a server without controllers.

use std::sync::Arc;

use kubernetes_admission::event::{CallResult, Record};

use super::context::Server;
use super::request_info::RequestInfo;
use crate::apimachinery::metadata;
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
