//! V27: the audit log accepts the keys of audit annotations.

use std::sync::Arc;

use kubernetes_admission::audit;
use kubernetes_types::json::at;

use super::webhook_response::WebhookResponse;
use crate::check::{Audience, Check, Observed, Probe, Repeatability, Severity, Skipped, Violation};
use crate::object_probe::ObjectProbe;

pub(super) const CHECK: Check = Check {
    id: "V27",
    title: "audit annotations: the audit log accepts the keys",
    severity: Severity::Warning,
    why: "kube-apiserver prefixes each key with the webhook's name and a slash. If the result is not a \
          qualified name, because the key has its own domain or invalid characters, the annotation is \
          dropped. Only a line in the server's log records it, and the audit trail is incomplete.",
    help: "Use keys without a domain, made of letters, digits, `-`, `_`, and `.`.",
    source: "Dynamic Admission Control, Response; apiserver pkg/admission/attributes.go, checkKeyFormat",
    audience: Audience::All,
    repeatability: Repeatability::Same,
    probe: Probe::Object(|object_probe| Box::pin(run(object_probe))),
};

async fn run(object_probe: &ObjectProbe<'_>) -> Observed {
    let webhook_response = WebhookResponse::accepted(object_probe).await?;
    let annotations = at(&webhook_response.response, &["auditAnnotations"]);
    let Some(annotations) = annotations.as_object().filter(|all| !all.is_empty()) else {
        return Err(Skipped::not_applicable("the response has no audit annotations"));
    };
    let name = &object_probe.subject.webhook.id.name;
    let dropped: Vec<String> = annotations
        .keys()
        .map(|key| format!("{name}/{key}"))
        .filter(|key| !audit::is_qualified_name(key))
        .collect();
    if dropped.is_empty() {
        return Ok(Vec::new());
    }
    let message = format!("the audit log does not accept {}", dropped.join(", "));
    Ok(vec![Violation::new("key is dropped", message).with_steps([Arc::clone(&webhook_response.outcome)])])
}
