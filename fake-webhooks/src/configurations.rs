//! The webhook configurations that point an API server at the fakes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::fakes_file::{FakeEntry, Kind};

/// One webhook with the address that it got.
pub(crate) struct Placed<'a> {
    pub(crate) entry: &'a FakeEntry,
    pub(crate) url: String,
    pub(crate) ca_bundle: String,
}

/// The configurations named `name`: one for the mutating and one for the validating webhooks, as far as there are any.
pub(crate) fn configurations(name: &str, webhooks: &[Placed<'_>]) -> Vec<Value> {
    [(Kind::Mutating, "MutatingWebhookConfiguration"), (Kind::Validating, "ValidatingWebhookConfiguration")]
        .into_iter()
        .filter_map(|(kind, api_kind)| {
            let entries: Vec<_> =
                webhooks.iter().filter(|webhook| webhook.entry.kind == kind).map(entry).collect();
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

fn entry(webhook: &Placed<'_>) -> Value {
    let mut entry = json!(webhook.entry.fields);
    entry["name"] = json!(webhook.entry.name);
    let mut client_config = json!({"url": webhook.url, "caBundle": STANDARD.encode(&webhook.ca_bundle)});
    json_patch::merge(&mut client_config, &Value::Object(webhook.entry.client_config.clone()));
    entry["clientConfig"] = client_config;
    entry
}
