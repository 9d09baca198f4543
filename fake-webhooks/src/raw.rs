//! HTTP responses that a person has written out.

use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use serde_json::Value;

use crate::answer::{JSON, Question};
use crate::{Raw, Reply, StatusCode as FinalStatus};

/// The response, with the review's uid where it is asked for.
pub(crate) fn raw(raw: &Raw, review: &Value) -> Reply {
    let status = raw.status.map_or(StatusCode::OK, FinalStatus::http);
    let text = match (&raw.json, &raw.response, &raw.text) {
        (Some(json), _, _) => json.to_string(),
        (None, Some(response), _) => Question::around(&review["apiVersion"], response).to_string(),
        (None, None, Some(text)) => text.clone(),
        (None, None, None) => String::new(),
    };
    let uid = review["request"]["uid"].as_str().unwrap_or_default();
    let mut content_type = JSON.to_owned();
    let mut headers = Vec::new();
    for (name, value) in &raw.headers {
        match (name.parse::<HeaderName>(), HeaderValue::from_str(value)) {
            (Ok(CONTENT_TYPE), _) => content_type.clone_from(value),
            (Ok(name), Ok(value)) => headers.push((name, value)),
            // What cannot be sent is not sent.
            (Ok(_) | Err(_), _) => {}
        }
    }
    Reply {
        after: Duration::ZERO,
        status,
        content_type: content_type.into(),
        headers,
        body: Bytes::from(text.replace("{uid}", uid)),
        summary: format!("raw response with HTTP status {}", status.as_u16()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Answer, Behaviour, answer};

    #[test]
    fn the_uid_of_the_review_is_put_in() {
        let behaviour: Behaviour = serde_json::from_value(json!({"raw": {
            "status": 503, "headers": {"Retry-After": "1"}, "json": {"response": {"uid": "{uid}"}},
        }}))
        .unwrap();
        let Answer::Reply(reply) = answer(&behaviour, 0, &json!({"request": {"uid": "u"}})) else {
            panic!("no reply")
        };
        assert_eq!(reply.status, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(reply.body, r#"{"response":{"uid":"u"}}"#);
        assert_eq!(reply.headers.len(), 1);
    }
}
