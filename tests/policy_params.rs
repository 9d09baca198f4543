//! Tests that a run keeps a policy with `ConfigMap` params on the server, and removes it at the end.

#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "what a test does not expect may panic")]

use std::fs;
use std::net::TcpListener;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::helpers::machine;
use crate::helpers::serve::Serve;

/// A policy and a binding that selects its param by label, as a step.
///
/// kube-apiserver 1.37 reads a param that the binding names from the API if its watch has not found it.
const WITH_PARAM: &str = r#"    Given these objects exist:
      """yaml
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: limits, labels: {app: limits}}
      ---
      apiVersion: admissionregistration.k8s.io/v1
      kind: ValidatingAdmissionPolicy
      metadata: {name: limit}
      spec:
        paramKind: {apiVersion: v1, kind: ConfigMap}
        matchConstraints:
          resourceRules: [{operations: [CREATE], apiGroups: [''], apiVersions: [v1], resources: [pods]}]
        validations: [{expression: 'params.metadata.name != "limits"'}]
      ---
      apiVersion: admissionregistration.k8s.io/v1
      kind: ValidatingAdmissionPolicyBinding
      metadata: {name: limit}
      spec:
        policyName: limit
        paramRef: {selector: {matchLabels: {app: limits}}, parameterNotFoundAction: Allow}
        validationActions: [Deny]
      """
"#;

const DENIED: &str = "    When a pod is created\n    Then the request is rejected with 422 Invalid\n";

/// A policy without params.
const WITHOUT_PARAM: &str = r#"    Given this object exists:
      """yaml
      apiVersion: admissionregistration.k8s.io/v1
      kind: ValidatingAdmissionPolicy
      metadata: {name: unbound}
      spec:
        matchConstraints:
          resourceRules: [{operations: [CREATE], apiGroups: [''], apiVersions: [v1], resources: [pods]}]
        validations: [{expression: 'false'}]
      """
    When a pod is created
    Then the request is admitted
"#;

/// A webhook that never answers.
const WEBHOOK: &str = r#"    And this object exists:
      """yaml
      apiVersion: admissionregistration.k8s.io/v1
      kind: MutatingWebhookConfiguration
      metadata: {name: hanging}
      webhooks:
      - name: hanging.example.com
        clientConfig: {url: 'https://ADDRESS/'}
        rules: [{operations: [CREATE], apiGroups: [''], apiVersions: [v1], resources: [pods]}]
        timeoutSeconds: 30
        sideEffects: None
        admissionReviewVersions: [v1]
      """
    When a pod is created
"#;

/// Sends a request and returns the response.
async fn send(client: &kube::Client, path: &str, body: Option<Value>) -> Value {
    let request = match body {
        Some(body) => http::Request::post(path).body(body.to_string().into_bytes()),
        None => http::Request::get(path).body(Vec::new()),
    };
    client.request(request.unwrap()).await.unwrap()
}

/// Returns the names of the run's objects of `resource`.
async fn names(client: &kube::Client, resource: &str) -> Vec<String> {
    let path =
        format!("/apis/admissionregistration.k8s.io/v1/{resource}?labelSelector=admit.example.com%2Frun");
    let list = send(client, &path, None).await;
    let items = list["items"].as_array().unwrap();
    items.iter().map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn kube_apiserver_finds_params_after_the_scenarios_with_params_ended() {
    if !machine::has_kube_apiserver() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let scenarios = [
        format!("  Scenario: First\n{WITH_PARAM}{DENIED}"),
        // The server refreshes its policies while none of the scenarios has params.
        format!("  Scenario: Between\n{WITHOUT_PARAM}"),
        format!("  Scenario: Last\n{WITH_PARAM}{DENIED}"),
    ];
    let feature = folder.path().join("params.feature");
    fs::write(&feature, format!("Feature: Params\n{}", scenarios.join("\n"))).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_admit"))
        .args(["run", "--quiet", "--target", "envtest", "--jobs", "1"])
        .arg(&feature)
        .output()
        .unwrap();
    let told =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{told}");
    assert!(told.contains("3 passed, 0 failed"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn stopped_run_removes_the_kept_policy_from_a_cluster() {
    let folder = tempfile::tempdir().unwrap();
    let (_server, client) = Serve::start(folder.path(), &[]).await;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let webhook = WEBHOOK.replace("ADDRESS", &listener.local_addr().unwrap().to_string());
    let feature = folder.path().join("stopped.feature");
    fs::write(&feature, format!("Feature: Stopped\n  Scenario: Hanging\n{WITH_PARAM}{webhook}")).unwrap();
    let run = Command::new(env!("CARGO_BIN_EXE_admit"))
        .args(["run", "--target", "cluster", "--fakes-host", "127.0.0.1"])
        .arg(&feature)
        .env("KUBECONFIG", folder.path().join("kubeconfig"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();

    create_what_controllers_create(&client).await;
    let (call, _) = tokio::task::spawn_blocking(move || listener.accept()).await.unwrap().unwrap();
    for resource in ["validatingadmissionpolicies", "validatingadmissionpolicybindings"] {
        let found = names(&client, resource).await;
        let kept = found.iter().filter(|name| name.starts_with("admit-run-"));
        assert_eq!(kept.count(), 1, "{found:?}");
    }

    kill_process(Pid::from_child(&run), Signal::INT).unwrap();
    drop(call);
    let output = tokio::task::spawn_blocking(|| run.wait_with_output()).await.unwrap().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{told}");
    for resource in ["validatingadmissionpolicies", "validatingadmissionpolicybindings"] {
        assert_eq!(names(&client, resource).await, [""; 0], "{told}");
    }
}

/// Creates the objects that the run expects in its namespace, because `admit serve` does not run controllers.
async fn create_what_controllers_create(client: &kube::Client) {
    let namespace = loop {
        let list = send(client, "/api/v1/namespaces?labelSelector=admit.example.com%2Frun", None).await;
        if let Some(name) = list["items"][0]["metadata"]["name"].as_str() {
            break name.to_owned();
        }
        tokio::task::yield_now().await;
    };
    for (resource, kind, name) in
        [("serviceaccounts", "ServiceAccount", "default"), ("configmaps", "ConfigMap", "kube-root-ca.crt")]
    {
        let object = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}});
        send(client, &format!("/api/v1/namespaces/{namespace}/{resource}"), Some(object)).await;
    }
}
