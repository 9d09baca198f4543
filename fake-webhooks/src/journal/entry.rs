//! Describes a call that a fake received.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

/// A call that a fake received, and the outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The number of the call in the journal, from 1.
    pub number: u64,
    /// The time at which the body was complete.
    pub time: jiff::Timestamp,
    /// The name of the fake.
    pub fake: Arc<str>,
    /// The HTTP method of the request.
    pub method: http::Method,
    /// The path of the URL.
    pub path: String,
    /// The query of the URL without the `?`, or an empty string.
    pub query: String,
    /// The HTTP version of the request.
    pub version: http::Version,
    /// The headers with lowercase names, in order of arrival.
    pub headers: Vec<(String, String)>,
    /// The common name of the client certificate, if any.
    pub certificate: Option<String>,
    /// The complete body of the request.
    pub body: Bytes,
    /// The subject of the review, or `None` if the body is not a review.
    pub subject: Option<Subject>,
    /// The outcome of the call.
    pub outcome: CallOutcome,
    /// The time from the arrival of the headers to the outcome; `None` while the call is pending.
    pub took: Option<Duration>,
}

/// The subject of a review; missing fields are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Subject {
    /// The operation (`request.operation`), such as `CREATE`.
    pub operation: String,
    /// The kind of the object (`request.kind.kind`), such as `Pod`.
    pub kind: String,
    /// The subresource (`request.subResource`), such as `scale`.
    pub sub_resource: String,
    /// The namespace of the object (`request.namespace`).
    pub namespace: String,
    /// The name of the object (`request.name` or from the object), or its `generateName` followed by `*`.
    pub name: String,
    /// Whether the request is a dry run (`request.dryRun`).
    pub dry_run: bool,
}

/// The outcome of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallOutcome {
    /// Nothing has been sent yet.
    Pending,
    /// The caller disconnected, or the fake was stopped, before anything was sent.
    Abandoned,
    /// The fake closed the connection on purpose.
    Closed,
    /// Raw bytes were sent.
    Bytes,
    /// A response was sent.
    Sent {
        /// The HTTP status of the response.
        status: http::StatusCode,
        /// A summary of the response.
        summary: String,
    },
}

impl Entry {
    /// Returns the body as JSON, or `None` if the body is not JSON.
    pub fn review(&self) -> Option<Value> {
        serde_json::from_slice(&self.body).ok()
    }

    /// Returns the approximate memory use of the entry in bytes.
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
    /// Reads the subject of a review, or returns `None` if the operation is missing.
    pub(crate) fn from_review(review: &Value) -> Option<Self> {
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
