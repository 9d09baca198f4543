//! Formats the log line of a call.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use output::OneLine;

use super::{CallOutcome, Entry, Subject};

/// Formats a call as one line: time, webhook, operation, kind, object, and response.
pub(crate) fn log_line(entry: &Entry) -> String {
    let what = match &entry.subject {
        Some(subject) => reviewed(subject),
        None => format!("{} {} without a review", entry.method, entry.path),
    };
    let answer = match &entry.outcome {
        CallOutcome::Pending => "no answer yet",
        CallOutcome::Abandoned => "the caller disconnected",
        CallOutcome::Closed => "closed the connection",
        CallOutcome::Bytes => "bytes of its own",
        CallOutcome::Sent { summary, .. } => summary,
    };
    // Callers control these strings, so line breaks and escape sequences are escaped.
    OneLine(format!("{:.3} {} {what}{}: {answer}", entry.time, entry.fake, caller(entry))).to_string()
}

/// Returns the name of the caller, which does not contain secrets.
fn caller(entry: &Entry) -> String {
    let header = entry.headers.iter().find(|(name, _)| name == "authorization");
    let shown = header.and_then(|(_, value)| value.split_once(' ')).map(|(scheme, secret)| match scheme {
        "Basic" => {
            let decoded = STANDARD.decode(secret).unwrap_or_default();
            let decoded = String::from_utf8_lossy(&decoded).into_owned();
            format!("the user {}", decoded.split(':').next().unwrap_or_default())
        }
        "Bearer" => "a token".to_owned(),
        _ => "other credentials".to_owned(),
    });
    let certificate = entry.certificate.as_ref().map(|name| format!("the certificate {name}"));
    let all: Vec<String> = certificate.into_iter().chain(shown).collect();
    if all.is_empty() { String::new() } else { format!(" by {}", all.join(" and ")) }
}

fn reviewed(subject: &Subject) -> String {
    let or =
        |text: &str, otherwise: &str| if text.is_empty() { otherwise.to_owned() } else { text.to_owned() };
    let Subject { operation, kind, sub_resource, namespace, name, dry_run } = subject;
    let kind = or(kind, "?");
    let sub = if sub_resource.is_empty() { String::new() } else { format!("/{sub_resource}") };
    let name = or(name, "-");
    let object = if namespace.is_empty() { name } else { format!("{namespace}/{name}") };
    let dry_run = if *dry_run { " (dry run)" } else { "" };
    format!("{operation} {kind}{sub} {object}{dry_run}")
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use serde_json::{Value, json};

    use super::*;

    #[track_caller]
    fn check(body: &Value, outcome: CallOutcome, expected: &str) {
        let entry = Entry {
            number: 1,
            time: jiff::Timestamp::UNIX_EPOCH,
            fake: "a.b.c".into(),
            method: http::Method::POST,
            path: "/hook".to_owned(),
            query: String::new(),
            version: http::Version::HTTP_11,
            headers: Vec::new(),
            certificate: None,
            body: Bytes::from(body.to_string()),
            subject: Subject::from_review(body),
            outcome,
            took: None,
        };
        assert_eq!(log_line(&entry), format!("1970-01-01T00:00:00.000Z a.b.c {expected}"));
    }

    #[test]
    fn a_call_is_one_line() {
        let sent =
            |summary: &str| CallOutcome::Sent { status: http::StatusCode::OK, summary: summary.to_owned() };
        let request = |request: Value| json!({"request": request});
        check(
            &request(
                json!({"operation": "CREATE", "kind": {"kind": "Pod"}, "namespace": "demo", "name": "web"}),
            ),
            sent("denied: two\nlines \u{1b}[31m"),
            "CREATE Pod demo/web: denied: two\\nlines \\u{1b}[31m",
        );
        check(
            &request(json!({
                "operation": "UPDATE", "kind": {"kind": "Scale"}, "subResource": "scale", "dryRun": true,
                "object": {"metadata": {"generateName": "web-"}},
            })),
            CallOutcome::Abandoned,
            "UPDATE Scale/scale web-* (dry run): the caller disconnected",
        );
        check(&json!(7), CallOutcome::Closed, "POST /hook without a review: closed the connection");
    }
}
