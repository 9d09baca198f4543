//! Limits the memory of requests, responses, reviews, and events in flight.
//!
//! kube-apiserver limits only the number of requests in flight (`--max-requests-inflight`), because a request is small
//! compared with the memory of a cluster's server. Here, a hundred bodies or responses of the maximum size would take
//! most of a laptop's memory, so bytes are limited, too.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::status::{Status, Unsupported};

/// The `Retry-After` value, in seconds, for a rejected client.
///
/// Source: apiserver pkg/server/filters/maxinflight.go, `retryAfter`.
const RETRY_AFTER: i32 = 1;

/// A limited number of bytes or slots. Clones share the same budget.
#[derive(Clone, Debug)]
pub struct Budget {
    left: Arc<Semaphore>,
    all: usize,
}

/// A share of a [`Budget`], released when it is dropped.
#[derive(Debug)]
pub struct Reservation {
    budget: Budget,
    /// The reserved bytes.
    used: usize,
    /// The number of reserved bytes that are free: they are not taken from the budget.
    free: usize,
    /// The permit for the bytes that are taken from the budget.
    permit: OwnedSemaphorePermit,
    /// Another reservation that is released together with this one.
    _place: Option<Box<Reservation>>,
}

/// The reason why a reservation failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exhausted {
    /// Other reservations do not leave enough of the budget.
    InUse,
    /// The request exceeds the whole budget; contains the size of the budget.
    ExceedsTotal(usize),
}

impl Budget {
    /// Creates a budget of `all` bytes or slots.
    pub fn new(all: usize) -> Self {
        let all = all.min(Semaphore::MAX_PERMITS).min(u32::MAX as usize);
        Self { left: Arc::new(Semaphore::new(all)), all }
    }

    /// Reserves `bytes` without waiting.
    ///
    /// # Errors
    /// Returns [`Exhausted`] if fewer bytes are left in the budget.
    pub fn try_reserve(&self, bytes: usize) -> Result<Reservation, Exhausted> {
        let mut reservation = self.share(0);
        reservation.resize(bytes)?;
        Ok(reservation)
    }

    /// Returns an empty reservation whose first `free` bytes are not taken from the budget.
    pub fn share(&self, free: usize) -> Reservation {
        // Acquiring zero permits always succeeds.
        let permit = Arc::clone(&self.left).try_acquire_many_owned(0);
        let permit = permit.unwrap_or_else(|_closed| unreachable!("nobody closes it"));
        Reservation { budget: self.clone(), used: 0, free, permit, _place: None }
    }

    /// Waits until `bytes` are available, and reserves them; returns `None` if the whole budget is smaller.
    ///
    /// Earlier callers are served first.
    pub async fn reserve(&self, bytes: usize) -> Option<Reservation> {
        let many = u32::try_from(bytes).ok().filter(|_| bytes <= self.all)?;
        // The semaphore is never closed.
        let permit = Arc::clone(&self.left).acquire_many_owned(many).await.ok()?;
        Some(Reservation { used: bytes, permit, ..self.share(0) })
    }

    /// Returns the number of unreserved bytes.
    pub fn available(&self) -> usize {
        self.left.available_permits()
    }
}

impl Reservation {
    /// Attaches `place`, so that it is released together with this reservation.
    #[must_use]
    pub fn with(self, place: Reservation) -> Self {
        Self { _place: Some(Box::new(place)), ..self }
    }

    /// Reserves additional `bytes` from the same budget.
    ///
    /// # Errors
    /// Returns [`Exhausted`] if fewer bytes are left in the budget.
    pub fn try_grow(&mut self, bytes: usize) -> Result<(), Exhausted> {
        self.resize(self.used.saturating_add(bytes))
    }

    /// Releases `bytes` of the reservation.
    pub fn shrink(&mut self, bytes: usize) {
        // Shrinking always succeeds.
        let _ = self.resize(self.used.saturating_sub(bytes));
    }

    /// Changes the size of the reservation to `bytes`.
    ///
    /// # Errors
    /// Returns [`Exhausted`] if fewer bytes are left in the budget.
    pub fn resize(&mut self, bytes: usize) -> Result<(), Exhausted> {
        let (has, wants) = (self.permit.num_permits(), bytes.saturating_sub(self.free));
        if wants > self.budget.all {
            return Err(Exhausted::ExceedsTotal(self.budget.all));
        }
        if let Some(more) = wants.checked_sub(has) {
            let more = u32::try_from(more).map_err(|_too_many| Exhausted::ExceedsTotal(self.budget.all))?;
            let permit = Arc::clone(&self.budget.left).try_acquire_many_owned(more);
            self.permit.merge(permit.map_err(|_none_left| Exhausted::InUse)?);
        } else {
            drop(self.permit.split(has - wants));
        }
        self.used = bytes;
        Ok(())
    }

    /// Wraps `bytes` so that the reservation is kept until the last reference to them is dropped.
    ///
    /// For a response, the last reference is dropped when all bytes have been written to the socket.
    pub fn hold(self, bytes: impl AsRef<[u8]> + Send + 'static) -> Bytes {
        Bytes::from_owner(Held { bytes, _reservation: self })
    }
}

struct Held<B> {
    bytes: B,
    _reservation: Reservation,
}

impl<B: AsRef<[u8]>> AsRef<[u8]> for Held<B> {
    fn as_ref(&self) -> &[u8] {
        self.bytes.as_ref()
    }
}

impl From<Exhausted> for Box<Status> {
    fn from(exhausted: Exhausted) -> Self {
        Self::new(match exhausted {
            Exhausted::InUse => Status::too_many_requests(RETRY_AFTER),
            Exhausted::ExceedsTotal(all) => {
                let what = format!(
                    "requests that take more than {} KiB of memory with their objects and responses \
                     (admit serve --max-inflight-bytes)",
                    all >> 10
                );
                Status::unsupported(&Unsupported { what })
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_released_when_the_last_reference_is_dropped() {
        let budget = Budget::new(10);
        let mut reservation = budget.try_reserve(4).unwrap();
        reservation.try_grow(4).unwrap();
        assert_eq!(budget.try_reserve(3).map(drop), Err(Exhausted::InUse));
        let bytes = reservation.hold(b"some");
        let part = bytes.slice(1..2);
        drop(bytes);
        assert_eq!(budget.available(), 2);
        drop(part);
        assert_eq!(budget.available(), 10);
    }

    #[test]
    fn a_reservation_grows_and_shrinks() {
        let budget = Budget::new(10);
        let mut reservation = budget.try_reserve(4).unwrap();
        for (bytes, left) in [(10, 0), (3, 7), (3, 7), (0, 10)] {
            reservation.resize(bytes).unwrap();
            assert_eq!(budget.available(), left);
        }
        let _other = budget.try_reserve(1).unwrap();
        assert_eq!(reservation.resize(10), Err(Exhausted::InUse));
        assert_eq!(reservation.resize(11), Err(Exhausted::ExceedsTotal(10)));
    }

    #[test]
    fn free_bytes_are_not_taken_from_the_budget() {
        let budget = Budget::new(10);
        let _all = budget.try_reserve(10).unwrap();
        let mut small = budget.share(5);
        small.try_grow(5).unwrap();
        assert_eq!(small.try_grow(1), Err(Exhausted::InUse));
        small.shrink(2);
        small.try_grow(2).unwrap();
    }

    #[tokio::test]
    async fn a_reservation_beyond_the_budget_fails_immediately() {
        let budget = Budget::new(10);
        assert!(budget.reserve(11).await.is_none());
        assert!(budget.reserve(10).await.is_some());
    }

    #[test]
    fn an_attached_reservation_is_released_with_the_bytes() {
        let (bytes, places) = (Budget::new(10), Budget::new(1));
        let text = bytes.share(0).with(places.try_reserve(1).unwrap()).hold(b"text");
        assert_eq!(places.available(), 0);
        drop(text);
        assert_eq!(places.available(), 1);
    }
}
