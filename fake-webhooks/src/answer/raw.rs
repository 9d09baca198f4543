//! Creates custom HTTP responses.

use std::io::Write as _;
use std::time::Duration;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::StatusCode;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderName, HeaderValue};
use serde_json::{Value, json};

use super::reply::{JSON, Reply};
use super::review::ReviewedRequest;
use crate::{Encoding, Raw, StatusCode as FinalStatus};

/// Returns the custom response with placeholders replaced.
pub(super) fn raw(raw: &Raw, review: &Value) -> Reply {
    let status = raw.status.map_or(StatusCode::OK, FinalStatus::http);
    let text = match (&raw.json, &raw.response, &raw.text) {
        (Some(json), _, _) => json.to_string(),
        (None, Some(response), _) => ReviewedRequest::around(&review["apiVersion"], response).to_string(),
        (None, None, Some(text)) => text.clone(),
        (None, None, None) => String::new(),
    };
    let body = padded(raw.padding, filled(&text, review));
    let body = match raw.encoding {
        Encoding::Identity => body,
        Encoding::Gzip => gzipped(&body),
    };
    let mut content_type = JSON.to_owned();
    let mut headers = match raw.encoding {
        Encoding::Identity => Vec::new(),
        Encoding::Gzip => vec![(CONTENT_ENCODING, HeaderValue::from_static("gzip"))],
    };
    for (name, value) in &raw.headers {
        match (name.parse::<HeaderName>(), HeaderValue::from_str(value)) {
            (Ok(CONTENT_TYPE), _) => content_type.clone_from(value),
            (Ok(name), Ok(value)) => headers.push((name, value)),
            // Invalid headers are omitted.
            (Ok(_) | Err(_), _) => {}
        }
    }
    Reply {
        after: Duration::ZERO,
        status,
        content_type: content_type.into(),
        headers,
        body: Bytes::from(body),
        summary: format!("raw response with HTTP status {}", status.as_u16()),
    }
}

/// Returns a string with the placeholders `{review}`, `{length}`, and `{uid}` replaced.
pub(super) fn filled(text: &str, review: &Value) -> String {
    let uid = review.pointer("/request/uid").and_then(Value::as_str).unwrap_or_default();
    let allowing = match ReviewedRequest::read(review) {
        Ok(request) => request.answered(&json!({"uid": uid, "allowed": true})).to_string(),
        Err(_) => String::new(),
    };
    let length = allowing.len().to_string();
    text.replace("{review}", &allowing).replace("{length}", &length).replace("{uid}", uid)
}

/// Returns a body with leading spaces, which JSON and YAML parsers ignore.
fn padded(blanks: usize, text: String) -> Vec<u8> {
    let mut bytes = vec![b' '; blanks];
    bytes.extend(text.into_bytes());
    bytes
}

fn gzipped(body: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    // Writing to a vector does not fail.
    let written = encoder.write_all(body).and_then(|()| encoder.finish());
    written.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Answer, Behavior, answer};

    #[test]
    fn uid_placeholder_is_replaced() {
        let behavior: Behavior = serde_json::from_value(json!({"raw": {
            "status": 503, "headers": {"Retry-After": "1"}, "json": {"response": {"uid": "{uid}"}},
        }}))
        .unwrap();
        let Answer::Reply(reply) = answer(&behavior, 0, &json!({"request": {"uid": "u"}})) else {
            panic!("no reply")
        };
        assert_eq!(reply.status, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(reply.body, r#"{"response":{"uid":"u"}}"#);
        assert_eq!(reply.headers.len(), 1);
    }
}
