//! V18: a webhook does not change what an object is.

use std::sync::Arc;

use serde_json::{Value, json};

use super::said::Said;
use crate::check::{Audience, Check, Observed, Probe, Severity, Violation};
use crate::comparison::{Difference, Order};
use crate::object_probe::ObjectProbe;

pub(super) const CHECK: Check = Check {
    id: "V18",
    title: "identity: kind, name, namespace, uid, resourceVersion, managedFields and status stay as they are",
    severity: Severity::Error,
    why: "These say which object it is and who owns what of it; the server gives them, or the client did. Changing the \
          kind, the name or the namespace fails the request whatever the failurePolicy says. Other uids, \
          resourceVersions and managedFields break optimistic locking and server-side apply, or are dropped without a \
          word, as is a status that is written on the object itself instead of on /status.",
    source: "kubernetes test/integration/apiserver/admissionwebhook; apiserver pkg/registry/rest/create.go; \
             API conventions, Spec and Status",
    audience: Audience::Mutating,
    probe: Probe::Object(|object_probe| Box::pin(run(object_probe))),
};

/// What must stay, and how bad it is if it does not.
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
    let said = Said::of(object_probe).await?;
    let (before, after) = (said.object(), said.patched()?);
    let mut violations: Vec<Violation> = FIELDS
        .iter()
        .filter_map(|(pointer, severity)| {
            let difference = changed(before, &after, pointer)?;
            let message = match (&difference.expected, &difference.found) {
                (Some(before), Some(after)) => {
                    format!("its patch makes {} {after}, which was {before}", difference.path)
                }
                (None, Some(after)) => format!("its patch gives the object {} {after}", difference.path),
                (_, None) => format!("its patch takes {} away", difference.path),
            };
            let violation = Violation::new(format!("changes {}", difference.path), message);
            Some(violation.with_severity(*severity).with_differences(vec![difference]))
        })
        .collect();
    if object_probe.request.subresource != "status" {
        let status =
            |object: &Value| object.get("status").map_or(json!({}), |status| json!({"status": status}));
        let differences = object_probe.differences(&status(before), &status(&after), Order::Counts);
        if !differences.is_empty() {
            // A custom resource may have no status subresource: then a status is a field as any other.
            let severity = if object_probe.environment.is_built_in(object_probe.request) {
                Severity::Warning
            } else {
                Severity::Note
            };
            let message = format!(
                "its patch writes the status on the object itself: {}; the server drops it where /status is served",
                super::fields(&differences)
            );
            violations.push(Violation::new("writes status", message).with_severity(severity));
        }
    }
    Ok(violations.into_iter().map(|violation| violation.with_steps([Arc::clone(&said.outcome)])).collect())
}

/// What stands at `pointer` now, if that is something else than before. A name where there was none is the server's own
/// `generateName` done earlier, and no change.
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
    fn an_identity_changes_when_it_is_another_one_or_gone() {
        let before = json!({"metadata": {"name": "a", "uid": ""}});
        let changed = |after: &Value, pointer: &str| changed(&before, after, pointer).is_some();
        assert!(changed(&json!({"metadata": {"name": "b"}}), "/metadata/name"));
        assert!(changed(&json!({"metadata": {}}), "/metadata/name"));
        assert!(!changed(&json!({"metadata": {"name": "a"}}), "/metadata/uid"));
        assert!(changed(&json!({"metadata": {"uid": "u"}}), "/metadata/uid"));
    }

    #[test]
    fn a_name_may_be_given_where_there_is_none() {
        let before = json!({"metadata": {"generateName": "a-"}});
        assert_eq!(changed(&before, &json!({"metadata": {"name": "a-b"}}), "/metadata/name"), None);
    }
}
