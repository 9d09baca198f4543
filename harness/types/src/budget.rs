//! Memory that several share: the bytes that requests, answers, reviews and events may have under way.
//!
//! kube-apiserver limits the requests under way (`--max-requests-inflight`), and a request is small beside a server of
//! a cluster. Here a hundred bodies or answers of the largest size would be most of what a laptop has, so that bytes
//! are counted, too.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::status::{Status, Unsupported};

/// Seconds after which a client that was refused may try again.
///
/// Source: apiserver pkg/server/filters/maxinflight.go, `retryAfter`.
const RETRY_AFTER: i32 = 1;

/// Bytes, or places, that are shared; clones share the same ones.
#[derive(Clone, Debug)]
pub struct Budget {
    left: Arc<Semaphore>,
    all: usize,
}

/// A share of a [`Budget`], given back when it is dropped.
#[derive(Debug)]
pub struct Reservation {
    budget: Budget,
    /// What is used, and how much of it is free.
    used: usize,
    free: usize,
    /// What is not free of it.
    permit: OwnedSemaphorePermit,
    /// A place that is given back with it.
    _place: Option<Box<Reservation>>,
}

/// Why there is none left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exhausted {
    /// Others have it.
    ForNow,
    /// There are not as many: so many there are.
    For(usize),
}

impl Budget {
    /// `all` bytes, or places, of which none is taken.
    pub fn new(all: usize) -> Self {
        let all = all.min(Semaphore::MAX_PERMITS).min(u32::MAX as usize);
        Self { left: Arc::new(Semaphore::new(all)), all }
    }

    /// Reserves so many.
    ///
    /// # Errors
    /// [`Exhausted`].
    pub fn try_reserve(&self, bytes: usize) -> Result<Reservation, Exhausted> {
        let mut reservation = self.share(0);
        reservation.resize(bytes)?;
        Ok(reservation)
    }

    /// A share of nothing yet, which takes from the budget only what it has beyond so many `free` bytes.
    pub fn share(&self, free: usize) -> Reservation {
        // Of nothing there is always enough.
        let permit = Arc::clone(&self.left).try_acquire_many_owned(0);
        let permit = permit.unwrap_or_else(|_closed| unreachable!("nobody closes it"));
        Reservation { budget: self.clone(), used: 0, free, permit, _place: None }
    }

    /// Reserves so many, after all who asked earlier; none if there are not as many.
    pub async fn reserve(&self, bytes: usize) -> Option<Reservation> {
        let many = u32::try_from(bytes).ok().filter(|_| bytes <= self.all)?;
        // It is never closed.
        let permit = Arc::clone(&self.left).acquire_many_owned(many).await.ok()?;
        Some(Reservation { used: bytes, permit, ..self.share(0) })
    }

    /// The bytes that nobody has.
    pub fn available(&self) -> usize {
        self.left.available_permits()
    }
}

impl Reservation {
    /// The share together with a place, which is given back with it.
    #[must_use]
    pub fn with(self, place: Reservation) -> Self {
        Self { _place: Some(Box::new(place)), ..self }
    }

    /// Reserves more of the same budget.
    ///
    /// # Errors
    /// [`Exhausted`].
    pub fn try_grow(&mut self, bytes: usize) -> Result<(), Exhausted> {
        self.resize(self.used.saturating_add(bytes))
    }

    /// Gives back so many bytes.
    pub fn shrink(&mut self, bytes: usize) {
        // What is less is always there.
        let _ = self.resize(self.used.saturating_sub(bytes));
    }

    /// Reserves so many bytes instead of those that it has.
    ///
    /// # Errors
    /// [`Exhausted`].
    pub fn resize(&mut self, bytes: usize) -> Result<(), Exhausted> {
        let (has, wants) = (self.permit.num_permits(), bytes.saturating_sub(self.free));
        if wants > self.budget.all {
            return Err(Exhausted::For(self.budget.all));
        }
        if let Some(more) = wants.checked_sub(has) {
            let more = u32::try_from(more).map_err(|_too_many| Exhausted::For(self.budget.all))?;
            let permit = Arc::clone(&self.budget.left).try_acquire_many_owned(more);
            self.permit.merge(permit.map_err(|_none_left| Exhausted::ForNow)?);
        } else {
            drop(self.permit.split(has - wants));
        }
        self.used = bytes;
        Ok(())
    }

    /// Bytes that keep their reservation until the last of them is gone, which is when they were written to a socket.
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
            Exhausted::ForNow => Status::too_many_requests(RETRY_AFTER),
            Exhausted::For(all) => {
                let what = format!(
                    "requests that take more than {} KiB of memory with their objects and answers \
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
    fn bytes_are_given_back_when_the_last_of_them_is_gone() {
        let budget = Budget::new(10);
        let mut reservation = budget.try_reserve(4).unwrap();
        reservation.try_grow(4).unwrap();
        assert_eq!(budget.try_reserve(3).map(drop), Err(Exhausted::ForNow));
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
        assert_eq!(reservation.resize(10), Err(Exhausted::ForNow));
        assert_eq!(reservation.resize(11), Err(Exhausted::For(10)));
    }

    #[test]
    fn what_is_free_is_nobody_elses() {
        let budget = Budget::new(10);
        let _all = budget.try_reserve(10).unwrap();
        let mut small = budget.share(5);
        small.try_grow(5).unwrap();
        assert_eq!(small.try_grow(1), Err(Exhausted::ForNow));
        small.shrink(2);
        small.try_grow(2).unwrap();
    }

    #[tokio::test]
    async fn nobody_waits_for_more_than_there_is() {
        let budget = Budget::new(10);
        assert!(budget.reserve(11).await.is_none());
        assert!(budget.reserve(10).await.is_some());
    }

    #[test]
    fn a_place_is_given_back_with_the_bytes() {
        let (bytes, places) = (Budget::new(10), Budget::new(1));
        let text = bytes.share(0).with(places.try_reserve(1).unwrap()).hold(b"text");
        assert_eq!(places.available(), 0);
        drop(text);
        assert_eq!(places.available(), 1);
    }
}
