//! The trace context of a request: webhooks get the same headers from admit and from kube-apiserver.

#![expect(clippy::unwrap_used, reason = "what a test does not expect may panic")]

#[path = "borrowed/machine.rs"]
mod machine;

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use admit::target::{Launched, TargetArguments, TargetKind};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fake_webhooks::{Fake, FakeWebhook};
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// The headers of a request, and what of them kube-apiserver 1.37.1 sends to webhooks.
type Situation = (&'static [(&'static str, &'static str)], &'static [&'static str]);

const SITUATIONS: [Situation; 9] = [
    (&[], &[]),
    (&[("traceparent", PARENT)], &["traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"]),
    (
        &[("traceparent", PARENT), ("tracestate", "a=1, b=2"), ("baggage", "user=jane%20doe;p")],
        &[
            "baggage: user=jane%20doe;p",
            "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "tracestate: a=1,b=2",
        ],
    ),
    (&[("tracestate", "a=1"), ("baggage", "a=1")], &["baggage: a=1"]),
    (&[("traceparent", "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01")], &[]),
    (
        &[("traceparent", "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0f-more")],
        &["traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-03"],
    ),
    (
        &[("traceparent", PARENT), ("tracestate", "Not=valid")],
        &["traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"],
    ),
    (&[("baggage", "a=1"), ("baggage", "a=%41"), ("baggage", "no")], &["baggage: a=A"]),
    // Another user than an administrator: without spans of its own the server hands on what it gets, whoever asks.
    (
        &[("impersonate-user", "jane"), ("traceparent", PARENT)],
        &["traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"],
    ),
];

fn configuration(kind: &str, webhook: &FakeWebhook) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": "traced"},
        "webhooks": [{
            "name": "traced.example.com",
            "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}],
            "clientConfig": {
                "url": format!("https://127.0.0.1:{}/", webhook.address().port()),
                "caBundle": STANDARD.encode(webhook.ca_bundle()),
            },
            "sideEffects": "None", "admissionReviewVersions": ["v1"],
        }],
    })
}

async fn post(client: &kube::Client, path: &str, headers: &[(&str, &str)], body: &Value) {
    let mut request = http::Request::post(path).header("Content-Type", "application/json");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = client.send(request.body(Body::from(body.to_string().into_bytes())).unwrap()).await;
    let response = response.unwrap();
    let status = response.status();
    let body = http_body_util::BodyExt::collect(response.into_body()).await.unwrap().to_bytes();
    assert!(status.is_success(), "{path}: {}", String::from_utf8_lossy(&body));
}

/// The headers about a trace, of each call, sorted.
fn traces(webhook: &FakeWebhook) -> Vec<Vec<String>> {
    let of = |headers: &[(String, String)]| {
        let headers = headers.iter().map(|(name, value)| (name.to_lowercase(), value));
        let mut headers: Vec<String> = headers
            .filter(|(name, _)| ["traceparent", "tracestate", "baggage"].contains(&name.as_str()))
            .map(|(name, value)| format!("{name}: {value}"))
            .collect();
        headers.sort();
        headers
    };
    webhook.journal().iter().map(|call| of(&call.headers)).collect()
}

/// Makes the requests of all situations, and looks at what a mutating and a validating webhook were sent.
async fn check(client: &kube::Client) {
    let start = || FakeWebhook::start(Fake::default());
    let webhooks = [start().await.unwrap(), start().await.unwrap()];
    let kinds = ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"];
    for (kind, webhook) in kinds.iter().zip(&webhooks) {
        let path = format!("/apis/admissionregistration.k8s.io/v1/{}s", kind.to_lowercase());
        post(client, &path, &[], &configuration(kind, webhook)).await;
    }
    let role = json!({
        "metadata": {"name": "writers"},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]}],
    });
    post(client, "/apis/rbac.authorization.k8s.io/v1/clusterroles", &[], &role).await;
    let binding = json!({
        "metadata": {"name": "writers"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "writers"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"}],
    });
    post(client, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", &[], &binding).await;
    // Nothing but a call tells that the server knows the configurations, and the roles a moment before them.
    let maps = "/api/v1/namespaces/kube-public/configmaps?dryRun=All";
    let object = json!({"metadata": {"name": "traced"}});
    let mut probes = 0;
    while webhooks.iter().any(|webhook| webhook.journal().is_empty()) {
        assert!(probes < 100, "the webhooks are not called");
        probes += 1;
        post(client, maps, &[], &object).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    for (headers, expect) in SITUATIONS {
        let before: Vec<usize> = webhooks.iter().map(|webhook| webhook.journal().len()).collect();
        post(client, maps, headers, &object).await;
        for (webhook, before) in webhooks.iter().zip(before) {
            let calls = traces(webhook).split_off(before);
            assert_eq!(calls, [expect], "{headers:?}");
        }
    }
}

/// A running `admit serve`; dropped means killed.
struct Serve(Child);

impl Drop for Serve {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn admit_hands_on_the_trace_context() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_admit"))
        .args(["serve", "--kubeconfig-out", "kubeconfig"])
        .current_dir(&folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = child.stdout.take().unwrap();
    let _server = Serve(child);
    BufReader::new(output).read_line(&mut String::new()).unwrap();
    let kubeconfig = Kubeconfig::read_from(folder.path().join("kubeconfig")).unwrap();
    let config =
        kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    check(&kube::Client::try_from(config).unwrap()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kube_apiserver_hands_on_the_same() {
    if !machine::has_kube_apiserver() {
        return;
    }
    let arguments = TargetArguments::of(TargetKind::Envtest);
    let launched = Launched::start(&arguments, |_| ()).await.unwrap_or_else(|failure| panic!("{failure}"));
    check(&launched.target.client).await;
}
