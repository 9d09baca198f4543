//! Runs one situation on both servers and compares the results.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;

use crate::case::Plugins;
use crate::difference::{differences, side_by_side};
use crate::recording::Recording;
use crate::run::{Manner, RunResult, run, run_in_process};
use crate::run_error::RunError;
use crate::server::Server;
use crate::server_error::ServerError;

/// The results of a situation on both servers. The real server's counters are added later.
#[derive(Debug)]
pub(crate) struct Pair {
    expected: Result<RunResult, RunError>,
    actual: Result<Value, RunError>,
}

/// One comparison of the two servers.
#[derive(Debug)]
pub(crate) struct Look {
    pub(crate) judgment: Judgment,
    /// The result of admit.
    actual: Value,
    /// The features that the situation needs and admit does not support, if they are counted.
    pub(crate) unsupported: Vec<String>,
}

/// The treatment of requests that admit answers with status 501.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unsupported {
    /// Report them as differences.
    Differs,
    /// Count them, and do not compare them.
    Counted,
}

/// The result of a comparison.
#[derive(Debug)]
pub(crate) enum Judgment {
    Agrees,
    Differs(Box<Documents>),
    /// The real server could not run the situation.
    NotRun(String),
}

/// The maximum duration of one situation on one server.
///
/// It includes the requests, which have their own limits, and their preparation and cleanup.
const RUN_TIMEOUT: Duration = Duration::from_secs(120);

/// The results of both servers, in the format of recordings.
#[derive(Debug)]
pub(crate) struct Documents {
    pub(crate) recording: Recording,
    pub(crate) actual: Value,
    /// The paths at which the documents differ, without the numbers of requests and calls.
    ///
    /// Paths in answers precede paths in counters.
    pub(crate) signature: Vec<String>,
}

/// Runs the case in `text` on both servers. A server that hangs causes a [`RunError`].
pub(crate) async fn run_both(text: String, server: Arc<Server>) -> Pair {
    let authority = Arc::clone(&server.authority);
    let copy = text.clone();
    // Separate tasks use both cores.
    let expected = bounded(async move { run(&text, &server, Manner::default()).await });
    let actual = bounded(async move { run_in_process(&copy, authority, Manner::default()).await });
    let (expected, actual) = tokio::join!(expected, actual);
    Pair { expected, actual }
}

async fn bounded<T: Send + 'static>(
    run: impl Future<Output = Result<T, RunError>> + Send + 'static,
) -> Result<T, RunError> {
    match tokio::spawn(timeout(RUN_TIMEOUT, run)).await {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(_elapsed)) => {
            Err(RunError::Ended(format!("it was not done after {} s", RUN_TIMEOUT.as_secs())))
        }
        Err(panicked) => Err(RunError::Ended(panicked.to_string())),
    }
}

impl Look {
    /// Returns whether both servers agree.
    pub(crate) fn agrees(&self) -> bool {
        matches!(self.judgment, Judgment::Agrees)
    }

    /// Returns whether the servers have different results.
    pub(crate) fn differs(&self) -> bool {
        matches!(self.judgment, Judgment::Differs(_))
    }

    /// Returns whether admit has the same result in both comparisons.
    pub(crate) fn does_the_same_here(&self, other: &Self) -> bool {
        differences(&self.actual, &other.actual).is_empty()
    }
}

impl fmt::Display for Judgment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Agrees => f.write_str("it agreed"),
            Self::Differs(documents) => {
                let Documents { recording, actual, signature } = &**documents;
                let found = recording.alternatives.iter().flat_map(|expected| differences(expected, actual));
                let shown = side_by_side(&found.collect::<Vec<_>>());
                write!(f, "it differed at {}\n{}", signature.join(", "), shown.trim_end())
            }
            Self::NotRun(why) => write!(f, "it was not run: {why}"),
        }
    }
}

/// Compares the results, with the metrics in the real server's `exposition`.
pub(crate) fn judged(pair: Pair, exposition: &str, unsupported: Unsupported) -> Look {
    let mut actual = match pair.actual {
        Ok(actual) => actual,
        // If admit cannot prepare the case, this is a difference, because the real server could.
        Err(error) => json!({"requests": [], "metrics": {}, "not run": error.to_string()}),
    };
    let mut expected = match &pair.expected {
        Ok(seen) => seen.masked(exposition),
        Err(error) => {
            return Look { judgment: Judgment::NotRun(error.to_string()), actual, unsupported: Vec::new() };
        }
    };
    let unsupported = match unsupported {
        Unsupported::Differs => Vec::new(),
        Unsupported::Counted => leave_out_unsupported(&mut expected, &mut actual),
    };
    let found = differences(&expected, &actual);
    if found.is_empty() {
        return Look { judgment: Judgment::Agrees, actual, unsupported };
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
    let documents = Documents { recording, actual: actual.clone(), signature };
    Look { judgment: Judgment::Differs(Box::new(documents)), actual, unsupported }
}

/// Compares the startup errors if the real server did not start.
///
/// admit must report the same error after the names of its options. The log of kube-apiserver contains the error in
/// quotes.
pub(crate) async fn refused(said: &str, plugins: &Plugins) -> Result<Look, ServerError> {
    let authority = Arc::new(certs::CertificateAuthority::new("admit judge CA")?);
    let own = match Server::in_process(authority, plugins).await {
        Ok(_) => "it starts".to_owned(),
        Err(error) => error.to_string(),
    };
    // A multi-line error is indented instead of quoted.
    let said = [said.replace("\\\"", "\"").replace("\\\\", "\\"), said.replace("\n  \t", "\n")];
    let actual = json!({"refused": own});
    let what = own.split_once(": ").map_or("", |(_, what)| what);
    let what = what.strip_prefix("plugin ").and_then(|what| Some(what.split_once(": ")?.1)).unwrap_or(what);
    if !what.is_empty() && said.iter().any(|said| said.contains(what)) {
        return Ok(Look { judgment: Judgment::Agrees, actual, unsupported: Vec::new() });
    }
    let expected = json!({"refused": said[0].lines().rev().take(5).collect::<Vec<_>>()});
    let recording = Recording { apiserver: String::new(), alternatives: vec![expected] };
    let signature = vec!["refused".to_owned()];
    let documents = Documents { recording, actual: actual.clone(), signature };
    Ok(Look { judgment: Judgment::Differs(Box::new(documents)), actual, unsupported: Vec::new() })
}

/// Removes the requests that admit answers with 501 from both documents. Returns the messages of these answers.
fn leave_out_unsupported(expected: &mut Value, actual: &mut Value) -> Vec<String> {
    let mut said = Vec::new();
    let requests = |document: &mut Value| document.get_mut("requests").map(Value::take).unwrap_or_default();
    let (mut wanted, mut made) = (requests(expected), requests(actual));
    for (index, request) in made.as_array_mut().into_iter().flatten().enumerate() {
        if request.pointer("/answer/status") == Some(&json!(501)) {
            let message = request.pointer("/answer/body/message").and_then(Value::as_str);
            said.push(message.unwrap_or_default().to_owned());
            *request = Value::Null;
            if let Some(request) = wanted.get_mut(index) {
                *request = Value::Null;
            }
        }
    }
    (expected["requests"], actual["requests"]) = (wanted, made);
    said
}

/// Replaces a path in metrics or annotations that contains the name of a webhook with a general path.
fn without_numbers(path: &str) -> String {
    let path = path.split(['{', '/']).next().unwrap_or_default();
    path.chars().filter(|letter| !letter.is_ascii_digit()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsupported_requests_are_left_out_of_the_comparison() {
        let answer =
            |status: u16, message: &str| json!({"answer": {"status": status, "body": {"message": message}}});
        let mut expected = json!({"requests": [answer(422, "a"), answer(201, "")]});
        let mut actual = json!({"requests": [answer(501, "not imitated"), answer(201, "")]});
        assert_eq!(leave_out_unsupported(&mut expected, &mut actual), ["not imitated"]);
        assert_eq!(expected, actual);
        assert_eq!(actual["requests"], json!([null, answer(201, "")]));
    }

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
