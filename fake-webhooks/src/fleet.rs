//! All fakes of some files, running.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use certs::{CertificateAuthority, Name};
use serde_json::Value;

use crate::configurations::by_url;
use crate::door::Door;
use crate::endpoint::Endpoint;
use crate::fakes_file::{FakeEntry, FakesFile};
use crate::log_line::log_line;
use crate::plan::{Plan, PlanError};
use crate::server::Socket;
use crate::tls::TlsError;
use crate::{Certificate, Limits, Observer, StartError};

/// Who is told, line by line, what the fakes do. It must not block.
pub type Log = Arc<dyn Fn(&str) + Send + Sync>;

/// All fakes of some files, running. Dropped means stopped.
#[derive(Debug)]
pub struct Fleet {
    doors: Vec<Door>,
    configurations: Vec<Value>,
}

/// Why the fakes of a file could not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FleetError {
    /// The files cannot be served together.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A fake could not start.
    #[error(transparent)]
    Start(#[from] StartError),
}

impl Fleet {
    /// Starts everything in `files`, as [`Plan`] places it.
    ///
    /// # Errors
    /// The files contradict each other, or an address is taken, not allowed or cannot be called.
    pub async fn start(files: &[FakesFile], log: &Log) -> Result<Self, FleetError> {
        let plan = Plan::new(files)?;
        let authority =
            CertificateAuthority::new("admit test CA").map_err(TlsError::from).map_err(StartError::from)?;
        let authority = Arc::new(authority);
        let mut doors = Vec::new();
        for (index, planned) in plan.listeners().iter().enumerate() {
            let webhooks: Vec<_> =
                plan.fakes().filter(|fake| fake.listener == index).map(|fake| &fake.entry).collect();
            let socket = Socket {
                listen: planned.listen,
                remote_access: planned.remote_access,
                transport: planned.transport,
                names: vec![planned.host.clone()],
                connections: Limits::default().connections,
            };
            let door = socket.serve(&authority, router(&webhooks, log)).await?;
            log(&format!("listening on {}: {}", door.address(), planned.transport));
            doors.push((authority_part(&planned.host, door.address().port()), door));
        }
        let configurations = plan.configurations(|fake| {
            let (host, door) = &doors[fake.listener];
            let ca_bundle = door.ca_bundle().unwrap_or(authority.certificate_pem());
            by_url(&format!("https://{host}{}", fake.entry.path), ca_bundle)
        });
        let doors = doors.into_iter().map(|(_, door)| door).collect();
        Ok(Self { doors, configurations })
    }

    /// The configurations to apply, so that an API server calls the fakes.
    pub fn configurations(&self) -> &[Value] {
        &self.configurations
    }

    /// Shows another certificate in every TLS handshake from now on, on every port. Connections that are open stay, and
    /// the configurations are those of before.
    ///
    /// # Errors
    /// The certificate cannot be made.
    pub fn rotate(&self, certificate: Certificate) -> Result<(), TlsError> {
        self.doors.iter().try_for_each(|door| door.rotate(certificate))
    }

    /// Stops everything. Calls under way may end within half a second.
    pub async fn stop(self) {
        futures::future::join_all(self.doors.into_iter().map(Door::close)).await;
    }
}

/// Host and port as they stand in a URL.
fn authority_part(host: &Name, port: u16) -> String {
    match host {
        Name::Ip(ip) => SocketAddr::new(*ip, port).to_string(),
        Name::Dns(_) => format!("{host}:{port}"),
    }
}

/// Paths are compared as they are; axum's own patterns would give some characters a meaning.
fn router(webhooks: &[&FakeEntry], log: &Log) -> Router {
    let endpoints = webhooks.iter().map(|webhook| {
        let (name, log) = (webhook.name.clone(), Arc::clone(log));
        let observer = Observer::new(move |entry| log(&log_line(&name, entry)));
        (
            webhook.path.clone(),
            Arc::new(Endpoint::new(webhook.behaviour.clone(), &Limits::default(), observer)),
        )
    });
    Router::new().fallback(dispatch).with_state(Arc::new(endpoints.collect::<BTreeMap<_, _>>()))
}

async fn dispatch(
    State(endpoints): State<Arc<BTreeMap<String, Arc<Endpoint>>>>,
    request: Request,
) -> Response {
    match endpoints.get(request.uri().path()) {
        Some(endpoint) => Endpoint::call(State(Arc::clone(endpoint)), request).await,
        None => (http::StatusCode::NOT_FOUND, "no fake has this path").into_response(),
    }
}
