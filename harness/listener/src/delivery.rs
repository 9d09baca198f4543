//! Detects clients that do not read their responses.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use axum::body::{Body, Bytes};
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use hyper::rt::Executor;
use tokio::time::{Instant, sleep_until};

use crate::connection_slots::ActiveRequest;

/// The time after which a connection is closed if the client stops reading a response.
///
/// kube-apiserver cuts off every response except a watch after `--request-timeout`; admit cuts off any response that
/// the client does not read.
const UNREAD_TIMEOUT: Duration = Duration::from_secs(60);

/// A tracker that measures how long a chunk of a response has been waiting for the client to read it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Delivery(Arc<Mutex<Progress>>);

#[derive(Debug, Default)]
struct Progress {
    /// The time at which the current chunk was created; `None` if the chunk has been written to the connection.
    waiting: Option<Instant>,
    /// The task that waits to send the next chunk.
    next: Option<Waker>,
}

impl Delivery {
    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a chunk has been waiting longer than [`UNREAD_TIMEOUT`].
    async fn overdue(&self) {
        overdue(|| self.progress().waiting).await;
    }

    /// Wraps a chunk and measures how long it waits until it is dropped.
    fn begin(&self, bytes: Bytes) -> Bytes {
        if bytes.is_empty() {
            return bytes;
        }
        self.progress().waiting = Some(Instant::now());
        Bytes::from_owner(Chunk { bytes, delivery: self.clone() })
    }
}

/// A chunk in flight. It is dropped when it has been written to the connection.
struct Chunk {
    bytes: Bytes,
    delivery: Delivery,
}

impl AsRef<[u8]> for Chunk {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        let mut progress = self.delivery.progress();
        progress.waiting = None;
        let next = progress.next.take();
        drop(progress);
        if let Some(next) = next {
            next.wake();
        }
    }
}

/// Waits until a chunk has been waiting longer than [`UNREAD_TIMEOUT`]; `waiting` returns when it was created.
async fn overdue(waiting: impl Fn() -> Option<Instant>) {
    loop {
        let now = Instant::now();
        let ends = waiting().unwrap_or(now) + UNREAD_TIMEOUT;
        if ends <= now {
            return;
        }
        sleep_until(ends).await;
    }
}

/// A response body that tracks its chunks and sends one at a time.
///
/// At most one chunk is buffered for a slow client.
///
/// The request counts as active until the response body is dropped.
#[derive(Debug)]
pub(crate) struct Delivered {
    pub(crate) body: Body,
    pub(crate) delivery: Delivery,
    pub(crate) _request: ActiveRequest,
}

impl HttpBody for Delivered {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let mut progress = self.delivery.progress();
        if progress.waiting.is_some() {
            progress.next = Some(context.waker().clone());
            return Poll::Pending;
        }
        drop(progress);
        let polled = Pin::new(&mut self.body).poll_frame(context);
        polled.map(|frame| {
            frame.map(|frame| frame.map(|frame| frame.map_data(|bytes| self.delivery.begin(bytes))))
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The responses of a connection.
///
/// In HTTP/2, each response has its own stream. If the client does not read a response, only its stream is reset. In
/// HTTP/1, there is one response at a time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Deliveries {
    /// The latest response that has no stream yet. hyper creates the stream right after it has called the service.
    latest: Arc<Mutex<Option<Delivery>>>,
}

impl Deliveries {
    fn latest(&self) -> MutexGuard<'_, Option<Delivery>> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the tracker for the response to the next request.
    pub(crate) fn next(&self) -> Delivery {
        let delivery = Delivery::default();
        *self.latest() = Some(delivery.clone());
        delivery
    }

    /// Waits until a chunk of a response without a stream has been waiting longer than [`UNREAD_TIMEOUT`].
    pub(crate) async fn overdue(&self) {
        overdue(|| self.latest().as_ref()?.progress().waiting).await;
    }
}

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Deliveries {
    fn execute(&self, stream: F) {
        let delivery = self.latest().take().unwrap_or_default();
        tokio::spawn(async move {
            tokio::select! {
                () = stream => {}
                () = delivery.overdue() => {}
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;
    use crate::connection_slots::ConnectionSlots;

    #[tokio::test(start_paused = true)]
    async fn only_a_chunk_that_waits_for_its_client_times_out() {
        let delivery = Delivery::default();
        assert!(tokio::time::timeout(5 * UNREAD_TIMEOUT, delivery.overdue()).await.is_err());
        let started = Instant::now();
        let chunk = delivery.begin(Bytes::from_static(b"chunk"));
        // A chunk counts as unread while any part of it exists.
        let part = chunk.slice(4..);
        drop(chunk);
        delivery.overdue().await;
        assert_eq!(started.elapsed(), UNREAD_TIMEOUT);
        drop(part);
        assert!(tokio::time::timeout(5 * UNREAD_TIMEOUT, delivery.overdue()).await.is_err());
    }

    #[tokio::test]
    async fn the_next_chunk_follows_when_the_last_one_is_written() {
        let slot = ConnectionSlots::new().take().await;
        let pieces = ["a", "b"].map(|chunk| Ok::<_, std::io::Error>(Bytes::from_static(chunk.as_bytes())));
        let mut body = Delivered {
            body: Body::from_stream(futures::stream::iter(pieces)),
            delivery: Delivery::default(),
            _request: slot.watcher().request(true),
        };
        let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(first, "a");
        let mut next = body.frame();
        assert!(futures::poll!(&mut next).is_pending());
        let taken = async { drop(first) };
        let (next, ()) = tokio::join!(next, taken);
        assert_eq!(next.unwrap().unwrap().into_data().unwrap(), "b");
        assert!(body.frame().await.is_none());
    }
}
