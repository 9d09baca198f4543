//! A port that is certain to refuse connections.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use socket2::{Domain, Socket, Type};

/// A TCP port that nobody listens on, and that nobody else can take as long as this lives.
#[derive(Debug)]
pub struct RefusingPort {
    address: SocketAddr,
    _socket: Socket,
}

impl RefusingPort {
    /// Takes a free port of 127.0.0.1 without listening on it.
    ///
    /// # Errors
    /// The system gives no socket or no port.
    pub fn bind() -> io::Result<Self> {
        Self::bind_to(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))
    }

    /// Takes this port, or a free one for port 0, without listening on it.
    ///
    /// # Errors
    /// The system gives no socket, or not this port.
    pub fn bind_to(address: SocketAddr) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
        socket.bind(&address.into())?;
        let address = socket.local_addr()?.as_socket().ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok(Self { address, _socket: socket })
    }

    /// Where connections are refused.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A URL at which connections are refused.
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
