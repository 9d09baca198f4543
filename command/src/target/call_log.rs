//! The calls of webhooks as the API server made them, by the Audit-ID that the request chose.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Bytes;
use harness::event::{CallResult, Called, Event, Phase, Record};
use jiff::Timestamp;

/// The calls of webhooks; only the API server of this crate shows them.
#[derive(Debug)]
pub(crate) enum CallLog {
    /// The server keeps them to itself.
    NotShown,
    /// The server records them here.
    Recorded(CallIndex),
}

/// One call, as the server made it.
#[derive(Clone, Debug)]
pub(crate) struct RecordedCall {
    /// The configuration's name.
    pub(crate) configuration: String,
    /// The webhook's name.
    pub(crate) webhook: String,
    /// When it is called.
    pub(crate) phase: Phase,
    /// When the call began.
    pub(crate) time: Timestamp,
    /// The review as it was sent; empty if none was.
    pub(crate) review: Bytes,
    /// What came of it: `denied: …`.
    pub(crate) result: String,
}

/// The calls of the newest [`KEPT`] requests.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallIndex(Arc<Mutex<Requests>>);

#[derive(Debug, Default)]
struct Requests {
    kept: HashMap<String, Vec<RecordedCall>>,
    order: VecDeque<String>,
}

/// A scenario asks for the calls of a request as soon as that is answered.
const KEPT: usize = 1_024;

impl CallLog {
    /// The calls of a request in the order in which the server made them; none if the server does not show them.
    pub(crate) fn of(&self, audit_id: &str) -> Option<Vec<RecordedCall>> {
        match self {
            Self::NotShown => None,
            Self::Recorded(index) => Some(index.lock().kept.get(audit_id).cloned().unwrap_or_default()),
        }
    }
}

impl CallIndex {
    /// Keeps the calls of a request that was received at that time.
    pub(crate) fn record(&self, audit_id: &str, received: Timestamp, record: &Record) {
        let calls = record.events.iter().filter_map(|event| {
            if let Event::Called(called) = event { Some(RecordedCall::of(called, received)) } else { None }
        });
        let calls: Vec<RecordedCall> = calls.collect();
        if calls.is_empty() {
            return;
        }
        let mut requests = self.lock();
        if requests.kept.insert(audit_id.to_owned(), calls).is_none() {
            requests.order.push_back(audit_id.to_owned());
        }
        if requests.order.len() > KEPT
            && let Some(oldest) = requests.order.pop_front()
        {
            requests.kept.remove(&oldest);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Requests> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RecordedCall {
    fn of(called: &Called, received: Timestamp) -> Self {
        Self {
            configuration: called.webhook.configuration.clone(),
            webhook: called.webhook.name.clone(),
            phase: called.phase,
            time: received + called.started,
            review: called.review.clone(),
            result: result(&called.result),
        }
    }
}

/// In the words in which the fakes tell of their answers.
fn result(result: &CallResult) -> String {
    match result {
        CallResult::Allowed { patch: Some(operations), .. } => match operations.len() {
            1 => "allowed, patched with 1 operation".to_owned(),
            count => format!("allowed, patched with {count} operations"),
        },
        CallResult::Denied(status) => match status.message.split_once(" denied the request: ") {
            Some((_, message)) => format!("denied: {message}"),
            None => "denied".to_owned(),
        },
        CallResult::Failed { failure, .. } => failure.reason.clone(),
        CallResult::ServerError { status, .. } => status.message.clone(),
        CallResult::Allowed { patch: None, .. } => "allowed".to_owned(),
    }
}
