//! Runs a built-in webhook that responds immediately.
//!
//! If its responses are delayed, the machine is the cause rather than the webhooks under test.

use std::sync::Arc;

use base64::Engine as _;
use fake_webhooks::{Fake, FakeWebhook};
use harness::config::{self, Webhook};
use harness::verify::Check;
use serde_json::json;

use crate::Failure;

/// The check that compares the latency of webhooks under load with the control.
const COMPARES: &str = "V44";

/// A fake that serves as the control and runs until this value is dropped.
#[derive(Debug)]
pub(super) struct Control {
    /// The control as a webhook that the dispatcher can call.
    pub(super) webhook: Arc<Webhook>,
    _fake: FakeWebhook,
}

impl Control {
    /// Starts the control if `checks` contain a check that requires it and is not skipped; otherwise, returns `None`.
    ///
    /// # Errors
    /// Returns an error if the control cannot listen on loopback.
    pub(super) async fn for_checks(
        checks: &[(&'static Check, Option<String>)],
    ) -> Result<Option<Self>, Failure> {
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
