//! A webhook of admit's own that answers at once: what it takes longer than that is the machine's fault, and nobody else's.

use std::sync::Arc;

use base64::Engine as _;
use fake_webhooks::{Fake, FakeWebhook};
use harness::config::{self, Webhook};
use harness::verify::Check;
use serde_json::json;

use crate::Failure;

/// The check that compares a webhook under load with the control.
const COMPARES: &str = "V44";

/// A fake that runs for as long as this lives.
#[derive(Debug)]
pub(super) struct Control {
    /// How it is called.
    pub(super) webhook: Arc<Webhook>,
    _fake: FakeWebhook,
}

impl Control {
    /// The control of `checks`, each with the reason why it is skipped; none if no check that runs needs it.
    ///
    /// # Errors
    /// It cannot listen on loopback.
    pub(super) async fn of(checks: &[(&'static Check, Option<String>)]) -> Result<Option<Self>, Failure> {
        if !checks.iter().any(|(check, skipped)| check.id == COMPARES && skipped.is_none()) {
            return Ok(None);
        }
        let fake = FakeWebhook::start(Fake::default()).await.map_err(|error| {
            Failure::environment(format!("cannot start the control of {COMPARES}: {error}"))
        })?;
        let ca_bundle = base64::engine::general_purpose::STANDARD.encode(fake.ca_bundle());
        let configuration = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "control"},
            "webhooks": [{
                "name": "control.admit.example.com",
                "clientConfig": {"url": fake.url(), "caBundle": ca_bundle},
                "sideEffects": "None", "admissionReviewVersions": ["v1"],
            }],
        });
        let webhook = config::webhooks(&configuration).ok().and_then(|webhooks| webhooks.into_iter().next());
        Ok(webhook.map(|webhook| Self { webhook: Arc::new(webhook), _fake: fake }))
    }
}
