//! Checks that the address of a Service is resolved for each call, even if a connection exists.

use std::time::Duration;

use fake_webhooks::{Fake, FakeWebhook};
use http::Method;
use kube::client::Body;
use serde_json::{Value, json};

use super::{configuration, machine, on_admit, on_kube_apiserver, post};

const SERVICES: &str = "/api/v1/namespaces/default/services";
const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

async fn send(client: &kube::Client, method: Method, path: &str, body: &Value) -> u16 {
    let content_type =
        if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
    let request = http::Request::builder().method(method).uri(path).header("Content-Type", content_type);
    let request = request.body(Body::from(body.to_string().into_bytes())).unwrap();
    client.send(request).await.unwrap().status().as_u16()
}

/// Creates an object until the response has this status code. The webhook denies the object.
///
/// kube-apiserver does not notice a change to a Service immediately.
async fn wait_for(client: &kube::Client, code: u16) {
    let object = json!({"metadata": {"name": "x"}});
    let mut last = 0;
    for _ in 0..300 {
        last =
            send(client, Method::POST, "/api/v1/namespaces/kube-public/configmaps?dryRun=All", &object).await;
        if last == code {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{last} instead of {code}");
}

/// Checks the effect of changes to the Service of a webhook.
///
/// At first, the webhook responds. After its Service changes, it is unreachable, although the server still has a
/// connection to it. After another change, it responds again.
async fn check(client: &kube::Client) {
    let behavior = serde_json::from_value(json!({"deny": {"message": "found", "code": 418}})).unwrap();
    let names = vec!["moving.default.svc".to_owned()];
    let webhook = FakeWebhook::start(Fake { behavior, names, ..Fake::default() }).await.unwrap();
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "moving"},
        "spec": {"type": "ExternalName", "externalName": "localhost"},
    });
    post(client, SERVICES, &[], &service).await;
    let mut configuration = configuration("ValidatingWebhookConfiguration", "moving", &webhook);
    let entry = configuration.pointer_mut("/webhooks/0").unwrap();
    json_patch::merge(
        entry,
        &json!({
            "clientConfig": {
                "url": null,
                "service": {"name": "moving", "namespace": "default", "port": webhook.address().port()},
            },
            "failurePolicy": "Fail",
        }),
    );
    post(client, CONFIGURATIONS, &[], &configuration).await;
    wait_for(client, 418).await;
    for (name, code) in [("gone.invalid", 500), ("localhost", 418)] {
        let change = json!({"spec": {"externalName": name}});
        assert_eq!(send(client, Method::PATCH, &format!("{SERVICES}/moving"), &change).await, 200);
        wait_for(client, code).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn both_servers_look_for_a_service_at_each_call() {
    on_admit(async |client| check(&client).await).await;
    if machine::has_kube_apiserver() {
        on_kube_apiserver(async |client| check(&client).await).await;
    }
}
