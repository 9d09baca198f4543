//! Converts the journal of a running fleet to and from JSON.

use std::time::Duration;

use bytes::Bytes;
use serde_json::{Map, Value, json};

use crate::json::set;
use crate::{CallOutcome, Entry, Subject};

/// The API version of the format. Fields may be added, but existing fields keep their meaning.
const API_VERSION: &str = "fakes.admit.dev/v1alpha1";

/// The names of headers that contain credentials.
const CREDENTIALS: [&str; 3] = ["authorization", "proxy-authorization", "cookie"];

/// Whether the values of the headers in [`CREDENTIALS`] are masked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Credentials {
    /// The values are replaced with asterisks.
    Masked,
    /// The values are shown.
    Shown,
}

/// Returns a JSON document with the calls and the number of dropped calls.
pub(crate) fn document<'a>(
    entries: impl IntoIterator<Item = &'a Entry>,
    dropped: u64,
    credentials: Credentials,
) -> Value {
    let entries: Vec<_> = entries.into_iter().map(|entry| call(entry, credentials)).collect();
    json!({"apiVersion": API_VERSION, "kind": "Journal", "entries": entries, "dropped": dropped})
}

/// The error for a call with a missing or invalid field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid `{0}` of a call in the journal")]
pub struct UnreadableEntry(&'static str);

impl Entry {
    /// Parses a call in the `entries` of a journal from an admin endpoint.
    ///
    /// The body of the parsed call is equivalent JSON, but not byte-identical to the original body.
    ///
    /// # Errors
    /// Returns an error if a field is missing or invalid.
    pub fn from_json(call: &Value) -> Result<Self, UnreadableEntry> {
        let text = |field: &'static str| call[field].as_str().ok_or(UnreadableEntry(field));
        let body = match call.get("review") {
            Some(review) => review.to_string(),
            None => text("body")?.to_owned(),
        };
        let answered = &call["answered"];
        Ok(Self {
            number: call["number"].as_u64().ok_or(UnreadableEntry("number"))?,
            time: read(call, "time")?,
            fake: text("fake")?.into(),
            method: read(call, "method")?,
            path: text("path")?.to_owned(),
            query: text("query")?.to_owned(),
            version: version(text("httpVersion")?).ok_or(UnreadableEntry("httpVersion"))?,
            headers: headers(&call["headers"]).ok_or(UnreadableEntry("headers"))?,
            certificate: call
                .get("clientCertificate")
                .map(|_| text("clientCertificate").map(str::to_owned))
                .transpose()?,
            subject: call.get("review").and_then(Subject::from_review),
            body: Bytes::from(body),
            outcome: outcome(answered).ok_or(UnreadableEntry("answered"))?,
            took: match answered.get("seconds") {
                None => None,
                Some(seconds) => {
                    let seconds = seconds.as_f64().map(Duration::try_from_secs_f64);
                    Some(seconds.and_then(Result::ok).ok_or(UnreadableEntry("answered.seconds"))?)
                }
            },
        })
    }
}

fn read<T: std::str::FromStr>(call: &Value, field: &'static str) -> Result<T, UnreadableEntry> {
    call[field].as_str().and_then(|text| text.parse().ok()).ok_or(UnreadableEntry(field))
}

fn version(text: &str) -> Option<http::Version> {
    [http::Version::HTTP_10, http::Version::HTTP_11, http::Version::HTTP_2]
        .into_iter()
        .find(|version| format!("{version:?}") == text)
}

fn headers(list: &Value) -> Option<Vec<(String, String)>> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    list.as_array()?.iter().map(|header| Some((text(&header["name"])?, text(&header["value"])?))).collect()
}

fn outcome(answered: &Value) -> Option<CallOutcome> {
    Some(match answered["outcome"].as_str()? {
        "pending" => CallOutcome::Pending,
        "abandoned" => CallOutcome::Abandoned,
        "closed" => CallOutcome::Closed,
        "bytes" => CallOutcome::Bytes,
        "sent" => CallOutcome::Sent {
            status: u16::try_from(answered["status"].as_u64()?).ok()?.try_into().ok()?,
            summary: answered["summary"].as_str()?.to_owned(),
        },
        _ => return None,
    })
}

fn call(entry: &Entry, credentials: Credentials) -> Value {
    let header = |(name, value): &(String, String)| {
        let is_masked = credentials == Credentials::Masked && CREDENTIALS.contains(&name.as_str());
        json!({"name": name, "value": if is_masked { "***" } else { value }})
    };
    let mut call = json!({
        "number": entry.number,
        "time": entry.time.to_string(),
        "fake": *entry.fake,
        "method": entry.method.as_str(),
        "path": entry.path,
        "query": entry.query,
        "httpVersion": format!("{:?}", entry.version),
        "headers": entry.headers.iter().map(header).collect::<Vec<_>>(),
        "answered": answered(entry),
    });
    if let Some(name) = &entry.certificate {
        set(&mut call, &["clientCertificate"], json!(name));
    }
    match entry.review() {
        Some(review) => set(&mut call, &["review"], review),
        // The body is usually text, so it is not encoded as base64.
        None => set(&mut call, &["body"], String::from_utf8_lossy(&entry.body)),
    }
    call
}

fn answered(entry: &Entry) -> Value {
    let mut fields = Map::new();
    let outcome = match &entry.outcome {
        CallOutcome::Pending => "pending",
        CallOutcome::Abandoned => "abandoned",
        CallOutcome::Closed => "closed",
        CallOutcome::Bytes => "bytes",
        CallOutcome::Sent { status, summary } => {
            fields.insert("status".to_owned(), json!(status.as_u16()));
            fields.insert("summary".to_owned(), json!(summary));
            "sent"
        }
    };
    fields.insert("outcome".to_owned(), json!(outcome));
    if let Some(took) = entry.took {
        fields.insert("seconds".to_owned(), json!(took.as_secs_f64()));
    }
    Value::Object(fields)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;

    use super::*;
    use crate::journal::tests::entry;

    #[test]
    fn document_contains_review_and_response() {
        let sent = CallOutcome::Sent { status: http::StatusCode::OK, summary: "allowed".to_owned() };
        let headers = vec![("x-test".to_owned(), "1".to_owned())];
        let reviewed = Entry {
            number: 1,
            path: "/a".to_owned(),
            body: Bytes::from(r#"{"request": {"uid": "7"}}"#),
            headers,
            outcome: sent,
            took: Some(Duration::from_millis(250)),
            ..entry(0)
        };
        let pending = Entry { number: 2, ..entry(3) };
        let expected = json!({
            "apiVersion": "fakes.admit.dev/v1alpha1", "kind": "Journal", "dropped": 4,
            "entries": [
                {
                    "number": 1, "time": "1970-01-01T00:00:00Z", "fake": "a.b.c", "method": "POST", "path": "/a",
                    "query": "", "httpVersion": "HTTP/1.1", "headers": [{"name": "x-test", "value": "1"}],
                    "review": {"request": {"uid": "7"}},
                    "answered": {"outcome": "sent", "status": 200, "summary": "allowed", "seconds": 0.25},
                },
                {
                    "number": 2, "time": "1970-01-01T00:00:00Z", "fake": "a.b.c", "method": "POST", "path": "",
                    "query": "", "httpVersion": "HTTP/1.1", "headers": [], "body": "xxx",
                    "answered": {"outcome": "pending"},
                },
            ],
        });
        let told = document([&reviewed, &pending], 4, Credentials::Masked);
        assert_eq!(told, expected);
        assert_eq!(Entry::from_json(&told["entries"][1]), Ok(pending));
        let review = Bytes::from(r#"{"request":{"uid":"7"}}"#);
        assert_eq!(Entry::from_json(&told["entries"][0]), Ok(Entry { body: review, ..reviewed }));
    }

    #[test]
    fn credentials_are_masked_by_default() {
        let headers = ["authorization", "proxy-authorization", "cookie", "accept"];
        let headers = headers.map(|name| (name.to_owned(), "secret".to_owned())).to_vec();
        let entry = Entry { headers, ..entry(0) };
        let told = |credentials| {
            let document = document([&entry], 0, credentials);
            let headers = document["entries"][0]["headers"].as_array().cloned().unwrap_or_default();
            headers.iter().map(|header| header["value"].clone()).collect::<Vec<Value>>()
        };
        assert_eq!(told(Credentials::Masked), ["***", "***", "***", "secret"]);
        assert_eq!(told(Credentials::Shown), ["secret"; 4]);
    }

    #[test]
    fn every_outcome_can_be_parsed_back() {
        for answered in
            [CallOutcome::Pending, CallOutcome::Abandoned, CallOutcome::Closed, CallOutcome::Bytes]
        {
            let entry = Entry { outcome: answered, ..entry(0) };
            assert_eq!(Entry::from_json(&document([&entry], 0, Credentials::Shown)["entries"][0]), Ok(entry));
        }
        let mut unknown = document([&entry(0)], 0, Credentials::Shown)["entries"][0].take();
        unknown["answered"]["outcome"] = json!("lost");
        assert_eq!(Entry::from_json(&unknown), Err(UnreadableEntry("answered")));
    }
}
