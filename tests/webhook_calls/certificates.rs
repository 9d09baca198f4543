//! Tests the counters for certificates that earlier server versions accepted.
//!
//! They count the calls that fail because of such a certificate.

use std::time::Duration;

use fake_webhooks::{Fake, FakeWebhook};
use serde_json::json;

use super::{configuration, machine, on_admit, on_kube_apiserver, post};

const MISSING_SAN: &str = "apiserver_webhooks_x509_missing_san_total";
const INSECURE_SHA1: &str = "apiserver_webhooks_x509_insecure_sha1_total";

/// Returns the `# HELP` and `# TYPE` lines and the value of a counter without labels.
async fn counter(client: &kube::Client, name: &str) -> (Vec<String>, u64) {
    let request = http::Request::get("/metrics").body(Vec::new()).unwrap();
    let text = client.request_text(request).await.unwrap();
    let is_about = |line: &&str| line.starts_with('#') && line.split(' ').nth(2) == Some(name);
    let head = text.lines().filter(is_about).map(str::to_owned).collect();
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    (head, value.unwrap_or_else(|| panic!("no {name}")).parse().unwrap())
}

/// Checks the counters, and returns their `# HELP` and `# TYPE` lines.
///
/// Creates a `ConfigMap` until a failed call of its webhook, which presents such a certificate, is counted; and once
/// more.
async fn check(client: &kube::Client) -> Vec<String> {
    let mut heads = Vec::new();
    for (certificate, name, other) in
        [("common-name-only", MISSING_SAN, INSECURE_SHA1), ("sha1", INSECURE_SHA1, MISSING_SAN)]
    {
        // A common name is a DNS name.
        let names = vec!["localhost".to_owned()];
        let fake = Fake { certificate: certificate.parse().unwrap(), names, ..Fake::default() };
        let webhook = FakeWebhook::start(fake).await.unwrap();
        let mut object = configuration("ValidatingWebhookConfiguration", certificate, &webhook);
        let url = format!("https://localhost:{}/", webhook.address().port());
        *object.pointer_mut("/webhooks/0/clientConfig/url").unwrap() = url.into();
        let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
        let before = counter(client, other).await.1;
        assert_eq!(counter(client, name).await.1, 0, "{certificate}");
        post(client, path, &[], &object).await;
        let create = || async {
            let object = json!({"metadata": {"name": "counted"}});
            post(client, "/api/v1/namespaces/kube-public/configmaps?dryRun=All", &[], &object).await;
            counter(client, name).await.1
        };
        // Only a call shows that the server uses the configuration.
        let mut probes = 0;
        while create().await == 0 {
            assert!(probes < 100, "the webhook is not called");
            probes += 1;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(create().await, 2, "{certificate}");
        let deleted = http::Request::delete(format!("{path}/{certificate}")).body(Vec::new()).unwrap();
        client.request_text(deleted).await.unwrap();
        assert_eq!(counter(client, other).await.1, before, "{certificate}");
        heads.extend(counter(client, name).await.0);
    }
    heads
}

#[tokio::test(flavor = "multi_thread")]
async fn both_servers_count_certificates_of_earlier_times() {
    let mut found = Vec::new();
    on_admit(async |client| found = check(&client).await).await;
    assert_eq!(found.len(), 4, "{found:?}");
    if machine::has_kube_apiserver() {
        let mut expected = Vec::new();
        on_kube_apiserver(async |client| expected = check(&client).await).await;
        assert_eq!(found, expected);
    }
}
