//! Tests `admit run` with the webhook author's own webhook: a manifest configures it, and `--service` locates it.

#![expect(clippy::expect_used, reason = "what is not there fails the test")]

mod failures;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::process::{Command, Output};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fake_webhooks::{Fake, FakeWebhook};
use serde_json::json;
use tempfile::TempDir;

use crate::helpers::machine;

/// A feature for the webhook `inject.example.com`.
const FEATURE: &str = r#"
Feature: The injector
  Scenario: It adds its label
    Given the objects in the file "manifest.yaml" exist
    When a pod is created
    Then the object has the label "injected=true"
"#;

/// The steps that check which webhook calls the API server has made.
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
    /// Starts a webhook whose certificate is valid only for the name of its Service, with a manifest of that Service.
    async fn with(feature: &str) -> Self {
        Self::at(Ipv4Addr::LOCALHOST.into(), feature).await
    }

    /// Starts such a webhook on this address.
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

    /// Removes all objects of a kind from the manifest, and returns the original manifest.
    fn remove(&self, kind: &str) -> String {
        let manifest = self.folder.path().join("manifest.yaml");
        let text = std::fs::read_to_string(&manifest).expect("the manifest");
        let kind = format!(r#""kind":"{kind}""#);
        let documents = text.split("\n---\n").filter(|document| !document.contains(&kind));
        std::fs::write(manifest, documents.collect::<Vec<_>>().join("\n---\n")).expect("it is written");
        text
    }

    /// Returns the `Host` header of each call that the webhook received.
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

/// Returns the feature with a fake that is called before the webhook, and steps that check both.
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
        text.contains("expected \"inject.example.com\" to be called twice, but it was called once"),
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

/// Returns a scenario with a fake before or after the webhook. It checks the order of the calls.
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
        let line = text.lines().find(|line| line.contains("call order, by configuration name: "));
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
    stage.remove("Service");
    let text = ends_with(&stage.run_with(&["--service", "injector/webhok=127.0.0.1:1"]).await, 1);
    assert!(text.contains("service \"webhook\" not found"), "{text}");
    let hint = "set the address of the webhook with --service injector/webhook=HOST:PORT";
    assert!(text.contains(hint), "{text}");
    let warning = "warning: --service injector/webhok is not used: the webhooks that the scenarios load refer to \
                   injector/webhook\n";
    assert!(text.contains(warning), "{text}");
    let text = ends_with(&stage.run("in-process").await, 0);
    assert!(!text.contains("warning"), "{text}");
    let (given, _) = FEATURE.split_once("    When").expect("a step");
    let text = ends_with(&Stage::with(given).await.run("in-process").await, 0);
    assert!(!text.contains("is not used"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn service_may_be_given_as_a_host_name() {
    let stage = Stage::with(FEATURE).await;
    let service = format!("webhook.injector.svc={}", stage.webhook.address());
    ends_with(&stage.run_with(&["--service", &service]).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_file_of_a_step_is_reported_with_the_folder_of_the_feature_file() {
    let feature = FEATURE.replace("manifest.yaml", "nowhere.yaml");
    // Each file is reported once, however many steps name it.
    let twice = format!("{feature}{}", feature.replace("\nFeature: The injector", ""));
    let stage = Stage::with(&twice).await;
    let text = ends_with(&stage.run("in-process").await, 2);
    let expected = "error: my.feature:4: cannot read nowhere.yaml (relative to the feature file): No such file \
                    or directory\n";
    assert_eq!(text, expected);
    std::fs::write(stage.folder.path().join("nowhere.yaml"), "kind: A\n---\na: [\n").expect("it is written");
    let text = ends_with(&stage.run("in-process").await, 2);
    assert!(
        text.starts_with("error: my.feature:4: cannot read nowhere.yaml (relative to the feature file): "),
        "{text}"
    );
    assert!(text.contains("invalid YAML: "), "{text}");
}

/// Returns the feature with `steps` after the manifest is loaded, and `checks` after a pod is created.
fn feature(steps: &str, checks: &str) -> String {
    let feature =
        FEATURE.replace("    When a pod is created\n", &format!("{steps}    When a pod is created\n"));
    feature.replace("    Then the object has the label \"injected=true\"\n", checks)
}

#[tokio::test(flavor = "multi_thread")]
async fn reason_why_a_webhook_is_not_called_is_shown_in_the_error() {
    let label = "    Then the object has the label \"injected=true\"\n";
    let stage = Stage::with(&feature("", label)).await;
    let manifest = stage.folder.path().join("manifest.yaml");
    let text = std::fs::read_to_string(&manifest).expect("the manifest");
    let selector = r#""objectSelector":{"matchLabels":{"inject":"yes"}},"rules""#;
    std::fs::write(manifest, text.replace("\"rules\"", selector)).expect("it is written");
    let text = ends_with(&stage.run("in-process").await, 1);
    let reason =
        "inject.example.com: not called: its objectSelector requires inject=yes; the object has no labels";
    assert_eq!(text.matches(reason).count(), 1, "{text}");
    assert!(text.contains(&format!("= note: {reason}")), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_reinvocation_is_explained() {
    let proxy =
        "    And a mutating webhook \"a-proxy\" for pods\n    And \"a-proxy\" adds the container \"proxy\"\n";
    let twice = "    Then \"inject.example.com\" is called twice\n";
    let stage = Stage::with(&feature(proxy, twice)).await;
    let text = ends_with(&stage.run("in-process").await, 1);
    assert!(text.contains("inject.example.com: not called again: its reinvocationPolicy is Never"), "{text}");

    let policy = "    And \"inject.example.com\" has the reinvocation policy IfNeeded\n";
    let stage = Stage::with(&feature(&format!("{proxy}{policy}"), twice)).await;
    let text = ends_with(&stage.run("in-process").await, 1);
    let reason = "inject.example.com: not called again: no webhook changed the object after its call";
    assert!(text.contains(reason), "{text}");
    let step = "\"a-proxy\" is called after the configuration \"injector\"";
    assert!(text.contains(&format!("= note: {reason}\n")), "{text}");
    assert!(text.contains(&format!("= help: add the step `{step}`")), "{text}");

    let stage = Stage::with(&feature(&format!("{proxy}{policy}    And {step}\n"), twice)).await;
    ends_with(&stage.run("in-process").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn fake_replaces_a_webhook_whose_behavior_a_step_sets() {
    let down = "    And \"inject.example.com\" refuses connections\n";
    let fails = "    Then the request is rejected with 500 InternalError\n    And the message contains \"connection refused\"\n";
    let ignore = "    And \"inject.example.com\" has the failure policy Ignore\n";
    let admits = "    Then the request is admitted\n    And the object does not contain:\n      \"\"\"\n      metadata: {labels: {injected: 'true'}}\n      \"\"\"\n";
    let rejects = "    And \"inject.example.com\" denies the request with the message \"no\"\n";
    let denied = "    Then the request is rejected with 400\n";
    let targets =
        if machine::has_kube_apiserver() { vec!["in-process", "envtest"] } else { vec!["in-process"] };
    for target in targets {
        let both = format!("{down}{ignore}");
        for (steps, checks) in [(down, fails), (&*both, admits), (rejects, denied)] {
            let stage = Stage::with(&feature(steps, checks)).await;
            let text = ends_with(&stage.run(target).await, 0);
            assert!(stage.hosts().is_empty(), "{target}: the webhook is not called");
            let replaced =
                "a fake replaces the webhook \"inject.example.com\", because a step sets its behavior";
            assert!(text.contains(replaced), "{text}");
        }
        // A call whose connection fails is not counted on any target.
        let counted = format!("{fails}    And \"inject.example.com\" is not called\n");
        ends_with(&Stage::with(&feature(down, &counted)).await.run(target).await, 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn webhook_that_does_not_listen_is_not_called() {
    let closed = TcpListener::bind(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0)).expect("a free port");
    let address = closed.local_addr().expect("it has an address");
    drop(closed);
    let service = format!("injector/webhook={address}");
    let ignore = "    And \"inject.example.com\" has the failure policy Ignore\n";
    let warning = format!("warning: 1 call did not reach the webhook behind injector/webhook at {address}\n");

    let once = "    Then \"inject.example.com\" is called once\n";
    let stage = Stage::with(&feature(ignore, once)).await;
    let text = ends_with(&stage.run_with(&["--service", &service]).await, 1);
    assert!(text.contains("to be called once, but it was not called"), "{text}");
    assert!(text.contains("connect: connection refused"), "{text}");
    let help =
        format!("= help: --service injector/webhook is {address}: check that the webhook listens there");
    assert!(text.contains(&help), "{text}");
    assert!(text.contains(&warning), "{text}");

    let admitted = "    Then the request is admitted\n";
    let stage = Stage::with(&feature(ignore, admitted)).await;
    let text = ends_with(&stage.run_with(&["--service", &service]).await, 0);
    assert!(text.contains(&warning), "{text}");

    let text = ends_with(&stage.run_with(&["--wait", "1", "--service", &service]).await, 3);
    let expected = format!(
        "error: --service injector/webhook: {address} does not accept connections after 1 s (--wait)\n"
    );
    assert_eq!(text, expected);
    let service = format!("injector/webhook={}", stage.webhook.address());
    let text = ends_with(&stage.run_with(&["--wait", "60", "--service", &service]).await, 0);
    assert!(!text.contains("did not reach"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn webhook_that_the_request_cannot_reach_is_not_counted_as_not_called() {
    let feature = r#"
Feature: Namespaces
  Scenario: The namespace of another client
    Given the objects in the file "manifest.yaml" exist
    When this object is created:
      """
      apiVersion: v1
      kind: Pod
      metadata: {name: web, namespace: default}
      spec: {containers: [{name: web, image: nginx}]}
      """
    Then "inject.example.com" is not called
"#;
    let text = ends_with(&Stage::with(feature).await.run("in-process").await, 1);
    let limited =
        "was not called only because the namespace \"default\" is not part of the scenario: add the step";
    assert!(text.contains(limited), "{text}");
    assert_eq!(text.matches("is not part of the scenario").count(), 1, "{text}");
    let missing = feature.replace("namespace: default", "namespace: prd");
    let text = ends_with(&Stage::with(&missing).await.run("in-process").await, 1);
    let failed = "\"inject.example.com\" was not called because the request failed before admission: namespaces \
                  \"prd\" not found";
    assert!(text.contains(failed), "{text}");
    assert!(
        text.contains("= help: create the namespace with the step `webhooks are also called in the"),
        "{text}"
    );
}

/// Scenarios that run in parallel can load the same manifest, even if it contains objects.
#[tokio::test(flavor = "multi_thread")]
async fn scenarios_share_a_manifest_and_a_namespace() {
    let scenario = r#"
  Scenario: NAME
    Given the objects in the file "manifest.yaml" exist
    And this object exists:
      """
      {apiVersion: v1, kind: Namespace, metadata: {name: shop}}
      """
    When this object is created:
      """
      apiVersion: v1
      kind: Pod
      metadata: {name: web, namespace: shop}
      spec: {containers: [{name: web, image: nginx}]}
      """
    Then the object has the label "injected=true"
"#;
    let scenarios: String = (0..8).map(|number| scenario.replace("NAME", &number.to_string())).collect();
    let stage = Stage::with(&format!("Feature: Shared objects\n{scenarios}")).await;
    let text = ends_with(&stage.run("in-process").await, 0);
    assert!(text.ends_with("8 passed, 0 failed\n"), "{text}");
    let positions: Vec<_> = (0..8).map(|number| text.find(&format!("    ok {number}  "))).collect();
    assert!(positions.is_sorted() && positions.iter().all(Option::is_some), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn namespace_outside_the_scenario_is_explained() {
    let feature = r#"
Feature: Namespaces
  Scenario: The namespace of another client
    Given the objects in the file "manifest.yaml" exist
    When this object is created:
      """
      apiVersion: v1
      kind: Pod
      metadata: {name: web, namespace: default}
      spec: {containers: [{name: web, image: nginx}]}
      """
    Then "inject.example.com" is called once
"#;
    let text = ends_with(&Stage::with(feature).await.run("in-process").await, 1);
    let reason = "inject.example.com: not called: the namespace \"default\" is not part of the scenario: add the step \
                  `webhooks are also called in the namespace \"default\"`";
    assert!(text.contains(reason), "{text}");
    assert!(text.contains("to be called once, but it was not called"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn manifest_without_its_namespace_and_invalid_manifest_are_handled_by_the_step_that_loads_them() {
    let stage = Stage::with(FEATURE).await;
    let manifest = stage.folder.path().join("manifest.yaml");
    let valid = stage.remove("Namespace");
    let text = ends_with(&stage.run("in-process").await, 0);
    assert!(text.contains("created the namespace \"injector\""), "{text}");

    std::fs::write(&manifest, valid.replace("inject.example.com", "Inject.example.com"))
        .expect("it is written");
    let text = ends_with(&stage.run("in-process").await, 1);
    assert!(text.contains("FAIL Given the objects in the file \"manifest.yaml\" exist"), "{text}");
    let message =
        "manifest.yaml:5: the API server rejects MutatingWebhookConfiguration \"injector\": 422 Invalid: ";
    assert!(text.contains(message), "{text}");
    assert!(!text.contains("is not used"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_doc_string_is_reported_with_the_line_of_the_feature_file() {
    let feature = "Feature: YAML\n  Scenario: Invalid\n    When this object is created:\n      \"\"\"yaml\n      kind: Pod\n      \
                   spec: [\n      \"\"\"\n";
    let text = ends_with(&Stage::with(feature).await.run("in-process").await, 1);
    let lines: Vec<&str> = text.lines().filter(|line| line.contains("of the feature file: ")).collect();
    assert!(
        !lines.is_empty() && lines.iter().all(|line| line.contains("invalid YAML on line 6 of")),
        "{text}"
    );
}
