//! Where a fake is reached: a socket that is served, or a port at which nobody listens.

use std::net::SocketAddr;

use crate::listener::Listener;
use crate::{Certificate, RefusingPort, TlsError};

/// Where a fake is reached.
#[derive(Debug)]
pub(crate) enum BoundPort {
    /// Connections are accepted.
    Open(Listener),
    /// They are refused.
    Shut(RefusingPort),
}

impl BoundPort {
    pub(crate) fn address(&self) -> SocketAddr {
        match self {
            Self::Open(listener) => listener.address(),
            Self::Shut(port) => port.address(),
        }
    }

    /// What goes into the caBundle of those who call; none where nobody can.
    pub(crate) fn ca_bundle(&self) -> Option<&str> {
        match self {
            Self::Open(listener) => Some(listener.tls().ca_bundle()),
            Self::Shut(_) => None,
        }
    }

    /// Serves so many connections at a time from now on.
    pub(crate) fn set_connections(&self, most: usize) {
        match self {
            Self::Open(listener) => listener.set_connections(most),
            Self::Shut(_) => {}
        }
    }

    /// Shows another certificate from now on.
    pub(crate) fn rotate(&self, certificate: Certificate) -> Result<(), TlsError> {
        match self {
            Self::Open(listener) => listener.tls().rotate(certificate),
            Self::Shut(_) => Ok(()),
        }
    }

    /// Gives the calls under way half a second, and returns when the port is free.
    pub(crate) async fn close(self) {
        match self {
            Self::Open(listener) => listener.stop().await,
            Self::Shut(_) => {}
        }
    }
}
