//! What a fake received, in order.

use std::collections::VecDeque;

use bytes::Bytes;
use serde_json::Value;

/// One call that a fake received.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its place among all calls of this fake, from 1.
    pub number: u64,
    /// When its body had arrived.
    pub time: jiff::Timestamp,
    /// The HTTP method.
    pub method: http::Method,
    /// The path of the URL.
    pub path: String,
    /// The query of the URL without the `?`; empty if there is none.
    pub query: String,
    /// The HTTP version.
    pub version: http::Version,
    /// The headers with their names in lower case, in the order of arrival.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Bytes,
    /// What became of the call.
    pub answered: Answered,
}

/// What became of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answered {
    /// Nothing was sent yet.
    Pending,
    /// The caller gave up before anything was sent, or the fake was stopped.
    Abandoned,
    /// The connection was closed on purpose.
    Closed,
    /// Bytes were sent that are no HTTP response of this library.
    Bytes,
    /// An answer was sent.
    Sent {
        /// The HTTP status.
        status: http::StatusCode,
        /// The answer in a few words for people.
        summary: String,
    },
}

impl Entry {
    /// The body as JSON; none if it is no JSON.
    pub fn review(&self) -> Option<Value> {
        serde_json::from_slice(&self.body).ok()
    }

    fn size(&self) -> usize {
        let headers: usize = self.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
        headers + self.path.len() + self.query.len() + self.body.len()
    }
}

/// The newest calls of a fake, within limits.
#[derive(Debug)]
pub(crate) struct Journal {
    entries: VecDeque<Entry>,
    received: u64,
    bytes: usize,
    most_entries: usize,
    most_bytes: usize,
}

impl Journal {
    pub(crate) fn new(most_entries: usize, most_bytes: usize) -> Self {
        Self { entries: VecDeque::new(), received: 0, bytes: 0, most_entries, most_bytes }
    }

    /// Adds a call under the next number, and forgets the oldest ones if there are too many.
    pub(crate) fn add(&mut self, mut entry: Entry) -> u64 {
        self.received += 1;
        entry.number = self.received;
        self.bytes += entry.size();
        self.entries.push_back(entry);
        while self.entries.len() > self.most_entries || self.bytes > self.most_bytes {
            let Some(oldest) = self.entries.pop_front() else { break };
            self.bytes -= oldest.size();
        }
        self.received
    }

    /// Notes what became of a call, unless it was forgotten.
    pub(crate) fn answered(&mut self, number: u64, answered: Answered) -> Option<Entry> {
        let first = self.entries.front()?.number;
        let index = usize::try_from(number.checked_sub(first)?).ok()?;
        let entry = self.entries.get_mut(index)?;
        entry.answered = answered;
        Some(entry.clone())
    }

    pub(crate) fn entries(&self) -> Vec<Entry> {
        self.entries.iter().cloned().collect()
    }

    /// How many calls were forgotten.
    pub(crate) fn dropped(&self) -> u64 {
        self.received - self.entries.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(size: usize) -> Entry {
        Entry {
            number: 0,
            time: jiff::Timestamp::UNIX_EPOCH,
            method: http::Method::POST,
            path: String::new(),
            query: String::new(),
            version: http::Version::HTTP_11,
            headers: Vec::new(),
            body: Bytes::from(vec![b'x'; size]),
            answered: Answered::Pending,
        }
    }

    fn numbers(journal: &Journal) -> Vec<u64> {
        journal.entries().iter().map(|entry| entry.number).collect()
    }

    #[test]
    fn the_oldest_calls_are_forgotten_and_counted() {
        let mut journal = Journal::new(2, 1_000);
        for _ in 0..3 {
            journal.add(entry(1));
        }
        assert_eq!(numbers(&journal), [2, 3]);
        assert_eq!(journal.dropped(), 1);
    }

    #[test]
    fn large_bodies_are_forgotten_sooner() {
        let mut journal = Journal::new(10, 100);
        journal.add(entry(60));
        journal.add(entry(60));
        assert_eq!(numbers(&journal), [2]);
        journal.add(entry(200));
        assert_eq!(numbers(&journal), [0_u64; 0]);
        assert_eq!(journal.dropped(), 3);
    }

    #[test]
    fn what_became_of_a_call_is_noted_at_the_right_one() {
        let mut journal = Journal::new(2, 1_000);
        for _ in 0..3 {
            journal.add(entry(1));
        }
        assert_eq!(journal.answered(1, Answered::Abandoned), None);
        assert!(journal.answered(3, Answered::Abandoned).is_some());
        let answers: Vec<_> = journal.entries().into_iter().map(|entry| entry.answered).collect();
        assert_eq!(answers, [Answered::Pending, Answered::Abandoned]);
    }
}
