//! Whether a client takes its answer.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use hyper::rt::Executor;
use tokio::time::{Instant, sleep_until};

use super::places::UnderWay;

/// A client that takes nothing of its answer for so long does not get the rest.
///
/// Source: kube-apiserver's `--request-timeout`, after which it cuts off the answer of a request that is no watch; here it
/// is any answer, and only one that is not read.
const UNREAD: Duration = Duration::from_secs(60);

/// Since when a piece of an answer waits for the client.
#[derive(Clone, Debug, Default)]
pub(super) struct Delivery(Arc<Mutex<Option<Instant>>>);

impl Delivery {
    fn waiting(&self) -> MutexGuard<'_, Option<Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns when a piece has waited for too long.
    async fn overdue(&self) {
        overdue(|| *self.waiting()).await;
    }
}

/// Returns when what it looks at has been waiting for too long.
async fn overdue(waiting: impl Fn() -> Option<Instant>) {
    loop {
        let now = Instant::now();
        let ends = waiting().unwrap_or(now) + UNREAD;
        if ends <= now {
            return;
        }
        sleep_until(ends).await;
    }
}

/// A body that says when its pieces are taken; its request is under way until it is dropped.
#[derive(Debug)]
pub(super) struct Delivered {
    pub(super) body: Body,
    pub(super) delivery: Delivery,
    pub(super) _request: UnderWay,
}

impl HttpBody for Delivered {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        // Who asks for the next piece has got rid of the last one.
        *self.delivery.waiting() = None;
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if let Poll::Ready(Some(Ok(_))) = &polled {
            *self.delivery.waiting() = Some(Instant::now());
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Delivered {
    fn drop(&mut self) {
        *self.delivery.waiting() = None;
    }
}

/// The answers of a connection. With HTTP/2 each has a stream of its own, which is reset if its client takes nothing of it,
/// while the others go on; with HTTP/1 there is one at a time.
#[derive(Clone, Debug, Default)]
pub(super) struct Deliveries {
    /// The latest, unless it has a stream: hyper makes one for a request as soon as it has called the service.
    latest: Arc<Mutex<Option<Delivery>>>,
}

impl Deliveries {
    fn latest(&self) -> MutexGuard<'_, Option<Delivery>> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// That of the answer to the next request.
    pub(super) fn next(&self) -> Delivery {
        let delivery = Delivery::default();
        *self.latest() = Some(delivery.clone());
        delivery
    }

    /// Returns when a piece of an answer without a stream has waited for too long.
    pub(super) async fn overdue(&self) {
        overdue(|| *self.latest().as_ref()?.waiting()).await;
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
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_piece_may_wait_for_its_client_and_an_answer_for_its_next_piece() {
        let delivery = Delivery::default();
        assert!(tokio::time::timeout(5 * UNREAD, delivery.overdue()).await.is_err());
        let started = Instant::now();
        *delivery.waiting() = Some(started);
        delivery.overdue().await;
        assert_eq!(started.elapsed(), UNREAD);
    }
}
