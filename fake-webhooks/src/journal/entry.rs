//! One call that a fake received.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

/// One call that a fake received.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its place among all calls in this journal, from 1.
    pub number: u64,
    /// When its body had arrived.
    pub time: jiff::Timestamp,
    /// The name of the fake.
    pub fake: Arc<str>,
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
    /// The common name of the caller's certificate; none without one.
    pub certificate: Option<String>,
    /// The body.
    pub body: Bytes,
    /// What the review is about; none if the body is no review.
    pub subject: Option<Subject>,
    /// What became of the call.
    pub answered: Answered,
    /// How long that took, from the arrival of the request's head; none while it is pending.
    pub took: Option<Duration>,
}

/// What a review is about. What it does not say is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Subject {
    /// `request.operation`, such as `CREATE`.
    pub operation: String,
    /// `request.kind.kind`, such as `Pod`.
    pub kind: String,
    /// `request.subResource`, such as `scale`.
    pub sub_resource: String,
    /// `request.namespace`.
    pub namespace: String,
    /// `request.name`, or the object's name, or its `generateName` with a `*` behind.
    pub name: String,
    /// `request.dryRun`.
    pub dry_run: bool,
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

    /// How much memory it takes, near enough.
    pub(super) fn size(&self) -> usize {
        let one = size_of::<(String, String)>();
        let headers: usize = self.headers.iter().map(|(name, value)| one + name.len() + value.len()).sum();
        let subject = self.subject.as_ref().map_or(0, Subject::size);
        let certificate = self.certificate.as_ref().map_or(0, String::len);
        size_of::<Self>()
            + headers
            + certificate
            + self.path.len()
            + self.query.len()
            + self.body.len()
            + subject
    }
}

impl Subject {
    /// Reads it from a review; none if there is no operation in it.
    pub(crate) fn of(review: &Value) -> Option<Self> {
        let request = &review["request"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let operation = request["operation"].as_str()?.to_owned();
        Some(Self {
            operation,
            kind: request.pointer("/kind/kind").map(text).unwrap_or_default(),
            sub_resource: text(&request["subResource"]),
            namespace: text(&request["namespace"]),
            name: object_name(request),
            dry_run: request["dryRun"] == true,
        })
    }

    fn size(&self) -> usize {
        let Self { operation, kind, sub_resource, namespace, name, dry_run: _ } = self;
        [operation, kind, sub_resource, namespace, name].into_iter().map(String::len).sum()
    }
}

fn object_name(request: &Value) -> String {
    let text = |pointer: &str| {
        request.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let generated = || text("/object/metadata/generateName").map(|prefix| format!("{prefix}*"));
    text("/name").or_else(|| text("/object/metadata/name")).or_else(generated).unwrap_or_default()
}
