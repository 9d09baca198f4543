//! The Kubernetes REST API around the dispatcher, in memory.

pub(crate) mod audit_log;
pub(crate) mod authentication;
pub(crate) mod conversion;
pub(crate) mod defaulting;
pub(crate) mod plugins;
pub(crate) mod storage;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;

pub use self::authentication::Authentication;

/// A service that a `clientConfig` names.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServiceName {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// Takes one `audit.k8s.io/v1` Event for each request.
pub type AuditSink = Arc<dyn Fn(&Value) + Send + Sync>;

/// What a server needs to know.
#[derive(Clone, Default)]
pub struct Options {
    /// Where the services of webhooks listen: host and port.
    pub services: BTreeMap<ServiceName, (String, u16)>,
    /// Who is told of each request.
    pub audit: Option<AuditSink>,
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").field("services", &self.services).finish_non_exhaustive()
    }
}

/// The API server.
#[derive(Clone, Debug)]
pub struct ApiServer {
    options: Arc<Options>,
}

impl ApiServer {
    /// A server without objects.
    pub fn new(options: Options) -> Self {
        Self { options: Arc::new(options) }
    }

    /// The server for people who authenticate that way.
    pub fn router(&self, authentication: Authentication) -> axum::Router {
        let _ = &self.options;
        let layer =
            axum::middleware::from_fn_with_state(Arc::new(authentication), authentication::authenticate);
        axum::Router::new().fallback(|| async { http::StatusCode::NOT_IMPLEMENTED }).layer(layer)
    }
}
