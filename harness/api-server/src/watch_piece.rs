//! A part of the answer to a watch.

use super::events::{Event, SMALL};

/// A piece of small events ends with the one that makes it as long as this.
const PIECE_BYTES: usize = SMALL;

/// The next of the answer: small events, or one that is large.
#[derive(Debug, Default)]
pub(super) struct Piece {
    pub(super) text: Vec<u8>,
    pub(super) large: Option<Event>,
    /// Whether a large event comes after the small ones, in a piece of its own.
    pub(super) is_closed: bool,
}

impl Piece {
    pub(super) const fn is_empty(&self) -> bool {
        self.text.is_empty() && self.large.is_none()
    }

    pub(super) const fn is_full(&self) -> bool {
        self.text.len() >= PIECE_BYTES || self.large.is_some() || self.is_closed
    }
}
