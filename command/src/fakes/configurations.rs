//! The webhook configurations that send an API server to deployed fakes, and those that prove that they answer.

use std::collections::BTreeMap;
use std::fmt::Display;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fake_webhooks::{Kind, Plan, PlannedFake};
use harness::json::{at, set};
use serde_json::{Value, json};

use super::names::{FakesNamespace, NAME, PROBE_LABEL};
use super::safety::Allowances;

/// The label of every Namespace that holds its name. Source: KEP-2161.
pub(crate) const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";
/// An API server answers a probe of a webhook that hangs after this time.
const PROBE_TIMEOUT_SECONDS: u8 = 2;
/// The webhook of the last configuration.
const MARKER: &str = "marker.fakes.local";

/// How configurations are made of placed webhooks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Configurations<'a> {
    /// Where the Service is.
    pub(crate) namespace: &'a FakesNamespace,
    /// The certificate of the authority, as PEM.
    pub(crate) ca_certificate: &'a str,
    /// What the fakes say of their `caBundle`s, by name, base64-encoded. Nothing as long as they do not run: then all of
    /// them have that of the authority.
    pub(crate) ca_bundles: Option<&'a BTreeMap<String, String>>,
    /// The webhooks.
    pub(crate) plan: &'a Plan,
    /// What the webhooks may see.
    pub(crate) allowances: Allowances,
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
        let mut configurations = self.plan.configurations(|fake| self.client_config(fake));
        for configuration in &mut configurations {
            set(configuration, &["metadata", "labels"], self.namespace.labels());
            let webhooks = configuration.get_mut("webhooks").and_then(Value::as_array_mut);
            webhooks.into_iter().flatten().for_each(|webhook| self.hide_namespaces(webhook));
        }
        configurations
    }

    /// The configurations by which the probes of a `run` reach every webhook, whatever its rules are: the creation of a
    /// ConfigMap with the label [`probe_label`] in the fakes' own namespace calls one webhook, and nothing else does.
    pub(crate) fn of_probes(&self, run: &str) -> Vec<Value> {
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
        [Kind::Mutating, Kind::Validating]
            .into_iter()
            .filter_map(|kind| {
                let fakes = self.plan.fakes().enumerate().filter(|(_, fake)| fake.entry.kind == kind);
                let probes: Vec<_> = fakes.map(probe).collect();
                (!probes.is_empty()).then(|| self.probe_configuration(kind, &probes))
            })
            .collect()
    }

    /// The configurations that replace those of the probes, one of each kind. Their webhooks have no Service: the
    /// creation of a ConfigMap with the label [`probe_label`] of `run` and the kind fails at once.
    pub(crate) fn of_markers(&self, run: &str) -> [Value; 2] {
        [Kind::Mutating, Kind::Validating].map(|kind| {
            let mut entry = self.probe(&probe_label(run, api_kind(kind)), MARKER);
            let service = json!({"namespace": self.namespace.as_str(), "name": format!("{NAME}-marker")});
            set(&mut entry, &["clientConfig", "service"], service);
            set(&mut entry, &["timeoutSeconds"], 1);
            set(&mut entry, &["admissionReviewVersions"], json!(["v1"]));
            self.probe_configuration(kind, &[entry])
        })
    }

    fn probe_configuration(&self, kind: Kind, entries: &[Value]) -> Value {
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
            // What went wrong is told to the caller of the probe, and to nobody else.
            "failurePolicy": "Fail",
            "sideEffects": "None",
        })
    }

    fn hide_namespaces(&self, webhook: &mut Value) {
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

/// The label, and the name, of the probe of one webhook or marker in one run.
pub(crate) fn probe_label(run: &str, what: impl Display) -> String {
    format!("probe-{run}-{what}").to_lowercase()
}

#[cfg(test)]
mod tests {
    use fake_webhooks::FakesFile;

    use super::*;

    #[test]
    fn a_probe_goes_where_its_webhook_goes_and_catches_nothing_else() {
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
        let (real, probes) = (configurations.of_files(), configurations.of_probes("1"));
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
