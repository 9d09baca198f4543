//! The state that all requests to a server share.

use std::sync::Arc;

use jiff::Timestamp;
use kubernetes_types::budget::Budget;
use tokio_util::task::TaskTracker;

use super::audit_policy::AuditPolicy;
use super::authorization::impersonation::Impersonation;
use super::events::Events;
use super::openapi::OpenApi;
use super::options::Options;
use crate::registry::Registry;

/// An API server with its objects in memory. Clones share the same server.
#[derive(Clone, Debug)]
pub struct ApiServer {
    pub(crate) server: Arc<Server>,
}

/// The registry and the state that only the endpoints need.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) registry: Arc<Registry>,
    pub(crate) impersonation: Impersonation,
    pub(crate) audit_policy: AuditPolicy,
    pub(crate) options: Options,
    pub(crate) events: Arc<Events>,
    pub(crate) openapi: OpenApi,
    pub(crate) watches: Budget,
    /// The `uid` of the user of loopback requests.
    pub(crate) loopback_uid: String,
    /// The time at which the server was created.
    pub(crate) started: Timestamp,
    /// The tasks of recorded requests that continue after their clients disconnect.
    pub(crate) background_tasks: TaskTracker,
}
