//! Where a fake is reached: a socket that is served, or a port at which nobody listens.

use std::net::SocketAddr;

use crate::listener::Listener;
use crate::{Certificate, RefusingPort, TlsError};

/// Where a fake is reached.
#[derive(Debug)]
pub(crate) enum Door {
    /// Connections are accepted.
    Open(Listener),
    /// They are refused.
    Shut(RefusingPort),
}

impl Door {
    pub(crate) fn address(&self) -> SocketAddr {
        match self {
            Self::Open(listener) => listener.address(),
            Self::Shut(port) => port.address(),
        }
    }

    /// Every handshake from now on shows a new certificate of this kind. Where there are none, nothing changes.
    pub(crate) fn rotate(&self, certificate: Certificate) -> Result<(), TlsError> {
        match self {
            Self::Open(listener) => listener.rotate(certificate),
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
