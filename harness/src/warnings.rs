//! The warnings that a client gets: a view of the [`Record`].

use crate::event::Record;

/// The values of the `Warning` headers, ready to send: `299 - "…"`.
pub fn headers(_record: &Record) -> Vec<String> {
    Vec::new()
}
