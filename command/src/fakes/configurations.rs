//! Creates the webhook configurations of deployed fakes and of the probes that check them.

use std::collections::BTreeMap;
use std::fmt::Display;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fake_webhooks::{Plan, PlannedFake, WebhookType};
use harness::json::{at, set};
use serde_json::{Value, json};

use super::names::{FakesNamespace, NAME, PROBE_LABEL};
use super::safety::Allowances;

/// The label that contains the name of a Namespace. Every Namespace has it.
///
/// Source: KEP-2161.
pub(crate) const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";
/// The maximum timeout of a probe, in seconds.
const PROBE_TIMEOUT_SECONDS: u8 = 2;
/// The name of the webhook in a marker configuration.
const MARKER: &str = "marker.fakes.local";

/// The input from which webhook configurations are created.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Configurations<'a> {
    /// The namespace of the Service.
    pub(crate) namespace: &'a FakesNamespace,
    /// The CA certificate as PEM.
    pub(crate) ca_certificate: &'a str,
    /// The base64-encoded `caBundle` of each running fake by name; if `None`, the CA certificate is used.
    pub(crate) ca_bundles: Option<&'a BTreeMap<String, String>>,
    /// The fakes whose webhooks are configured.
    pub(crate) plan: &'a Plan,
    /// The namespaces and resources that webhooks may match.
    pub(crate) allowances: Allowances,
}

/// Returns the kind of the configurations that contain mutating or validating webhooks.
pub(crate) fn api_kind(kind: WebhookType) -> &'static str {
    match kind {
        WebhookType::Mutating => "MutatingWebhookConfiguration",
        WebhookType::Validating => "ValidatingWebhookConfiguration",
    }
}

impl Configurations<'_> {
    /// Returns the configurations for each file: one for its mutating and one for its validating webhooks.
    pub(crate) fn for_files(&self) -> Vec<Value> {
        let mut configurations = self.plan.configurations(|fake| self.client_config(fake));
        for configuration in &mut configurations {
            set(configuration, &["metadata", "labels"], self.namespace.labels());
            let webhooks = configuration.get_mut("webhooks").and_then(Value::as_array_mut);
            webhooks.into_iter().flatten().for_each(|webhook| self.exclude_namespaces(webhook));
        }
        configurations
    }

    /// Returns the configurations for the probes of `run`.
    ///
    /// kube-apiserver calls each webhook only for the creation of a ConfigMap with the label [`probe_label`] in the
    /// fakes' namespace.
    pub(crate) fn for_probes(&self, run: &str) -> Vec<Value> {
        let probe = |(index, fake): (usize, &PlannedFake)| {
            let webhook = fake.configured(&self.client_config(fake));
            let seconds = fake.entry.fields.timeout_seconds.min(PROBE_TIMEOUT_SECONDS);
            let mut probe = self.probe(&probe_label(run, index), &fake.entry.name);
            set(&mut probe, &["timeoutSeconds"], seconds);
            for field in ["clientConfig", "admissionReviewVersions"] {
                set(&mut probe, &[field], at(&webhook, &[field]).clone());
            }
            probe
        };
        [WebhookType::Mutating, WebhookType::Validating]
            .into_iter()
            .filter_map(|kind| {
                let fakes = self.plan.fakes().enumerate().filter(|(_, fake)| fake.entry.kind == kind);
                let probes: Vec<_> = fakes.map(probe).collect();
                (!probes.is_empty()).then(|| self.probe_configuration(kind, &probes))
            })
            .collect()
    }

    /// Returns a mutating and a validating marker configuration. They replace the probe configurations.
    ///
    /// Their Service does not exist, so the creation of a ConfigMap with the label [`probe_label`] fails immediately.
    pub(crate) fn for_markers(&self, run: &str) -> [Value; 2] {
        [WebhookType::Mutating, WebhookType::Validating].map(|kind| {
            let mut entry = self.probe(&probe_label(run, api_kind(kind)), MARKER);
            let service = json!({"namespace": self.namespace.as_str(), "name": format!("{NAME}-marker")});
            set(&mut entry, &["clientConfig", "service"], service);
            set(&mut entry, &["timeoutSeconds"], 1);
            set(&mut entry, &["admissionReviewVersions"], json!(["v1"]));
            self.probe_configuration(kind, &[entry])
        })
    }

    fn probe_configuration(&self, kind: WebhookType, entries: &[Value]) -> Value {
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": api_kind(kind),
            "metadata": {"name": self.namespace.probe_configuration(), "labels": self.namespace.labels()},
            "webhooks": entries,
        })
    }

    fn probe(&self, label: &str, name: &str) -> Value {
        json!({
            "name": name,
            "rules": [{
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "operations": ["CREATE"],
                "resources": ["configmaps"],
                "scope": "Namespaced",
            }],
            "namespaceSelector": {"matchLabels": {NAMESPACE_NAME: self.namespace.as_str()}},
            "objectSelector": {"matchLabels": {PROBE_LABEL: label}},
            "matchPolicy": "Exact",
            // The client that sends the probe must receive the error.
            "failurePolicy": "Fail",
            "sideEffects": "None",
        })
    }

    fn exclude_namespaces(&self, webhook: &mut Value) {
        let hidden = self.allowances.hidden(self.namespace);
        if hidden.is_empty() {
            return;
        }
        let hidden = json!({"key": NAMESPACE_NAME, "operator": "NotIn", "values": hidden});
        match webhook.pointer_mut("/namespaceSelector/matchExpressions").and_then(Value::as_array_mut) {
            Some(expressions) => expressions.push(hidden),
            None => {
                set(webhook, &["namespaceSelector", "matchExpressions"], json!([hidden]));
            }
        }
    }

    fn client_config(&self, fake: &PlannedFake) -> Value {
        let own_bundle = self.ca_bundles.and_then(|bundles| bundles.get(&fake.entry.name)).cloned();
        json!({
            "service": {
                "namespace": self.namespace.as_str(),
                "name": NAME,
                "port": fake.listen.port(),
                "path": fake.entry.path,
            },
            "caBundle": own_bundle.unwrap_or_else(|| STANDARD.encode(self.ca_certificate)),
        })
    }
}

/// Returns the label of a probe, which is also its name; `what` is the index of a webhook or the kind of a marker.
pub(crate) fn probe_label(run: &str, what: impl Display) -> String {
    format!("probe-{run}-{what}").to_lowercase()
}

#[cfg(test)]
mod tests {
    use fake_webhooks::FakesFile;

    use super::*;

    #[test]
    fn probe_calls_the_same_endpoint_and_matches_nothing_else() {
        let text = "version: 1\nwebhooks:\n\
            - {name: a, type: mutating, behavior: allow, rules: [{resources: ['*']}], failurePolicy: Ignore}\n\
            - {name: b, type: validating, behavior: allow, clientConfig: {service: {port: 1}}, timeoutSeconds: 1}\n";
        let plan = Plan::new(&[FakesFile::parse(text, "fakes.yaml").unwrap()]).unwrap();
        let namespace = "demo".parse().unwrap();
        let configurations = Configurations {
            namespace: &namespace,
            ca_certificate: "PEM",
            ca_bundles: Some(&BTreeMap::from([("b.fakes.local".to_owned(), "T1dO".to_owned())])),
            plan: &plan,
            allowances: Allowances::default(),
        };
        let (real, probes) = (configurations.for_files(), configurations.for_probes("1"));
        for (real, probe) in real.iter().zip(&probes) {
            assert_eq!(
                (&probe["kind"], &probe["metadata"]["name"]),
                (&real["kind"], &json!("admit-fakes-probe.demo"))
            );
            let (real, probe) = (&real["webhooks"][0], &probe["webhooks"][0]);
            assert_eq!(probe["clientConfig"], real["clientConfig"]);
            assert_eq!(probe["name"], real["name"]);
            assert_eq!(probe["namespaceSelector"], json!({"matchLabels": {NAMESPACE_NAME: "demo"}}));
            assert_eq!((&probe["failurePolicy"], &probe["sideEffects"]), (&json!("Fail"), &json!("None")));
        }
        let [mutating, validating] = [&probes[0]["webhooks"][0], &probes[1]["webhooks"][0]];
        assert_eq!(mutating["objectSelector"]["matchLabels"][PROBE_LABEL], "probe-1-0");
        assert_eq!((&mutating["timeoutSeconds"], &validating["timeoutSeconds"]), (&json!(2), &json!(1)));
        assert_eq!(validating["objectSelector"]["matchLabels"][PROBE_LABEL], "probe-1-1");
        assert_eq!(validating["clientConfig"]["service"]["port"], 1);
        let bundles = [mutating, validating].map(|webhook| &webhook["clientConfig"]["caBundle"]);
        assert_eq!(bundles, ["UEVN", "T1dO"]);
    }
}
