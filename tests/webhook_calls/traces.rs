//! Tests the trace context of a request: admit and kube-apiserver send the same headers to webhooks.

use std::time::Duration;

use fake_webhooks::{Fake, FakeWebhook};
use serde_json::json;

use super::{configuration, machine, on_admit, on_kube_apiserver, post};

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// The headers of a request, and the headers that kube-apiserver 1.37.1 then sends to webhooks.
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
    // A user who is not an administrator: without its own spans, the server forwards the headers of any user.
    (
        &[("impersonate-user", "jane"), ("traceparent", PARENT)],
        &["traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"],
    ),
];

/// Returns the trace headers of each call, in alphabetical order.
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

/// Sends the requests of all situations, and checks the headers that a mutating and a validating webhook receive.
async fn check(client: &kube::Client) {
    let start = || FakeWebhook::start(Fake::default());
    let webhooks = [start().await.unwrap(), start().await.unwrap()];
    let kinds = ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"];
    for (kind, webhook) in kinds.iter().zip(&webhooks) {
        let path = format!("/apis/admissionregistration.k8s.io/v1/{}s", kind.to_lowercase());
        post(client, &path, &[], &configuration(kind, "traced", webhook)).await;
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
    // Only a call shows that the server uses the configurations, and the earlier roles.
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

#[tokio::test(flavor = "multi_thread")]
async fn admit_hands_on_the_trace_context() {
    on_admit(async |client| check(&client).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kube_apiserver_hands_on_the_same() {
    if machine::has_kube_apiserver() {
        on_kube_apiserver(async |client| check(&client).await).await;
    }
}
