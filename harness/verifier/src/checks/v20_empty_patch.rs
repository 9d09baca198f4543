//! V20: a webhook that changes nothing sends no patch.

use std::sync::Arc;

use super::webhook_response::WebhookResponse;
use crate::check::{Audience, Check, Observed, Probe, Repeatability, Severity, Skipped, Violation};
use crate::comparison::Order;
use crate::environment::Verdict;
use crate::object_probe::ObjectProbe;

pub(super) const CHECK: Check = Check {
    id: "V20",
    title: "empty patches: the webhook sends no patch if it changes nothing",
    severity: Severity::Note,
    why: "A patch that changes nothing makes the API server decode, convert, and compare the whole object \
          on each call, and leaves an audit annotation that says that the webhook patched the object. Most \
          objects that a webhook sees are rewritten by controllers again and again and need no change.",
    help: "Leave patch and patchType out of the response if the object needs no change.",
    source: "open-policy-agent/gatekeeper#1026; apiserver \
             pkg/admission/plugin/webhook/mutating/dispatcher.go: the \
             patch annotation is written for every patch, mutated or not",
    audience: Audience::Mutating,
    repeatability: Repeatability::Same,
    probe: Probe::Object(|object_probe| Box::pin(run(object_probe))),
};

async fn run(object_probe: &ObjectProbe<'_>) -> Observed {
    let first = object_probe.first().await?;
    if let Some(violation) =
        idle(object_probe, &WebhookResponse::to_creation(object_probe).await?, "the object")?
    {
        return Ok(vec![violation]);
    }
    // An idempotent webhook does not change its own result again.
    let Some(made) = &first.object else { return Ok(Vec::new()) };
    let request = object_probe.with_object(made.clone());
    let again = match object_probe.answered(&object_probe.alone(), &request).await {
        Ok(again) => again,
        Err(Skipped::NotApplicable(_)) => return Ok(Vec::new()),
        Err(skip) => return Err(skip),
    };
    match again.verdict() {
        Verdict::Admitted => {
            let webhook_response = WebhookResponse::to_request(object_probe, &request).await?;
            Ok(idle(object_probe, &webhook_response, "its own result")?.into_iter().collect())
        }
        Verdict::Denied(_)
        | Verdict::Failed(_)
        | Verdict::ServerError(_)
        | Verdict::NoConditions(_)
        | Verdict::Unsupported(_) => Ok(Vec::new()),
    }
}

/// Reports a patch that does not change the object.
fn idle(
    object_probe: &ObjectProbe<'_>,
    webhook_response: &WebhookResponse,
    what: &str,
) -> Result<Option<Violation>, Skipped> {
    if webhook_response.response.get("patch").is_none_or(serde_json::Value::is_null) {
        return Ok(None);
    }
    let kind = format!("empty patch for {what}");
    let steps = [Arc::clone(&webhook_response.outcome)];
    let patched = match webhook_response.patched() {
        Ok(patched) => patched,
        Err(Skipped::NotApplicable(_) | Skipped::NotExercised(_)) => {
            let message = format!("the webhook sends a patch without operations for {what}");
            return Ok(Some(Violation::new(kind, message).with_steps(steps)));
        }
        Err(skip) => return Err(skip),
    };
    if !object_probe.differences(webhook_response.object(), &patched, Order::Counts).is_empty() {
        return Ok(None);
    }
    let count = webhook_response.patch()?.operations().len();
    let operations = if count == 1 { "1 operation".to_owned() } else { format!("{count} operations") };
    let message = format!("the webhook sends a patch with {operations} for {what} that changes nothing");
    Ok(Some(Violation::new(kind, message).with_steps(steps)))
}
