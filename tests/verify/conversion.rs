//! Tests conversion webhooks with one defect each, and correct ones.
//!
//! All checks together find only this defect and its consequences. For correct webhooks, they find nothing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use fake_webhooks::{Behavior, Fake, FakeWebhook};
use harness::attributes::UserInfo;
use harness::client::NoServices;
use harness::server::ClusterFixture;
use harness::verify::report::{Report, Tally};
use harness::verify::{Audience, Check, Converter, Environment, Plan, checks};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::helpers::SAMPLE;

/// The check that sends reviews of 3 MiB.
const LARGE_LISTS: &str = "V66";

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct TestedWebhook {
    name: String,
    /// The parameters of `convert` that differ from those of a correct webhook.
    convert: BTreeMap<String, Value>,
    /// The parameters for every other call, if they differ.
    #[serde(default)]
    every_other: Option<BTreeMap<String, Value>>,
    /// The expected kinds of findings, by check.
    #[serde(default)]
    finds: BTreeMap<String, Vec<String>>,
    /// Whether at least one check can run.
    #[serde(default = "yes")]
    checked: bool,
}

fn yes() -> bool {
    true
}

fn convert(parameters: &BTreeMap<String, Value>) -> Value {
    let mut convert = json!({
        "versions": ["v1", "v2"], "moves": [{"version": "v2", "from": "/spec/size", "to": "/spec/replicas"}],
    });
    for (name, value) in parameters {
        convert[name] = value.clone();
    }
    json!({"convert": convert})
}

fn version(name: &str, size: &str) -> Value {
    let spec = json!({"type": "object", "required": [size], "properties": {
        size: {"type": "integer", "minimum": 2, "maximum": 9},
        "color": {"type": "string", "enum": ["red", "green"]},
        "cpu": {"x-kubernetes-int-or-string": true},
        "ports": {"type": "array", "items": {"type": "object", "required": ["port"], "properties": {
            "name": {"type": "string", "maxLength": 8}, "port": {"type": "integer", "minimum": 1},
        }}},
        "enabled": {"type": "boolean"},
    }});
    let schema = json!({"type": "object", "required": ["spec"], "properties": {"spec": spec}});
    json!({"name": name, "served": true, "storage": name == "v1", "schema": {"openAPIV3Schema": schema}})
}

fn definition(client_config: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.g.example.com"},
        "spec": {
            "group": "g.example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "conversion": {"strategy": "Webhook", "webhook": {
                "conversionReviewVersions": ["v1"], "clientConfig": client_config,
            }},
            "versions": [version("v1", "size"), version("v2", "replicas")],
        },
    })
}

/// Returns the findings of all conversion checks for this behavior.
async fn report(behavior: Value, timeout: Option<Duration>, objects: Vec<Value>) -> Report {
    report_of(&conversion_checks(), behavior, timeout, objects).await
}

fn conversion_checks() -> Vec<&'static Check> {
    checks::ALL.iter().copied().filter(|check| check.audience == Audience::Conversion).collect()
}

/// Returns the findings of these checks for this behavior.
async fn report_of(
    checks: &[&'static Check],
    behavior: Value,
    timeout: Option<Duration>,
    objects: Vec<Value>,
) -> Report {
    let behavior: Behavior = serde_json::from_value(behavior).expect("a behavior");
    let fake = FakeWebhook::start(Fake { behavior, ..Fake::default() }).await.expect("the fake starts");
    let ca_bundle = base64::engine::general_purpose::STANDARD.encode(fake.ca_bundle());
    let definition = definition(&json!({"url": fake.url(), "caBundle": ca_bundle}));
    let configuration = Converter::configuration(&definition).expect("a webhook converts");
    let converter =
        Converter::new(&definition, &configuration).expect("it can be read").expect("it speaks v1");
    let converter = match timeout {
        Some(timeout) => converter.with_timeout(timeout),
        None => converter,
    };
    let environment =
        Environment::new(Arc::new(NoServices), ClusterFixture::new([&definition]), UserInfo::default());
    let checks = checks.iter().copied();
    let plan = Plan { converters: vec![converter], ..Plan::new(environment, Vec::new(), checks) };
    harness::verify::run(plan, objects.into_iter().map(Ok::<_, std::convert::Infallible>))
        .await
        .unwrap_or_else(|never| match never {})
}

fn kinds(report: &Report) -> BTreeMap<String, Vec<String>> {
    let mut kinds: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (check, finding) in report.findings() {
        kinds.entry(check.id.clone()).or_default().push(finding.kind.clone());
    }
    kinds
}

/// Asserts that the checks find the defects of these webhooks, and nothing else.
async fn assert_found(webhooks: impl Iterator<Item = (TestedWebhook, Vec<&'static Check>)>) {
    let mut others = Vec::new();
    for (tested, checks) in webhooks {
        let mut behavior = convert(&tested.convert);
        if let Some(other) = &tested.every_other {
            behavior = json!({"cycle": [behavior, convert(other)]});
        }
        let report = report_of(&checks, behavior, None, Vec::new()).await;
        let found = kinds(&report);
        let passed = report.count(Tally::Passed);
        if found != tested.finds || (tested.finds.is_empty() && (passed == checks.len()) != tested.checked) {
            others.push(format!("{}: {found:?}, not {:?}; {passed} passed", tested.name, tested.finds));
        }
    }
    assert!(others.is_empty(), "\n{}", others.join("\n"));
}

fn webhooks() -> impl Iterator<Item = (usize, TestedWebhook)> {
    let webhooks: Vec<TestedWebhook> =
        serde_saphyr::from_str(include_str!("conversion.yaml")).expect("the table");
    webhooks.into_iter().enumerate()
}

/// V66 sends reviews of 3 MiB, and takes longer than all other checks together. Here, it runs for a sample of the webhooks.
#[tokio::test(flavor = "multi_thread")]
async fn each_defect_is_found_and_nothing_else() {
    let all = conversion_checks();
    let without_large_lists: Vec<_> = all.iter().copied().filter(|check| check.id != LARGE_LISTS).collect();
    assert_eq!(without_large_lists.len() + 1, all.len());
    let with_checks = webhooks().map(|(place, tested)| {
        let has_large_lists = place % SAMPLE == 0 || tested.finds.contains_key(LARGE_LISTS);
        let checks = if has_large_lists { &all } else { &without_large_lists };
        (tested, checks.clone())
    });
    assert_found(with_checks).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes long"]
async fn each_defect_is_found_and_nothing_else_with_large_lists() {
    let others = webhooks().filter(|(place, _)| place % SAMPLE != 0);
    assert_found(others.map(|(_, tested)| (tested, conversion_checks()))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_finding_has_the_smallest_object_and_the_calls() {
    let behavior = convert(&BTreeMap::from([("objects".to_owned(), json!({"/spec/color": null}))]));
    let check = checks::find("V59").expect("there is such a check");
    let report = report_of(&[check], behavior, None, Vec::new()).await;
    let (_, finding) = report.findings().find(|(check, _)| check.id == "V59").expect("a finding");
    let object = finding.object.as_ref().expect("an object");
    let spec = object["spec"].as_object().expect("a spec");
    assert!(spec.contains_key("color") && spec.len() == 2, "{object:#}");
    assert_eq!(finding.steps.len(), 2);
    assert_eq!(finding.steps[0].webhook, "widgets.g.example.com/conversion");
    assert_eq!(finding.steps[0].review["kind"], "ConversionReview");
    assert!(finding.message.contains("/spec/color"), "{}", finding.message);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_that_does_not_answer_is_found_once() {
    let report = report(json!("timeout"), Some(Duration::from_millis(300)), Vec::new()).await;
    let expected = BTreeMap::from([("V62".to_owned(), vec!["no answer".to_owned()])]);
    assert_eq!(kinds(&report), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_was_given_has_to_be_converted() {
    let object = json!({
        "apiVersion": "g.example.com/v1", "kind": "Widget", "metadata": {"name": "given"}, "spec": {"size": 3},
    });
    let behavior = convert(&BTreeMap::from([("fail".to_owned(), json!("not today"))]));
    let report = report(behavior, None, vec![object]).await;
    let expected = BTreeMap::from([("V62".to_owned(), vec!["rejected".to_owned()])]);
    assert_eq!(kinds(&report), expected);
}
