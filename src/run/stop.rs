//! What ends a run: the last scenario, or somebody who has seen enough.

use std::future::Future;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::live::Live;
use crate::Failure;

/// SIGINT and SIGTERM, which mean the same to us.
#[derive(Debug)]
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Everything had its turn.
    Done,
    /// A signal came.
    Stopped,
}

impl Signals {
    /// From now on the signals no longer end the process.
    pub(crate) fn listen() -> Result<Self, Failure> {
        let listen = |kind| {
            signal(kind).map_err(|error| Failure::environment(format!("cannot listen for signals: {error}")))
        };
        Ok(Self { interrupt: listen(SignalKind::interrupt())?, terminate: listen(SignalKind::terminate())? })
    }

    /// Waits for the next signal.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// Runs `run` to its end. After a signal no scenario starts, and those that run may end, so that they remove what they
/// made; a second signal, or [`GRACE`], leaves them behind.
pub(crate) async fn until_done(
    run: impl Future<Output = ()>,
    signals: &mut Signals,
    stop: &CancellationToken,
    live: &Live,
) -> End {
    tokio::pin!(run);
    tokio::select! {
        () = &mut run => return End::Done,
        () = signals.next() => {}
    }
    stop.cancel();
    live.say(&format!(
        "stopping: {} scenarios still run and clean up; once more to leave them",
        live.running()
    ));
    tokio::select! {
        () = &mut run => {}
        () = signals.next() => live.say("left running scenarios behind"),
        () = sleep_until(Instant::now() + GRACE) => live.say("left scenarios behind that did not end"),
    }
    End::Stopped
}

/// A webhook may hang for as long as a webhook's longest timeout.
const GRACE: Duration = Duration::from_secs(30);
