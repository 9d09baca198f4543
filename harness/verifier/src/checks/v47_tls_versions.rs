//! V47: the webhook's server supports TLS 1.2 or later and HTTP/1.1.

use admission_webhook_client::Inspection;

use super::typical_request;
use crate::check::{Audience, Check, Observed, Probe, Repeatability, Severity, Skipped, Violation};
use crate::webhook_probe::WebhookProbe;

pub(super) const CHECK: Check = Check {
    id: "V47",
    title: "TLS and HTTP versions: the server supports TLS 1.2 or later and HTTP/1.1",
    severity: Severity::Error,
    why: "The API server calls webhooks over HTTP/1.1 (over HTTP/2 only at a loopback URL) and requires TLS \
          1.2 or later. A server that supports only HTTP/2, only an older TLS version, or no TLS passes \
          tests with permissive clients, but the API server cannot call it.",
    help: "Serve TLS 1.2 or later with HTTP/1.1.",
    source: "kubernetes/apiserver pkg/util/webhook/client.go; Go crypto/tls, Config.MinVersion",
    audience: Audience::All,
    repeatability: Repeatability::Same,
    probe: Probe::Webhook(|webhook_probe| Box::pin(run(webhook_probe))),
};

async fn run(webhook_probe: &WebhookProbe<'_>) -> Observed {
    let inspected = webhook_probe.environment.inspect(&webhook_probe.subject.webhook).await;
    let inspection = inspected.map_err(Skipped::NotChecked)?;
    if let Some(version) = &inspection.tls_version {
        webhook_probe.note(version.replace("TLSv1_", "TLS 1."));
    }
    let violations: Vec<Violation> = judge(&inspection).into_iter().collect();
    if violations.is_empty() {
        return Ok(violations);
    }
    Ok(typical_request::with_first_request(webhook_probe, violations).await)
}

fn judge(inspection: &Inspection) -> Option<Violation> {
    // A server presents its certificate only after the versions are negotiated; V45 checks the certificate.
    let complaint = inspection.complaint.as_ref().filter(|_| inspection.chain.is_empty())?;
    let message = format!(
        "offered TLS 1.2, TLS 1.3, and HTTP/1.1, the server does not complete the handshake: \
                 {complaint}"
    );
    Some(Violation::new("no common version", message))
}
