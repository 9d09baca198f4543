//! Serves fakes that share a port.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, PoisonError, RwLock};

use axum::Router;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use certs::{CertificateAuthority, Name};

use crate::endpoint::{Endpoint, Shared};
use crate::plan::PlannedListener;
use crate::socket::{BoundPort, Socket, StartError, TlsError};
use crate::{Certificate, Credentials, FakeEntry, Limits};

/// Fakes that share a port. Each has a different path.
#[derive(Debug)]
pub(super) struct Group {
    planned: PlannedListener,
    bound_port: BoundPort,
    routes: Arc<Routes>,
    /// The maximum number of connections for each fake.
    connections: usize,
}

type Routes = RwLock<BTreeMap<String, Arc<Endpoint>>>;

impl Group {
    /// Listens on the planned address, but does not serve any path yet.
    pub(super) async fn start(
        planned: PlannedListener,
        authority: &Arc<CertificateAuthority>,
        limits: &Limits,
        shared: &Shared,
    ) -> Result<Self, StartError> {
        let routes = Arc::new(Routes::default());
        let socket = Socket {
            listen: planned.listen,
            remote_access: planned.remote_access,
            transport: planned.transport,
            names: vec![planned.host.clone()],
            connections: limits.connections,
        };
        let served = Router::new().fallback(dispatch).with_state(Arc::clone(&routes));
        let bound_port = socket.serve(authority, served, Arc::clone(&shared.metrics)).await?;
        Ok(Self { planned, bound_port, routes, connections: limits.connections })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.bound_port.address()
    }

    /// Returns whether the group has the transport and credentials that a fake requires.
    pub(super) fn fits(&self, entry: &FakeEntry) -> bool {
        self.planned.transport == entry.transport
            && self.planned.credentials.as_ref() == entry.behavior.demanded()
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.host_and_port())
    }

    fn host_and_port(&self) -> String {
        let port = self.address().port();
        match &self.planned.host {
            Name::Ip(ip) => SocketAddr::new(*ip, port).to_string(),
            Name::Dns(host) => format!("{}:{port}", host.as_str()),
        }
    }

    /// Returns the host and port of the group, and the credentials that the group requires, if any.
    pub(super) fn credentials(&self) -> Option<(String, Credentials)> {
        self.planned.credentials.clone().map(|credentials| (self.host_and_port(), credentials))
    }

    /// Returns the `caBundle`, or `None` if connections are refused.
    pub(super) fn ca_bundle(&self) -> Option<&str> {
        self.bound_port.ca_bundle()
    }

    /// Returns the fake at a path, or `None` if no fake uses the path.
    pub(super) fn at(&self, path: &str) -> Option<Arc<Endpoint>> {
        self.routes.read().unwrap_or_else(PoisonError::into_inner).get(path).cloned()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.routes.read().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Serves `endpoint` at `path`. Replaces the fake that used the path.
    pub(super) fn serve(&self, path: String, endpoint: Arc<Endpoint>) {
        self.change(|routes| drop(routes.insert(path, endpoint)));
    }

    pub(super) fn forget(&self, path: &str) {
        self.change(|routes| drop(routes.remove(path)));
    }

    fn change(&self, change: impl FnOnce(&mut BTreeMap<String, Arc<Endpoint>>)) {
        let mut routes = self.routes.write().unwrap_or_else(PoisonError::into_inner);
        change(&mut routes);
        self.bound_port.set_connections(self.connections.saturating_mul(routes.len().max(1)));
    }

    /// Issues a certificate of the kind `certificate` for new handshakes. Open connections are kept.
    pub(super) fn rotate(&mut self, certificate: Certificate) -> Result<(), TlsError> {
        self.bound_port.rotate(certificate)?;
        self.planned.transport.certificate = certificate;
        self.planned.transport.rotate = None;
        Ok(())
    }

    pub(super) async fn stop(self) {
        self.bound_port.close().await;
    }
}

/// Calls the fake with exactly this path. Does not use axum's routes because they interpret some characters.
async fn dispatch(State(routes): State<Arc<Routes>>, request: Request) -> Response {
    let endpoint =
        routes.read().unwrap_or_else(PoisonError::into_inner).get(request.uri().path()).map(Arc::clone);
    match endpoint {
        Some(endpoint) => Endpoint::call(State(endpoint), request).await,
        None => (http::StatusCode::NOT_FOUND, "no fake has this path").into_response(),
    }
}
