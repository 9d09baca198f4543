//! Observing and steering a running fleet over HTTPS, for those who have its token.

mod error;
mod routes;
mod token;

use std::net::SocketAddr;
use std::sync::Arc;

pub use self::token::{InvalidToken, Token};
use crate::bound_port::BoundPort;
use crate::fleet::Running;
use crate::server::Socket;
use crate::{RemoteAccess, StartError, Transport};

/// Where and by whom a running fleet is steered.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AdminOptions {
    /// Where the admin endpoint listens; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Whether `listen` may be an address that other machines reach.
    pub remote_access: RemoteAccess,
    /// What a request has to show.
    pub token: Token,
}

/// The admin endpoint of a fleet. Dropped means stopped.
#[derive(Debug)]
pub(crate) struct Admin {
    bound_port: BoundPort,
}

/// Few people steer. A stranger's connection, which has no call under way but for the moment that the token takes, makes
/// room for theirs.
const CONNECTIONS: usize = 64;

impl AdminOptions {
    /// Listens on a loopback address, for those who have `token`.
    pub fn new(listen: SocketAddr, token: Token) -> Self {
        Self { listen, remote_access: RemoteAccess::Refused, token }
    }
}

impl Admin {
    /// Listens with a certificate of the fakes' authority that no rotation touches.
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
