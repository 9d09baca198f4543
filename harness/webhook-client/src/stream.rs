//! Wraps TCP connections so that errors include both addresses, as in Go.

use std::fmt;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper_util::rt::TokioIo;
use kubernetes_types::quoting::system_error;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// A TCP connection that remembers its addresses.
#[derive(Debug)]
pub(super) struct Stream {
    tcp: TcpStream,
    /// The local and the remote address. The system forgets them when the connection is reset.
    addresses: Option<(SocketAddr, SocketAddr)>,
}

/// Wraps the TCP connection `tcp` and remembers its addresses.
pub(super) fn dialled(tcp: TokioIo<TcpStream>) -> TokioIo<Stream> {
    let tcp = tcp.into_inner();
    let addresses = tcp.local_addr().ok().zip(tcp.peer_addr().ok());
    TokioIo::new(Stream { tcp, addresses })
}

/// Returns whether an error comes from an established connection, so that its message does not need a prefix.
pub(super) fn is_complete(error: &io::Error) -> bool {
    let text = error.to_string();
    [Operation::Read, Operation::Write].iter().any(|operation| text.starts_with(&format!("{operation} tcp ")))
}

/// An operation on a TCP connection, as error messages name it.
#[derive(Clone, Copy)]
enum Operation {
    Read,
    Write,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
        })
    }
}

impl Stream {
    fn tcp(self: Pin<&mut Self>) -> Pin<&mut TcpStream> {
        Pin::new(&mut self.get_mut().tcp)
    }

    /// Formats a system error as Go does.
    ///
    /// The result contains a string, because the HTTP/2 library keeps only the message of an error.
    ///
    /// Source: Go net/net.go, `OpError.Error`; `net/fd_posix.go`, `netFD.Read` and `netFD.Write`.
    fn error(&self, operation: Operation, error: io::Error) -> io::Error {
        let (Some((local, peer)), Some(_)) = (self.addresses, error.raw_os_error()) else { return error };
        let text = system_error(&error);
        io::Error::new(error.kind(), format!("{operation} tcp {local}->{peer}: {operation}: {text}"))
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = self.as_mut().tcp().poll_read(context, buffer);
        read.map_err(|error| self.error(Operation::Read, error))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = self.as_mut().tcp().poll_write(context, bytes);
        written.map_err(|error| self.error(Operation::Write, error))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = self.as_mut().tcp().poll_write_vectored(context, slices);
        written.map_err(|error| self.error(Operation::Write, error))
    }

    fn is_write_vectored(&self) -> bool {
        self.tcp.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.tcp().poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.tcp().poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn a_connection_error_names_both_addresses() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let peer = listener.local_addr().unwrap();
        let tcp = TcpStream::connect(peer).await.unwrap();
        let local = tcp.local_addr().unwrap();
        let mut stream = dialled(TokioIo::new(tcp)).into_inner();
        stream.write_all(b"never read").await.unwrap();
        let (other, _) = listener.accept().await.unwrap();
        // Closing a connection that has unread data resets it.
        other.readable().await.unwrap();
        drop(other);
        let error = stream.read(&mut [0]).await.unwrap_err();
        assert!(is_complete(&error));
        assert_eq!(error.to_string(), format!("read tcp {local}->{peer}: read: connection reset by peer"));
    }
}
