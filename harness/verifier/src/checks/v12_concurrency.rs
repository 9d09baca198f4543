//! V12: concurrent requests do not affect each other.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use kubernetes_admission::attributes::Attributes;
use kubernetes_types::json::set;
use serde_json::Value;

use super::recorded_writes;
use super::v41_latency::written;
use crate::check::{Audience, Check, Observed, Probe, Repeatability, Severity, Skipped, Violation};
use crate::comparison::Order;
use crate::environment::Outcome;
use crate::finding_log::NOT_DETERMINISTIC;
use crate::object_probe::Memory;
use crate::reasons::is_timeout;
use crate::webhook_probe::WebhookProbe;

/// The number of concurrent requests.
const REQUESTS: usize = 64;
/// The maximum number of bursts. There are more than one only if a burst has a [`pause`].
const MAX_BURSTS: usize = 8;
/// The shortest pause in a burst that is not noise: a client sends a dropped connection request again after 1 s.
const PAUSE: Duration = Duration::from_millis(500);
/// The time limit for the webhook to answer a single request again after concurrent requests failed.
const RECOVERY: Duration = Duration::from_secs(60);

pub(super) const CHECK: Check = Check {
    id: "V12",
    title: "concurrency: 64 concurrent requests get the same responses as single requests",
    severity: Severity::Error,
    why: "kube-apiserver calls a webhook for every request in flight, from several replicas. A webhook that \
          stores the review, the patch, or the logger's fields in shared state responds with the uid or the \
          object of another request as soon as two requests overlap. One user's Pod then gets another \
          user's sidecar, token, or verdict. Tests that send one request at a time never show it.",
    help: "Keep all state of a request in local variables.",
    source: "Dynamic Admission Control, Response: uid is copied from the request",
    audience: Audience::All,
    repeatability: Repeatability::Varies,
    probe: Probe::Webhook(|webhook_probe| Box::pin(run(webhook_probe))),
};

async fn run(webhook_probe: &WebhookProbe<'_>) -> Observed {
    if webhook_probe.samples.is_empty() {
        return Err(Skipped::not_applicable(
            "no object in the corpus matches the webhook's rules and \
                                             selectors",
        ));
    }
    let requests: Vec<Attributes> = webhook_probe
        .samples
        .iter()
        .cycle()
        .take(REQUESTS)
        .enumerate()
        .map(|(n, sample)| distinct(sample, n))
        .collect();
    let alone = webhook_probe.alone();
    let mut expected = Vec::with_capacity(requests.len());
    for request in &requests {
        expected.push(recorded_writes::responded(webhook_probe, request).await?);
    }
    // Requests whose response is invalid even alone say nothing about concurrency.
    recorded_writes::leave_invalid_unjudged(webhook_probe, &expected)?;
    let (requests, expected): (Vec<Attributes>, Vec<Arc<Outcome>>) =
        requests.into_iter().zip(expected).filter(|(_, outcome)| outcome.failure().is_none()).unzip();
    let slowest = expected.iter().filter_map(took).max().unwrap_or_default();
    let mut found: Vec<Arc<Outcome>> = Vec::new();
    let mut failures = Failures::default();
    while failures.bursts < MAX_BURSTS {
        let burst =
            join_all(requests.iter().map(|request| webhook_probe.environment.admit(&alone, request))).await;
        let burst: Vec<Arc<Outcome>> = burst.into_iter().map(Arc::new).collect();
        failures = Failures::new(&burst, failures.bursts + 1);
        let durations = burst.iter().filter_map(took).collect();
        found.extend(burst);
        if failures.any() || pause(durations) < PAUSE.max(slowest) {
            break;
        }
    }
    let mut violations: Vec<Violation> = Vec::new();
    if failures.any()
        && let Some(exchange) = expected.first().and_then(|outcome| outcome.exchanges.first())
    {
        // The later checks must not find a webhook that is still busy with the burst.
        let called = &webhook_probe.subject.called;
        let recovery = webhook_probe.environment.recovery(called, &exchange.review, RECOVERY).await;
        let last = found.len() - requests.len();
        let burst = found.get(last..).unwrap_or_default();
        violations.extend(failures.violation(called.timeout, recovery, &expected, burst));
        if recovery.is_none() {
            return Ok(violations);
        }
    }
    for ((request, expected), found) in requests.iter().zip(&expected).cycle().zip(&found) {
        if found.failure().is_some_and(|reason| !is_another_uid(reason)) {
            continue;
        }
        let Some(violation) = difference(webhook_probe, request, expected, found) else { continue };
        if violations.iter().any(|known| known.kind == violation.kind) {
            continue;
        }
        // The difference counts only if the response to the request alone is stable.
        let again = webhook_probe.environment.admit(&alone, request).await;
        if difference(webhook_probe, request, expected, &again).is_some() {
            return Err(Skipped::not_checked(NOT_DETERMINISTIC));
        }
        violations.push(violation.with_steps([Arc::clone(expected), Arc::clone(found)]));
    }
    Ok(violations)
}

/// Returns the time from the request to the webhook's reply.
fn took(outcome: &Arc<Outcome>) -> Option<Duration> {
    outcome.exchanges.first().map(|exchange| exchange.took)
}

/// Returns the longest time in which no request of a burst got its reply although others got theirs later.
///
/// If a server's queue of new connections is full, the kernel drops connections, and the clients connect again after 1,
/// 3, and 7 s. Whether a request then exceeds its timeout is chance. A server that handles one request at a time does
/// not pause.
fn pause(mut durations: Vec<Duration>) -> Duration {
    durations.sort();
    let pairs = durations.iter().zip(durations.iter().skip(1));
    pairs.map(|(earlier, later)| later.saturating_sub(*earlier)).max().unwrap_or_default()
}

fn is_another_uid(reason: &str) -> bool {
    reason.contains("expected response.uid")
}

/// The concurrent requests that got no valid response, although the webhook answered each of them alone.
#[derive(Debug, Default)]
struct Failures {
    /// The number of bursts sent, up to and including the one that contained these requests.
    bursts: usize,
    /// The number of requests that timed out.
    late: usize,
    /// The number of other requests, and the first reason.
    other: usize,
    reason: Option<String>,
    /// The position of the first failed request.
    first: Option<usize>,
}

impl Failures {
    fn new(found: &[Arc<Outcome>], bursts: usize) -> Self {
        let mut failures = Self { bursts, ..Self::default() };
        for (position, outcome) in found.iter().enumerate() {
            let Some(reason) = outcome.failure().filter(|reason| !is_another_uid(reason)) else { continue };
            failures.first.get_or_insert(position);
            if is_timeout(reason) {
                failures.late += 1;
            } else {
                failures.other += 1;
                failures.reason.get_or_insert_with(|| reason.to_owned());
            }
        }
        failures
    }

    fn any(&self) -> bool {
        self.first.is_some()
    }

    /// Returns the violation that describes the failed requests and when the webhook recovered.
    fn violation(
        &self,
        timeout: Duration,
        recovery: Option<Duration>,
        expected: &[Arc<Outcome>],
        found: &[Arc<Outcome>],
    ) -> Option<Violation> {
        let first = self.first?;
        let steps = [expected.get(first)?, found.get(first)?].map(Arc::clone);
        let late = (self.late > 0).then(|| format!("{} timed out after {} s", self.late, timeout.as_secs()));
        let other = self.reason.as_ref().map(|reason| format!("{} failed ({reason})", self.other));
        let failed = late.into_iter().chain(other).collect::<Vec<_>>().join(" and ");
        let then = match recovery {
            Some(took) => format!("it answered a single request again {} after them", written(took)),
            None => format!("it did not answer a single request again within {} s", RECOVERY.as_secs()),
        };
        let of = match self.bursts {
            0 | 1 => String::new(),
            bursts => format!("in 1 of {bursts} bursts, "),
        };
        let message = format!(
            "{of}of {REQUESTS} concurrent requests, {failed}, although the webhook answers each of them alone; {then}"
        );
        let violation = Violation::new("fails under concurrency", message).with_steps(steps);
        Some(if self.late > 0 {
            violation.with_why(LATE_WHY).with_help(LATE_HELP)
        } else {
            violation.with_help(FAILED_HELP)
        })
    }
}

const LATE_WHY: &str = "\
     kube-apiserver calls a webhook for every request in flight, from several replicas: a Deployment that scales up \
     makes dozens of calls at once. A call that times out rejects its request, or with failurePolicy Ignore admits it \
     without the webhook. Usual causes are a short queue of new connections, which drops connections without an \
     error, and a server that handles one connection or one request at a time.";
const LATE_HELP: &str = "\
     Set the listen backlog of the server to at least 128 (Python's socketserver: request_queue_size, which is 5 by \
     default), and handle connections in parallel.";
const FAILED_HELP: &str =
    "Handle at least 64 connections and requests in parallel, and look for the reason in the webhook's log.";

/// Returns a copy of the request for an object whose name contains `number`, so that all copies are different.
pub(super) fn distinct(sample: &Attributes, number: usize) -> Attributes {
    let name = format!("admit-parallel-{number}");
    let is_namespace = sample.resource.group_resource() == "namespaces";
    let distinct = |object: &Option<Value>| {
        let mut object = object.clone()?;
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("name".to_owned(), name.clone().into());
            metadata.remove("generateName");
        }
        if is_namespace {
            set(&mut object, &["metadata", "labels", "kubernetes.io/metadata.name"], name.clone());
        }
        set(&mut object, &["metadata", "annotations", "admit.dev/parallel"], number.to_string());
        Some(object)
    };
    let (object, old_object) = (distinct(&sample.object), distinct(&sample.old_object));
    let namespace = if is_namespace { name.clone() } else { sample.namespace.clone() };
    Attributes { namespace, name, object, old_object, ..sample.clone() }
}

fn difference(
    webhook_probe: &WebhookProbe<'_>,
    request: &Attributes,
    expected: &Outcome,
    found: &Outcome,
) -> Option<Violation> {
    if let Some(reason) = found.failure() {
        let message =
            format!("a request that succeeds alone fails among {REQUESTS} concurrent requests: {reason}");
        return Some(Violation::new("another request's uid", message));
    }
    if expected.refusal.is_some() != found.refusal.is_some() {
        let (one, other) = (expected.verdict().to_string(), found.verdict().to_string());
        let message = format!(
            "the response to a request differs among {REQUESTS} concurrent requests: \
                               {one}; {other}"
        );
        return Some(Violation::new("different verdict", message));
    }
    let memory = Memory::default();
    let object_probe = webhook_probe.object_probe(request, &memory);
    let differences =
        object_probe.differences(expected.object.as_ref()?, found.object.as_ref()?, Order::Counts);
    if differences.is_empty() {
        return None;
    }
    let message = format!(
        "among {REQUESTS} concurrent requests, one gives a different object: {}",
        super::fields(&differences)
    );
    Some(Violation::new("different object", message).with_differences(differences))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pause_is_the_longest_time_without_a_reply() {
        let pause = |millis: &[u64]| pause(millis.iter().map(|it| Duration::from_millis(*it)).collect());
        assert_eq!(pause(&[]), Duration::ZERO);
        // A server that handles one request at a time.
        let queue: Vec<u64> = (0..64).rev().map(|number| number * 100).collect();
        assert_eq!(pause(&queue), Duration::from_millis(100));
        // A server that drops connections.
        assert_eq!(pause(&[3040, 20, 30, 1030]), Duration::from_millis(2010));
    }
}
