//! Reads the audit events of a server that has its own audit policy.

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
use crate::server_error::ServerError;
use crate::transport::{Message, send};

/// The audit log of a server. It is read up to the last complete line.
#[derive(Debug)]
pub(crate) struct AuditEvents(Mutex<Tail>);

#[derive(Debug)]
struct Tail {
    reader: BufReader<File>,
    line: Vec<u8>,
    /// The events, by the `Audit-ID` that the client chose.
    events: HashMap<String, Vec<Value>>,
}

/// The path of a request that every policy logs: see [`with_barrier`].
const BARRIER: &str = "/livez/ping";
/// The maximum time to wait for the event of the barrier request.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Adds a rule that logs the barrier request to a policy. No case sends this request.
pub(crate) fn with_barrier(rules: &mut Vec<Value>) {
    rules.insert(0, serde_json::json!({"level": "Metadata", "nonResourceURLs": [BARRIER]}));
}

impl AuditEvents {
    /// Starts reading the events in the file `log`, from its beginning.
    pub(crate) fn follow(log: &Path) -> io::Result<Self> {
        let reader = BufReader::new(File::open(log)?);
        Ok(Self(Mutex::new(Tail { reader, line: Vec::new(), events: HashMap::new() })))
    }

    /// Waits until the log contains the events of all requests so far.
    ///
    /// The server writes an event before the response ends, so the event of a later request shows how far the log has
    /// been read.
    ///
    /// # Errors
    /// Returns an error if the server does not answer, or does not write the event of the barrier request.
    pub(crate) async fn catch_up(&self, client: &kube::Client) -> Result<(), ServerError> {
        let answer = send(client, Message::new(Method::GET, BARRIER, None)).await?;
        let started = tokio::time::Instant::now();
        while !self.read(|tail| tail.events.remove(&answer.audit_id).is_some()) {
            if started.elapsed() > TIMEOUT {
                let what = "waiting for the audit log".to_owned();
                return Err(ServerError::Refused { what, answer: format!("it does not tell of {BARRIER}") });
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok(())
    }

    pub(crate) fn events(&self, audit_id: &str, request: &Request, order: &[(String, String)]) -> Vec<Value> {
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

/// Removes the parts of an event that may differ between the two servers.
///
/// These parts are the client's address, and the reason why the administrator may impersonate users. The reason depends
/// on other cases.
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
