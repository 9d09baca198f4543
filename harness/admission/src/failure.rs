//! Builds the Status that a client gets when a webhook rejects a request or fails.

use kubernetes_types::quoting::quote;
use kubernetes_types::status::{Status, Unsupported};
use serde_json::{Value, json};

use crate::attributes::Attributes;
use crate::caller::CallError;
use crate::config::FailurePolicy;
use crate::event::{CallFailure, CallResult, Called};

/// Builds a 403 that names the object of the request, or its `generateName` if it does not have a name.
///
/// Source: apiserver pkg/admission/errors.go, `NewForbidden`.
pub fn forbidden(attributes: &Attributes, why: &str) -> Box<Status> {
    let object_name = || {
        let metadata = attributes.object.as_ref()?.get("metadata")?;
        ["name", "generateName"]
            .iter()
            .filter_map(|field| metadata.get(field).and_then(Value::as_str))
            .find(|name| !name.is_empty())
    };
    let name = if attributes.name.is_empty() { object_name().unwrap_or("Unknown") } else { &attributes.name };
    Box::new(Status::forbidden(&attributes.resource.group, &attributes.resource.resource, name, why))
}

/// Returns the result of a failed call under the failure policy. No other code applies the failure policy.
///
/// Rule: VAL-08.
pub fn result(policy: FailurePolicy, failure: CallFailure) -> CallResult {
    let failed_open = match policy {
        FailurePolicy::Ignore => true,
        FailurePolicy::Fail => false,
    };
    CallResult::Failed { failure, failed_open }
}

/// Returns the response if this call rejects the request; `None` if the request continues.
///
/// Source: apiserver pkg/util/webhook/error.go; pkg/admission/plugin/webhook/mutating/dispatcher.go.
/// Rule: MUT-18.
pub fn refusal(called: &Called) -> Option<Box<Status>> {
    match &called.result {
        CallResult::Allowed { .. } | CallResult::Failed { failed_open: true, .. } | CallResult::Unknown => {
            None
        }
        CallResult::Denied(status) | CallResult::ServerError { status, .. } => Some(status.clone()),
        CallResult::Failed { failure, failed_open: false } => {
            Some(failed_closed(&called.webhook.name, failure))
        }
    }
}

/// Returns the failure of a call without a reply, with its code for metrics.
///
/// # Errors
/// Returns [`Unsupported`] if kube-apiserver would have received a reply.
///
/// Source: apiserver pkg/admission/plugin/webhook/mutating/dispatcher.go, `callAttrMutatingHook`.
/// Rule: HTTP-21.
pub fn no_reply(error: CallError) -> Result<CallFailure, Unsupported> {
    match error {
        CallError::Client(text) => {
            Ok(CallFailure { reason: format!("could not get REST client: {text}"), code: 500 })
        }
        CallError::Transport(text) | CallError::Body { reason: text, .. } => {
            Ok(CallFailure { reason: format!("failed to call webhook: {text}"), code: 503 })
        }
        CallError::TooManyRequests => {
            Ok(CallFailure { reason: format!("failed to call webhook: {error}"), code: 429 })
        }
        CallError::NotCalled => Err(Unsupported { what: error.to_string() }),
        CallError::Unsupported(unsupported) => Err(unsupported),
    }
}

/// Returns the 500 response for a failed webhook with the failure policy `Fail`, regardless of the webhook's own code.
///
/// Rule: ERR-01, ERR-03.
pub fn failed_closed(webhook: &str, failure: &CallFailure) -> Box<Status> {
    let message = format!("failed calling webhook {}: {}", quote(webhook), failure.reason);
    Box::new(Status::internal_error(&message))
}

/// Returns the Status that the webhook sent with a denial, corrected so that it is a failure.
///
/// Source: apiserver pkg/admission/plugin/webhook/errors/statuserror.go, `ToStatusErr`; pkg/endpoints/handlers/
/// responsewriters/status.go.
/// Rule: ERR-10, ERR-11, ERR-14.
pub fn denied(webhook: &str, status: Option<Status>) -> Box<Status> {
    let mut status = status.unwrap_or_default();
    "Status".clone_into(&mut status.kind);
    "v1".clone_into(&mut status.api_version);
    if !status.metadata.is_object() {
        status.metadata = json!({});
    }
    status.code = denial_code(&status);
    if matches!(status.status.as_str(), "" | "Success") {
        "Failure".clone_into(&mut status.status);
    }
    let by = format!("admission webhook {} denied the request", quote(webhook));
    status.message = match (status.message.as_str(), status.reason.as_str()) {
        ("", "") => format!("{by} without explanation"),
        ("", reason) => format!("{by}: {reason}"),
        (message, _) => format!("{by}: {message}"),
    };
    Box::new(status)
}

/// Returns the code of a denial: at least 400.
///
/// Rule: ERR-10, ERR-12.
pub fn denial_code(status: &Status) -> i32 {
    status.code.max(400)
}

/// Returns the failure of a dry run for a webhook that does not specify its side effects.
///
/// Source: apiserver pkg/admission/plugin/webhook/{mutating,validating}/dispatcher.go, `Webhook SideEffects is nil`.
/// Rule: MUT-04.
pub fn no_side_effects() -> CallFailure {
    CallFailure { reason: "Webhook SideEffects is nil".to_owned(), code: 400 }
}

/// Returns the 400 response to a dry run if the webhook has side effects, regardless of the failure policy.
///
/// Source: apiserver pkg/admission/plugin/webhook/errors/statuserror.go, `NewDryRunUnsupportedErr`.
/// Rule: MUT-03.
pub fn dry_run_unsupported(webhook: &str) -> Box<Status> {
    Box::new(Status::bad_request(format!("admission webhook {} does not support dry run", quote(webhook))))
}

/// Returns the 500 response if a webhook patches a request that does not have an object.
///
/// The failure policy is ignored.
///
/// Source: apiserver pkg/admission/plugin/webhook/mutating/dispatcher.go.
/// Rule: MUT-07.
pub fn nothing_to_patch(webhook: &str) -> Box<Status> {
    Box::new(Status::internal_error(&format!(
        "admission webhook {} attempted to modify the object, which is not supported for this operation",
        quote(webhook)
    )))
}

/// Returns the 504 response for a request that exceeded its deadline.
///
/// Source: apiserver pkg/admission/plugin/webhook/mutating/dispatcher.go.
/// Rule: MUT-17, VAL-02.
pub fn out_of_time() -> Box<Status> {
    Box::new(Status::timeout("request did not complete within requested timeout"))
}

/// Returns a 500 response without a reason, for server errors that are not a Status.
///
/// An example is a patched object of a different kind.
///
/// Source: apiserver pkg/endpoints/handlers/responsewriters/status.go, `ErrorToAPIStatus`.
/// Rule: ERR-15.
pub fn without_reason(message: impl Into<String>) -> Box<Status> {
    Box::new(Status::failure(500, "", message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::called;

    #[track_caller]
    fn check_denial(status: Option<Status>, code: i32, message: &str) {
        let denied = denied("w.x.y", status);
        assert_eq!(
            (denied.code, denied.status.as_str(), denied.message.as_str()),
            (code, "Failure", message)
        );
        assert_eq!((denied.kind.as_str(), denied.api_version.as_str()), ("Status", "v1"));
        assert!(denied.metadata.is_object());
    }

    #[test]
    fn a_denial_keeps_object_metadata_and_a_status_other_than_success() {
        let given = json!({"resourceVersion": "1"});
        for (metadata, expect) in
            [(given.clone(), given), (json!("text"), json!({})), (json!(null), json!({}))]
        {
            let status = Status { metadata, status: "Odd".to_owned(), ..Status::default() };
            let denied = denied("w.x.y", Some(status));
            assert_eq!((&denied.metadata, denied.status.as_str()), (&expect, "Odd"));
        }
    }

    #[test]
    fn rejections_independent_of_the_failure_policy_have_a_code_and_a_message() {
        let check = |status: Box<Status>, code: i32, reason: &str, message: &str| {
            assert_eq!(
                (status.code, status.reason.as_str(), status.message.as_str()),
                (code, reason, message)
            );
        };
        let message = "admission webhook \"w\" does not support dry run";
        check(dry_run_unsupported("w"), 400, "BadRequest", message);
        let message = "Internal error occurred: admission webhook \"w\" attempted to modify the object, which is not \
                       supported for this operation";
        check(nothing_to_patch("w"), 500, "InternalError", message);
        let message = "Timeout: request did not complete within requested timeout";
        check(out_of_time(), 504, "Timeout", message);
        check(without_reason("text"), 500, "", "text");
    }

    #[test]
    fn a_call_without_a_reply_has_a_reason_and_a_code_for_metrics() {
        let check = |error: CallError, code: u16, reason: &str| {
            let expect = CallFailure { reason: reason.to_owned(), code };
            assert_eq!(no_reply(error).ok(), Some(expect));
        };
        check(CallError::Client("no port".to_owned()), 500, "could not get REST client: no port");
        check(CallError::Transport("EOF".to_owned()), 503, "failed to call webhook: EOF");
        let reason = format!("failed to call webhook: {}", CallError::TooManyRequests);
        check(CallError::TooManyRequests, 429, &reason);
        let unsupported = Unsupported { what: "that".to_owned() };
        assert!(no_reply(CallError::Unsupported(unsupported)).is_err());
    }

    #[test]
    fn a_denial_is_a_failure_with_a_code_of_at_least_400() {
        let status = |code, message: &str, reason: &str| {
            Some(Status {
                code,
                status: "Success".to_owned(),
                message: message.to_owned(),
                reason: reason.to_owned(),
                ..Status::default()
            })
        };
        let by = r#"admission webhook "w.x.y" denied the request"#;
        check_denial(None, 400, &format!("{by} without explanation"));
        check_denial(status(200, "no", ""), 400, &format!("{by}: no"));
        check_denial(status(403, "", "Forbidden"), 403, &format!("{by}: Forbidden"));
        check_denial(status(799, "no", "Forbidden"), 799, &format!("{by}: no"));
    }

    #[test]
    fn failing_closed_returns_500_regardless_of_the_webhook_code() {
        let failure = CallFailure { reason: "failed to call webhook: teapot".to_owned(), code: 418 };
        let refusal = |policy| refusal(&called("w", result(policy, failure.clone())));
        assert_eq!(refusal(FailurePolicy::Ignore), None);
        let status = refusal(FailurePolicy::Fail).unwrap();
        assert_eq!(status.code, 500);
        let message = r#"failed calling webhook "w": failed to call webhook: teapot"#;
        assert_eq!(status.message, format!("Internal error occurred: {message}"));
        assert_eq!(status.details.unwrap().causes[0].message, message);
    }
}
