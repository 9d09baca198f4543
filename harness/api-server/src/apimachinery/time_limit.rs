//! Determines the time limit of requests.

use std::time::Duration;

use kubernetes_types::status::Status;
use serde_json::Value;

use super::query::Query;

/// The default time limit of a request.
///
/// Source: apiserver pkg/endpoints/handlers/rest.go, `requestTimeoutUpperBound`.
pub(crate) const REQUEST_TIMEOUT_UPPER_BOUND: Duration = Duration::from_secs(34);

/// Returns the time limit from the query parameter `timeout`, but at most the server's limit.
///
/// Source: apiserver `pkg/endpoints/filters/request_deadline.go`, `parseTimeout` and `WithRequestDeadline`.
/// Rule: HTTP-06.
pub(crate) fn time_limit(query: &Query) -> Result<Duration, Box<Status>> {
    let Some(text) = query.first("timeout").filter(|text| !text.is_empty()) else {
        return Ok(REQUEST_TIMEOUT_UPPER_BOUND);
    };
    let Some(seconds) = duration(text) else {
        return Err(Box::new(Status::bad_request(format!(
            "invalid timeout specified in the request URL - time: invalid duration {}",
            Value::from(text)
        ))));
    };
    let limit = Duration::try_from_secs_f64(seconds).unwrap_or(REQUEST_TIMEOUT_UPPER_BOUND);
    Ok(if limit.is_zero() { REQUEST_TIMEOUT_UPPER_BOUND } else { limit.min(REQUEST_TIMEOUT_UPPER_BOUND) })
}

/// Builds the 504 for a request that exceeded its time limit.
///
/// Source: apiserver pkg/server/filters/timeout.go, which writes a Status without a kind and a version.
pub(crate) fn exceeded() -> Box<Status> {
    let mut status = Status::timeout("request did not complete within the allotted timeout");
    status.kind.clear();
    status.api_version.clear();
    Box::new(status)
}

/// Parses a duration such as `1m10s` and returns the number of seconds.
///
/// Source: Go's time, `ParseDuration`.
fn duration(text: &str) -> Option<f64> {
    let (sign, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0.0);
    }
    let mut seconds = None;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = rest.split_at(digits);
        let unit_end = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (unit, after) = after.split_at(unit_end);
        let unit = match unit {
            "ns" => 1e-9,
            "us" | "µs" | "μs" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => return None,
        };
        let number: f64 = number.parse().ok()?;
        seconds = Some(seconds.unwrap_or(0.0) + number * unit);
        rest = after;
    }
    seconds.map(|seconds| sign * seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<f64>) {
        assert_eq!(duration(text), expected, "{text}");
    }

    #[test]
    fn durations_are_parsed_like_go() {
        check("5s", Some(5.0));
        check("1m10s", Some(70.0));
        check("1.5h", Some(5400.0));
        check("-5s", Some(-5.0));
        check("0", Some(0.0));
        for text in ["", "x", "5", "5x", "s", "5s5", ".s", "-", "--5s"] {
            check(text, None);
        }
    }

    #[test]
    fn timeout_can_only_shorten_the_limit() {
        let limit = |text: &str| time_limit(&Query::parse(&format!("timeout={text}"))).unwrap();
        assert_eq!(limit("5s"), Duration::from_secs(5));
        for text in ["", "0", "0s", "-5s", "1m10s"] {
            assert_eq!(limit(text), REQUEST_TIMEOUT_UPPER_BOUND, "{text}");
        }
        assert_eq!(time_limit(&Query::parse("timeout=x")).unwrap_err().code, 400);
    }
}
