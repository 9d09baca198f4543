//! Calls as JSON, for those who read the journal of a running fleet.

use serde_json::{Map, Value, json};

use crate::{Answered, Entry};

/// The version of what is below: what it means does not change, fields may come.
const API_VERSION: &str = "fakes.admit.dev/v1alpha1";

/// A list of calls with the number of those that did not fit.
pub(crate) fn document<'a>(entries: impl IntoIterator<Item = &'a Entry>, dropped: u64) -> Value {
    let entries: Vec<_> = entries.into_iter().map(call).collect();
    json!({"apiVersion": API_VERSION, "kind": "Journal", "entries": entries, "dropped": dropped})
}

fn call(entry: &Entry) -> Value {
    let mut call = json!({
        "number": entry.number,
        "time": entry.time.to_string(),
        "fake": *entry.fake,
        "method": entry.method.as_str(),
        "path": entry.path,
        "query": entry.query,
        "httpVersion": format!("{:?}", entry.version),
        "headers": entry.headers.iter().map(|(name, value)| json!({"name": name, "value": value})).collect::<Vec<_>>(),
        "answered": answered(entry),
    });
    match entry.review() {
        Some(review) => call["review"] = review,
        // Base64 would hide what is most often a text.
        None => call["body"] = json!(String::from_utf8_lossy(&entry.body)),
    }
    call
}

fn answered(entry: &Entry) -> Value {
    let mut fields = Map::new();
    let outcome = match &entry.answered {
        Answered::Pending => "pending",
        Answered::Abandoned => "abandoned",
        Answered::Closed => "closed",
        Answered::Bytes => "bytes",
        Answered::Sent { status, summary } => {
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
    fn a_call_is_told_with_its_review_and_its_answer() {
        let sent = Answered::Sent { status: http::StatusCode::OK, summary: "allowed".to_owned() };
        let headers = vec![("x-test".to_owned(), "1".to_owned())];
        let reviewed = Entry {
            number: 1,
            path: "/a".to_owned(),
            body: Bytes::from(r#"{"request": {"uid": "7"}}"#),
            headers,
            answered: sent,
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
        assert_eq!(document([&reviewed, &pending], 4), expected);
    }
}
