//! Ends connections whose clients do not read.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// The time after which a connection ends if the client reads nothing of what the server has to send.
///
/// A client that reads slowly is not affected, because each part that the socket accepts starts the time again.
pub(super) const UNREAD_TIMEOUT: Duration = Duration::from_secs(60);

/// A connection whose writes fail after the client has not read for [`UNREAD_TIMEOUT`].
#[derive(Debug)]
pub(super) struct Stalled<S> {
    stream: S,
    /// Runs while the socket does not accept data.
    timer: Option<Pin<Box<Sleep>>>,
}

impl<S> Stalled<S> {
    pub(super) fn new(stream: S) -> Self {
        Self { stream, timer: None }
    }

    /// Returns the result of a write, or an error if the timer of a pending write has run out.
    fn limit(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.timer = None;
            return written;
        }
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(UNREAD_TIMEOUT)));
        ready!(timer.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Stalled<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Stalled<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.limit(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.limit(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_write_fails_if_the_client_does_not_read() {
        let (server, client) = duplex(10);
        let mut server = Stalled::new(server);
        let started = Instant::now();
        server.write_all(&[0; 10]).await.unwrap();
        // A connection without data to send is not limited.
        sleep(10 * UNREAD_TIMEOUT).await;
        assert_eq!(server.write_all(&[0; 1]).await.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert_eq!(started.elapsed(), 11 * UNREAD_TIMEOUT);
        drop(client);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_slowly_gets_everything() {
        let (server, mut client) = duplex(10);
        let mut server = Stalled::new(server);
        let started = Instant::now();
        let read = async {
            for _ in 0..100 {
                sleep(UNREAD_TIMEOUT.saturating_sub(Duration::from_secs(1))).await;
                client.read_u8().await.unwrap();
            }
        };
        let (written, ()) = tokio::join!(server.write_all(&[0; 110]), read);
        written.unwrap();
        assert!(started.elapsed() > 90 * UNREAD_TIMEOUT);
    }
}
