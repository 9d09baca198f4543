//! Tests webhooks with one defect each, and correct ones.
//!
//! All checks together find only this defect and its consequences. For correct webhooks, they find nothing.

use std::collections::BTreeMap;

use fake_webhooks::{Behavior, Certificate, Fake, FakeWebhook};
use futures::stream::{self, StreamExt as _};
use harness::verify::{Settings, Severity, checks};
use serde::Deserialize;
use serde_json::{Value, json};

use super::environment::{configuration, entry, pods, run_checks};
use crate::helpers::SAMPLE;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TestedWebhook {
    pub(crate) name: String,
    #[serde(rename = "type")]
    kind: Kind,
    behavior: Value,
    /// Whether the webhook treats mirror pods in the same way as other pods.
    #[serde(default)]
    mirror: bool,
    #[serde(default)]
    certificate: Certificate,
    /// Additional fields of the webhook's configuration entry.
    #[serde(default)]
    pub(crate) fields: BTreeMap<String, Value>,
    /// The fields of the configuration entry after the fix, if the defect is in the configuration.
    #[serde(default)]
    pub(crate) mended: BTreeMap<String, Value>,
    /// The objects to use in addition to Pods.
    #[serde(default)]
    pub(crate) objects: Vec<Value>,
    /// The expected kinds of findings other than notes, by check.
    #[serde(default)]
    pub(crate) finds: BTreeMap<String, Vec<String>>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    Mutating,
    Validating,
}

/// Returns a configuration entry without defects.
fn sound(kind: Kind, url: &str, ca_bundle: &str) -> Value {
    let mut entry = entry("w", url, ca_bundle);
    let system = ["kube-system", "kube-node-lease", "kube-public"];
    entry["namespaceSelector"] = json!({"matchExpressions": [
        {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": system},
    ]});
    entry["objectSelector"] = json!({});
    entry["matchPolicy"] = json!("Equivalent");
    entry["failurePolicy"] = json!("Fail");
    // Half of this timeout is enough for a first call on a busy machine.
    entry["timeoutSeconds"] = json!(10);
    entry["rules"][0]["scope"] = json!("Namespaced");
    if let Kind::Mutating = kind {
        entry["reinvocationPolicy"] = json!("IfNeeded");
    }
    entry
}

impl TestedWebhook {
    fn behavior(&self) -> Behavior {
        let own = self.behavior.clone();
        let behavior = match self.kind {
            Kind::Mutating if !self.mirror => {
                let is_mirror = json!({"present": "/metadata/annotations/kubernetes.io~1config.mirror"});
                json!({"when": {"if": is_mirror, "then": "allow", "otherwise": own}})
            }
            Kind::Mutating | Kind::Validating => own,
        };
        serde_json::from_value(behavior).expect("a behavior")
    }
}

impl TestedWebhook {
    /// Starts the webhook. Returns the webhook, and its configuration with this name.
    pub(crate) async fn start(&self, name: &str) -> (FakeWebhook, Value) {
        let fake = Fake { behavior: self.behavior(), certificate: self.certificate, ..Fake::default() };
        let fake = FakeWebhook::start(fake).await.expect("the fake starts");
        let mut entry = sound(self.kind, &fake.url(), fake.ca_bundle());
        for (field, value) in &self.fields {
            entry[field] = value.clone();
        }
        let kind = match self.kind {
            Kind::Mutating => "MutatingWebhookConfiguration",
            Kind::Validating => "ValidatingWebhookConfiguration",
        };
        (fake, configuration(kind, name, &[entry]))
    }
}

/// Returns the webhooks in `one_defect.yaml`.
pub(crate) fn webhooks() -> Vec<TestedWebhook> {
    let mut webhooks: Vec<TestedWebhook> =
        serde_saphyr::from_str(include_str!("one_defect.yaml")).expect("the table");
    webhooks.iter_mut().flat_map(|tested| tested.finds.values_mut()).for_each(|kinds| kinds.sort());
    webhooks
}

/// Returns the kinds of findings of all checks, by check, without notes that the table does not list.
async fn found(tested: &TestedWebhook) -> BTreeMap<String, Vec<String>> {
    let (_fake, configuration) = tested.start("a").await;
    let report = run_checks(checks::ALL, &[configuration], pods(), Settings::default(), &[]).await;
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for check in report.checks {
        for finding in &check.findings {
            let own = (&check.id, &finding.kind, finding.severity);
            let consequences = finding.consequences.iter().map(|it| (&it.check, &it.kind, it.severity));
            for (id, kind, severity) in [own].into_iter().chain(consequences) {
                let is_listed = tested.finds.get(id).is_some_and(|kinds| kinds.contains(kind));
                if severity > Severity::Note || is_listed {
                    found.entry(id.clone()).or_default().push(kind.clone());
                }
            }
        }
    }
    for kinds in found.values_mut() {
        kinds.sort();
    }
    found
}

/// Asserts that all checks find the defects of these webhooks, and nothing else.
async fn assert_found(webhooks: impl Iterator<Item = TestedWebhook>) {
    let found = stream::iter(webhooks).map(|tested| async move { (found(&tested).await, tested) });
    let found: Vec<_> = found.buffered(2).collect().await;
    let others = found.into_iter().filter(|(found, tested)| tested.finds != *found);
    let others: Vec<String> =
        others.map(|(found, tested)| format!("{}: {found:?}, not {:?}", tested.name, tested.finds)).collect();
    assert!(others.is_empty(), "\n{}", others.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn each_defect_of_a_sample_is_found_and_nothing_else() {
    assert_found(webhooks().into_iter().step_by(SAMPLE)).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes long"]
async fn each_defect_outside_the_sample_is_found_and_nothing_else() {
    let others = webhooks().into_iter().enumerate().filter(|(place, _)| place % SAMPLE != 0);
    assert_found(others.map(|(_, tested)| tested)).await;
}
