//! What a server may take of the machine.

use std::sync::{Mutex, MutexGuard, PoisonError};

use kubernetes_types::budget::{Budget, Reservation};
use kubernetes_types::status::Status;

/// What a request may take beside the bytes that all share: its head, a small body and a small answer.
pub(super) const REQUEST_BYTES: usize = 64 << 10;

/// From how many bytes on a body or an answer is worked on beside the threads that answer everybody: to decode, compare,
/// validate and encode megabytes takes longer than others should wait.
pub(super) const LARGE: usize = 64 << 10;

/// What a server may take of the machine. The default is for one that trusts its clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "each has a default")]
pub struct Limits {
    /// How many requests over connections may be under way that change nothing, watches aside.
    pub requests: usize,
    /// How many of those that may change something.
    pub mutating_requests: usize,
    /// Bytes of memory for requests, their objects, calls of webhooks, and answers; 64 KiB for each request are free.
    pub in_flight_bytes: usize,
    /// Bytes of stored objects, as JSON.
    pub storage_bytes: usize,
    /// Bytes of objects that were replaced, as JSON, which only watches may still read.
    pub watch_cache_bytes: usize,
    /// Bytes of events above 8 KiB that are being sent.
    pub event_bytes: usize,
    /// How many watches there may be.
    pub watches: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            // Source: apiserver pkg/server/config.go, `MaxRequestsInFlight` and `MaxMutatingRequestsInFlight`.
            requests: 400,
            mutating_requests: 200,
            in_flight_bytes: 512 << 20,
            // Source: etcd server/storage/quota.go, `DefaultQuotaBytes`.
            storage_bytes: 2 << 30,
            watch_cache_bytes: 128 << 20,
            event_bytes: 32 << 20,
            watches: 4096,
        }
    }
}

/// What requests have under way.
#[derive(Debug)]
pub(super) struct UnderWay {
    pub(super) bytes: Budget,
    requests: Budget,
    mutating: Budget,
    decoding: Mutex<()>,
}

/// Whether a request may change something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    Reads,
    Mutates,
}

impl UnderWay {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            bytes: Budget::new(limits.in_flight_bytes),
            requests: Budget::new(limits.requests),
            mutating: Budget::new(limits.mutating_requests),
            decoding: Mutex::default(),
        }
    }

    /// The place of a request over a connection, and its share of the bytes.
    ///
    /// # Errors
    /// 429 if others have all the places.
    ///
    /// Source: apiserver pkg/server/filters/maxinflight.go, `WithMaxInFlightLimit`, which lets system:masters pass.
    pub(super) fn begin(&self, effect: Effect) -> Result<Reservation, Box<Status>> {
        let places = match effect {
            Effect::Reads => &self.requests,
            Effect::Mutates => &self.mutating,
        };
        Ok(self.share().with(places.try_reserve(1)?))
    }

    /// A share of the bytes.
    pub(super) fn share(&self) -> Reservation {
        self.bytes.share(REQUEST_BYTES)
    }

    /// Waits until no other large body is being decoded: until an object is there, nobody knows what it takes.
    pub(super) fn turn(&self, body: usize) -> Option<MutexGuard<'_, ()>> {
        (body > LARGE).then(|| self.decoding.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests;
