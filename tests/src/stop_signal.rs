//! Waits for the signals that stop a tool.

use std::io;

use tokio::signal::unix::{SignalKind, signal};

/// Waits for SIGINT or SIGTERM, from the first time that the future is polled.
///
/// # Errors
/// Returns the error if the signals cannot be registered.
pub async fn received() -> io::Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        _ = interrupt.recv() => Ok(()),
        _ = terminate.recv() => Ok(()),
    }
}
