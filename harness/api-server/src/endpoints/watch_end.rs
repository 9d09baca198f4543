//! The reasons for the end of a watch.

use kubernetes_types::status::Status;

use crate::storage::HistoryExpired;

/// Signals that the watch ends after the events that have been written.
pub(crate) struct WatchEnded;

pub(crate) enum EndReason {
    /// The watch ends with an error event.
    Failed(Box<Status>),
    /// The watch ends without an error event.
    ///
    /// The reason is that the watcher lags too far behind, that the definition of the custom resource has changed, or
    /// that the client requests a representation that events do not support.
    Lags,
}

impl From<Box<Status>> for EndReason {
    fn from(status: Box<Status>) -> Self {
        Self::Failed(status)
    }
}

/// Source: apiserver `pkg/storage/cacher/cache_watcher.go`, `add` and `processInterval`: the channel is closed.
impl From<HistoryExpired> for EndReason {
    fn from(_: HistoryExpired) -> Self {
        Self::Lags
    }
}
