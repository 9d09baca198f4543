//! Runs one fake on its own port, with a journal.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use certs::CertificateAuthority;

use crate::endpoint::{Endpoint, Shared};
use crate::socket::{BoundPort, Socket, StartError, TlsError};
use crate::{
    Authority, Behavior, Certificate, Connection, Entry, Filter, HttpVersions, Limits, Observer,
    RemoteAccess, Transport,
};

/// The specification of a fake: its behavior and its transport.
#[derive(Clone, Debug)]
pub struct Fake {
    /// The behavior of the fake.
    pub behavior: Behavior,
    /// The kind of server certificate that the fake presents.
    pub certificate: Certificate,
    /// The kind of certificate after the first handshake, or `None` if the certificate does not change.
    pub rotate: Option<Certificate>,
    /// How the fake treats connections.
    pub connection: Connection,
    /// The issuer of the certificate.
    pub authority: Authority,
    /// The address to listen on; port 0 uses a free port.
    pub listen: SocketAddr,
    /// Additional DNS names and addresses in the certificate.
    pub names: Vec<String>,
    /// The HTTP versions that the fake offers.
    pub http: HttpVersions,
    /// Whether the fake may listen on an address that other machines can reach.
    pub remote_access: RemoteAccess,
    /// The limits of the fake.
    pub limits: Limits,
    /// The callback that receives each completed call.
    pub observer: Observer,
}

/// Creates a fake that allows requests, with a valid certificate, on a free port of 127.0.0.1.
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

/// A running webhook. It stops when dropped.
#[derive(Debug)]
pub struct FakeWebhook {
    bound_port: BoundPort,
    endpoint: Arc<Endpoint>,
    shared: Shared,
    ca_bundle: String,
}

/// The name of a single fake in the journal.
const NAME: &str = "fake";

/// The error if fewer calls arrived than expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected} calls within {within:?}, received {came}")]
pub struct TooFewCalls {
    /// The expected number of calls.
    pub expected: usize,
    /// The number of calls that arrived.
    pub came: usize,
    /// The maximum time to wait for the calls.
    pub within: Duration,
}

impl FakeWebhook {
    /// Starts a webhook that responds on every path.
    ///
    /// # Errors
    /// Returns an error if the address is in use or not allowed, a name is invalid, or the certificate cannot be
    /// created.
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

    /// Returns the address of the webhook.
    pub fn address(&self) -> SocketAddr {
        self.bound_port.address()
    }

    /// Returns a URL for callers on this machine, such as `https://127.0.0.1:8443/`.
    pub fn url(&self) -> String {
        let address = self.address();
        let host = match address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
            IpAddr::V4(_) | IpAddr::V6(_) => address.ip(),
        };
        format!("https://{}/", SocketAddr::new(host, address.port()))
    }

    /// Returns the `caBundle` for callers, usually the CA certificate, in PEM format.
    pub fn ca_bundle(&self) -> &str {
        &self.ca_bundle
    }

    /// Returns the calls in the journal, oldest first.
    pub fn journal(&self) -> Vec<Entry> {
        self.calls(&Filter::default())
    }

    /// Returns the calls that match the filter, oldest first.
    pub fn calls(&self, filter: &Filter) -> Vec<Entry> {
        self.shared.journal.select(filter).into_iter().map(Arc::unwrap_or_clone).collect()
    }

    /// Waits for `count` calls and returns all calls in the journal.
    ///
    /// # Errors
    /// Returns an error if fewer calls arrive before the timeout.
    pub async fn wait_for_calls(&self, count: usize, within: Duration) -> Result<Vec<Entry>, TooFewCalls> {
        let came = self.shared.journal.wait(&Filter::default(), count, within).await;
        let journal = self.journal();
        if came { Ok(journal) } else { Err(TooFewCalls { expected: count, came: journal.len(), within }) }
    }

    /// Returns the number of calls that were dropped from the journal.
    pub fn forgotten(&self) -> u64 {
        self.shared.journal.dropped()
    }

    /// Forgets all calls and resets the call counter of the behavior.
    pub fn reset(&self) {
        self.endpoint.reset();
    }

    /// Issues a certificate of the kind `certificate` for new handshakes. Open connections are kept.
    ///
    /// # Errors
    /// Returns an error if the certificate cannot be created.
    pub fn rotate(&self, certificate: Certificate) -> Result<(), TlsError> {
        self.bound_port.rotate(certificate)
    }

    /// Returns the number of side effects that the current behavior has counted.
    pub fn side_effects(&self) -> u64 {
        self.endpoint.side_effects()
    }

    /// Changes the behavior for new calls and resets its call counter.
    pub fn set_behavior(&self, behavior: Behavior) {
        self.endpoint.set_behavior(behavior);
    }

    /// Stops listening, waits up to half a second for calls in progress, and frees the port.
    pub async fn stop(self) {
        self.bound_port.close().await;
    }
}
