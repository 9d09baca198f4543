//! Handles client disconnects during a request.

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
pub(crate) struct ClientDisconnect {
    disconnected: CancellationToken,
    /// Whether a disconnect cancels the request. True only during admission.
    cancels_admission: AtomicBool,
}

impl ClientDisconnect {
    /// Runs `admission` until it completes or the client disconnects.
    ///
    /// # Errors
    /// Returns the error from `admission`, or 504 if the client has disconnected.
    ///
    /// Source: apiserver pkg/endpoints/handlers/finisher/finisher.go, `finishRequest`.
    /// Rule: AUD-13.
    pub(crate) async fn run_admission<T, E: From<Box<Status>>>(
        &self,
        admission: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        self.cancels_admission.store(true, Ordering::Relaxed);
        let done = select! {
            biased;
            done = admission => done,
            () = self.disconnected.cancelled() => return Err(cancelled().into()),
        };
        self.cancels_admission.store(false, Ordering::Relaxed);
        done
    }
}

/// Runs `work` in a separate task that `tasks` tracks. `work` responds to a request.
///
/// If the client disconnects [during admission](ClientDisconnect::run_admission), `work` runs to completion, so that
/// the audit log and the records include the request. A disconnect at any other time cancels `work`.
pub(crate) async fn run_to_completion<T: Send + 'static>(
    tasks: &TaskTracker,
    client_disconnect: Arc<ClientDisconnect>,
    work: impl Future<Output = T> + Send + 'static,
) -> T {
    let _disconnected = client_disconnect.disconnected.clone().drop_guard();
    let work = async move {
        let mut work = Box::pin(work);
        select! {
            biased;
            done = &mut work => return Some(done),
            () = client_disconnect.disconnected.cancelled() => {}
        }
        if client_disconnect.cancels_admission.load(Ordering::Relaxed) { Some(work.await) } else { None }
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
        let client_disconnect = Arc::new(ClientDisconnect::default());
        let (runs, running) = oneshot::channel();
        let (ended, end) = oneshot::channel();
        let inner = Arc::clone(&client_disconnect);
        let work = async move {
            let waiting = async {
                let _ = runs.send(());
                pending::<Result<(), Box<Status>>>().await
            };
            let done = if heeds { inner.run_admission(waiting).await } else { waiting.await };
            let _ = ended.send(done.map_err(|status| status.code));
        };
        let tasks = TaskTracker::new();
        let client = tokio::spawn({
            let tasks = tasks.clone();
            async move { run_to_completion(&tasks, client_disconnect, work).await }
        });
        running.await.unwrap();
        client.abort();
        let ends = end.await.is_ok_and(|done| done == Err(504));
        tasks.close();
        tasks.wait().await;
        ends
    }

    #[tokio::test]
    async fn only_admission_completes_after_a_disconnect() {
        assert!(ends_when_left(true).await);
        assert!(!ends_when_left(false).await);
    }

    #[tokio::test]
    async fn connected_client_receives_the_result() {
        let client_disconnect = Arc::new(ClientDisconnect::default());
        let inner = Arc::clone(&client_disconnect);
        let work = async move { inner.run_admission(async { Ok::<_, Box<Status>>(7) }).await };
        assert_eq!(run_to_completion(&TaskTracker::new(), client_disconnect, work).await.unwrap(), 7);
    }
}
