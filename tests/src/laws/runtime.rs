//! A runtime of one thread: what a law does is the same each time.

use std::future::Future;

use tokio::runtime::{Builder, Runtime};

thread_local! {
    static RUNTIME: Runtime = Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap_or_else(|error| panic!("the machine gives no runtime: {error}"));
}

/// Runs `future` to its end on the runtime of this thread, and meanwhile what was spawned there.
pub(super) fn block_on<F: Future>(future: F) -> F::Output {
    RUNTIME.with(|runtime| runtime.block_on(future))
}
