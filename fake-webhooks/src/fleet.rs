//! All fakes of some files, running.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use certs::{CertificateAuthority, Name};
use serde_json::Value;

use crate::configurations::{Placed, configurations};
use crate::door::Door;
use crate::endpoint::Endpoint;
use crate::fakes_file::{FakeEntry, FakesFile};
use crate::log_line::log_line;
use crate::server::Socket;
use crate::tls::TlsError;
use crate::{Certificate, Limits, Observer, StartError, Transport};

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
    /// A URL needs a host.
    #[error(
        "it listens on {0}, which is no address to call: say with `host` or `--host` under which name or address it is reached"
    )]
    NoHost(IpAddr),
    /// Applied one after the other, the second would replace the first.
    #[error("two files have configurations named `{0}`: give one of them another `name`")]
    SameName(String),
    /// There are more transports than ports.
    #[error("there is no port after 65535 for a further certificate or connection")]
    NoPort,
    /// A fake could not start.
    #[error(transparent)]
    Start(#[from] StartError),
}

impl Fleet {
    /// Starts everything in `files`. All with an equal [`Transport`] share a port.
    ///
    /// # Errors
    /// An address is taken, not allowed or cannot be called.
    pub async fn start(files: &[FakesFile], log: &Log) -> Result<Self, FleetError> {
        let mut names = BTreeSet::new();
        if let Some(file) = files.iter().find(|file| !names.insert(&file.name)) {
            return Err(FleetError::SameName(file.name.clone()));
        }
        let authority =
            CertificateAuthority::new("admit test CA").map_err(TlsError::from).map_err(StartError::from)?;
        let authority = Arc::new(authority);
        let mut fleet = Self { doors: Vec::new(), configurations: Vec::new() };
        let mut ports = Ports::default();
        for file in files {
            let host = host(file)?;
            let mut placed = Vec::new();
            for transport in transports(&file.webhooks) {
                let webhooks: Vec<_> =
                    file.webhooks.iter().filter(|webhook| webhook.transport == transport).collect();
                let socket = Socket {
                    listen: ports.next(file.listen)?,
                    remote_access: file.remote_access,
                    transport,
                    names: vec![host.clone()],
                    connections: Limits::default().connections,
                };
                let door = socket.serve(&authority, router(&webhooks, log)).await?;
                let address = door.address();
                log(&format!("listening on {address}: {transport}"));
                let ca_bundle = door.ca_bundle().unwrap_or(authority.certificate_pem()).to_owned();
                placed.extend(webhooks.into_iter().map(|entry| Placed {
                    entry,
                    url: format!("https://{}:{}{}", authority_part(&host), address.port(), entry.path),
                    ca_bundle: ca_bundle.clone(),
                }));
                fleet.doors.push(door);
            }
            // The order of the file is the order in which mutating webhooks are called.
            placed.sort_by_key(|placed| file.webhooks.iter().position(|entry| entry == placed.entry));
            fleet.configurations.extend(configurations(&file.name, &placed));
        }
        Ok(fleet)
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

/// The ports that were asked for: a second listener on the same one gets the port after it.
#[derive(Default)]
struct Ports(BTreeMap<SocketAddr, u16>);

impl Ports {
    fn next(&mut self, wanted: SocketAddr) -> Result<SocketAddr, FleetError> {
        let taken = self.0.entry(wanted).or_default();
        let port = if wanted.port() == 0 { Some(0) } else { wanted.port().checked_add(*taken) };
        *taken += 1;
        Ok(SocketAddr::new(wanted.ip(), port.ok_or(FleetError::NoPort)?))
    }
}

fn host(file: &FakesFile) -> Result<Name, FleetError> {
    let ip = file.listen.ip();
    match &file.host {
        Some(host) => Ok(host.clone()),
        None if ip.is_unspecified() => Err(FleetError::NoHost(ip)),
        None => Ok(ip.into()),
    }
}

/// The transports in the order in which they first appear.
fn transports(webhooks: &[FakeEntry]) -> Vec<Transport> {
    let mut transports = Vec::new();
    for webhook in webhooks {
        if !transports.contains(&webhook.transport) {
            transports.push(webhook.transport);
        }
    }
    transports
}

fn authority_part(host: &Name) -> String {
    match host {
        Name::Ip(IpAddr::V6(ip)) => format!("[{ip}]"),
        Name::Ip(IpAddr::V4(_)) | Name::Dns(_) => host.to_string(),
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
