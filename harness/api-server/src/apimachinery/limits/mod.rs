//! Defines the resource limits of the server and counts requests in flight.

use std::sync::{Mutex, MutexGuard, PoisonError};

use kubernetes_types::budget::{Budget, Reservation};
use kubernetes_types::status::Status;

/// The maximum size of a body in bytes.
///
/// Source: apiserver pkg/server/config.go, `MaxRequestBodyBytes`.
pub(crate) const MAX_REQUEST_BODY_BYTES: usize = 3 * 1024 * 1024;

/// The number of bytes that each request may use outside the shared budget.
///
/// The bytes are for the head, a small body, and a small response.
pub(crate) const REQUEST_BYTES: usize = 64 << 10;

/// The minimum size in bytes of a body or a response that is processed on a separate thread.
///
/// Decoding, comparing, validating, and encoding megabytes would delay other requests.
pub(crate) const LARGE_BYTES: usize = 64 << 10;

/// The resource limits of a server. The defaults assume trusted clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "each has a default")]
pub struct Limits {
    /// The maximum number of in-flight read-only requests from connections, not counting watches.
    pub requests: usize,
    /// The maximum number of in-flight mutating requests from connections.
    pub mutating_requests: usize,
    /// The memory, in bytes, for requests, their objects, webhook calls, and responses.
    ///
    /// The first 64 KiB of each request do not count.
    pub in_flight_bytes: usize,
    /// The memory for stored objects, in bytes of JSON.
    pub storage_bytes: usize,
    /// The memory for replaced objects that watches may still read, in bytes of JSON.
    pub watch_cache_bytes: usize,
    /// The memory, in bytes, for events larger than 8 KiB while the server sends them.
    pub event_bytes: usize,
    /// The maximum number of open watches.
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

/// Counts the requests in flight and the memory that they use.
#[derive(Debug)]
pub(crate) struct InFlightRequests {
    pub(crate) bytes: Budget,
    requests: Budget,
    mutating: Budget,
    decoding: Mutex<()>,
}

/// The effect of a request: read-only or mutating.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Reads,
    Mutates,
}

impl InFlightRequests {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            bytes: Budget::new(limits.in_flight_bytes),
            requests: Budget::new(limits.requests),
            mutating: Budget::new(limits.mutating_requests),
            decoding: Mutex::default(),
        }
    }

    /// Admits a request from a connection and returns its share of the memory budget.
    ///
    /// # Errors
    /// Returns 429 if too many requests are in flight.
    ///
    /// Source: apiserver pkg/server/filters/maxinflight.go, `WithMaxInFlightLimit`, which exempts `system:masters`.
    pub(crate) fn begin(&self, effect: Effect) -> Result<Reservation, Box<Status>> {
        let places = match effect {
            Effect::Reads => &self.requests,
            Effect::Mutates => &self.mutating,
        };
        Ok(self.share().with(places.try_reserve(1)?))
    }

    /// Returns an empty reservation for one request. Its first 64 KiB do not count toward the memory budget.
    pub(crate) fn share(&self) -> Reservation {
        self.bytes.share(REQUEST_BYTES)
    }

    /// Waits until no other large body is being decoded; returns `None` immediately for a small `body`.
    ///
    /// Large bodies are decoded one at a time, because the memory use of an object is unknown before decoding.
    pub(crate) fn turn(&self, body: usize) -> Option<MutexGuard<'_, ()>> {
        (body > LARGE_BYTES).then(|| self.decoding.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests;
