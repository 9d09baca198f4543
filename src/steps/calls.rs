//! What each webhook was asked, and what it answered.

use cucumber::then;
use fake_webhooks::{Answered, Entry};
use futures::future::try_join_all;
use gherkin::Step;
use serde_json::Value;

use super::failure::{Outcome, StepFailure};
use super::outcome::{contains, contains_not};
use super::parameter::{Admission, Ordinal, Times};
use super::webhook::Webhook;
use super::world::World;

/// A call with its place among the calls of its webhook in this request, from 1.
struct Call<'a> {
    webhook: &'a Webhook,
    place: usize,
    entry: &'a Entry,
}

impl World {
    /// Has every webhook show the calls that came since the last look, and no others.
    pub(super) async fn look_at_calls(&mut self) -> Outcome {
        try_join_all(self.webhooks.iter_mut().map(Webhook::look)).await.map(drop)
    }

    /// The calls of the last request in the order of their arrival.
    fn calls(&self) -> Vec<Call<'_>> {
        let mut calls: Vec<Call<'_>> = Vec::new();
        for webhook in &self.webhooks {
            let entries = webhook.calls.iter().zip(1..);
            calls.extend(entries.map(|(entry, place)| Call { webhook, place, entry }));
        }
        calls.sort_by_key(|call| call.entry.time);
        calls
    }

    /// Tells each call and the decision under the step.
    pub(super) fn tell_what_happened(&self, step: &Step) {
        for call in self.calls() {
            self.tell(step, told(&call));
        }
        if let Some(answer) = &self.last {
            self.tell(step, self.names.shorten(&answer.decision()));
        }
    }

    fn review(&self, short: &str, place: Ordinal) -> Outcome<Value> {
        let calls = &self.webhook(short)?.calls;
        let call = place.0.checked_sub(1).and_then(|index| calls.get(index)).ok_or_else(|| {
            let times = Times(calls.len());
            StepFailure::new(format!(
                "\"{short}\" has no {place} review: it was called {times}{}",
                self.found()
            ))
        })?;
        call.review().ok_or_else(|| StepFailure::new(format!("the {place} review of \"{short}\" is no JSON")))
    }

    /// All calls, for a message.
    fn found(&self) -> String {
        let calls: Vec<String> = self.calls().iter().map(|call| format!("\n  {}", told(call))).collect();
        let decision = self.last.as_ref().map(super::api::Answer::decision).unwrap_or_default();
        let calls = if calls.is_empty() { "\n  none".to_owned() } else { calls.concat() };
        format!("\ncalls:{calls}\ndecision: {decision}")
    }
}

/// `sidecar, first round: CREATE pods: allowed, patched with 1 operation`.
fn told(call: &Call<'_>) -> String {
    let review = call.entry.review().unwrap_or_default();
    let text = |pointer: &str| review.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let resource = match text("/request/subResource") {
        "" => text("/request/resource/resource").to_owned(),
        subresource => format!("{}/{subresource}", text("/request/resource/resource")),
    };
    let operation = text("/request/operation");
    let round = match (call.webhook.admission, operation) {
        // Each deletion step of a pod calls its webhooks anew.
        (Admission::Mutating, "CREATE" | "UPDATE") => format!(", {} round", Ordinal(call.place)),
        (Admission::Mutating | Admission::Validating, _) => String::new(),
    };
    let answer = match &call.entry.answered {
        Answered::Sent { summary, .. } => summary.clone(),
        Answered::Closed => "closed the connection".to_owned(),
        Answered::Bytes => "answered with bytes of its own".to_owned(),
        Answered::Pending | Answered::Abandoned => "did not answer in time".to_owned(),
    };
    format!("{}{round}: {operation} {resource}: {answer}", call.webhook.short)
}

#[then(expr = "{string} is called {times}")]
fn is_called(world: &mut World, short: String, times: Times) -> Outcome {
    let found = Times(world.webhook(&short)?.calls.len());
    if found == times {
        return Ok(());
    }
    let all = world.found();
    Err(StepFailure::new(format!("expected \"{short}\" to be called {times}, it was called {found}{all}")))
}

#[then(expr = "{string} is not called")]
fn is_not_called(world: &mut World, short: String) -> Outcome {
    is_called(world, short, Times(0))
}

#[then(expr = "the webhooks are called in the order {string}")]
fn are_called_in_the_order(world: &mut World, order: String) -> Outcome {
    let expected: Vec<&str> = order.split(',').map(str::trim).collect();
    let calls = world.calls();
    let found: Vec<&str> = calls.iter().map(|call| call.webhook.short.as_str()).collect();
    if found == expected {
        return Ok(());
    }
    let (expected, found, all) = (expected.join(", "), found.join(", "), world.found());
    Err(StepFailure::new(format!("expected the order {expected}, found {found}{all}")))
}

#[then(expr = "the {ordinal} review of {string} contains:")]
fn review_contains(world: &mut World, step: &Step, place: Ordinal, short: String) -> Outcome {
    let what = format!("the {place} review of \"{short}\"");
    contains(&what, &world.yaml(step)?, &world.review(&short, place)?)
}

#[then(expr = "the {ordinal} review of {string} does not contain:")]
fn review_does_not_contain(world: &mut World, step: &Step, place: Ordinal, short: String) -> Outcome {
    let what = format!("the {place} review of \"{short}\"");
    contains_not(&what, &world.yaml(step)?, &world.review(&short, place)?)
}

#[then(expr = "the {ordinal} review of {string} shows the container {string}")]
fn review_shows_container(world: &mut World, place: Ordinal, short: String, name: String) -> Outcome {
    let container = serde_json::json!({"request": {"object": {"spec": {"containers": [{"name": name}]}}}});
    contains(&format!("the {place} review of \"{short}\""), &container, &world.review(&short, place)?)
}

#[then(expr = "the {ordinal} review of {string} does not show the container {string}")]
fn review_does_not_show_container(world: &mut World, place: Ordinal, short: String, name: String) -> Outcome {
    let container = serde_json::json!({"request": {"object": {"spec": {"containers": [{"name": name}]}}}});
    contains_not(&format!("the {place} review of \"{short}\""), &container, &world.review(&short, place)?)
}
