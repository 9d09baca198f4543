//! Tests the objects that kube-aggregator and API Priority and Fairness write, and the pages about the server.
//!
//! The objects are `APIService`s with their groups, and `FlowSchema`s with their conditions.

use serde_json::{Value, json};

use super::client::*;

const SERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";
const FLOWS: &str = "/apis/flowcontrol.apiserver.k8s.io/v1";

fn remote(group: &str) -> Value {
    json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": format!("v1.{group}")},
        "spec": {
            "group": group, "version": "v1", "groupPriorityMinimum": 2000, "versionPriority": 10,
            "service": {"name": "s", "namespace": "default"},
        },
    })
}

/// Returns the status, the reason, and the message of an object's first condition.
fn condition(object: &Value) -> [&str; 3] {
    ["status", "reason", "message"]
        .map(|field| object["status"]["conditions"][0][field].as_str().unwrap_or_default())
}

async fn groups(server: &harness::server::ApiServer) -> Vec<String> {
    let (_, list) = get(server, "/apis").await;
    let groups = list["groups"].as_array().unwrap().iter();
    groups.map(|group| group["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn group_of_a_service_is_listed_but_unavailable() {
    let server = server();
    let before = groups(&server).await;
    let (code, created) = post(&server, SERVICES, &remote("ext.example.com")).await;
    assert_eq!((code, &created["spec"]["service"]["port"]), (201, &json!(443)), "{created}");
    let path = format!("{SERVICES}/v1.ext.example.com");
    let (_, stored) = get(&server, &path).await;
    assert_eq!(condition(&stored), ["False", "ServiceNotFound", r#"service/s in "default" is not present"#]);
    for path in ["/apis/ext.example.com/v1", "/apis/ext.example.com/v1/foos/a"] {
        assert_eq!(get(&server, path).await, (503, json!("service unavailable\n")), "{path}");
    }
    assert_eq!(get(&server, "/apis/ext.example.com/v2").await.0, 404);
    let (code, group) = get(&server, "/apis/ext.example.com").await;
    assert_eq!((code, &group["preferredVersion"]["version"]), (200, &json!("v1")));
    assert_eq!(groups(&server).await, [before.clone(), vec!["ext.example.com".to_owned()]].concat());
    assert_eq!(delete(&server, &path, None).await.0, 200);
    assert_eq!(get(&server, "/apis/ext.example.com").await.0, 404);
    assert_eq!(groups(&server).await, before);
}

#[tokio::test]
async fn condition_follows_the_service_and_its_endpoints() {
    let server = server();
    post(&server, SERVICES, &remote("ext.example.com")).await;
    let path = format!("{SERVICES}/v1.ext.example.com");
    let services = "/api/v1/namespaces/default/services";
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"},
        "spec": {"clusterIP": "10.0.0.77", "ports": [{"port": 80}]},
    });
    assert_eq!(post(&server, services, &service).await.0, 201);
    let (_, stored) = get(&server, &path).await;
    let expected = ["False", "ServicePortError", r#"service/s in "default" is not listening on port 443"#];
    assert_eq!(condition(&stored), expected);
    let ports = json!({"spec": {"ports": [{"port": 443, "name": "h"}]}});
    patch(&server, &format!("{services}/s"), "application/merge-patch+json", &ports).await;
    let (_, stored) = get(&server, &path).await;
    let expected = ["False", "EndpointsNotFound", r#"cannot find endpointslices for service/s in "default""#];
    assert_eq!(condition(&stored), expected);
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {"name": "s", "labels": {"kubernetes.io/service-name": "s"}},
        "addressType": "IPv4", "endpoints": [], "ports": [{"name": "x", "port": 1}],
    });
    let slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
    assert_eq!(post(&server, slices, &slice).await.0, 201);
    let (_, stored) = get(&server, &path).await;
    let why = r#"endpointslices for service/s in "default" have no addresses with port name "h""#;
    assert_eq!(condition(&stored), ["False", "MissingEndpoints", why]);
}

#[tokio::test]
async fn versions_of_custom_resources_are_registered() {
    let server = server();
    let version = |name: &str, served: bool| {
        json!({
            "name": name, "served": served, "storage": name == "v1",
            "schema": {"openAPIV3Schema": {"type": "object"}},
        })
    };
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "foos.example.com"},
        "spec": {
            "group": "example.com", "scope": "Cluster", "names": {"plural": "foos", "kind": "Foo"},
            "versions": [version("v1", true), version("v2", true), version("v3", false)],
        },
    });
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(post(&server, definitions, &definition).await.0, 201);
    let (code, stored) = get(&server, &format!("{SERVICES}/v2.example.com")).await;
    let expected = json!({
        "group": "example.com", "version": "v2", "groupPriorityMinimum": 1000, "versionPriority": 100,
    });
    assert_eq!((code, &stored["spec"]), (200, &expected));
    assert_eq!(stored["metadata"]["labels"], json!({"kube-aggregator.kubernetes.io/automanaged": "true"}));
    assert_eq!(condition(&stored), ["True", "Local", "Local APIServices are always available"]);
    assert_eq!(get(&server, &format!("{SERVICES}/v3.example.com")).await.0, 404);
    // What a client changes or deletes is restored.
    let path = format!("{SERVICES}/v2.example.com");
    let change = json!({"spec": {"versionPriority": 50}});
    patch(&server, &path, "application/merge-patch+json", &change).await;
    assert_eq!(get(&server, &path).await.1["spec"], expected);
    delete(&server, &path, None).await;
    assert_eq!(get(&server, &path).await.1["spec"], expected);
    delete(&server, &format!("{definitions}/foos.example.com"), None).await;
    assert_eq!(get(&server, &path).await.0, 404);
}

#[tokio::test]
async fn built_in_group_without_its_object_is_served_but_not_listed() {
    let server = server();
    let (_, stored) = get(&server, &format!("{SERVICES}/v1.apps")).await;
    assert_eq!(stored["metadata"]["labels"], json!({"kube-aggregator.kubernetes.io/automanaged": "onstart"}));
    delete(&server, &format!("{SERVICES}/v1.apps"), None).await;
    assert_eq!(get(&server, &format!("{SERVICES}/v1.apps")).await.0, 404);
    assert!(!groups(&server).await.contains(&"apps".to_owned()));
    for path in ["/apis/apps", "/apis/apps/v1", "/apis/apps/v1/deployments"] {
        assert_eq!(get(&server, path).await.0, 200, "{path}");
    }
}

#[tokio::test]
async fn flow_schema_without_a_priority_level_is_dangling() {
    let server = server();
    let (_, list) = get(&server, &format!("{FLOWS}/flowschemas")).await;
    assert_eq!(list["items"].as_array().unwrap().len(), 11);
    let schema = json!({
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "FlowSchema", "metadata": {"name": "mine"},
        "spec": {"priorityLevelConfiguration": {"name": "nope"}, "matchingPrecedence": 5000},
    });
    assert_eq!(post(&server, &format!("{FLOWS}/flowschemas"), &schema).await.0, 201);
    let path = format!("{FLOWS}/flowschemas/mine");
    let begin = "This FlowSchema references the PriorityLevelConfiguration object named \"nope\"";
    let missing = format!("{begin} but there is no such object");
    let dangling = ["True", "NotFound", missing.as_str()];
    assert_eq!(condition(&get(&server, &path).await.1), dangling);
    let level = json!({
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "PriorityLevelConfiguration",
        "metadata": {"name": "nope"},
        "spec": {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}},
    });
    assert_eq!(post(&server, &format!("{FLOWS}/prioritylevelconfigurations"), &level).await.0, 201);
    let (_, stored) = get(&server, &path).await;
    assert_eq!(condition(&stored), ["False", "Found", &format!("{begin} and it exists")]);
    delete(&server, &format!("{FLOWS}/prioritylevelconfigurations/nope"), None).await;
    assert_eq!(condition(&get(&server, &path).await.1), dangling);
}

#[tokio::test]
async fn pages_about_the_server_are_text() {
    let server = server();
    let (code, page) = get(&server, "/statusz").await;
    let page = page.as_str().unwrap().to_owned();
    assert_eq!(code, 200);
    assert!(page.starts_with("\napiserver statusz\nWarning: This endpoint is not meant"), "{page}");
    assert!(
        page.contains("\nBinary version: 1.37.1\nEmulation version: 1.37\nPaths: /flagz /healthz "),
        "{page}"
    );
    let (_, page) = get(&server, "/flagz").await;
    assert!(page.as_str().unwrap().contains("\nsecure-port: 6443\n"), "{page}");
}
