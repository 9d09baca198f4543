//! Represents the port of a fake.

use std::net::SocketAddr;

use super::listener::Listener;
use super::{RefusingPort, TlsError};
use crate::Certificate;

/// The port of a fake, which either accepts or refuses connections.
#[derive(Debug)]
pub(crate) enum BoundPort {
    /// The port accepts connections.
    Open(Listener),
    /// The port refuses connections.
    Shut(RefusingPort),
}

impl BoundPort {
    pub(crate) fn address(&self) -> SocketAddr {
        match self {
            Self::Open(listener) => listener.address(),
            Self::Shut(port) => port.address(),
        }
    }

    /// Returns the `caBundle`, or `None` if connections are refused.
    pub(crate) fn ca_bundle(&self) -> Option<&str> {
        match self {
            Self::Open(listener) => Some(listener.tls().ca_bundle()),
            Self::Shut(_) => None,
        }
    }

    /// Changes the maximum number of connections.
    pub(crate) fn set_connections(&self, most: usize) {
        match self {
            Self::Open(listener) => listener.set_connections(most),
            Self::Shut(_) => {}
        }
    }

    /// Uses a new certificate for new handshakes.
    pub(crate) fn rotate(&self, certificate: Certificate) -> Result<(), TlsError> {
        match self {
            Self::Open(listener) => listener.tls().rotate(certificate),
            Self::Shut(_) => Ok(()),
        }
    }

    /// Waits up to half a second for calls in progress and frees the port.
    pub(crate) async fn close(self) {
        match self {
            Self::Open(listener) => listener.stop().await,
            Self::Shut(_) => {}
        }
    }
}
