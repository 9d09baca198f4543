//! Tests a client that disconnects during a webhook call: neither server counts this as a webhook failure.
//!
//! Needs KUBEBUILDER_ASSETS for kube-apiserver. Without it, only admit is tested, and a message says so.

#![expect(clippy::unwrap_used, reason = "what a test does not expect may panic")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use admit_command::target::{Launched, TargetArguments, TargetKind};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fake_webhooks::{CallOutcome, Fake, FakeWebhook};
use http_body_util::BodyExt as _;
use kube::client::Body;
use serde_json::{Value, json};

use crate::helpers::machine;
use crate::helpers::serve::Serve;

const API: &str = "/apis/admissionregistration.k8s.io/v1";
/// An audit policy that logs the metadata of every request. The test selects events by their audit IDs.
const POLICY: &str = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n";
/// The metrics that count webhook failures.
const FAILURES: [&str; 2] =
    ["apiserver_admission_webhook_fail_open_count", "apiserver_admission_webhook_rejection_count"];
/// The metric that counts all webhook calls.
const REQUESTS: &str = "apiserver_admission_webhook_request_total";
const TIMEOUT: Duration = Duration::from_secs(20);

/// The observable effects of a request whose client has disconnected.
#[derive(Debug, PartialEq, Eq)]
struct Effects {
    /// The keys of the request's audit annotations that report that a webhook failed open.
    failed_open: Vec<String>,
    /// The samples of the metrics in [`FAILURES`] for the webhook.
    failures: Vec<String>,
    /// The samples of [`REQUESTS`] for the webhook with a code other than 200.
    calls: Vec<String>,
    /// The `responseStatus` and the `objectRef` of the last audit event.
    answered: [Value; 2],
}

#[tokio::test(flavor = "multi_thread")]
async fn client_disconnect_is_not_a_failure_of_the_webhook() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("policy.yaml"), POLICY).unwrap();
    assert_eq!(of_admit(folder.path()).await, expected(), "admit");
    if !machine::has_kube_apiserver() {
        return;
    }
    let log = folder.path().join("real.log");
    let arguments =
        TargetArguments::new(TargetKind::Envtest).with_audit(folder.path().join("policy.yaml"), log.clone());
    let launched = Launched::start(&arguments, |_| ()).await.unwrap_or_else(|failure| panic!("{failure}"));
    assert_eq!(left(&launched.target.client, &log).await, expected(), "kube-apiserver");
}

/// Returns the expected effects for each failure policy: no failure, one call, and an undelivered response.
fn expected() -> BTreeMap<&'static str, Effects> {
    let left = |policy: &str, rejected: bool| {
        let name = format!("{policy}.gone.example.com");
        let call = format!(
            "{REQUESTS}{{code=\"503\",name=\"{name}\",operation=\"CREATE\",rejected=\"{rejected}\",type=\"admit\"}} 1"
        );
        let status = json!({
            "metadata": {}, "status": "Failure", "reason": "Timeout", "details": {}, "code": 504,
            "message": "Timeout: request did not complete within requested timeout - context canceled",
        });
        let object =
            json!({"apiVersion": "v1", "resource": "configmaps", "namespace": "default", "name": policy});
        Effects {
            failed_open: Vec::new(),
            failures: Vec::new(),
            calls: vec![call],
            answered: [status, object],
        }
    };
    BTreeMap::from([("Fail", left("fail", true)), ("Ignore", left("ignore", false))])
}

async fn of_admit(folder: &Path) -> BTreeMap<&'static str, Effects> {
    let flags = ["--audit-policy-file", "policy.yaml", "--audit-log", "admit.log"];
    let (_server, client) = Serve::start(folder, &flags).await;
    left(&client, &folder.join("admit.log")).await
}

/// Disconnects a client during a webhook call, for each failure policy. Returns the effects.
///
/// The effects are read once the audit log contains the last event of the request.
async fn left(client: &kube::Client, log: &Path) -> BTreeMap<&'static str, Effects> {
    let mut all = BTreeMap::new();
    for policy in ["Fail", "Ignore"] {
        let name = format!("{}.gone.example.com", policy.to_lowercase());
        let webhook = webhook(client, policy, &name).await;
        let audit_id = format!("gone-{policy}");
        let request = post("/api/v1/namespaces/default/configmaps", &audit_id, &map(policy));
        let sending = tokio::spawn({
            let client = client.clone();
            async move { drop(client.send(request).await) }
        });
        let is_asked = |entry: &fake_webhooks::Entry| {
            entry.review().is_some_and(|it| it.pointer("/request/dryRun") == Some(&Value::Bool(false)))
        };
        until("the webhook is called", async || webhook.journal().iter().any(is_asked)).await;
        sending.abort();
        let is_left =
            |entry: &fake_webhooks::Entry| is_asked(entry) && matches!(entry.outcome, CallOutcome::Abandoned);
        until("the server leaves the webhook", async || webhook.journal().iter().any(is_left)).await;
        let events = || -> Vec<Value> {
            let text = fs::read_to_string(log).unwrap();
            let events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            events.filter(|event| event.get("auditID") == Some(&json!(audit_id))).collect()
        };
        until("the log tells of the request", async || {
            events().iter().any(|event| event.get("stage") == Some(&json!("ResponseComplete")))
        })
        .await;
        let metrics = send(client, http::Request::get("/metrics").body(Body::empty()).unwrap()).await;
        let is_failure = |line: &&str| FAILURES.iter().any(|it| line.starts_with(it)) && line.contains(&name);
        let is_call = |line: &&str| {
            line.starts_with(REQUESTS) && line.contains(&name) && !line.contains("code=\"200\"")
        };
        let last = events().pop().unwrap_or_default();
        let answered =
            ["responseStatus", "objectRef"].map(|field| last.get(field).cloned().unwrap_or_default());
        let annotations =
            events().into_iter().filter_map(|event| event.get("annotations")?.as_object().cloned());
        let keys = annotations.flat_map(|annotations| annotations.into_iter().map(|(key, _)| key));
        all.insert(
            policy,
            Effects {
                failed_open: keys.filter(|key| key.starts_with("failed-open.")).collect(),
                failures: metrics.lines().filter(is_failure).map(str::to_owned).collect(),
                calls: metrics.lines().filter(is_call).map(str::to_owned).collect(),
                answered,
            },
        );
    }
    all
}

/// Creates a mutating webhook that responds only to dry runs, and waits until the server uses it.
async fn webhook(client: &kube::Client, policy: &str, name: &str) -> FakeWebhook {
    let behavior = json!({"when": {"if": {"dry-run": true}, "then": "allow", "otherwise": {"timeout": {}}}});
    let behavior = serde_json::from_value(behavior).unwrap();
    let webhook = FakeWebhook::start(Fake { behavior, ..Fake::default() }).await.unwrap();
    let url = format!("https://127.0.0.1:{}/", webhook.address().port());
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration", "metadata": {"name": name},
        "webhooks": [{
            "name": name,
            "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}],
            "objectSelector": {"matchLabels": {"for": policy}},
            "clientConfig": {"url": url, "caBundle": STANDARD.encode(webhook.ca_bundle())},
            "failurePolicy": policy, "sideEffects": "None", "admissionReviewVersions": ["v1"], "timeoutSeconds": 30,
        }],
    });
    send(client, post(&format!("{API}/mutatingwebhookconfigurations"), "configuration", &configuration))
        .await;
    until("the configuration is used", async || {
        send(client, post("/api/v1/namespaces/default/configmaps?dryRun=All", "probe", &map(policy))).await;
        !webhook.journal().is_empty()
    })
    .await;
    webhook
}

fn map(policy: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": policy.to_lowercase(), "labels": {"for": policy}}})
}

fn post(path: &str, audit_id: &str, body: &Value) -> http::Request<Body> {
    let request =
        http::Request::post(path).header("Content-Type", "application/json").header("Audit-ID", audit_id);
    request.body(Body::from(body.to_string().into_bytes())).unwrap()
}

/// Returns the body of a successful response.
async fn send(client: &kube::Client, request: http::Request<Body>) -> String {
    let response = client.send(request).await.unwrap();
    let is_success = response.status().is_success();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let text = String::from_utf8_lossy(&body).into_owned();
    assert!(is_success, "{text}");
    text
}

async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    let started = tokio::time::Instant::now();
    while !holds().await {
        assert!(started.elapsed() < TIMEOUT, "not within {TIMEOUT:?}: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
