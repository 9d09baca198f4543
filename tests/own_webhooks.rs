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
        let mut command = Command::new(env!("CARGO_BIN_EXE_admit"));
        // IPv6 addresses are in brackets.
        let service = format!("injector/webhook={}", self.webhook.address());
        command.args(["run", "my.feature", "--target", target, "--service", &service]);
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
