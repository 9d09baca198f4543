//! V47: the webhook's server speaks TLS 1.2 or later, and HTTP/1.1.

use admission_webhook_client::Inspection;

use super::usual;
use crate::check::{Audience, Check, Observed, Obstacle, Probe, Severity, Violation};
use crate::webhook_probe::WebhookProbe;

pub(super) const CHECK: Check = Check {
    id: "V47",
    title: "its server speaks TLS 1.2 or later, and HTTP/1.1",
    severity: Severity::Error,
    why: "The API server calls webhooks over HTTP/1.1 (only at a loopback URL over HTTP/2), and shakes hands with TLS 1.2 \
          or later. A server that is set to HTTP/2 alone, to an older TLS, or to none at all passes tests with clients \
          that take everything, and is never reached by an API server.",
    source: "kubernetes/apiserver pkg/util/webhook/client.go; Go crypto/tls, Config.MinVersion",
    audience: Audience::All,
    probe: Probe::Webhook(|webhook_probe| Box::pin(run(webhook_probe))),
};

async fn run(webhook_probe: &WebhookProbe<'_>) -> Observed {
    let inspected = webhook_probe.environment.inspect(&webhook_probe.subject.webhook).await;
    let inspection = inspected.map_err(Obstacle::NotChecked)?;
    if let Some(version) = &inspection.tls_version {
        webhook_probe.note(version.replace("TLSv1_", "TLS 1."));
    }
    let violations: Vec<Violation> = judge(&inspection).into_iter().collect();
    if violations.is_empty() {
        return Ok(violations);
    }
    Ok(usual::with_first_request(webhook_probe, violations).await)
}

fn judge(inspection: &Inspection) -> Option<Violation> {
    // A certificate is shown only after both sides agreed on the versions: whether it is a good one is V45's.
    let complaint = inspection.complaint.as_ref().filter(|_| inspection.chain.is_empty())?;
    let message =
        format!("offered TLS 1.2, TLS 1.3 and HTTP/1.1, it does not go on with the handshake: {complaint}");
    Some(Violation::new("no common version", message))
}
