//! Creates the webhook configurations that point an API server at the fakes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::json::set;
use crate::{FakeEntry, WebhookType};

/// Returns a configuration for the mutating and one for the validating webhooks, if there are any, named `name`.
pub(super) fn configurations(name: &str, webhooks: &[(&FakeEntry, Value)]) -> Vec<Value> {
    [
        (WebhookType::Mutating, "MutatingWebhookConfiguration"),
        (WebhookType::Validating, "ValidatingWebhookConfiguration"),
    ]
    .into_iter()
    .filter_map(|(kind, api_kind)| {
        let entries: Vec<_> = webhooks
            .iter()
            .filter(|(webhook, _)| webhook.kind == kind)
            .map(|(webhook, client_config)| configured(webhook, client_config))
            .collect();
        (!entries.is_empty()).then(|| {
            json!({
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": api_kind,
                "metadata": {"name": name},
                "webhooks": entries,
            })
        })
    })
    .collect()
}

/// Returns a `clientConfig` that refers to the webhook by URL.
pub(crate) fn by_url(url: &str, ca_bundle: &str) -> Value {
    json!({"url": url, "caBundle": STANDARD.encode(ca_bundle)})
}

/// Returns a webhook's entry for its configuration, with the given `clientConfig`.
pub(super) fn configured(webhook: &FakeEntry, client_config: &Value) -> Value {
    let mut entry = json!(webhook.fields);
    set(&mut entry, &["name"], &*webhook.webhook_name);
    let mut client_config = client_config.clone();
    json_patch::merge(&mut client_config, &Value::Object(webhook.client_config.clone()));
    set(&mut entry, &["clientConfig"], client_config);
    entry
}
