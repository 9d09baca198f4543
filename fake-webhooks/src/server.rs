//! Fakes on sockets: TLS in front, a journal behind.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use certs::{CertificateAuthority, InvalidName, Name};

use crate::bound_port::BoundPort;
use crate::endpoint::{Endpoint, Shared};
use crate::listener::Listener;
use crate::metrics::Metrics;
use crate::tls::{Tls, TlsError};
use crate::{
    Authority, Behavior, Certificate, Connection, Entry, Filter, HttpVersions, RefusingPort, Transport,
};

/// What to start: the behavior, and how it is reached.
#[derive(Clone, Debug)]
pub struct Fake {
    /// What it does.
    pub behavior: Behavior,
    /// Which certificate it shows.
    pub certificate: Certificate,
    /// Which certificate it shows instead after the first handshake, if another.
    pub rotate: Option<Certificate>,
    /// What a connection meets.
    pub connection: Connection,
    /// Who signs the certificate.
    pub authority: Authority,
    /// Where it listens; port 0 takes a free one.
    pub listen: SocketAddr,
    /// DNS names and addresses beside the one that it listens on, for the certificate.
    pub names: Vec<String>,
    /// Which versions of HTTP it offers.
    pub http: HttpVersions,
    /// Whether it may listen on an address that other machines reach.
    pub remote_access: RemoteAccess,
    /// How much it takes and keeps.
    pub limits: Limits,
    /// Who is told of each call when it has ended.
    pub observer: Observer,
}

/// Allows, with a valid certificate of its own authority, on a free port of 127.0.0.1.
impl Default for Fake {
    fn default() -> Self {
        Self {
            behavior: Behavior::default(),
            certificate: Certificate::default(),
            rotate: None,
            connection: Connection::default(),
            authority: Authority::default(),
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            names: Vec::new(),
            http: HttpVersions::default(),
            remote_access: RemoteAccess::default(),
            limits: Limits::default(),
            observer: Observer::default(),
        }
    }
}

/// Whether a fake may listen on an address that other machines reach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RemoteAccess {
    /// Only on loopback addresses.
    #[default]
    Refused,
    /// On any address: a cluster has to reach it.
    Allowed,
}

/// How much a fake takes and keeps, so that no caller can fill the memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Calls in the journal; the oldest are forgotten first.
    pub journal_entries: usize,
    /// Bytes of the calls in the journal.
    pub journal_bytes: usize,
    /// Bytes of one body. A larger one is answered with 413.
    pub body_bytes: usize,
    /// Bytes of all bodies that are under way. What comes beyond that is answered with 503.
    pub bodies_bytes: usize,
    /// Calls of one fake that are under way. A further one is answered with 503.
    pub calls: usize,
    /// Connections of a port at a time, for each fake that it serves. For a further one the connection is closed that has
    /// been idle longest; while a call is under way on each of them, it waits.
    pub connections: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            journal_entries: 10_000,
            journal_bytes: 64 << 20,
            body_bytes: 8 << 20,
            bodies_bytes: 64 << 20,
            calls: 256,
            connections: 256,
        }
    }
}

/// Who is told of each call when it has ended. By default nobody.
#[derive(Clone, Default)]
pub struct Observer(Option<Arc<Observe>>);

type Observe = dyn Fn(&Entry) + Send + Sync;

impl Observer {
    /// Tells `observe` of each call. It must not block.
    pub fn new(observe: impl Fn(&Entry) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(observe)))
    }

    pub(crate) fn observe(&self, entry: &Entry) {
        if let Some(observe) = &self.0 {
            observe(entry);
        }
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Observer(..)" } else { "Observer(nobody)" })
    }
}

/// Why a fake could not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// Nobody allowed other machines to reach it.
    #[error(
        "{0} is not a loopback address, and remote access is not allowed (`allowRemote: true` or `--allow-remote`)"
    )]
    NotLoopback(SocketAddr),
    /// The address is taken or not of this machine.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// A name for the certificate is no name.
    #[error(transparent)]
    Name(#[from] InvalidName),
    /// No certificate could be made or used.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// A webhook that runs. Dropped means stopped.
#[derive(Debug)]
pub struct FakeWebhook {
    bound_port: BoundPort,
    endpoint: Arc<Endpoint>,
    shared: Shared,
    ca_bundle: String,
}

/// How the journal calls a fake that is alone.
const NAME: &str = "fake";

/// Fewer calls came than somebody waited for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{came} calls came within {within:?}, and not {expected}")]
pub struct TooFewCalls {
    /// How many were waited for.
    pub expected: usize,
    /// How many came.
    pub came: usize,
    /// How long was waited.
    pub within: Duration,
}

impl FakeWebhook {
    /// Starts a webhook that answers on every path.
    ///
    /// # Errors
    /// The address is taken or reachable from elsewhere, a name is no name, or no certificate could be made.
    pub async fn start(fake: Fake) -> Result<Self, StartError> {
        let transport = Transport {
            certificate: fake.certificate,
            rotate: fake.rotate,
            connection: fake.connection,
            http: fake.http,
        }
        .for_behavior(&fake.behavior);
        let shared = Shared::new(&fake.limits, |_| {});
        let endpoint = Endpoint::new(NAME, fake.behavior, &fake.limits, fake.observer, &shared);
        let endpoint = Arc::new(endpoint);
        let router = Router::new().fallback(Endpoint::call).with_state(Arc::clone(&endpoint));
        let authority = match fake.authority {
            Authority::Own => Arc::new(CertificateAuthority::new("admit test CA").map_err(TlsError::from)?),
            Authority::Shared(authority) => authority,
        };
        let socket = Socket {
            listen: fake.listen,
            remote_access: fake.remote_access,
            transport,
            names: fake.names.iter().map(|name| name.parse()).collect::<Result<_, _>>()?,
            connections: fake.limits.connections,
        };
        let bound_port = socket.serve(&authority, router, Arc::clone(&shared.metrics)).await?;
        let ca_bundle = bound_port.ca_bundle().unwrap_or(authority.certificate_pem()).to_owned();
        Ok(Self { bound_port, endpoint, shared, ca_bundle })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.bound_port.address()
    }

    /// A URL under which this machine reaches it, such as `https://127.0.0.1:8443/`.
    pub fn url(&self) -> String {
        let address = self.address();
        let host = match address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
            IpAddr::V4(_) | IpAddr::V6(_) => address.ip(),
        };
        format!("https://{}/", SocketAddr::new(host, address.port()))
    }

    /// What a caller is to trust, as PEM: the certificate of its authority, unless the certificate says otherwise.
    pub fn ca_bundle(&self) -> &str {
        &self.ca_bundle
    }

    /// The calls that it received, oldest first. Of very many calls the oldest are missing.
    pub fn journal(&self) -> Vec<Entry> {
        self.calls(&Filter::default())
    }

    /// The calls that are asked for, oldest first.
    pub fn calls(&self, filter: &Filter) -> Vec<Entry> {
        self.shared.journal.select(filter).into_iter().map(Arc::unwrap_or_clone).collect()
    }

    /// Waits until `count` calls have come, and returns all that are in the journal.
    ///
    /// # Errors
    /// They do not come in time.
    pub async fn wait_for_calls(&self, count: usize, within: Duration) -> Result<Vec<Entry>, TooFewCalls> {
        let came = self.shared.journal.wait(&Filter::default(), count, within).await;
        let journal = self.journal();
        if came { Ok(journal) } else { Err(TooFewCalls { expected: count, came: journal.len(), within }) }
    }

    /// How many calls are missing in the journal.
    pub fn forgotten(&self) -> u64 {
        self.shared.journal.dropped()
    }

    /// Forgets all calls; the next one counts as the first for the behavior.
    pub fn reset(&self) {
        self.endpoint.reset();
    }

    /// Shows a new certificate of this kind in every handshake from now on. Connections that are open stay.
    ///
    /// # Errors
    /// The certificate cannot be made.
    pub fn rotate(&self, certificate: Certificate) -> Result<(), TlsError> {
        self.bound_port.rotate(certificate)
    }

    /// How many side effects its behavior had since it was set.
    pub fn side_effects(&self) -> u64 {
        self.endpoint.side_effects()
    }

    /// Does something else from the next call on, which counts as its first.
    pub fn set_behavior(&self, behavior: Behavior) {
        self.endpoint.set_behavior(behavior);
    }

    /// Stops to listen, lets calls under way end for half a second, and returns when its port is free.
    pub async fn stop(self) {
        self.bound_port.close().await;
    }
}

/// A listener that is still to be made.
pub(crate) struct Socket {
    pub(crate) listen: SocketAddr,
    pub(crate) remote_access: RemoteAccess,
    pub(crate) transport: Transport,
    pub(crate) names: Vec<Name>,
    pub(crate) connections: usize,
}

impl Socket {
    /// Listens and serves `router` there. The certificate is also for `localhost` and the loopback addresses, or for
    /// the one address that it listens on.
    pub(crate) async fn serve(
        mut self,
        authority: &Arc<CertificateAuthority>,
        router: Router,
        metrics: Arc<Metrics>,
    ) -> Result<BoundPort, StartError> {
        let ip = self.listen.ip();
        if !ip.is_loopback() && self.remote_access == RemoteAccess::Refused {
            return Err(StartError::NotLoopback(self.listen));
        }
        if ip.is_loopback() || ip.is_unspecified() {
            self.names.push("localhost".parse()?);
            self.names.push(IpAddr::V4(Ipv4Addr::LOCALHOST).into());
            self.names.push(IpAddr::V6(Ipv6Addr::LOCALHOST).into());
        }
        if !ip.is_unspecified() && !self.names.contains(&ip.into()) {
            self.names.push(ip.into());
        }
        let cannot_listen = |source| StartError::Listen { address: self.listen, source };
        if self.transport.connection == Connection::Refused {
            return RefusingPort::bind_to(self.listen).map(BoundPort::Shut).map_err(cannot_listen);
        }
        let tls = Tls::new(Arc::clone(authority), self.names, self.transport)?;
        Listener::start(self.listen, self.transport.connection, tls, router, self.connections, metrics)
            .await
            .map(BoundPort::Open)
            .map_err(cannot_listen)
    }
}
