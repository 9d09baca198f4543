//! TCP connections to an IPv6 address, for a kube-apiserver that finds a service by an `ExternalName`.

use std::net::SocketAddr;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::LOOPBACK;
use crate::Failure;

/// Listens on a free port of 127.0.0.1 and passes each connection on, unread. Dropped means that nobody listens any more.
///
/// An `ExternalName` is a DNS name, which an IPv4 address is by its letters and an IPv6 address is not; a URL instead of
/// the service would make kube-apiserver ask for a certificate for the address.
///
/// Source: kubernetes pkg/apis/core/validation, `ValidateDNS1123Subdomain` of `externalName`; apiserver
/// pkg/util/proxy/proxy.go, `ResolveCluster`.
#[derive(Debug)]
pub(super) struct Relay {
    address: SocketAddr,
    listening: JoinHandle<()>,
}

impl Relay {
    /// Begins to listen for connections to `host`, an IPv6 address without brackets.
    ///
    /// # Errors
    /// No port of 127.0.0.1 is free.
    pub(super) async fn start(host: &str, port: u16) -> Result<Self, Failure> {
        let failed = |error| {
            Failure::environment(format!(
                "cannot listen on {LOOPBACK} for connections to [{host}]:{port}: {error}"
            ))
        };
        let listener = TcpListener::bind((LOOPBACK, 0)).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let there = (host.to_owned(), port);
        let listening = tokio::spawn(async move {
            // An error is one of a connection that is gone already.
            loop {
                if let Ok((from, _)) = listener.accept().await {
                    tokio::spawn(pass_on(from, there.clone()));
                }
            }
        });
        Ok(Self { address, listening })
    }

    /// Where it listens.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

/// Whoever cannot be reached closes the connection, as does whoever ends it.
async fn pass_on(mut from: TcpStream, (host, port): (String, u16)) {
    if let Ok(mut to) = TcpStream::connect((host.as_str(), port)).await {
        drop(copy_bidirectional(&mut from, &mut to).await);
    }
}
