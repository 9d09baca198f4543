//! Relays TCP connections of kube-apiserver from an `ExternalName` Service to an IPv6 address.

use std::net::SocketAddr;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::LOOPBACK;
use crate::Failure;

/// A listener on a free port of 127.0.0.1 that forwards each connection until it is dropped.
///
/// An `ExternalName` must have the syntax of a DNS name. IPv4 addresses have this syntax, but IPv6 addresses do not.
/// With a URL instead of a Service, kube-apiserver would require a certificate for the address.
///
/// Source: kubernetes pkg/apis/core/validation, `ValidateDNS1123Subdomain` of `externalName`; apiserver
/// pkg/util/proxy/proxy.go, `ResolveCluster`.
#[derive(Debug)]
pub(super) struct Relay {
    address: SocketAddr,
    listening: JoinHandle<()>,
}

impl Relay {
    /// Starts a relay to `host`, an IPv6 address without brackets.
    ///
    /// # Errors
    /// Returns an error if no port of 127.0.0.1 is available.
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
            // An error concerns a connection that has already been closed.
            loop {
                if let Ok((from, _)) = listener.accept().await {
                    tokio::spawn(pass_on(from, there.clone()));
                }
            }
        });
        Ok(Self { address, listening })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

/// Copies data in both directions, or closes the connection if the destination is unreachable.
async fn pass_on(mut from: TcpStream, (host, port): (String, u16)) {
    if let Ok(mut to) = TcpStream::connect((host.as_str(), port)).await {
        drop(copy_bidirectional(&mut from, &mut to).await);
    }
}
