//! Interprets responses with an HTTP status outside of 200–206.

use kubernetes_types::quoting::quote;
use kubernetes_types::status::Status;

use super::decode;
use super::fields::{self, Fields};
use crate::caller::Reply;

/// The maximum length, in bytes, of the body in an error message.
const MAX_BODY: usize = 2048;

/// Returns the message and code of an unsuccessful reply, from a Status in the body or from the HTTP status.
///
/// Source: client-go rest/request.go, `Result.Error`; apimachinery pkg/api/errors/errors.go,
/// `NewGenericServerResponse`.
/// Rule: HTTP-28.
pub(super) fn failure(reply: &Reply) -> (String, u16) {
    status_in(&reply.body).unwrap_or_else(|| (generic(reply.status, &text(reply)), reply.status))
}

/// Returns the message and code of a failure `Status` in the body. Its `apiVersion` may be missing.
fn status_in(body: &[u8]) -> Option<(String, u16)> {
    let document = decode::document(body).ok()?;
    let claimed = &document.claimed;
    let is_status =
        claimed.kind == "Status" && claimed.group.is_empty() && matches!(claimed.version.as_str(), "" | "v1");
    let Status { status, message, code, .. } =
        is_status.then(|| fields::status(&Fields::root(&document.fields, "Status")).ok()).flatten()?;
    (status == "Failure").then(|| (message, u16::try_from(code).unwrap_or_default()))
}

/// Returns the body if its content type is text, otherwise `unknown`.
///
/// Rule: HTTP-29.
fn text(reply: &Reply) -> String {
    let is_text = reply.content_type.as_deref().is_none_or(|content_type| {
        content_type.is_empty() || content_type.trim_start().to_ascii_lowercase().starts_with("text/")
    });
    if is_text {
        String::from_utf8_lossy(reply.body.get(..MAX_BODY).unwrap_or(&reply.body)).trim().to_owned()
    } else {
        "unknown".to_owned()
    }
}

fn generic(code: u16, text: &str) -> String {
    match code {
        400 => "the server rejected our request for an unknown reason".to_owned(),
        401 => "the server has asked for the client to provide credentials".to_owned(),
        404 => "the server could not find the requested resource".to_owned(),
        405 => "the server does not allow this method on the requested resource".to_owned(),
        406 if text.is_empty() || text == "unknown" => {
            "the server was unable to respond with a content type that the client supports".to_owned()
        }
        403 | 406 | 415 => text.to_owned(),
        409 => "the server reported a conflict".to_owned(),
        422 => "the server rejected our request due to an error in our request".to_owned(),
        429 => "the server has received too many requests and has asked us to try again later".to_owned(),
        503 => "the server is currently unable to handle the request".to_owned(),
        504 => {
            "the server was unable to return a response in the time allotted, but may still be processing \
                the request"
                .to_owned()
        }
        500.. => {
            format!("an error on the server ({}) has prevented the request from succeeding", quote(text))
        }
        _ => format!("the server responded with the status code {code} but did not return more information"),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[track_caller]
    fn check(status: u16, content_type: Option<&str>, body: &'static str, expect: (&str, u16)) {
        let reply = Reply {
            status,
            content_type: content_type.map(str::to_owned),
            body: Bytes::from_static(body.as_bytes()),
        };
        assert_eq!(failure(&reply), (expect.0.to_owned(), expect.1));
    }

    #[test]
    fn a_text_body_is_quoted_for_some_codes() {
        check(403, Some("text/plain"), " no \n", ("no", 403));
        check(403, None, "", ("", 403));
        check(403, Some("application/json"), "{}", ("unknown", 403));
        let server_error =
            r#"an error on the server ("oh \"no\"") has prevented the request from succeeding"#;
        check(500, Some("text/plain; charset=utf-8"), "oh \"no\"", (server_error, 500));
        check(
            418,
            None,
            "tea",
            ("the server responded with the status code 418 but did not return more information", 418),
        );
    }

    #[test]
    fn other_codes_have_fixed_messages() {
        for (status, expect) in [
            (400, "the server rejected our request for an unknown reason"),
            (401, "the server has asked for the client to provide credentials"),
            (404, "the server could not find the requested resource"),
            (405, "the server does not allow this method on the requested resource"),
            (409, "the server reported a conflict"),
            (422, "the server rejected our request due to an error in our request"),
            (429, "the server has received too many requests and has asked us to try again later"),
            (503, "the server is currently unable to handle the request"),
            (
                504,
                "the server was unable to return a response in the time allotted, but may still be processing \
                 the request",
            ),
        ] {
            check(status, None, "tea", (expect, status));
        }
        check(415, None, "tea", ("tea", 415));
        check(406, None, "tea", ("tea", 406));
        let no_such_type = "the server was unable to respond with a content type that the client supports";
        check(406, None, "", (no_such_type, 406));
        check(406, Some("application/json"), "{}", (no_such_type, 406));
    }

    #[test]
    fn a_failure_status_in_the_body_is_used() {
        check(500, None, r#"{"kind":"Status","status":"Failure","message":"m","code":409}"#, ("m", 409));
        check(
            404,
            None,
            r#"{"apiVersion":"v1","status":"Failure","message":"m","code":409}"#,
            ("the server could not find the requested resource", 404),
        );
        check(
            404,
            None,
            r#"{"kind":"Status","apiVersion":"v1","status":"Success","message":"m"}"#,
            ("the server could not find the requested resource", 404),
        );
    }
}
