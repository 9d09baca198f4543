//! Collects a part of the response to a watch.

use super::event_encoding::SMALL_EVENT_BYTES;
use super::events::Event;

/// The size in bytes at which a piece with small events is complete.
const PIECE_BYTES: usize = SMALL_EVENT_BYTES;

/// The next part of the response: small events, or one large event.
#[derive(Debug, Default)]
pub(crate) struct Piece {
    pub(crate) text: Vec<u8>,
    pub(crate) large: Option<Event>,
    /// Whether the piece is complete because a large event follows in a separate piece.
    pub(crate) is_closed: bool,
}

impl Piece {
    pub(crate) const fn is_empty(&self) -> bool {
        self.text.is_empty() && self.large.is_none()
    }

    pub(crate) const fn is_full(&self) -> bool {
        self.text.len() >= PIECE_BYTES || self.large.is_some() || self.is_closed
    }
}
