//! The audit events that a server with a policy of its own writes.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http::Method;
use serde_json::Value;

use crate::annotations;
use crate::case::Request;
use crate::server::ServerError;
use crate::transport::{Message, send};

/// The log of a server, read as far as its last whole line.
#[derive(Debug)]
pub(crate) struct AuditEvents(Mutex<Tail>);

#[derive(Debug)]
struct Tail {
    reader: BufReader<File>,
    line: Vec<u8>,
    /// By the Audit-ID that the request chose.
    events: HashMap<String, Vec<Value>>,
}

/// A request of which each policy tells: see [`with_barrier`].
const BARRIER: &str = "/livez/ping";
/// The longest that the event of that is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// A policy with a rule more, which tells of one request that no case makes.
pub(crate) fn with_barrier(rules: &mut Vec<Value>) {
    rules.insert(0, serde_json::json!({"level": "Metadata", "nonResourceURLs": [BARRIER]}));
}

impl AuditEvents {
    /// Those that are written to `log` from the beginning.
    pub(crate) fn follow(log: &Path) -> io::Result<Self> {
        let reader = BufReader::new(File::open(log)?);
        Ok(Self(Mutex::new(Tail { reader, line: Vec::new(), events: HashMap::new() })))
    }

    /// Waits until the log has what was told of all requests so far: an event is written before its response ends, and that
    /// of a later request tells how far the log has been read.
    ///
    /// # Errors
    /// The server does not answer, or does not write that event.
    pub(crate) async fn catch_up(&self, client: &kube::Client) -> Result<(), ServerError> {
        let answer = send(client, Message::new(Method::GET, BARRIER, None)).await?;
        let started = tokio::time::Instant::now();
        while !self.read(|tail| tail.events.remove(&answer.audit_id).is_some()) {
            if started.elapsed() > PATIENCE {
                let what = "waiting for the audit log".to_owned();
                return Err(ServerError::Refused { what, answer: format!("it does not tell of {BARRIER}") });
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok(())
    }

    /// What was told of a request.
    pub(crate) fn of(&self, audit_id: &str, request: &Request, order: &[(String, String)]) -> Vec<Value> {
        let events = self.read(|tail| tail.events.remove(audit_id).unwrap_or_default());
        events.into_iter().map(|event| comparable(event, request, order)).collect()
    }

    fn read<T>(&self, look: impl FnOnce(&mut Tail) -> T) -> T {
        let mut tail = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tail.read();
        look(&mut tail)
    }
}

impl Tail {
    fn read(&mut self) {
        while matches!(self.reader.read_until(b'\n', &mut self.line), Ok(read) if read > 0) {
            if !self.line.ends_with(b"\n") {
                return;
            }
            if let Ok(event) = serde_json::from_slice::<Value>(&self.line) {
                let id = event["auditID"].as_str().unwrap_or_default().to_owned();
                self.events.entry(id).or_default().push(event);
            }
            self.line.clear();
        }
    }
}

/// An event without what the two servers of the judge do not have in common: the client's address, and how the
/// administrator may impersonate, which depends on what other cases did.
fn comparable(mut event: Value, request: &Request, order: &[(String, String)]) -> Value {
    let Some(members) = event.as_object_mut() else { return event };
    members.remove("sourceIPs");
    if request.by.is_none() {
        members.remove("authenticationMetadata");
    }
    if let Some(Value::Object(told)) = members.remove("annotations") {
        let text = |value: Value| value.as_str().unwrap_or_default().to_owned();
        let told: BTreeMap<String, String> =
            told.into_iter().map(|(key, value)| (key, text(value))).collect();
        let judged = annotations::judged(&told, order, true);
        if !judged.is_empty() {
            members.insert("annotations".to_owned(), Value::Object(judged));
        }
    }
    event
}
