//! Tests the steps that run checks on the author's own webhook, from its manifest and the address of its Service.

use std::process::{Command, Output};

use serde_json::{Value, json};

use super::command::{Stage, ends_with};
use super::environment::{configuration, entry_of_service};

const FEATURE: &str = r#"Feature: My injector
  Scenario: It leaves alone what it has done already
    Given the objects in the file "injector.yaml" exist
    Then "w.example.com" is idempotent for every KIND in the corpus
"#;

/// Returns a custom resource definition such as a webhook's manifest contains.
fn definition() -> Value {
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"size": {"type": "integer"}}},
    }});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.shop.example.com"},
        "spec": {
            "group": "shop.example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [
                {"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}},
            ],
        },
    })
}

/// Runs a feature that checks whether the stage's webhook is idempotent for objects of this kind.
async fn run(stage: &Stage, kind: &str) -> Output {
    let mut webhook = entry_of_service("w", stage.fake.ca_bundle());
    webhook["rules"][0]["apiGroups"] = json!(["*"]);
    webhook["rules"][0]["resources"] = json!(["configmaps", "widgets"]);
    let configuration = configuration("MutatingWebhookConfiguration", "injector", &[webhook]);
    stage.write("injector.yaml", &[definition(), configuration]);
    std::fs::write(stage.path("my.feature"), FEATURE.replace("KIND", kind)).expect("the file is written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_admit"));
    command.arg("run").arg(stage.path("my.feature")).env("NO_COLOR", "1");
    command.args(["--service", &format!("injector/webhook={}", stage.fake.address())]);
    Stage::run(command).await
}

#[tokio::test(flavor = "multi_thread")]
async fn own_webhook_is_called_at_its_service() {
    let stage = Stage::with("always-mutate").await;
    let text = ends_with(&run(&stage, "configmap").await, 0);
    assert!(text.contains("V01 for \"w.example.com\": passed 12 times"), "{text}");
    // A check that could not run is a failure: no rule matches pods.
    let text = ends_with(&run(&stage, "pod").await, 1);
    assert!(text.contains("not applicable: there was no object to try"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn custom_resources_of_its_manifest_are_in_the_corpus() {
    let only_sizes =
        "when: {if: {not: {absent: /spec/size}}, then: non-idempotent, otherwise: always-mutate}";
    let stage = Stage::with(only_sizes).await;
    let text = ends_with(&run(&stage, "widget").await, 1);
    assert!(text.contains("called with its own result, the webhook changes metadata.annotations"), "{text}");
    assert!(text.contains("kind: Widget") && text.contains("size: 1"), "{text}");
    ends_with(&run(&stage, "configmap").await, 0);
}
