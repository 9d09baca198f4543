//! The body of a request. It is read when an operation wants it, by when the server knows who asks and that they may:
//! a client without a token costs no more than the head of its request.

use std::time::Duration;

use axum::body::{Body, HttpBody as _};
use bytes::{Bytes, BytesMut};
use futures::StreamExt as _;
use http::Version;
use http::header::EXPECT;
use http::request::Parts;
use kubernetes_types::budget::Reservation;
use kubernetes_types::status::Status;
use tokio::time::{Instant, timeout, timeout_at};

use super::body::LIMIT;
use super::time_limit;

/// How much of a body that no operation wants is read all the same, so that a client that still writes gets the answer.
///
/// Source: Go's net/http, `maxPostHandlerReadBytes`.
const DRAINED: usize = 256 << 10;

/// How long that may take. Go sets no limit.
const DRAIN_TIME: Duration = Duration::from_secs(1);

/// A body on its way.
#[derive(Debug)]
pub(super) enum Incoming {
    /// From a connection.
    Stream(Body),
    /// From the process that holds the server.
    InMemory(Bytes),
}

impl Incoming {
    /// The whole body. What comes over a connection is charged to the request's `reservation` as it comes.
    ///
    /// # Errors
    /// 413 if it is too large, 429 if other requests have all the bytes, 504 if it is not there by the deadline, 500 if
    /// it breaks off.
    ///
    /// Source: apiserver pkg/endpoints/handlers/rest.go, `limitedReadBody`; pkg/server/filters/timeout.go.
    pub(super) async fn read(
        &mut self,
        reservation: &mut Reservation,
        deadline: Instant,
    ) -> Result<Bytes, Box<Status>> {
        match self {
            Self::InMemory(bytes) if bytes.len() > LIMIT => Err(too_large()),
            Self::InMemory(bytes) => Ok(std::mem::take(bytes)),
            Self::Stream(body) => {
                let read = timeout_at(deadline, collect(std::mem::take(body), reservation)).await;
                read.unwrap_or_else(|_late| Err(time_limit::exceeded()))
            }
        }
    }

    /// Reads on a little where a client of HTTP/1 would otherwise be cut off while it writes, and miss the answer.
    pub(super) async fn drain(self, parts: &Parts) {
        let Self::Stream(body) = self else { return };
        // Who waits for `100 Continue` writes nothing.
        if body.is_end_stream() || parts.version > Version::HTTP_11 || parts.headers.contains_key(EXPECT) {
            return;
        }
        let mut pieces = body.into_data_stream();
        let drained = async {
            let mut left = DRAINED;
            while let Some(Ok(piece)) = pieces.next().await {
                match left.checked_sub(piece.len()) {
                    Some(rest) => left = rest,
                    None => return,
                }
            }
        };
        // A client that is slower loses its connection with the answer.
        let _ = timeout(DRAIN_TIME, drained).await;
    }
}

async fn collect(body: Body, reservation: &mut Reservation) -> Result<Bytes, Box<Status>> {
    // Room for all of it takes no memory before it comes, and what grows would take twice as much.
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if announced > LIMIT {
        return Err(too_large());
    }
    let mut collected = BytesMut::with_capacity(announced);
    let mut pieces = body.into_data_stream();
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|error| {
            // Source: apimachinery pkg/api/errors: an error without a Status of its own.
            Box::new(Status::failure(500, "", error.to_string()))
        })?;
        if collected.len() + piece.len() > LIMIT {
            return Err(too_large());
        }
        reservation.try_grow(piece.len())?;
        // A piece may be a slice of a larger buffer, which would stay with it.
        collected.extend_from_slice(&piece);
    }
    Ok(collected.freeze())
}

/// Source: apimachinery pkg/api/errors/errors.go, `NewRequestEntityTooLargeError`.
fn too_large() -> Box<Status> {
    let message = format!("Request entity too large: limit is {LIMIT}");
    Box::new(Status::failure(413, "RequestEntityTooLarge", message))
}
