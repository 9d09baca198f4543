//! Provides a single-threaded runtime on which laws run deterministically.

use std::future::Future;

use tokio::runtime::{Builder, Runtime};

thread_local! {
    static RUNTIME: Runtime = Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap_or_else(|error| panic!("the machine gives no runtime: {error}"));
}

/// Runs `future`, and the tasks that it spawns, on the runtime of this thread until `future` completes.
pub(super) fn block_on<F: Future>(future: F) -> F::Output {
    RUNTIME.with(|runtime| runtime.block_on(future))
}
