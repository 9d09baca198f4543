//! Limits the memory use of fakes.

/// The limits on the memory use of a fake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The maximum number of calls in the journal; the oldest are forgotten first.
    pub journal_entries: usize,
    /// The maximum size of the journal, in bytes.
    pub journal_bytes: usize,
    /// The maximum size of one body, in bytes; larger bodies are rejected with status 413.
    pub body_bytes: usize,
    /// The maximum total size of all bodies in progress, in bytes; additional bodies are rejected with status 503.
    pub bodies_bytes: usize,
    /// The maximum number of calls in progress for one fake; additional calls are rejected with status 503.
    pub calls: usize,
    /// The maximum number of connections to a port, for each fake that the port serves.
    ///
    /// A new connection replaces the one that has been idle longest, or waits if all connections have a call in
    /// progress.
    pub connections: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            journal_entries: 10_000,
            journal_bytes: 64 << 20,
            body_bytes: 8 << 20,
            bodies_bytes: 64 << 20,
            calls: 256,
            connections: 256,
        }
    }
}
