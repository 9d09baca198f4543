//! Reads TLS connections that end without a `close_notify` as Go does.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::client::TlsStream;

use super::stream::Stream;

/// The length of the header of a TLS record. Its last two bytes are the length of the rest.
const HEADER: usize = 5;

/// A TCP connection that knows whether a TLS record has been received completely.
#[derive(Debug)]
pub(super) struct Records {
    tcp: Stream,
    /// The number of received bytes of the current header; [`HEADER`] while the rest of the record arrives.
    header: usize,
    /// The number of bytes that the current record lacks after its header.
    rest: usize,
}

impl Records {
    /// Wraps a connection on which no TLS record has been received.
    pub(super) fn new(tcp: Stream) -> Self {
        Self { tcp, header: 0, rest: 0 }
    }

    fn receive(&mut self, mut bytes: &[u8]) {
        while let Some((first, after)) = bytes.split_first() {
            if self.header < HEADER {
                match self.header {
                    3 => self.rest = usize::from(*first) << 8,
                    4 => self.rest |= usize::from(*first),
                    _ => {}
                }
                self.header += 1;
                bytes = after;
            } else {
                let (read, after) = bytes.split_at(self.rest.min(bytes.len()));
                self.rest -= read.len();
                bytes = after;
            }
            if self.header == HEADER && self.rest == 0 {
                self.header = 0;
            }
        }
    }
}

impl AsyncRead for Records {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.tcp).poll_read(context, buffer);
        self.receive(buffer.filled().get(before..).unwrap_or_default());
        read
    }
}

impl AsyncWrite for Records {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.tcp).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.tcp).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.tcp.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_shutdown(context)
    }
}

/// A TLS connection on which the end between two records is the end of the data, even without a `close_notify`.
///
/// Source: Go crypto/tls/conn.go, `readRecordOrCCS`.
#[derive(Debug)]
pub(super) struct LenientTls(pub(super) TlsStream<Records>);

impl AsyncRead for LenientTls {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.0).poll_read(context, buffer);
        match read {
            Poll::Ready(Err(error))
                if error.kind() == io::ErrorKind::UnexpectedEof && self.0.get_ref().0.header == 0 =>
            {
                Poll::Ready(Ok(()))
            }
            read @ (Poll::Ready(_) | Poll::Pending) => read,
        }
    }
}

impl AsyncWrite for LenientTls {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::{TcpListener, TcpStream};

    use super::super::stream::dialled;
    use super::*;

    #[tokio::test]
    async fn record_is_complete_after_its_last_byte() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let tcp = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let received = [22, 3, 3, 0, 2, 7, 7, 23, 3, 3, 0, 0, 23, 3, 3, 1, 0];
        let ends = [7, 12];
        let mut records = Records::new(dialled(hyper_util::rt::TokioIo::new(tcp)).into_inner());
        for (count, byte) in (1..).zip(received) {
            records.receive(&[byte]);
            assert_eq!(records.header == 0, ends.contains(&count), "{count}");
        }
        records.receive(&[0; 256]);
        assert_eq!(records.header, 0);
        records.receive(&received[..9]);
        assert_eq!(records.header, 2);
    }
}
