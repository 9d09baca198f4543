//! What ends a run: the last scenario, or somebody who has seen enough.

use std::future::Future;
use std::time::Duration;

use fake_webhooks::{StopSignal, StopSignals};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::live::Live;
use crate::screen;
use crate::target::TargetKind;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Everything had its turn.
    Done,
    /// This signal came.
    Stopped(StopSignal),
}

/// How many signals a run heeds itself; the one after those ends the process at once. On a cluster the second leaves the
/// scenarios behind, and the third what is still to be removed from the cluster.
pub(crate) fn heeded(target: TargetKind) -> usize {
    match target {
        TargetKind::InProcess | TargetKind::Envtest => 1,
        TargetKind::Cluster => 3,
    }
}

/// Runs `run` to its end. After a signal no scenario starts, and those that run may end, so that they remove what they
/// made; a second signal, if the run heeds it, or [`GRACE`], leaves them behind.
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

/// A webhook may hang for as long as a webhook's longest timeout.
const GRACE: Duration = Duration::from_secs(30);
