//! Serves the admin endpoint. Clients with its token can inspect and change a running fleet over HTTPS.

mod error;
mod routes;
mod token;

use std::net::SocketAddr;
use std::sync::Arc;

pub use self::token::{InvalidToken, Token};
use crate::running::Running;
use crate::socket::{BoundPort, Socket, StartError};
use crate::{RemoteAccess, Transport};

/// The options of the admin endpoint.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AdminOptions {
    /// The address to listen on; port 0 uses a free port.
    pub listen: SocketAddr,
    /// Whether `listen` may be an address that other machines can reach.
    pub remote_access: RemoteAccess,
    /// The token that requests must contain.
    pub token: Token,
}

/// The admin endpoint of a fleet. It stops when dropped.
#[derive(Debug)]
pub(crate) struct Admin {
    bound_port: BoundPort,
}

/// The maximum number of connections. A new connection replaces idle connections first, even unauthenticated ones.
const CONNECTIONS: usize = 64;

impl AdminOptions {
    /// Creates options for a loopback address and a token.
    pub fn new(listen: SocketAddr, token: Token) -> Self {
        Self { listen, remote_access: RemoteAccess::Refused, token }
    }
}

impl Admin {
    /// Starts the endpoint with a certificate from the fakes' certificate authority. The certificate is not rotated.
    pub(crate) async fn start(options: AdminOptions, running: &Arc<Running>) -> Result<Self, StartError> {
        let socket = Socket {
            listen: options.listen,
            remote_access: options.remote_access,
            transport: Transport::default(),
            names: vec![running.home().host.clone()],
            connections: CONNECTIONS,
        };
        let router = routes::router(Arc::clone(running), options.token);
        let metrics = Arc::clone(&running.shared().metrics);
        let bound_port = socket.serve(running.authority(), router, metrics).await?;
        Ok(Self { bound_port })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.bound_port.address()
    }

    pub(crate) async fn stop(self) {
        self.bound_port.close().await;
    }
}
