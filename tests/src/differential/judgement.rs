//! One situation on both servers, and whether they did the same.

use std::sync::Arc;

use serde_json::Value;

use crate::difference::differences;
use crate::recording::Recording;
use crate::run::{Manner, RunError, Seen, run, run_in_process};
use crate::server::Server;

/// What both servers made of a situation. What the real one counted is added later.
#[derive(Debug)]
pub(crate) struct Pair {
    expected: Result<Seen, RunError>,
    actual: Result<Value, RunError>,
}

/// Whether both did the same.
#[derive(Debug)]
pub(crate) enum Judgement {
    Agrees,
    Differs(Box<Documents>),
    /// The real server could not be asked.
    NotRun(String),
}

/// What both servers did.
#[derive(Debug)]
pub(crate) struct Documents {
    pub(crate) recording: Recording,
    pub(crate) actual: Value,
    /// The places at which they differ, without the numbers of requests and calls, the answers' before the counters'.
    pub(crate) signature: Vec<String>,
}

/// Runs the case that `text` is on both servers.
pub(crate) async fn run_both(text: String, server: Arc<Server>) -> Pair {
    let authority = Arc::clone(&server.authority);
    let copy = text.clone();
    // Tasks of their own, so that both cores work.
    let expected = tokio::spawn(async move { run(&text, &server, Manner::default()).await });
    let actual = tokio::spawn(async move { run_in_process(&copy, authority, Manner::default()).await });
    let (expected, actual) = tokio::join!(expected, actual);
    Pair {
        expected: expected.unwrap_or_else(|error| panicked(&error)),
        actual: actual.unwrap_or_else(|error| panicked(&error)),
    }
}

fn panicked<T>(error: &tokio::task::JoinError) -> Result<T, RunError> {
    Err(RunError::Ended(error.to_string()))
}

/// Compares, with what the real server's `exposition` of its metrics says.
pub(crate) fn judged(pair: &Pair, exposition: &str) -> Judgement {
    let expected = match &pair.expected {
        Ok(seen) => seen.masked(exposition),
        Err(error) => return Judgement::NotRun(error.to_string()),
    };
    let actual = match &pair.actual {
        Ok(actual) => actual.clone(),
        // What admit cannot even prepare is a difference: the real server could.
        Err(error) => serde_json::json!({"requests": [], "metrics": {}, "not run": error.to_string()}),
    };
    let (expected, actual) = (without_no_ops(expected), without_no_ops(actual));
    let found = differences(&expected, &actual);
    if found.is_empty() {
        return Judgement::Agrees;
    }
    let mut signature: Vec<String> = Vec::new();
    let (metrics, others): (Vec<_>, Vec<_>) = found.iter().partition(|it| it.path.starts_with("metrics"));
    for difference in others.into_iter().chain(metrics) {
        let place = without_numbers(&difference.path);
        if !signature.contains(&place) {
            signature.push(place);
        }
    }
    let recording = Recording { apiserver: String::new(), alternatives: vec![expected] };
    Judgement::Differs(Box::new(Documents { recording, actual, signature }))
}

/// A request whose object comes out as it was gets a new version upstream if `managedFields`, of which admit has none,
/// tell another owner: which versions are the same is not compared.
fn without_no_ops(mut document: Value) -> Value {
    fn forget(value: &mut Value) {
        match value {
            Value::Object(members) => {
                for (key, member) in members {
                    if key == "resourceVersion" && member.is_string() {
                        *member = Value::from("<resourceVersion>");
                    } else {
                        forget(member);
                    }
                }
            }
            Value::Array(items) => items.iter_mut().for_each(forget),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    forget(&mut document);
    document
}

/// Metrics and annotations have names of webhooks in their paths; where they differ is said by their family.
fn without_numbers(path: &str) -> String {
    let path = path.split(['{', '/']).next().unwrap_or_default();
    path.chars().filter(|letter| !letter.is_ascii_digit()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_something_differs_does_not_depend_on_counts() {
        assert_eq!(
            without_numbers("requests[12].calls[0].review.request.object"),
            "requests[].calls[].review.request.object"
        );
        assert_eq!(
            without_numbers("metrics.webhook_request_total{name=\"w1\"}"),
            "metrics.webhook_request_total"
        );
    }
}
