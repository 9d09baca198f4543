//! Tests the memory and side effects of fakes on sockets.
#![expect(clippy::indexing_slicing, reason = "a wrong index fails the test")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on must stop")]

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fake_webhooks::{Behavior, CallOutcome, Fake, FakeWebhook};
use reqwest::Client;
use serde_json::{Value, json};

async fn start(yaml: &str) -> FakeWebhook {
    let behavior: Behavior = serde_saphyr::from_str(yaml).unwrap();
    FakeWebhook::start(Fake { behavior, ..Fake::default() }).await.unwrap()
}

fn client(fake: &FakeWebhook) -> Client {
    // An error means that another test has already installed it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let authority = reqwest::Certificate::from_pem(fake.ca_bundle().as_bytes()).unwrap();
    Client::builder().tls_certs_only([authority]).no_proxy().build().unwrap()
}

fn review(uid: &str, name: &str) -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {"uid": uid, "operation": "CREATE", "name": name, "object": {"metadata": {"name": name}}},
    })
}

async fn response(client: &Client, fake: &FakeWebhook, review: &Value) -> Value {
    let sent = client.post(fake.url()).body(review.to_string()).send().await.unwrap();
    serde_json::from_slice::<Value>(&sent.bytes().await.unwrap()).unwrap()["response"].take()
}

fn summaries(fake: &FakeWebhook) -> Vec<String> {
    let told = |answered| {
        let CallOutcome::Sent { summary, .. } = answered else { panic!("{answered:?}") };
        summary
    };
    fake.journal().into_iter().map(|entry| told(entry.outcome)).collect()
}

#[tokio::test]
async fn second_call_for_an_object_is_detected() {
    let fake = start("when: {if: {round: second}, then: deny}").await;
    let client = client(&fake);
    for (name, allowed) in [("a", true), ("b", true), ("a", false), ("b", false)] {
        assert_eq!(response(&client, &fake, &review("1", name)).await["allowed"], allowed, "{name}");
    }
}

#[tokio::test]
async fn uids_are_mixed_up_only_when_calls_overlap() {
    let fake = start("mix-up: {hold: 500ms}").await;
    let client = client(&fake);
    assert_eq!(response(&client, &fake, &review("alone", "a")).await["uid"], "alone");
    let (left, right) = (review("left", "a"), review("right", "b"));
    let (one, other) = tokio::join!(response(&client, &fake, &left), response(&client, &fake, &right));
    assert_eq!(one["uid"], other["uid"]);
}

/// Checks the request that a side effect sends. Another fake receives it.
#[tokio::test]
async fn side_effect_is_sent_and_reported() {
    let recorder = start("raw: {status: 201}").await;
    let bundle = json!(recorder.ca_bundle());
    let url = recorder.url();
    let fake = start(&format!(
        "side-effect: {{write: {{url: '{url}objects?of={{name}}', token: secret, caBundle: {bundle}, body: {{uid: '{{uid}}'}}}}}}"
    ))
    .await;
    let client = client(&fake);
    assert_eq!(response(&client, &fake, &review("7", "web")).await["allowed"], true);
    let journal = recorder.journal();
    let [written] = journal.as_slice() else { panic!("{journal:?}") };
    assert_eq!((written.path.as_str(), written.query.as_str()), ("/objects", "of=web"));
    assert_eq!(written.review(), Some(json!({"uid": "7"})));
    assert!(written.headers.contains(&("authorization".to_owned(), "Bearer secret".to_owned())));
    assert_eq!(summaries(&fake), ["allowed; side effect 1, received HTTP status 201"]);
    assert_eq!(fake.side_effects(), 1);
}

#[tokio::test]
async fn side_effect_is_sent_to_the_server_of_a_kubeconfig() {
    let recorder = start("raw: {status: 201}").await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kubeconfig");
    let kubeconfig = json!(file.to_str().unwrap());
    let fake = start(&format!("side-effect: {{write: {{url: /objects, kubeconfig: {kubeconfig}}}}}")).await;
    let client = client(&fake);
    response(&client, &fake, &review("6", "web")).await;
    let cluster = json!({
        "server": recorder.url(),
        "certificate-authority-data": STANDARD.encode(recorder.ca_bundle()),
    });
    let config = json!({
        "current-context": "a",
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "clusters": [{"name": "a", "cluster": cluster}],
        "users": [{"name": "a", "user": {"token": "secret"}}],
    });
    std::fs::write(&file, config.to_string()).unwrap();
    response(&client, &fake, &review("7", "web")).await;
    let journal = recorder.journal();
    let [written] = journal.as_slice() else { panic!("{journal:?}") };
    assert_eq!(written.path, "/objects");
    assert!(written.headers.contains(&("authorization".to_owned(), "Bearer secret".to_owned())));
    let [before, after] = &*summaries(&fake) else { panic!("{:?}", summaries(&fake)) };
    assert!(before.contains("side effect 1, not written: cannot read the kubeconfig "), "{before}");
    assert_eq!(after, "allowed; side effect 2, received HTTP status 201");
}

#[tokio::test]
async fn path_of_a_side_effect_requires_a_kubeconfig() {
    let fake = start("side-effect: {write: {url: /objects}}").await;
    response(&client(&fake), &fake, &review("7", "web")).await;
    let told = summaries(&fake).concat();
    assert!(told.ends_with("not written: the URL is a path, which requires a kubeconfig"), "{told}");
}

#[tokio::test]
async fn failed_side_effect_is_reported_and_the_review_answered() {
    let free = fake_webhooks::RefusingPort::bind().unwrap().address();
    let fake = start(&format!("side-effect: {{write: {{url: 'http://{free}/'}}}}")).await;
    let client = client(&fake);
    assert_eq!(response(&client, &fake, &review("7", "web")).await["allowed"], true);
    let told = summaries(&fake).concat();
    assert!(told.starts_with("allowed; side effect 1, not written: "), "{told}");
}

#[tokio::test]
async fn leaked_memory_is_reported() {
    let fake = start("leak: {bytes: 1000, most: 1500}").await;
    let client = client(&fake);
    for _ in 0..2 {
        response(&client, &fake, &review("7", "web")).await;
    }
    assert_eq!(summaries(&fake), ["allowed; 1000 bytes leaked", "allowed; 1500 bytes leaked"]);
}
