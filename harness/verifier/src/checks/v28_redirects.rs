//! V28: a webhook responds directly, without redirects or Retry-After.

use std::sync::Arc;

use admission_webhook_client::RedirectOrRetry;
use kubernetes_admission::config::WebhookTarget;

use crate::check::{Audience, Check, Observed, Probe, Repeatability, Severity, Skipped, Violation};
use crate::object_probe::ObjectProbe;

pub(super) const CHECK: Check = Check {
    id: "V28",
    title: "redirects and retries: the webhook sends neither redirects nor Retry-After",
    severity: Severity::Warning,
    why: "A redirect with status 301 to 303 turns the review into a GET without a body. With 307 and 308, \
          kube-apiserver sends the whole object, Secrets included, to the target, even to another host or \
          without TLS. Retry-After on 429 or 5xx makes kube-apiserver send the same review again up to ten \
          times: side effects are repeated, and the request waits until its timeout although the webhook \
          meant to shed load.",
    help: "Put the final address into clientConfig, and return errors without Retry-After.",
    source: "client-go rest/with_retry.go; Go net/http/client.go, redirectBehavior; measured: tests/cases",
    audience: Audience::All,
    repeatability: Repeatability::Same,
    probe: Probe::Object(|object_probe| Box::pin(run(object_probe))),
};

async fn run(object_probe: &ObjectProbe<'_>) -> Observed {
    let id = &object_probe.subject.webhook.id;
    let outcome = object_probe.outcome(&object_probe.alone(), object_probe.request).await;
    if outcome.calls_of(id).next().is_none() {
        // Returns the reason why the webhook was not called.
        object_probe.answered(&object_probe.alone(), object_probe.request).await?;
    }
    let Some(exchange) = outcome.exchanges.first() else {
        return Err(Skipped::not_checked(outcome.verdict().to_string()));
    };
    if exchange.redirects_and_retries.is_empty() && exchange.reply.is_err() {
        return Err(Skipped::not_checked(outcome.verdict().to_string()));
    }
    let mut violations: Vec<Violation> = Vec::new();
    for redirect_or_retry in &exchange.redirects_and_retries {
        let target = &object_probe.subject.called.client_config.target;
        let Some(violation) = violation_of(redirect_or_retry, target) else { continue };
        if violations.iter().all(|known| known.kind != violation.kind) {
            violations.push(violation.with_steps([Arc::clone(&outcome)]));
        }
    }
    Ok(violations)
}

fn violation_of(redirect_or_retry: &RedirectOrRetry, target: &WebhookTarget) -> Option<Violation> {
    Some(match redirect_or_retry {
        RedirectOrRetry::Redirected { status: status @ 301..=303, to } => {
            let message = format!(
                "HTTP status {status} redirects the API server to {to} with a GET, without the \
                         review"
            );
            Violation::new("redirects to a GET", message).with_severity(Severity::Error)
        }
        RedirectOrRetry::Redirected { status, to } if leaves(to, target) => {
            let message =
                format!("HTTP status {status} redirects the review, including the whole object, to {to}");
            Violation::new("redirects to another host or without TLS", message).with_severity(Severity::Error)
        }
        RedirectOrRetry::Redirected { status, to } => {
            let message = format!(
                "HTTP status {status} redirects the review to {to}: set that address in clientConfig"
            );
            Violation::new("redirects", message)
        }
        RedirectOrRetry::AskedToWait { status, wait } => {
            let message = format!(
                "HTTP status {status} with Retry-After {}: the API server sends the same review again",
                wait.as_secs()
            );
            Violation::new("sends Retry-After", message)
        }
        RedirectOrRetry::KeptConnectionEnded => return None,
    })
}

/// Returns whether the URL `to` has a different host than the webhook's target, or does not use TLS.
fn leaves(to: &str, target: &WebhookTarget) -> bool {
    let Ok(to) = url::Url::parse(to) else { return true };
    let host = match target {
        WebhookTarget::Url(url) => {
            url::Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned))
        }
        WebhookTarget::Service(service) => Some(service.host()),
    };
    to.scheme() != "https" || to.host_str() != host.as_deref()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_host_or_plain_http_leaves_the_configured_host() {
        let target = WebhookTarget::Url("https://webhook.example.com:8443/mutate".to_owned());
        assert!(!leaves("https://webhook.example.com/other", &target));
        assert!(leaves("http://webhook.example.com/mutate", &target));
        assert!(leaves("https://elsewhere.example.com/mutate", &target));
    }
}
