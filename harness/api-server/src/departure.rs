//! Client disconnects during a request.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kubernetes_types::status::Status;
use tokio::select;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

use super::off_thread;

/// Reports whether the client of a request has disconnected.
#[derive(Debug, Default)]
pub(super) struct Departure {
    gone: CancellationToken,
    /// Whether the request is in admission, which ends when the client disconnects.
    is_heeded: AtomicBool,
}

impl Departure {
    /// Runs `admission` until it completes or the client disconnects.
    ///
    /// # Errors
    /// The error of `admission`; 504 if the client has disconnected.
    ///
    /// Source: apiserver pkg/endpoints/handlers/finisher/finisher.go, `finishRequest`.
    /// Rule: AUD-13.
    pub(super) async fn cuts_off<T, E: From<Box<Status>>>(
        &self,
        admission: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        self.is_heeded.store(true, Ordering::Relaxed);
        let done = select! {
            biased;
            done = admission => done,
            () = self.gone.cancelled() => return Err(cancelled().into()),
        };
        self.is_heeded.store(false, Ordering::Relaxed);
        done
    }
}

/// Answers a request in its own task, one of `tasks`. If the client disconnects [during
/// admission](Departure::cuts_off), `work` still runs to completion, so that the audit log and the records include the
/// request; otherwise it is canceled.
pub(super) async fn outlived<T: Send + 'static>(
    tasks: &TaskTracker,
    departure: Arc<Departure>,
    work: impl Future<Output = T> + Send + 'static,
) -> T {
    let _gone = departure.gone.clone().drop_guard();
    let work = async move {
        let mut work = Box::pin(work);
        select! {
            biased;
            done = &mut work => return Some(done),
            () = departure.gone.cancelled() => {}
        }
        if departure.is_heeded.load(Ordering::Relaxed) { Some(work.await) } else { None }
    };
    off_thread::joined(tasks.spawn(work.in_current_span())).await
}

fn cancelled() -> Box<Status> {
    Box::new(Status::timeout("request did not complete within requested timeout - context canceled"))
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::sync::oneshot;

    use super::*;

    /// Returns whether work runs to completion after its client disconnects.
    async fn ends_when_left(heeds: bool) -> bool {
        let departure = Arc::new(Departure::default());
        let (runs, running) = oneshot::channel();
        let (ended, end) = oneshot::channel();
        let inner = Arc::clone(&departure);
        let work = async move {
            let waiting = async {
                let _ = runs.send(());
                pending::<Result<(), Box<Status>>>().await
            };
            let done = if heeds { inner.cuts_off(waiting).await } else { waiting.await };
            let _ = ended.send(done.map_err(|status| status.code));
        };
        let tasks = TaskTracker::new();
        let client = tokio::spawn({
            let tasks = tasks.clone();
            async move { outlived(&tasks, departure, work).await }
        });
        running.await.unwrap();
        client.abort();
        let ends = end.await.is_ok_and(|done| done == Err(504));
        tasks.close();
        tasks.wait().await;
        ends
    }

    #[tokio::test]
    async fn only_admission_is_cut_off_with_an_end() {
        assert!(ends_when_left(true).await);
        assert!(!ends_when_left(false).await);
    }

    #[tokio::test]
    async fn a_client_that_stays_gets_what_the_work_comes_to() {
        let departure = Arc::new(Departure::default());
        let inner = Arc::clone(&departure);
        let work = async move { inner.cuts_off(async { Ok::<_, Box<Status>>(7) }).await };
        assert_eq!(outlived(&TaskTracker::new(), departure, work).await.unwrap(), 7);
    }
}
