//! Reads the body of a request.
//!
//! The server reads the body only after authentication and authorization, and only if an operation needs the body.
//! Therefore an unauthenticated client uses only the memory of a request head.

use std::time::Duration;

use axum::body::{Body, HttpBody as _};
use bytes::{Bytes, BytesMut};
use futures::StreamExt as _;
use http::header::EXPECT;
use http::request::Parts;
use kubernetes_types::budget::Reservation;
use kubernetes_types::status::Status;
use tokio::time::{Instant, timeout, timeout_at};

use crate::apimachinery::limits::MAX_REQUEST_BODY_BYTES;
use crate::apimachinery::time_limit;

/// The maximum number of bytes that the server reads from an unused body.
///
/// If the server did not read them, a client that is still writing might not receive the response.
///
/// Source: Go's net/http, `maxPostHandlerReadBytes`.
const MAX_POST_HANDLER_READ_BYTES: usize = 256 << 10;

/// The time limit for reading an unused body. Go does not limit this time.
const DRAIN_TIME: Duration = Duration::from_secs(1);

/// A body that has not been read.
#[derive(Debug)]
pub(crate) enum Incoming {
    /// A body from a connection.
    Stream(Body),
    /// A body from the same process.
    InMemory(Bytes),
}

impl Incoming {
    /// Reads the whole body. Bytes from a connection are charged to the request's `reservation` as they arrive.
    ///
    /// # Errors
    /// Returns 413 if the body is too large, 429 if other requests are using the whole memory budget, 504 if the body
    /// is incomplete at the deadline, or 500 if the connection breaks.
    ///
    /// Source: apiserver pkg/endpoints/handlers/rest.go, `limitedReadBody`; pkg/server/filters/timeout.go.
    pub(crate) async fn read(
        &mut self,
        reservation: &mut Reservation,
        deadline: Instant,
    ) -> Result<Bytes, Box<Status>> {
        match self {
            Self::InMemory(bytes) if bytes.len() > MAX_REQUEST_BODY_BYTES => Err(too_large()),
            Self::InMemory(bytes) => Ok(std::mem::take(bytes)),
            Self::Stream(body) => {
                let read = timeout_at(deadline, collect(std::mem::take(body), reservation)).await;
                read.unwrap_or_else(|_late| Err(time_limit::exceeded()))
            }
        }
    }

    /// Reads part of an unused body, so that a client that is still writing receives the response.
    pub(crate) async fn drain(self, parts: &Parts) {
        let Self::Stream(body) = self else { return };
        // A client that waits for `100 Continue` does not write.
        if body.is_end_stream() || parts.headers.contains_key(EXPECT) {
            return;
        }
        let mut pieces = body.into_data_stream();
        let drained = async {
            let mut left = MAX_POST_HANDLER_READ_BYTES;
            while let Some(Ok(piece)) = pieces.next().await {
                match left.checked_sub(piece.len()) {
                    Some(rest) => left = rest,
                    None => return,
                }
            }
        };
        // If the client is slower, the server closes the connection after the response.
        let _ = timeout(DRAIN_TIME, drained).await;
    }
}

async fn collect(body: Body, reservation: &mut Reservation) -> Result<Bytes, Box<Status>> {
    // A preallocated buffer takes no memory until it is filled; a growing buffer would take twice the size.
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if announced > MAX_REQUEST_BODY_BYTES {
        return Err(too_large());
    }
    let mut collected = BytesMut::with_capacity(announced);
    let mut pieces = body.into_data_stream();
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|error| {
            // Source: apimachinery pkg/api/errors: an error that does not have a Status.
            Box::new(Status::failure(500, "", error.to_string()))
        })?;
        if collected.len() + piece.len() > MAX_REQUEST_BODY_BYTES {
            return Err(too_large());
        }
        reservation.try_grow(piece.len())?;
        // A piece may be a slice of a larger buffer, which it would keep in memory.
        collected.extend_from_slice(&piece);
    }
    Ok(collected.freeze())
}

/// Source: apimachinery pkg/api/errors/errors.go, `NewRequestEntityTooLargeError`.
fn too_large() -> Box<Status> {
    let message = format!("Request entity too large: limit is {MAX_REQUEST_BODY_BYTES}");
    Box::new(Status::failure(413, "RequestEntityTooLarge", message))
}
