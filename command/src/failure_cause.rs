//! Shortens the cause of a failed call.

use harness::verify::is_timeout;
use harness::verify::report::Report;

use crate::request_report::cut;

/// The maximum number of characters of a reason, which can quote a long response such as an HTML page.
const MAX_REASON: usize = 400;

/// Shortens the cause of a failed call to a few words; returns other reasons unchanged.
///
/// Includes the URL of the webhook if nothing listens there.
pub(crate) fn brief(report: &Report, webhook: &str, reason: &str) -> String {
    let Some((_, error)) = reason.split_once("failed to call webhook: ") else {
        return cut(reason, MAX_REASON);
    };
    if is_timeout(error) {
        let timeout = error.split_once("timeout=").and_then(|(_, rest)| rest.split(['s', 'm', '"']).next());
        return timeout.map_or("times out".to_owned(), |timeout| format!("times out after {timeout} s"));
    }
    if error.ends_with("connect: connection refused")
        && let Some(address) = report.addresses.get(webhook)
    {
        return format!("connection refused at {address}");
    }
    // Go's error starts with the request, followed by the cause.
    let cause = error.split_once("\": ").filter(|_| error.starts_with("Post "));
    let cause = cause.map_or(error, |(_, cause)| cause);
    if cause == "EOF" {
        return "the webhook closes the connection without a response (EOF)".to_owned();
    }
    // client-go's message does not say more than the status.
    if let Some((_, status)) = cause.split_once("has prevented the request from succeeding (HTTP status ") {
        return cut(&format!("HTTP status {}", status.strip_suffix(')').unwrap_or(status)), MAX_REASON);
    }
    cut(cause, MAX_REASON)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_cause_of_a_failed_call_is_brief() {
        let called = "failed calling webhook \"a.example.com\": failed to call webhook: Post \"https://a.b.svc:443/?timeout=1s\": ";
        let report = json!({"version": 2, "objects": 1, "calls": 1, "leftOut": {},
            "addresses": {"c/a": "https://127.0.0.1:9443/mutate"}, "webhooks": {}, "checks": []});
        let report: Report = serde_json::from_value(report).unwrap();
        for (cause, expected) in [
            ("context deadline exceeded", "times out after 1 s"),
            (
                "dial tcp a.b.svc:443: connect: connection refused",
                "connection refused at https://127.0.0.1:9443/mutate",
            ),
            ("EOF", "the webhook closes the connection without a response (EOF)"),
            (
                "an error on the server (\"unknown\") has prevented the request from succeeding (HTTP status 500, the \
                 response begins with: f(x))",
                "HTTP status 500, the response begins with: f(x)",
            ),
        ] {
            assert_eq!(brief(&report, "c/a", &format!("{called}{cause}")), expected);
        }
        assert_eq!(brief(&report, "c/a", "see V11"), "see V11");
        let page = "<p>".repeat(500);
        let brief = brief(&report, "c/a", &format!("failed to call webhook: {page}"));
        assert_eq!(brief, format!("{}<\u{2026}", "<p>".repeat(133)));
    }
}
