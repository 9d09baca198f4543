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
use crate::endpoint::Endpoint;
use crate::fakes_file::{FakeEntry, FakesFile};
use crate::listener::Listener;
use crate::log_line::log_line;
use crate::plan::{Plan, PlanError};
use crate::server::Socket;
use crate::tls::TlsError;
use crate::{HttpVersions, Limits, Observer, StartError};

/// Who is told, line by line, what the fakes do. It must not block.
pub type Log = Arc<dyn Fn(&str) + Send + Sync>;

/// All fakes of some files, running. Dropped means stopped.
#[derive(Debug)]
pub struct Fleet {
    listeners: Vec<Listener>,
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
        let mut listeners = Vec::new();
        for (index, planned) in plan.listeners().iter().enumerate() {
            let webhooks: Vec<_> =
                plan.fakes().filter(|fake| fake.listener == index).map(|fake| &fake.entry).collect();
            let socket = Socket {
                listen: planned.listen,
                remote_access: planned.remote_access,
                certificate: planned.certificate,
                names: vec![planned.host.clone()],
                http: HttpVersions::Both,
                connections: Limits::default().connections,
            };
            let listener = socket.serve(&authority, router(&webhooks, log)).await?;
            log(&format!(
                "listening on {} with the certificate `{}`",
                listener.address(),
                planned.certificate
            ));
            listeners.push((authority_part(&planned.host, listener.address().port()), listener));
        }
        let configurations = plan.configurations(|fake| {
            let host = &listeners[fake.listener].0;
            by_url(&format!("https://{host}{}", fake.entry.path), authority.certificate_pem())
        });
        let listeners = listeners.into_iter().map(|(_, listener)| listener).collect();
        Ok(Self { listeners, configurations })
    }

    /// The configurations to apply, so that an API server calls the fakes.
    pub fn configurations(&self) -> &[Value] {
        &self.configurations
    }

    /// Stops everything. Calls under way may end within half a second.
    pub async fn stop(self) {
        futures::future::join_all(self.listeners.into_iter().map(Listener::stop)).await;
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
