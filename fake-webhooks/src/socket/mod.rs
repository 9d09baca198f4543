//! Serves a router on a port, with TLS and a maximum number of connections.

mod bound_port;
mod extensions;
mod http;
mod listener;
mod refusing_port;
mod slots;
mod tls;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use axum::Router;
use certs::{CertificateAuthority, InvalidName, Name};

pub(crate) use self::bound_port::BoundPort;
pub(crate) use self::extensions::{CallPermit, ClientCertificate, CloseConnection};
use self::listener::Listener;
pub use self::refusing_port::RefusingPort;
use self::tls::Tls;
pub use self::tls::TlsError;
use crate::metrics::Metrics;
use crate::{Connection, RemoteAccess, Transport};

/// The reason why a fake or the admin endpoint could not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// Other machines could reach the address, but remote access is not allowed.
    #[error(
        "invalid address {0}: must be a loopback address unless `allowRemote: true` or --allow-remote is set"
    )]
    NotLoopback(SocketAddr),
    /// The address is in use or does not belong to this machine.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address to listen on.
        address: SocketAddr,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A name for the certificate is invalid.
    #[error(transparent)]
    Name(#[from] InvalidName),
    /// The certificate could not be created or used.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// The parameters of a listener.
pub(crate) struct Socket {
    pub(crate) listen: SocketAddr,
    pub(crate) remote_access: RemoteAccess,
    pub(crate) transport: Transport,
    pub(crate) names: Vec<Name>,
    pub(crate) connections: usize,
}

impl Socket {
    /// Listens on the address and serves `router`.
    ///
    /// The certificate includes the address to listen on, unless the address is unspecified (`0.0.0.0` or `::`). If the
    /// address is unspecified or a loopback address, the certificate also includes `localhost` and the loopback
    /// addresses.
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
