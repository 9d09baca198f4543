//! Runs work on separate threads.

use std::future::Future;

use kubernetes_admission::converter;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tracing::Instrument as _;

/// Runs long `work` on a separate thread. If the returned future is dropped, `work` ends at its next await point.
pub(crate) async fn run<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> T {
    let runtime = Handle::current();
    // The future is on the heap because it is moved several times and a YAML body of the maximum depth needs most of
    // the thread's stack.
    let work = converter::record_for_current_task(Box::pin(work)).in_current_span();
    let (_waits, gone) = oneshot::channel::<()>();
    let thread = tokio::task::spawn_blocking(move || {
        runtime.block_on(async {
            tokio::select! {
                done = work => Some(done),
                _ = gone => None,
            }
        })
    });
    joined(thread).await
}

/// Returns the result of a task and propagates a panic. Never returns if the task was canceled.
pub(crate) async fn joined<T>(task: JoinHandle<Option<T>>) -> T {
    match task.await {
        Ok(Some(done)) => done,
        Ok(None) => std::future::pending().await,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_cancelled) => std::future::pending().await,
        },
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn other_tasks_run_during_long_work() {
        let (go_on, waits) = std::sync::mpsc::channel();
        let work = run(async move { waits.recv_timeout(Duration::from_secs(60)) });
        // On this single-threaded runtime, work on the same thread would deadlock.
        let others = async { go_on.send("done") };
        let (done, sent) = tokio::join!(work, others);
        assert_eq!((done, sent), (Ok("done"), Ok(())));
    }

    #[tokio::test]
    async fn abandoned_work_is_canceled() {
        let (dropped, ends) = oneshot::channel::<()>();
        let mut work = Box::pin(run(async move {
            let _dropped = dropped;
            std::future::pending::<()>().await;
        }));
        assert!(futures::poll!(&mut work).is_pending());
        drop(work);
        assert!(ends.await.is_err(), "its values are dropped");
    }
}
