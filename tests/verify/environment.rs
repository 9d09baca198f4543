//! Verifies fakes and returns the findings.

use std::collections::BTreeMap;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use fake_webhooks::{Behavior, Certificate, Fake, FakeWebhook, Transport};
use harness::attributes::UserInfo;
use harness::client::NoServices;
use harness::server::ClusterFixture;
use harness::verify::report::{CheckReport, CheckResult, Report, Tally};
use harness::verify::{Check, Environment, Plan, Settings, Subject, checks};
use serde_json::{Value, json};

/// The webhook to verify: its behavior, and the fields of its configuration that are not defaults.
pub(crate) struct TestedWebhook {
    behavior: Behavior,
    transport: Transport,
    kind: &'static str,
    fields: Value,
}

impl TestedWebhook {
    /// Creates a mutating webhook for pods with the behavior in this YAML.
    pub(crate) fn mutating(behavior: &str) -> Self {
        let behavior = serde_saphyr::from_str(behavior).expect("a behavior");
        Self {
            behavior,
            transport: Transport::default(),
            kind: "MutatingWebhookConfiguration",
            fields: json!({}),
        }
    }

    /// Creates a validating webhook for pods with the behavior in this YAML.
    pub(crate) fn validating(behavior: &str) -> Self {
        Self { kind: "ValidatingWebhookConfiguration", ..Self::mutating(behavior) }
    }

    pub(crate) fn showing(self, certificate: Certificate) -> Self {
        self.over(Transport { certificate, ..Transport::default() })
    }

    pub(crate) fn over(self, transport: Transport) -> Self {
        Self { transport, ..self }
    }

    /// Sets the operations in the webhook's rules for pods.
    pub(crate) fn on(self, operations: &[&str]) -> Self {
        let rule = json!({"operations": operations, "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]});
        self.with("rules", json!([rule]))
    }

    /// Sets a field of the webhook's entry.
    pub(crate) fn with(mut self, field: &str, value: Value) -> Self {
        self.fields[field] = value;
        self
    }
}

/// Returns the configuration entry of a webhook for pods at `url`.
pub(crate) fn entry(name: &str, url: &str, ca_bundle: &str) -> Value {
    use base64::Engine as _;
    let ca_bundle = base64::engine::general_purpose::STANDARD.encode(ca_bundle);
    json!({
        "name": format!("{name}.example.com"),
        "clientConfig": {"url": url, "caBundle": ca_bundle},
        "rules": [{"operations": ["CREATE", "UPDATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}],
        "sideEffects": "None", "admissionReviewVersions": ["v1"], "timeoutSeconds": 5,
    })
}

/// Returns the configuration entry of a webhook for pods behind the Service `webhook` in the namespace `injector`.
pub(crate) fn entry_of_service(name: &str, ca_bundle: &str) -> Value {
    let mut entry = entry(name, "", ca_bundle);
    let ca_bundle = entry["clientConfig"]["caBundle"].take();
    let service = json!({"namespace": "injector", "name": "webhook"});
    entry["clientConfig"] = json!({"service": service, "caBundle": ca_bundle});
    entry
}

pub(crate) fn configuration(kind: &str, name: &str, webhooks: &[Value]) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "webhooks": webhooks,
    })
}

/// Returns pods with various fields: a minimal one, one with a generated name, and one with many fields.
pub(crate) fn pods() -> Vec<Value> {
    let container = json!({"name": "app", "image": "example.com/app:1"});
    vec![
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "bare"}, "spec": {"containers": [container]}}),
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "named-later-"},
            "spec": {"containers": [container]}}),
        json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "rich", "labels": {"app": "app"}, "annotations": {"note": "kept"}},
        "spec": {
            "containers": [container, {"name": "other", "image": "example.com/other:1"}],
            "initContainers": [{"name": "init", "image": "example.com/init:1"}],
            "volumes": [{"name": "scratch", "emptyDir": {}}],
            "securityContext": {"runAsUser": 1000},
        }}),
    ]
}

/// Returns the result of one check for `webhooks`. Their configurations are called `a`, `b`, and so on.
pub(crate) async fn verify(id: &str, webhooks: Vec<TestedWebhook>) -> CheckReport {
    verify_with(id, webhooks, Settings::default()).await
}

/// Returns the result of [`verify`] with these settings.
pub(crate) async fn verify_with(id: &str, webhooks: Vec<TestedWebhook>, settings: Settings) -> CheckReport {
    verify_among(id, webhooks, settings, pods(), &[]).await
}

/// Returns the result of [`verify`] with these objects and custom resource definitions.
pub(crate) async fn verify_objects(
    id: &str,
    webhooks: Vec<TestedWebhook>,
    objects: Vec<Value>,
    around: &[Value],
) -> CheckReport {
    verify_among(id, webhooks, Settings::default(), objects, around).await
}

async fn verify_among(
    id: &str,
    webhooks: Vec<TestedWebhook>,
    settings: Settings,
    objects: Vec<Value>,
    around: &[Value],
) -> CheckReport {
    let mut fakes = Vec::new();
    let mut configurations = Vec::new();
    for (tested, name) in webhooks.into_iter().zip('a'..='z') {
        let name = name.to_string();
        let TestedWebhook { behavior, transport: Transport { certificate, connection, http, .. }, .. } =
            tested;
        let fake = FakeWebhook::start(Fake { behavior, certificate, connection, http, ..Fake::default() });
        let fake = fake.await.expect("the fake starts");
        let mut entry = entry(&name, &fake.url(), fake.ca_bundle());
        for (field, value) in tested.fields.as_object().into_iter().flatten() {
            entry[field] = value.clone();
        }
        configurations.push(configuration(tested.kind, &name, &[entry]));
        fakes.push(fake);
    }
    only(run_among(id, &configurations, objects, settings, around).await)
}

/// A clock that advances only on request, so that the speed of the machine does not matter.
///
/// The test begins with paused time. Without this clock, tokio would advance the time whenever it waits for a socket.
pub(crate) struct StoppedClock {
    /// The sender for which a blocking thread waits. Until the sender is dropped, tokio does not advance the time.
    _held: mpsc::Sender<()>,
}

impl StoppedClock {
    pub(crate) fn new() -> Self {
        let (held, end) = mpsc::channel::<()>();
        tokio::task::spawn_blocking(move || end.recv());
        Self { _held: held }
    }

    pub(crate) async fn advance(&self, time: Duration) {
        tokio::time::advance(time).await;
    }
}

/// Returns the report of one check for running webhooks.
pub(crate) async fn run(
    id: &str,
    configurations: &[Value],
    objects: Vec<Value>,
    settings: Settings,
) -> Report {
    run_among(id, configurations, objects, settings, &[]).await
}

async fn run_among(
    id: &str,
    configurations: &[Value],
    objects: Vec<Value>,
    settings: Settings,
    around: &[Value],
) -> Report {
    run_checks(&[checks::find(id).expect("there is such a check")], configurations, objects, settings, around)
        .await
}

/// Returns the report of several checks.
pub(crate) async fn run_checks(
    checks: &[&'static Check],
    configurations: &[Value],
    objects: Vec<Value>,
    settings: Settings,
    around: &[Value],
) -> Report {
    let environment =
        Environment::new(Arc::new(NoServices), ClusterFixture::new(around), UserInfo::default());
    let subjects = Subject::from_configurations(configurations).expect("the configurations can be read");
    let plan = Plan { settings, ..Plan::new(environment, subjects, checks.iter().copied()) };
    harness::verify::run(plan, objects.into_iter().map(Ok::<_, std::convert::Infallible>))
        .await
        .unwrap_or_else(|never| match never {})
}

pub(crate) fn only(mut report: Report) -> CheckReport {
    assert_eq!(report.checks.len(), 1);
    report.checks.remove(0)
}

/// Returns the kinds of the findings for all webhooks, each followed by the kinds of its consequences.
pub(crate) fn kinds(check: &CheckReport) -> Vec<&str> {
    check
        .findings
        .iter()
        .flat_map(|finding| {
            let consequences = finding.consequences.iter().map(|consequence| consequence.kind.as_str());
            std::iter::once(finding.kind.as_str()).chain(consequences)
        })
        .collect()
}

/// Returns the verdict for the first webhook, with the reasons if the check could not run.
pub(crate) fn verdict(check: &CheckReport) -> (Tally, BTreeMap<String, u64>) {
    let result: &CheckResult = &check.results[0];
    let mut reasons = result.not_checked.clone();
    if result.verdict == Tally::NotApplicable {
        reasons.extend(result.not_applicable.clone());
    }
    (result.verdict, reasons)
}

/// Asserts that the check reports findings of exactly these kinds, and that each finding has a message.
#[track_caller]
pub(crate) fn finds(check: &CheckReport, expected: &[&str]) {
    assert_eq!(kinds(check), expected, "{check:#?}");
    for finding in &check.findings {
        assert!(!finding.message.is_empty());
    }
}

/// Asserts that the check ran and did not report any findings.
#[track_caller]
pub(crate) fn passes(check: &CheckReport) {
    assert!(!check.results.is_empty(), "{check:#?}");
    assert_eq!(check.findings, Vec::new(), "{check:#?}");
    assert!(check.results.iter().all(|result| result.verdict == Tally::Passed), "{check:#?}");
}
