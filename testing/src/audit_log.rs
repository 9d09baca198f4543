//! Finds audit events by the Audit-ID of the request.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Seek as _, SeekFrom};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

/// The annotations of an audit event, by key.
pub type Annotations = BTreeMap<String, String>;

/// The recorded fields of an audit event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AuditEvent {
    /// The annotations of the event.
    pub annotations: Annotations,
    /// The impersonation mode that allowed the request, such as `impersonate:user-info`, or an empty string.
    pub impersonation_constraint: String,
}

/// The audit log of a target. It finds events by the Audit-ID of their request.
#[derive(Debug)]
pub struct AuditLog {
    source: Source,
    longest_wait: Duration,
    unchecked: AtomicUsize,
}

#[derive(Debug)]
enum Source {
    NotShown,
    Recorded(AuditIndex),
    File { index: AuditIndex, tail: Mutex<Tail> },
}

/// An index of the newest [`MAX_EVENTS`] audit events by Audit-ID.
#[derive(Clone, Debug, Default)]
pub struct AuditIndex(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    events: Mutex<Events>,
    arrived: Notify,
}

#[derive(Debug, Default)]
struct Events {
    kept: HashMap<String, AuditEvent>,
    order: VecDeque<String>,
}

/// A growing file that is read line by line.
#[derive(Debug)]
struct Tail {
    reader: BufReader<File>,
    line: Vec<u8>,
}

impl AuditLog {
    /// Creates an empty log, for a target that does not provide its audit log.
    pub fn unavailable() -> Self {
        Self::new(Source::NotShown)
    }

    /// Creates a log that reads events from `index`.
    pub fn recorded(index: AuditIndex) -> Self {
        Self::new(Source::Recorded(index))
    }

    /// Follows the events that a server appends to `path`, one JSON object per line.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn follow_from_end(path: &Path) -> io::Result<Self> {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::End(0))?;
        let tail = Mutex::new(Tail { reader: BufReader::new(file), line: Vec::new() });
        Ok(Self::new(Source::File { index: AuditIndex::default(), tail }))
    }

    fn new(source: Source) -> Self {
        Self { source, longest_wait: TIMEOUT, unchecked: AtomicUsize::new(0) }
    }

    /// Returns the annotations of the request's audit event, or `None` if [`Self::event`] does not find the event.
    pub async fn annotations(&self, audit_id: &str) -> Option<Annotations> {
        self.event(audit_id).await.map(|event| event.annotations)
    }

    /// Waits for the request's audit event.
    ///
    /// Returns `None` if the target does not provide an audit log, or after 10 s.
    pub async fn event(&self, audit_id: &str) -> Option<AuditEvent> {
        let index = match &self.source {
            Source::NotShown => {
                self.unchecked.fetch_add(1, Ordering::Relaxed);
                return None;
            }
            Source::Recorded(index) | Source::File { index, .. } => index,
        };
        let deadline = Instant::now() + self.longest_wait;
        loop {
            // Registered before the check, so that no event is missed.
            let arrived = index.0.arrived.notified();
            tokio::pin!(arrived);
            arrived.as_mut().enable();
            if let Source::File { tail, .. } = &self.source {
                lock(tail).read_into(index);
            }
            if let Some(event) = index.find(audit_id) {
                return Some(event);
            }
            if Instant::now() >= deadline {
                return None;
            }
            // A file must be polled.
            let wake = match &self.source {
                Source::File { .. } => deadline.min(Instant::now() + POLL_INTERVAL),
                Source::NotShown | Source::Recorded(_) => deadline,
            };
            let _: Result<(), _> = timeout_at(wake, arrived).await;
        }
    }

    /// Returns whether the target provides its audit log.
    pub fn is_available(&self) -> bool {
        !matches!(self.source, Source::NotShown)
    }

    /// Returns the number of times that annotations were requested but were not available.
    pub fn unchecked(&self) -> usize {
        self.unchecked.load(Ordering::Relaxed)
    }
}

impl AuditIndex {
    /// Records an `audit.k8s.io/v1` event of the stage `ResponseComplete`; ignores all other events.
    pub fn record(&self, event: &Value) {
        if let Ok(event) = Event::deserialize(event) {
            self.keep(event);
        }
    }

    fn keep(&self, event: Event) {
        if event.stage != "ResponseComplete" {
            return;
        }
        {
            let mut events = lock(&self.0.events);
            let kept = AuditEvent {
                annotations: event.annotations,
                impersonation_constraint: event.authentication_metadata.impersonation_constraint,
            };
            if events.kept.insert(event.audit_id.clone(), kept).is_none() {
                events.order.push_back(event.audit_id);
            }
            if events.order.len() > MAX_EVENTS
                && let Some(oldest) = events.order.pop_front()
            {
                events.kept.remove(&oldest);
            }
        }
        self.0.arrived.notify_waiters();
    }

    fn find(&self, audit_id: &str) -> Option<AuditEvent> {
        lock(&self.0.events).kept.get(audit_id).cloned()
    }
}

impl Tail {
    /// Adds all complete new lines to `index`; an incomplete line is read later.
    fn read_into(&mut self, index: &AuditIndex) {
        while matches!(self.reader.read_until(b'\n', &mut self.line), Ok(read) if read > 0) {
            if self.line.ends_with(b"\n") {
                if let Ok(event) = serde_json::from_slice::<Event>(&self.line) {
                    index.keep(event);
                }
                self.line.clear();
            }
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event {
    #[serde(rename = "auditID")]
    audit_id: String,
    stage: String,
    #[serde(default)]
    annotations: Annotations,
    #[serde(default)]
    authentication_metadata: AuthenticationMetadata,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct AuthenticationMetadata {
    #[serde(default)]
    impersonation_constraint: String,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

const TIMEOUT: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// The maximum number of events in an index. This number of events takes a few megabytes.
///
/// Older events are not needed, because each event is read soon after its request.
const MAX_EVENTS: usize = 16_384;

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use serde_json::json;

    use super::*;

    fn event(id: &str, stage: &str) -> Value {
        json!({"auditID": id, "stage": stage, "level": "Request", "annotations": {"id": id}})
    }

    fn annotations(id: &str) -> Annotations {
        Annotations::from([("id".to_owned(), id.to_owned())])
    }

    #[tokio::test]
    async fn an_event_that_is_recorded_later_is_waited_for() {
        let index = AuditIndex::default();
        let log = AuditLog::recorded(index.clone());
        let (found, ()) = tokio::join!(log.annotations("a"), async {
            index.record(&event("a", "RequestReceived"));
            index.record(&event("b", "ResponseComplete"));
            index.record(&event("a", "ResponseComplete"));
        });
        assert_eq!(found, Some(annotations("a")));
    }

    #[tokio::test]
    async fn an_event_that_does_not_come_is_not_found() {
        let log =
            AuditLog { longest_wait: Duration::from_millis(1), ..AuditLog::recorded(AuditIndex::default()) };
        assert_eq!(log.annotations("a").await, None);
        assert_eq!(log.unchecked(), 0);
    }

    #[tokio::test]
    async fn a_target_without_an_audit_log_counts_what_was_asked_for() {
        let log = AuditLog::unavailable();
        assert_eq!(log.annotations("a").await, None);
        assert_eq!(log.unchecked(), 1);
    }

    #[tokio::test]
    async fn a_file_is_read_from_its_end_on_and_in_whole_lines() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        writeln!(file, "{}", event("old", "ResponseComplete")).unwrap();
        let log = AuditLog::follow_from_end(file.path()).unwrap();
        let line = event("new", "ResponseComplete").to_string();
        let (start, end) = line.split_at(20);
        write!(file, "not JSON\n{start}").unwrap();
        let Source::File { index, tail } = &log.source else { panic!("not a file") };
        lock(tail).read_into(index);
        assert_eq!(index.find("new"), None);
        writeln!(file, "{end}").unwrap();
        assert_eq!(log.annotations("new").await, Some(annotations("new")));
        assert_eq!(index.find("old"), None);
    }

    #[test]
    fn only_the_newest_events_are_kept() {
        let index = AuditIndex::default();
        for number in 0..=MAX_EVENTS {
            index.record(&event(&number.to_string(), "ResponseComplete"));
        }
        assert_eq!(index.find("0"), None);
        assert_eq!(index.find("1").map(|event| event.annotations), Some(annotations("1")));
        assert_eq!(lock(&index.0.events).kept.len(), MAX_EVENTS);
    }
}
