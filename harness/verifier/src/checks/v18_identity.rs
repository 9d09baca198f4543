//! V18: a webhook does not change the identity of an object.

use std::sync::Arc;

use serde_json::{Value, json};

use super::webhook_response::WebhookResponse;
use crate::check::{Audience, Check, Observed, Probe, Repeatability, Severity, Violation};
use crate::comparison::{Difference, Order};
use crate::object_probe::ObjectProbe;

pub(super) const CHECK: Check = Check {
    id: "V18",
    title: "object identity: kind, name, namespace, uid, resourceVersion, managedFields, and status stay \
            unchanged",
    severity: Severity::Error,
    why: "These fields identify the object and record who owns its fields; the server or the client sets \
          them. Changing the kind, name, or namespace fails the request regardless of failurePolicy. \
          Changing uid, resourceVersion, or managedFields breaks optimistic locking and server-side apply, \
          or the change is silently dropped. A status that is written on the object itself instead of on \
          /status is dropped, too.",
    help: "Remove these fields from the patch.",
    source: "kubernetes test/integration/apiserver/admissionwebhook; apiserver pkg/registry/rest/create.go; \
             API conventions, Spec and Status",
    audience: Audience::Mutating,
    repeatability: Repeatability::Same,
    probe: Probe::Object(|object_probe| Box::pin(run(object_probe))),
};

/// The fields that must not change, with the severity of a change.
const FIELDS: [(&str, Severity); 10] = [
    ("/apiVersion", Severity::Error),
    ("/kind", Severity::Error),
    ("/metadata/name", Severity::Error),
    ("/metadata/namespace", Severity::Error),
    ("/metadata/uid", Severity::Error),
    ("/metadata/resourceVersion", Severity::Error),
    ("/metadata/deletionTimestamp", Severity::Error),
    ("/metadata/managedFields", Severity::Error),
    ("/metadata/creationTimestamp", Severity::Warning),
    ("/metadata/generation", Severity::Warning),
];

async fn run(object_probe: &ObjectProbe<'_>) -> Observed {
    let webhook_response = WebhookResponse::to_creation(object_probe).await?;
    let (before, after) = (webhook_response.object(), webhook_response.patched()?);
    let mut violations: Vec<Violation> = FIELDS
        .iter()
        .filter_map(|(pointer, severity)| {
            let difference = changed(before, &after, pointer)?;
            let message = match (&difference.expected, &difference.found) {
                (Some(before), Some(after)) => {
                    format!("the patch changes {} to {after}; it was {before}", difference.path)
                }
                (None, Some(after)) => format!("the patch sets {} to {after}", difference.path),
                (_, None) => format!("the patch removes {}", difference.path),
            };
            let violation = Violation::new(format!("changes {}", difference.path), message);
            Some(violation.with_severity(*severity).with_differences(vec![difference]))
        })
        .collect();
    if object_probe.request.subresource.is_empty() {
        let status =
            |object: &Value| object.get("status").map_or(json!({}), |status| json!({"status": status}));
        let differences = object_probe.differences(&status(before), &status(&after), Order::Counts);
        if !differences.is_empty() {
            // A custom resource may not have a status subresource: then the status is an ordinary field.
            let severity = if object_probe.environment.is_built_in(object_probe.request) {
                Severity::Warning
            } else {
                Severity::Note
            };
            let message = format!(
                "the patch writes the status on the object itself: {}; the API server drops it if the \
                 resource has a /status subresource",
                super::fields(&differences)
            );
            let fields = differences.iter().map(|difference| difference.path.as_str());
            let violation = Violation::new("writes status", message).with_fields(fields);
            violations.push(violation.with_severity(severity));
        }
    }
    Ok(violations
        .into_iter()
        .map(|violation| violation.with_steps([Arc::clone(&webhook_response.outcome)]))
        .collect())
}

/// Returns the difference at `pointer`, if any. A webhook may set a missing name.
fn changed(before: &Value, after: &Value, pointer: &str) -> Option<Difference> {
    let given =
        |object: &Value| object.pointer(pointer).filter(|value| !value.is_null() && *value != "").cloned();
    let (expected, found) = (given(before), given(after));
    let is_early_name = pointer == "/metadata/name" && expected.is_none();
    if expected == found || is_early_name {
        return None;
    }
    Some(Difference { path: pointer.trim_start_matches('/').replace('/', "."), expected, found })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_or_removed_identity_is_a_difference() {
        let before = json!({"metadata": {"name": "a", "uid": ""}});
        let changed = |after: &Value, pointer: &str| changed(&before, after, pointer).is_some();
        assert!(changed(&json!({"metadata": {"name": "b"}}), "/metadata/name"));
        assert!(changed(&json!({"metadata": {}}), "/metadata/name"));
        assert!(!changed(&json!({"metadata": {"name": "a"}}), "/metadata/uid"));
        assert!(changed(&json!({"metadata": {"uid": "u"}}), "/metadata/uid"));
    }

    #[test]
    fn setting_a_missing_name_is_allowed() {
        let before = json!({"metadata": {"generateName": "a-"}});
        assert_eq!(changed(&before, &json!({"metadata": {"name": "a-b"}}), "/metadata/name"), None);
    }
}
