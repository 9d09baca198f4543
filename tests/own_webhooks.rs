//! `admit run` with the webhook author's own webhook, which a manifest configures and `--service` locates.

#![expect(clippy::expect_used, reason = "what is not there fails the test")]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::process::{Command, Output};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fake_webhooks::{Fake, FakeWebhook};
use serde_json::json;
use tempfile::TempDir;

use crate::helpers::machine;

/// The feature; the webhook responds as `inject.example.com`.
const FEATURE: &str = r#"
Feature: The injector
  Scenario: It adds its label
    Given the objects in the file "manifest.yaml" exist
    When a pod is created
    Then the object has the label "injected=true"
"#;

/// Steps that need the API server's record of its calls.
const CALLS: &str = r#"
    And "inject.example.com" is called once
    And the first review sent to "inject.example.com" contains:
      """
      request: {operation: CREATE, object: {metadata: {name: web}}}
      """
    And the webhooks are called in the order "first, inject.example.com"
"#;

struct Stage {
    folder: TempDir,
    webhook: FakeWebhook,
}

impl Stage {
    /// Starts a webhook whose certificate is only for the name of its service, with a manifest of that service.
    async fn with(feature: &str) -> Self {
        Self::at(Ipv4Addr::LOCALHOST.into(), feature).await
    }

    /// Starts such a webhook at this address.
    async fn at(address: IpAddr, feature: &str) -> Self {
        let behavior = "mutate: [{set: {/metadata/labels/injected: 'true'}}]";
        let webhook = FakeWebhook::start(Fake {
            behavior: serde_saphyr::from_str(behavior).expect("a behavior"),
            names: vec!["webhook.injector.svc".to_owned()],
            listen: SocketAddr::new(address, 0),
            ..Fake::default()
        });
        let webhook = webhook.await.expect("the webhook starts");
        let service = json!({"namespace": "injector", "name": "webhook", "path": "/inject"});
        let rule = json!({"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]});
        let manifest = [
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "injector"}}),
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "webhook", "namespace": "injector"},
                "spec": {"ports": [{"port": 443, "targetPort": 8443}]}}),
            json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
                "metadata": {"name": "injector"}, "webhooks": [{"name": "inject.example.com", "rules": [rule],
                    "clientConfig": {"service": service, "caBundle": STANDARD.encode(webhook.ca_bundle())},
                    "sideEffects": "None", "admissionReviewVersions": ["v1"]}]}),
        ];
        let stage = Self { folder: tempfile::tempdir().expect("a folder"), webhook };
        let documents = manifest.map(|object| object.to_string()).join("\n---\n");
        std::fs::write(stage.folder.path().join("manifest.yaml"), documents).expect("it is written");
        std::fs::write(stage.folder.path().join("my.feature"), feature).expect("it is written");
        stage
    }

    async fn run(&self, target: &str) -> Output {
        // IPv6 addresses are in brackets.
        let service = format!("injector/webhook={}", self.webhook.address());
        self.run_with(&["--target", target, "--service", &service]).await
    }

    async fn run_with(&self, options: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_admit"));
        command.args(["run", "my.feature"]).args(options);
        command.current_dir(self.folder.path()).env("NO_COLOR", "1");
        tokio::task::spawn_blocking(move || command.output().expect("the command runs"))
            .await
            .expect("it ends")
    }

    /// Returns the hosts in the calls.
    fn hosts(&self) -> Vec<String> {
        let host = |(name, value): &(String, String)| (name.to_lowercase() == "host").then(|| value.clone());
        self.webhook
            .journal()
            .iter()
            .flat_map(|call| call.headers.iter().filter_map(host).collect::<Vec<_>>())
            .collect()
    }
}

#[track_caller]
fn ends_with(output: &Output, status: i32) -> String {
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(status), "{text}");
    text
}

/// Returns the feature with a fake before the webhook, and steps about both.
fn with_calls() -> String {
    let fake = "    Given a mutating webhook \"first\" for pods\n    And the objects";
    format!("{}{}", FEATURE.trim_end().replacen("    Given the objects", fake, 1), CALLS)
}

#[tokio::test(flavor = "multi_thread")]
async fn steps_about_calls_and_reviews_know_it_in_process() {
    let stage = Stage::with(&with_calls()).await;
    ends_with(&stage.run("in-process").await, 0);
    assert_eq!(stage.webhook.journal().len(), 1);
    let twice = with_calls().replace("is called once", "is called twice");
    let stage = Stage::with(&twice).await;
    let text = ends_with(&stage.run("in-process").await, 1);
    assert!(
        text.contains("expected \"inject.example.com\" to be called twice, it was called once"),
        "{text}"
    );
    let told = "inject.example.com, first round: CREATE pods: allowed, patched with 2 operations";
    assert!(text.contains(told), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn kube_apiserver_finds_its_service_under_its_own_name_and_keeps_its_calls_to_itself() {
    if !machine::has_kube_apiserver() {
        return;
    }
    let stage = Stage::with(FEATURE).await;
    ends_with(&stage.run("envtest").await, 0);
    let port = stage.webhook.address().port();
    assert_eq!(stage.hosts(), [format!("webhook.injector.svc:{port}")]);

    let stage = Stage::with(&with_calls()).await;
    let text = ends_with(&stage.run("envtest").await, 1);
    assert!(text.contains("calls of \"inject.example.com\" are not available"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_may_listen_on_an_ipv6_address() {
    if TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_err() {
        return machine::skipped("there is no IPv6 on this machine");
    }
    let stage = Stage::at(Ipv6Addr::LOCALHOST.into(), FEATURE).await;
    ends_with(&stage.run("in-process").await, 0);
    if !machine::has_kube_apiserver() {
        return;
    }
    ends_with(&stage.run("envtest").await, 0);
    // The calls use the name of its service, not an address.
    let hosts = stage.hosts();
    assert_eq!(hosts.len(), 2);
    assert!(hosts.iter().all(|host| host.starts_with("webhook.injector.svc:")), "{hosts:?}");
}

/// Returns a scenario with a fake that is called before or after the webhook, and the expected order.
fn ordered(word: &str, order: &str) -> String {
    format!(
        r#"
Feature: Order
  Scenario: A fake has a position
    Given the objects in the file "manifest.yaml" exist
    And a mutating webhook "fake" for pods
    And "fake" adds the annotation "seen=yes"
    And "fake" is called {word} the configuration "injector"
    When a pod with the annotation "example.com/a=b=c" is created
    Then the webhooks are called in the order "{order}"
    And the object has the annotation "seen=yes"
    And the object has the annotation "example.com/a=b=c"
    Given "fake" removes the annotation "seen"
    When the annotation "more=1" is added to the pod "web"
    Then the object has the annotation "more=1"
    When the annotation "more" is removed from the pod "web"
    Then the object contains:
      """
      metadata: {{annotations: {{more: null, seen: null}}}}
      """
"#
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn fake_is_called_before_or_after_a_loaded_configuration() {
    let orders = [("before", "fake, inject.example.com"), ("after", "inject.example.com, fake")];
    for (word, order) in orders {
        let stage = Stage::with(&ordered(word, order)).await;
        let text = ends_with(&stage.run("in-process").await, 0);
        let (first, second) = order.split_once(", ").expect("two webhooks");
        let line = text.lines().find(|line| line.contains("order by the names of the configurations: "));
        let line = line.expect("the order is printed");
        assert!(line.find(first) < line.find(second), "{line}");
        if machine::has_kube_apiserver() {
            let calls = "Then the webhooks are called in the order \"fake\"";
            let stage = Stage::with(&ordered(word, "fake").replace(calls, &in_fake_review(word))).await;
            ends_with(&stage.run("envtest").await, 0);
        }
    }
}

/// Returns a step that checks whether the fake receives the pod after the webhook has changed it.
fn in_fake_review(word: &str) -> String {
    let labels = if word == "before" { "null" } else { "{injected: 'true'}" };
    format!(
        "Then the first review sent to \"fake\" contains:\n      \"\"\"\n      request: {{object: {{metadata: {{labels: \
         {labels}}}}}}}\n      \"\"\""
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn position_relative_to_an_unknown_configuration_fails() {
    let feature =
        ordered("before", "fake").replace("the configuration \"injector\"", "the configuration \"inject\"");
    let text = ends_with(&Stage::with(&feature).await.run("in-process").await, 1);
    let message = "unknown configuration \"inject\": must be the metadata.name of a MutatingWebhookConfiguration that \
                   an earlier step loads (loaded: injector)";
    assert!(text.contains(message), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_service_is_explained_and_unused_service_is_reported() {
    let stage = Stage::with(FEATURE).await;
    // Without the Service, the message does not depend on the network of the machine.
    let manifest = stage.folder.path().join("manifest.yaml");
    let text = std::fs::read_to_string(&manifest).expect("the manifest");
    let documents = text.split("\n---\n").filter(|document| !document.contains(r#""kind":"Service""#));
    std::fs::write(manifest, documents.collect::<Vec<_>>().join("\n---\n")).expect("it is written");
    let text = ends_with(&stage.run_with(&["--service", "injector/webhok=127.0.0.1:1"]).await, 1);
    assert!(text.contains("service \"webhook\" not found"), "{text}");
    let hint = "set the address of the webhook with --service injector/webhook=HOST:PORT";
    assert!(text.contains(hint), "{text}");
    let warning = "warning: --service injector/webhok is not used: the webhooks that the scenarios load refer to \
                   injector/webhook\n";
    assert!(text.contains(warning), "{text}");
    let text = ends_with(&stage.run("in-process").await, 0);
    assert!(!text.contains("warning"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn service_may_be_given_as_a_host_name() {
    let stage = Stage::with(FEATURE).await;
    let service = format!("webhook.injector.svc={}", stage.webhook.address());
    ends_with(&stage.run_with(&["--service", &service]).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_file_of_a_step_is_reported_with_the_folder_of_the_feature_file() {
    let stage = Stage::with(&FEATURE.replace("manifest.yaml", "nowhere.yaml")).await;
    let text = ends_with(&stage.run("in-process").await, 1);
    assert!(text.contains("cannot read nowhere.yaml (relative to the feature file)"), "{text}");
}
