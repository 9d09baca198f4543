//! Runs scenarios until all of them have ended or a signal arrives.

use std::future::Future;
use std::time::Duration;

use fake_webhooks::{StopSignal, StopSignals};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::live::Live;
use crate::screen;
use crate::target::TargetKind;

/// The reason why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// All scenarios have ended.
    Done,
    /// The process received this signal.
    Stopped(StopSignal),
}

/// Returns the number of signals that a run handles; any later signal ends the process immediately.
///
/// On a cluster, the second signal abandons the scenarios, and the third signal abandons the cleanup.
pub(crate) fn heeded(target: TargetKind) -> usize {
    match target {
        TargetKind::InProcess | TargetKind::Envtest => 1,
        TargetKind::Cluster => 3,
    }
}

/// Runs `run` until it ends or is abandoned.
///
/// After a signal, no scenario starts, and running scenarios continue so that they can clean up. The run abandons them
/// at the second signal that it handles, or after [`GRACE`].
pub(crate) async fn until_done(
    run: impl Future<Output = ()>,
    signals: &mut StopSignals,
    stop: &CancellationToken,
    live: &Live,
) -> End {
    tokio::pin!(run);
    let signal = tokio::select! {
        () = &mut run => return End::Done,
        signal = signals.next() => signal,
    };
    stop.cancel();
    screen::status!(
        "stopping: {} scenarios still run and clean up; send the signal again to abandon them",
        live.running()
    );
    tokio::select! {
        () = &mut run => {}
        _ = signals.next() => screen::print_status("abandoned the scenarios that still ran"),
        () = sleep_until(Instant::now() + GRACE) => screen::print_status("abandoned the scenarios that did not end"),
    }
    End::Stopped(signal)
}

/// The time to wait for running scenarios: the maximum timeout of a webhook, because a webhook may hang for that long.
const GRACE: Duration = Duration::from_secs(30);
