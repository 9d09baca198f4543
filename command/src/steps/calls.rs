//! Defines steps about calls to webhooks: their reviews, responses, and order.

use cucumber::then;
use fake_webhooks::{CallOutcome, Entry};
use futures::future::try_join_all;
use gherkin::Step;
use harness::event::Phase;
use serde_json::Value;

use super::api::Answer;
use super::failure::{NOTE, Outcome, StepFailure};
use super::invalid_fields::ignored_fields;
use super::parameter::{Admission, Ordinal, Times};
use super::webhook::Webhook;
use super::world::World;
use crate::narrator::NoteKind;
use crate::request_report::short_cause;
use crate::target::RecordedCall;

/// A call to a fake, or to a webhook in a configuration that the scenario loads.
pub(super) struct Call<'a> {
    /// The name of the webhook in the feature file.
    webhook: &'a str,
    admission: Admission,
    /// The position among the calls to the webhook during the request, counted from 1.
    place: usize,
    time: jiff::Timestamp,
    /// The `AdmissionReview` that the webhook received, if it could be read.
    review: Option<Value>,
    /// A summary of the response.
    answer: String,
    /// Remarks about the call, such as fields that the patch sets and the API server drops.
    notes: Vec<String>,
    /// Whether the request continues after the failed call; `None` if the call did not fail or this is not known.
    failed_open: Option<bool>,
    /// The HTTP status of the response, if the server records it.
    http_status: Option<u16>,
    /// Whether the review was sent: `false` if the server could not connect to the webhook.
    was_sent: bool,
}

impl<'a> Call<'a> {
    /// Creates the call that a fake received; `recorded` is the server's record of it, if there is one.
    fn from_fake(
        webhook: &'a Webhook,
        place: usize,
        (entry, review): (&Entry, Option<Value>),
        recorded: Option<&RecordedCall>,
    ) -> Self {
        let answer = match &entry.outcome {
            CallOutcome::Sent { summary, .. } => summary.clone(),
            CallOutcome::Closed => "closed the connection".to_owned(),
            CallOutcome::Bytes => "sent raw bytes".to_owned(),
            CallOutcome::Pending | CallOutcome::Abandoned => "timed out".to_owned(),
        };
        let (webhook, admission) = (webhook.short.as_str(), webhook.admission);
        Self {
            webhook,
            admission,
            place,
            time: entry.time,
            review,
            answer,
            notes: recorded.map(|call| call.notes.clone()).unwrap_or_default(),
            failed_open: recorded.and_then(|call| call.failed_open),
            http_status: recorded.and_then(|call| call.http_status),
            was_sent: true,
        }
    }

    fn from_own(call: &'a RecordedCall, place: usize) -> Self {
        Self::from_recorded(&call.webhook, call, place)
    }

    /// Creates a call from the server's record, with the webhook's name in the feature file.
    fn from_recorded(webhook: &'a str, call: &RecordedCall, place: usize) -> Self {
        let admission = match call.phase {
            Phase::Mutating => Admission::Mutating,
            Phase::Validating => Admission::Validating,
        };
        let review = serde_json::from_slice(&call.review).ok();
        Self {
            webhook,
            admission,
            place,
            time: call.time,
            review,
            answer: call.result.clone(),
            notes: call.notes.clone(),
            failed_open: call.failed_open,
            http_status: call.http_status,
            was_sent: call.was_sent(),
        }
    }
}

/// Returns whether the server rejected the request because it could not use the response of a call.
///
/// `result` is the result of the call. The message of the rejection does not name the webhook.
pub(super) fn is_rejected_by(result: &str, answer: &Answer) -> bool {
    !answer.is_success() && answer.message() == result
}

impl World {
    /// Reads the new calls of every webhook.
    pub(super) async fn read_calls(&mut self) -> Outcome {
        try_join_all(self.webhooks.iter_mut().map(Webhook::read_calls)).await.map(drop)
    }

    /// Reads the calls to loaded webhooks during the request that led to `answer`, the scenario's skipped webhooks, and
    /// what its policies did.
    pub(super) fn read_own_calls(&mut self, answer: &Answer) -> Outcome {
        let recorded = self.target()?.calls.for_request(&answer.audit_id);
        let (calls, others) =
            recorded.map(|request| (request.calls, (request.skips, request.policies))).unzip();
        let (skips, policies) = others.unwrap_or_default();
        self.skips = self.of_scenario(skips);
        self.read_policies(policies);
        let is_own = |call: &RecordedCall| {
            let mut own = self.installation.own_webhooks();
            own.any(|(name, webhook)| {
                webhook == call.webhook && self.names.loaded_configuration(name) == call.configuration
            })
        };
        let (own, others): (Option<Vec<_>>, Option<Vec<_>>) =
            calls.map(|calls: Vec<RecordedCall>| calls.into_iter().partition(is_own)).unzip();
        self.own_calls = own;
        self.fake_calls = others.unwrap_or_default();
        Ok(())
    }

    /// Returns the calls during the last request, including those that did not reach a webhook, in order of arrival.
    pub(super) fn calls(&self) -> Vec<Call<'_>> {
        let mut calls: Vec<Call<'_>> = Vec::new();
        // The record also contains calls that a fake did not receive, such as those that it refused.
        let is_recorded = |webhook: &&Webhook| webhook.loaded.is_some() && self.own_calls.is_some();
        for webhook in self.webhooks.iter().filter(|webhook| !is_recorded(webhook)) {
            calls.extend(self.calls_of_fake(webhook));
        }
        let own = self.own_calls.as_deref().unwrap_or_default();
        for (index, call) in own.iter().enumerate() {
            let earlier = own.iter().take(index).filter(|earlier| earlier.webhook == call.webhook).count();
            calls.push(Call::from_own(call, earlier + 1));
        }
        calls.sort_by_key(|call| call.time);
        calls
    }

    /// Returns the calls to a fake, including calls that the server could not send to it, in no particular order.
    fn calls_of_fake<'a>(&self, webhook: &'a Webhook) -> Vec<Call<'a>> {
        let configuration = webhook.configuration(&self.names);
        let name = webhook.entry.get("name").and_then(Value::as_str).unwrap_or_default();
        let recorded: Vec<&RecordedCall> = self
            .fake_calls
            .iter()
            .filter(|call| call.webhook == name && call.configuration == configuration)
            .collect();
        let received = webhook.calls.iter().zip(1..).map(|(entry, place)| {
            let review = entry.review();
            let uid = review.as_ref().and_then(|review| review.pointer("/request/uid")?.as_str());
            let record = recorded.iter().copied().find(|call| uid == Some(call.uid.as_str()));
            Call::from_fake(webhook, place, (entry, review), record)
        });
        let unsent = recorded.iter().zip(1..).filter(|(call, _)| !call.was_sent());
        received.chain(unsent.map(|(call, place)| Call::from_recorded(&webhook.short, call, place))).collect()
    }

    /// Returns the calls that reached a fake, or a webhook in a loaded configuration that `short` names by its full name.
    pub(super) fn calls_of(&self, short: &str) -> Outcome<Vec<Call<'_>>> {
        let has_fake = self.webhook(short).map(Webhook::has_fake);
        if !matches!(has_fake, Ok(true)) {
            if !self.installation.has_own_webhook(short) {
                has_fake?;
            }
            self.require_own_calls(short)?;
        }
        Ok(self.calls().into_iter().filter(|call| call.webhook == short && call.was_sent).collect())
    }

    /// Checks that the target records calls to webhooks that are not fakes.
    fn require_own_calls(&self, short: &str) -> Outcome {
        if self.own_calls.is_some() || self.last.is_none() {
            return Ok(());
        }
        Err(StepFailure::new(format!(
            "calls of \"{short}\" are not available: kube-apiserver does not record calls of webhooks that are not fakes; use --target in-process"
        )))
    }

    /// Prints each call and the decision below the step.
    pub(super) fn print_result(&self, step: &Step, sent: Option<&Value>) {
        let decision = self.decision();
        for call in self.calls() {
            // The decision below contains the message of a call that failed the request.
            let is_repeated = call.failed_open.is_some() && decision.contains(&call.answer);
            let is_rejected = self.last.as_ref().is_some_and(|answer| is_rejected_by(&call.answer, answer));
            let (kind, answer) = if is_rejected {
                (NoteKind::Cause, "the API server rejected the request because of this call".to_owned())
            } else if is_repeated {
                (NoteKind::Event, format!("failed: {}", short_cause(&call.answer, call.http_status)))
            } else if call.failed_open.is_some() {
                (NoteKind::Cause, call.answer)
            } else {
                (NoteKind::Event, call.answer)
            };
            let call = Call { answer, ..call };
            self.note(step, kind, summary(&call));
            for note in &call.notes {
                self.note(step, NoteKind::Cause, format!("{}: {note}", call.webhook));
            }
        }
        for line in self.not_called().into_iter().chain(self.outside_of_scenario()) {
            self.note(step, NoteKind::Cause, line);
        }
        for line in self.parts_set_by_webhooks() {
            self.note(step, NoteKind::Cause, line);
        }
        for (kind, line) in self.policy_notes(&decision) {
            self.note(step, kind, line);
        }
        if let Some(answer) = &self.last {
            let kind = if answer.is_success() { NoteKind::Event } else { NoteKind::Cause };
            self.note(step, kind, decision.clone());
            // kubectl rejects an object with an unknown field: the feature would test another object.
            for warning in ignored_fields(answer, sent) {
                self.note(step, NoteKind::Cause, format!("Warning: {warning}"));
            }
        }
        let call_hint = self.service_hint().or_else(|| self.response_hint());
        for hint in call_hint.into_iter().chain(self.request_hint()) {
            self.note(step, NoteKind::Help, hint);
        }
        self.note_unreached();
    }

    /// Returns a line for each call of the last request, each preceded by a line break.
    pub(super) fn call_notes(&self) -> String {
        self.calls().iter().fold(String::new(), |text, call| format!("{text}\n{NOTE}{}", summary(call)))
    }

    fn review(&self, short: &str, place: Ordinal) -> Outcome<Value> {
        let calls = self.calls_of(short)?;
        let call = place.0.checked_sub(1).and_then(|index| calls.get(index)).ok_or_else(|| {
            StepFailure::new(format!(
                "\"{short}\" did not receive a {place} review: it {}{}",
                was_called(Times(calls.len())),
                self.found(short, place.0, calls.len())
            ))
        })?;
        let review = call.review.clone();
        review.ok_or_else(|| StepFailure::new(format!("the {place} review sent to \"{short}\" is not JSON")))
    }

    /// Formats all calls and the decision for an error message: the webhook `short` was called `found` times.
    fn found(&self, short: &str, expected: usize, found: usize) -> String {
        let all = self.all_calls();
        match self.not_called_again(short, found).filter(|_| expected > found) {
            Some(reason) => format!("{all}\n{reason}"),
            None => all,
        }
    }

    /// Formats all calls, the webhooks that were not called, and the decision for an error message.
    fn all_calls(&self) -> String {
        let calls = self.calls();
        let mut lines: Vec<String> = calls.iter().map(summary).collect();
        if lines.is_empty() {
            lines.push("none".to_owned());
        }
        lines.extend(self.not_called());
        let decision = self.decision();
        format!("\ncalls:\n  {}\ndecision: {decision}", lines.join("\n  "))
    }
}

/// Formats a call, such as `sidecar, first round: CREATE pods: allowed, patched with 1 operation`.
///
/// A failed call ends with `(failed open)` or `(rejected)`, depending on its failure policy.
fn summary(call: &Call<'_>) -> String {
    let text = |pointer: &str| {
        call.review.as_ref().and_then(|review| review.pointer(pointer)?.as_str()).unwrap_or_default()
    };
    let resource = match text("/request/subResource") {
        "" => text("/request/resource/resource").to_owned(),
        subresource => format!("{}/{subresource}", text("/request/resource/resource")),
    };
    let operation = text("/request/operation");
    let round = match (call.admission, operation) {
        // The graceful deletion of a pod calls its webhooks more than once.
        (Admission::Mutating, "CREATE" | "UPDATE") => format!(", {} round", Ordinal(call.place)),
        (Admission::Mutating | Admission::Validating, _) => String::new(),
    };
    let consequence = match call.failed_open {
        Some(true) => " (failed open)",
        Some(false) => " (rejected)",
        None => "",
    };
    format!("{}{round}: {operation} {resource}: {}{consequence}", call.webhook, call.answer)
}

/// Formats a number of calls, such as `was called twice`.
fn was_called(times: Times) -> String {
    if times == Times(0) { "was not called".to_owned() } else { format!("was called {times}") }
}

#[then(expr = "{string} is called {times}")]
fn is_called(world: &mut World, short: String, times: Times) -> Outcome {
    let found = Times(world.calls_of(&short)?.len());
    if found == times {
        return Ok(());
    }
    let expected =
        if times == Times(0) { "not to be called".to_owned() } else { format!("to be called {times}") };
    let (was, all) = (was_called(found), world.found(&short, times.0, found.0));
    Err(StepFailure::new(format!("expected \"{short}\" {expected}, but it {was}{all}")))
}

#[then(expr = "{string} is not called")]
fn is_not_called(world: &mut World, short: String) -> Outcome {
    is_called(world, short.clone(), Times(0))?;
    world.require_other_reason(&short)
}

#[then(expr = "the webhooks are called in the order {string}")]
fn are_called_in_the_order(world: &mut World, order: String) -> Outcome {
    let expected: Vec<&str> = order.split(',').map(str::trim).collect();
    for own in expected.iter().filter(|short| world.installation.has_own_webhook(short)) {
        world.require_own_calls(own)?;
    }
    let calls = world.calls();
    let found: Vec<&str> = calls.iter().filter(|call| call.was_sent).map(|call| call.webhook).collect();
    if found == expected {
        return Ok(());
    }
    let (expected, found, all) = (expected.join(", "), found.join(", "), world.all_calls());
    Err(StepFailure::new(format!("expected the order {expected}, found {found}{all}")))
}

#[then(expr = "the {ordinal} review sent to {string} contains:")]
fn review_contains(world: &mut World, step: &Step, place: Ordinal, short: String) -> Outcome {
    let what = format!("the {place} review sent to \"{short}\"");
    world.check_contains(step, &what, &world.yaml(step)?, &world.review(&short, place)?)
}

#[then(expr = "the {ordinal} review sent to {string} does not contain:")]
fn review_does_not_contain(world: &mut World, step: &Step, place: Ordinal, short: String) -> Outcome {
    let what = format!("the {place} review sent to \"{short}\"");
    world.check_contains_not(step, &what, &world.yaml(step)?, &world.review(&short, place)?)
}

#[then(expr = "the {ordinal} review sent to {string} has the container {string}")]
fn review_has_container(
    world: &mut World,
    step: &Step,
    place: Ordinal,
    short: String,
    name: String,
) -> Outcome {
    let container = serde_json::json!({"request": {"object": {"spec": {"containers": [{"name": name}]}}}});
    let what = format!("the {place} review sent to \"{short}\"");
    world.check_contains(step, &what, &container, &world.review(&short, place)?)
}

#[then(expr = "the {ordinal} review sent to {string} does not have the container {string}")]
fn review_does_not_have_container(
    world: &mut World,
    step: &Step,
    place: Ordinal,
    short: String,
    name: String,
) -> Outcome {
    let container = serde_json::json!({"request": {"object": {"spec": {"containers": [{"name": name}]}}}});
    let what = format!("the {place} review sent to \"{short}\"");
    world.check_contains_not(step, &what, &container, &world.review(&short, place)?)
}
