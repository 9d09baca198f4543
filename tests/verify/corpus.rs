//! Checks that a real kube-apiserver accepts the objects in the built-in corpus.
//!
//! Needs `KUBEBUILDER_ASSETS`; without it, the test is skipped with a message.

use std::sync::Arc;

use admit_command::target::{Launched, TargetArguments, TargetKind};
use axum::http::Request;
use harness::attributes::{GroupVersionKind, UserInfo};
use harness::client::NoServices;
use harness::server::ClusterFixture;
use harness::verify::{Environment, Subject, corpus};
use serde_json::{Value, json};

use super::environment::{configuration, entry};
use crate::helpers::machine;

/// Returns the objects on which the corpus depends. A server without controllers does not create service accounts.
fn around() -> Vec<(&'static str, Value)> {
    let account = |name: &str| json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": corpus::NAMESPACE}});
    let accounts = "/api/v1/namespaces/admit-verify/serviceaccounts";
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web-0"},
        "spec": {"containers": [{"name": "app", "image": "example.com/app:1"}]}});
    let class = json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"},
        "value": 1000});
    vec![
        ("/api/v1/namespaces", corpus::namespaces(&[]).remove(0)),
        (accounts, account("default")),
        (accounts, account("builder")),
        ("/api/v1/namespaces/admit-verify/pods", pod),
        ("/apis/scheduling.k8s.io/v1/priorityclasses", class),
    ]
}

async fn post(client: &kube::Client, uri: &str, object: &Value) -> Result<Value, kube::Error> {
    let request = Request::post(uri).header("Content-Type", "application/json");
    client.request(request.body(object.to_string().into_bytes()).expect("a request")).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_kube_apiserver_takes_every_object_of_the_built_in_corpus() {
    if !machine::has_kube_apiserver() {
        return;
    }
    let launched = Launched::start(&TargetArguments::new(TargetKind::Envtest), |_| ()).await;
    let launched = launched.unwrap_or_else(|failure| panic!("{failure}"));
    let client = &launched.target.client;
    for (uri, object) in around() {
        post(client, uri, &object).await.unwrap_or_else(|error| panic!("{uri}: {error}"));
    }

    let mut everything = entry("w", "https://127.0.0.1:1/", "");
    everything["rules"][0] =
        json!({"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]});
    let configuration = configuration("ValidatingWebhookConfiguration", "c", &[everything]);
    let subjects = Subject::from_configurations(&[configuration]).expect("it can be read");
    let environment = Environment::new(Arc::new(NoServices), ClusterFixture::new(&[]), UserInfo::default());
    let mut refused = Vec::new();
    let mut tried = 0;
    for object in corpus::built_in(&subjects, &[], &environment, corpus::Extent::Whole) {
        let kind = GroupVersionKind::from_object(&object);
        let (served, subresource) = environment.cluster_fixture.created_at(&kind).expect("it is served");
        let (group, version) = (&served.name.group, &served.name.version);
        let root =
            if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
        let namespace = match object["metadata"]["namespace"].as_str() {
            Some(namespace) => format!("/namespaces/{namespace}"),
            None => String::new(),
        };
        let resource = &served.name.resource;
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let below = if subresource.is_empty() { String::new() } else { format!("/{name}/{subresource}") };
        let uri = format!("{root}{namespace}/{resource}{below}?dryRun=All&fieldValidation=Strict");
        tried += 1;
        match post(client, &uri, &object).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) => refused.push(format!("{}\n  {object}", status.message)),
            Err(error) => panic!("{uri}: {error}"),
        }
    }
    assert!(refused.is_empty(), "{} of {tried} are refused:\n{}", refused.len(), refused.join("\n"));
    assert!(tried > 500, "{tried}");
}
