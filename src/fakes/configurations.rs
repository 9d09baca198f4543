//! The webhook configurations that send an API server to deployed fakes, and those that prove that they answer.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fake_webhooks::Kind;
use serde_json::{Value, json};

use super::names::{FakesNamespace, NAME, PROBE_LABEL};
use super::source::Placed;

/// The label of every Namespace that holds its name. Source: KEP-2161.
pub(crate) const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";
/// An API server answers a probe of a webhook that hangs after this time.
const PROBE_TIMEOUT_SECONDS: u8 = 2;

/// How configurations are made of placed webhooks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Configurations<'a> {
    /// Where the Service is.
    pub(crate) namespace: &'a FakesNamespace,
    /// The certificate of the authority, as PEM.
    pub(crate) ca_certificate: &'a str,
    /// The webhooks in the order of their files.
    pub(crate) webhooks: &'a [Placed<'a>],
    /// Namespaces that no webhook may see.
    pub(crate) hidden: &'a [&'a str],
}

/// The kind of a configuration with `kind` of webhooks.
pub(crate) fn api_kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Mutating => "MutatingWebhookConfiguration",
        Kind::Validating => "ValidatingWebhookConfiguration",
    }
}

impl Configurations<'_> {
    /// The configurations of the files: one for the mutating and one for the validating webhooks of each file.
    pub(crate) fn of_files(&self) -> Vec<Value> {
        let mut names: Vec<&str> = self.webhooks.iter().map(|webhook| webhook.configuration).collect();
        names.dedup();
        let mut configurations = Vec::new();
        for name in names {
            for kind in [Kind::Mutating, Kind::Validating] {
                let entries = self
                    .webhooks
                    .iter()
                    .filter(|webhook| webhook.configuration == name && webhook.entry.kind == kind)
                    .map(|webhook| self.entry(webhook))
                    .collect();
                configurations.extend(self.configuration(name, kind, entries));
            }
        }
        configurations
    }

    /// The configurations by which `round` of probes reaches every webhook, whatever its rules are: a dry run that
    /// creates a ConfigMap with the label of [`probe_label`] in the fakes' own namespace calls one webhook.
    pub(crate) fn of_probes(&self, round: u8) -> Vec<Value> {
        let name = self.namespace.probe_configuration();
        [Kind::Mutating, Kind::Validating]
            .into_iter()
            .filter_map(|kind| {
                let webhooks = self.webhooks.iter().enumerate().filter(|(_, webhook)| webhook.entry.kind == kind);
                let entries = webhooks.map(|(index, webhook)| self.probe_entry(round, index, webhook)).collect();
                self.configuration(&name, kind, entries)
            })
            .collect()
    }

    fn configuration(&self, name: &str, kind: Kind, entries: Vec<Value>) -> Option<Value> {
        (!entries.is_empty()).then(|| {
            json!({
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": api_kind(kind),
                "metadata": {"name": name, "labels": self.namespace.labels()},
                "webhooks": entries,
            })
        })
    }

    fn entry(&self, webhook: &Placed<'_>) -> Value {
        let mut entry = json!(webhook.entry.fields);
        entry["name"] = json!(webhook.entry.name);
        entry["clientConfig"] = self.client_config(webhook);
        if !self.hidden.is_empty() {
            let hidden = json!({"key": NAMESPACE_NAME, "operator": "NotIn", "values": self.hidden});
            let expressions = &mut entry["namespaceSelector"]["matchExpressions"];
            match expressions.as_array_mut() {
                Some(expressions) => expressions.push(hidden),
                None => *expressions = json!([hidden]),
            }
        }
        entry
    }

    fn probe_entry(&self, round: u8, index: usize, webhook: &Placed<'_>) -> Value {
        let fields = &webhook.entry.fields;
        json!({
            "name": webhook.entry.name,
            "clientConfig": self.client_config(webhook),
            "rules": [{
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "operations": ["CREATE"],
                "resources": ["configmaps"],
                "scope": "Namespaced",
            }],
            "namespaceSelector": {"matchLabels": {NAMESPACE_NAME: self.namespace.as_str()}},
            "objectSelector": {"matchLabels": {PROBE_LABEL: probe_label(round, index)}},
            "matchPolicy": "Exact",
            // What went wrong is told to the caller of the probe, and to nobody else.
            "failurePolicy": "Fail",
            "sideEffects": "None",
            "timeoutSeconds": fields.timeout_seconds.min(PROBE_TIMEOUT_SECONDS),
            "admissionReviewVersions": fields.admission_review_versions,
        })
    }

    fn client_config(&self, webhook: &Placed<'_>) -> Value {
        json!({
            "service": {
                "namespace": self.namespace.as_str(),
                "name": NAME,
                "port": webhook.port,
                "path": webhook.entry.path,
            },
            "caBundle": STANDARD.encode(self.ca_certificate),
        })
    }
}

/// The value of the label that a probe of the webhook at `index` has in `round`.
pub(crate) fn probe_label(round: u8, index: usize) -> String {
    format!("{round}-{index}")
}
