//! The bytes that requests and answers of the whole server may have under way.
//!
//! kube-apiserver limits the requests under way (`--max-requests-inflight`), and a request is small beside a server of
//! a cluster. Here a hundred bodies or answers of the largest size would be most of what a laptop has, so that bytes
//! are counted instead of requests.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::status::Status;

/// Seconds after which a client that was refused may try again.
///
/// Source: apiserver pkg/server/filters/maxinflight.go, `retryAfter`.
const RETRY_AFTER: i32 = 1;

/// Bytes that are shared; clones share the same ones.
#[derive(Clone, Debug)]
pub(super) struct Budget(Arc<Semaphore>);

/// A share of a [`Budget`], given back when it is dropped.
#[derive(Debug)]
pub(super) struct Reservation(OwnedSemaphorePermit);

impl Budget {
    pub(super) fn new(bytes: usize) -> Self {
        Self(Arc::new(Semaphore::new(bytes)))
    }

    /// Reserves so many bytes.
    ///
    /// # Errors
    /// 429 if others have them.
    pub(super) fn try_reserve(&self, bytes: usize) -> Result<Reservation, Box<Status>> {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let permit = Arc::clone(&self.0).try_acquire_many_owned(bytes);
        permit.map(Reservation).map_err(|_none_left| Box::new(Status::too_many_requests(RETRY_AFTER)))
    }

    /// Reserves so many bytes, after all who asked earlier.
    pub(super) async fn reserve(&self, bytes: usize) -> Option<Reservation> {
        let bytes = u32::try_from(bytes).ok()?;
        // It is never closed.
        Arc::clone(&self.0).acquire_many_owned(bytes).await.ok().map(Reservation)
    }

    /// The bytes that nobody has.
    #[cfg(test)]
    pub(super) fn available(&self) -> usize {
        self.0.available_permits()
    }
}

impl Reservation {
    /// Reserves more of the same budget.
    ///
    /// # Errors
    /// 429 if others have it.
    pub(super) fn try_grow(&mut self, bytes: usize) -> Result<(), Box<Status>> {
        let budget = Budget(Arc::clone(self.0.semaphore()));
        self.0.merge(budget.try_reserve(bytes)?.0);
        Ok(())
    }

    /// Reserves so many bytes instead of those that it has.
    ///
    /// # Errors
    /// 429 if others have them.
    pub(super) fn resize(&mut self, bytes: usize) -> Result<(), Box<Status>> {
        let had = self.0.num_permits();
        if let Some(more) = bytes.checked_sub(had) {
            self.try_grow(more)?;
        }
        drop(self.0.split(had.saturating_sub(bytes)));
        Ok(())
    }

    /// Bytes that keep their reservation until the last of them is gone, which is when they were written to a socket.
    pub(super) fn hold(self, mut bytes: Vec<u8>) -> Bytes {
        // What grew may have twice the room.
        bytes.shrink_to_fit();
        Bytes::from_owner(Held { bytes, _reservation: self })
    }
}

struct Held {
    bytes: Vec<u8>,
    _reservation: Reservation,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests;
