//! V28: a webhook answers at once and itself.

use std::sync::Arc;

use admission_webhook_client::RedirectOrRetry;
use kubernetes_admission::config::WebhookTarget;

use crate::check::{Audience, Check, Observed, Obstacle, Probe, Severity, Violation};
use crate::object_probe::ObjectProbe;

pub(super) const CHECK: Check = Check {
    id: "V28",
    title: "direct: no redirects, and no Retry-After",
    severity: Severity::Warning,
    why: "A redirect of 301 to 303 turns the review into a GET without a body; 307 and 308 send the whole object, \
          Secrets included, wherever the answer says, also to another host or without TLS. Retry-After on 429 or 5xx \
          makes kube-apiserver send the same review again up to ten times: effects are repeated, and the request waits \
          until its timeout while the webhook believes that it has shed load.",
    source: "client-go rest/with_retry.go; Go net/http/client.go, redirectBehavior; measured: tests/cases",
    audience: Audience::All,
    probe: Probe::Object(|object_probe| Box::pin(run(object_probe))),
};

async fn run(object_probe: &ObjectProbe<'_>) -> Observed {
    let id = &object_probe.subject.webhook.id;
    let outcome = object_probe.outcome(&object_probe.alone(), object_probe.request).await;
    if outcome.calls_of(id).next().is_none() {
        // Says why it was not called.
        object_probe.answered(&object_probe.alone(), object_probe.request).await?;
    }
    let Some(exchange) = outcome.exchanges.first() else {
        return Err(Obstacle::not_checked(outcome.verdict().to_string()));
    };
    if exchange.redirects_and_retries.is_empty() && exchange.reply.is_err() {
        return Err(Obstacle::not_checked(outcome.verdict().to_string()));
    }
    let mut violations: Vec<Violation> = Vec::new();
    for redirect_or_retry in &exchange.redirects_and_retries {
        let violation = told(redirect_or_retry, &object_probe.subject.called.client_config.target);
        if violations.iter().all(|known| known.kind != violation.kind) {
            violations.push(violation.with_steps([Arc::clone(&outcome)]));
        }
    }
    Ok(violations)
}

fn told(redirect_or_retry: &RedirectOrRetry, target: &WebhookTarget) -> Violation {
    match redirect_or_retry {
        RedirectOrRetry::Redirected { status: status @ 301..=303, to } => {
            let message =
                format!("HTTP status {status} sends the API server to {to}, with a GET and no review");
            Violation::new("redirects into a GET", message).with_severity(Severity::Error)
        }
        RedirectOrRetry::Redirected { status, to } if leaves(to, target) => {
            let message =
                format!("HTTP status {status} sends the review, with the whole object in it, to {to}");
            Violation::new("redirects to another place", message).with_severity(Severity::Error)
        }
        RedirectOrRetry::Redirected { status, to } => {
            let message =
                format!("HTTP status {status} sends the review to {to}: name that in the clientConfig");
            Violation::new("redirects", message)
        }
        RedirectOrRetry::AskedToWait { status, wait } => {
            let message = format!(
                "HTTP status {status} with Retry-After {}: the API server sends the same review again",
                wait.as_secs()
            );
            Violation::new("asks to be called again", message)
        }
    }
}

/// Whether `to` is another host than the configuration names, or has no TLS.
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
    fn another_host_and_plain_http_are_another_place() {
        let target = WebhookTarget::Url("https://webhook.example.com:8443/mutate".to_owned());
        assert!(!leaves("https://webhook.example.com/other", &target));
        assert!(leaves("http://webhook.example.com/mutate", &target));
        assert!(leaves("https://elsewhere.example.com/mutate", &target));
    }
}
