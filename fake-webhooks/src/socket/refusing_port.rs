//! Provides a port that reliably refuses connections.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use socket2::{Domain, Socket, Type};

/// A TCP port that stays reserved, without a listener, until this value is dropped.
#[derive(Debug)]
pub struct RefusingPort {
    address: SocketAddr,
    _socket: Socket,
}

impl RefusingPort {
    /// Reserves a free port of 127.0.0.1 without listening on it.
    ///
    /// # Errors
    /// Returns an error if a socket or port is not available.
    pub fn bind() -> io::Result<Self> {
        Self::bind_to(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))
    }

    /// Reserves the port of `address` without listening on it. If the port is 0, reserves a free port.
    ///
    /// # Errors
    /// Returns an error if a socket or the port is not available.
    pub fn bind_to(address: SocketAddr) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
        socket.bind(&address.into())?;
        let address = socket.local_addr()?.as_socket().ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok(Self { address, _socket: socket })
    }

    /// Returns the address that refuses connections.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns a URL that refuses connections.
    pub fn url(&self) -> String {
        format!("https://{}/", self.address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_refused() {
        let port = RefusingPort::bind().unwrap();
        let error = std::net::TcpStream::connect(port.address()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }
}
