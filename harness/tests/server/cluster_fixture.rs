//! Tests scales, custom resources, webhook configurations, audit events, discovery, and unsupported features.

use std::sync::{Arc, Mutex};

use axum::body::Body;
use harness::server::{ApiServer, Authentication, Options};
use http::{Method, Request};
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::client::*;

#[tokio::test]
async fn scale_reads_and_writes_replicas() {
    let server = server();
    let deployment = json!({
        "kind": "Deployment", "apiVersion": "apps/v1", "metadata": {"name": "d"},
        "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
        },
    });
    let path = "/apis/apps/v1/namespaces/default/deployments";
    let (code, created) = post(&server, path, &deployment).await;
    assert_eq!((code, &created["spec"]["replicas"], &created["status"]), (201, &json!(1), &json!({})));
    let path = format!("{path}/d/scale");
    let (_, scale) = get(&server, &path).await;
    assert_eq!(scale["kind"], "Scale");
    assert_eq!(
        (&scale["spec"], &scale["status"]),
        (&json!({"replicas": 1}), &json!({"replicas": 0, "selector": "a=b"}))
    );
    let wanted = json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": {"name": "d"}, "spec": {"replicas": 3},
    });
    let (code, scaled) = put(&server, &path, &wanted).await;
    assert_eq!((code, &scaled["spec"]), (200, &json!({"replicas": 3})));
    let (_, deployment) = get(&server, "/apis/apps/v1/namespaces/default/deployments/d").await;
    assert_eq!(
        (&deployment["spec"]["replicas"], &deployment["metadata"]["generation"]),
        (&json!(3), &json!(2))
    );
}

fn widgets() -> Value {
    let schema = json!({
        "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    });
    json!({
        "kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [
                {"name": "v1", "served": true, "storage": true, "subresources": {"status": {}}, "schema": schema},
                {"name": "v1beta1", "served": true, "storage": false, "schema": schema},
                {"name": "v1alpha1", "served": false, "storage": false, "schema": schema},
            ],
        },
    })
}

#[tokio::test]
async fn custom_resource_is_served_immediately_in_its_served_versions() {
    let server = server();
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let (code, created) = post(&server, definitions, &widgets()).await;
    assert_eq!(code, 201, "{created}");
    let (_, stored) = get(&server, &format!("{definitions}/widgets.example.com")).await;
    assert_eq!(stored["status"]["acceptedNames"]["listKind"], "WidgetList");
    let (_, document) = get(&server, "/apis/example.com/v1").await;
    assert_eq!(document["resources"][0]["name"], "widgets");
    let path = |version: &str| format!("/apis/example.com/{version}/namespaces/default/widgets");
    let widget = json!({
        "kind": "Widget", "apiVersion": "example.com/v1", "metadata": {"name": "w"}, "spec": {"size": 1}, "status": {"x": 1},
    });
    let (code, created) = post(&server, &path("v1"), &widget).await;
    assert_eq!((code, created.get("status"), &created["metadata"]["generation"]), (201, None, &json!(1)));
    let (_, beta) = get(&server, &format!("{}/w", path("v1beta1"))).await;
    assert_eq!((&beta["apiVersion"], &beta["spec"]), (&json!("example.com/v1beta1"), &json!({"size": 1})));
    assert_eq!(get(&server, &path("v1alpha1")).await.0, 404);

    let without_version = put(&server, &format!("{}/w", path("v1")), &widget).await;
    check(
        without_version,
        422,
        "Invalid",
        "widgets.example.com \"w\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an \
         update",
    );
    let body = json!({"spec": {"size": 2}, "status": {"x": 2}});
    let (_, changed) = patch(&server, &format!("{}/w/status", path("v1")), MERGE_PATCH, &body).await;
    assert_eq!(
        (&changed["spec"], &changed["status"], &changed["metadata"]["generation"]),
        (&json!({"size": 1}), &json!({"x": 2}), &json!(1))
    );
    assert_eq!(delete(&server, &format!("{definitions}/widgets.example.com"), None).await.0, 200);
    assert_eq!(get(&server, &path("v1")).await, (404, json!("404 page not found\n")));
    post(&server, definitions, &widgets()).await;
    assert_eq!(get(&server, &path("v1")).await.1["items"], json!([]));
}

#[tokio::test]
async fn unsupported_features_return_501() {
    let server = with_config_map().await;
    let mut definition = widgets();
    let version = definition["spec"]["versions"][0].as_object_mut().unwrap();
    version.insert("selectableFields".to_owned(), json!([{"jsonPath": ".spec.size"}]));
    version["schema"]["openAPIV3Schema"]["properties"] =
        json!({"spec": {"type": "object", "properties": {"size": {"type": "string"}}}});
    definition["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": {
        "conversionReviewVersions": ["v1"], "clientConfig": {"url": "https://127.0.0.1:1/"},
    }});
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let (code, created) = post(&server, definitions, &definition).await;
    assert_eq!(code, 201, "{created}");
    let watch = "/apis/example.com/v1/namespaces/default/widgets?watch=1&fieldSelector=spec.size%3D1";
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"},
        "type": "kubernetes.io/dockercfg", "data": {".dockercfg": "eA=="},
    });
    let secrets = "/api/v1/namespaces/default/secrets";
    let answers = [post(&server, secrets, &secret).await, get(&server, watch).await];
    for (code, answer) in answers {
        assert_eq!((code, &answer["reason"]), (501, &json!("NotImplemented")), "{answer}");
    }
    let (path, apply) = (format!("{CONFIG_MAPS}/a?fieldManager=me"), "application/apply-patch+cbor");
    let (code, answer) = patch(&server, &path, apply, &json!({})).await;
    assert_eq!((code, &answer["reason"]), (415, &json!("UnsupportedMediaType")));
}

#[tokio::test]
async fn webhook_configuration_takes_effect_immediately() {
    let server = server();
    let configurations = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    let configuration = json!({
        "kind": "ValidatingWebhookConfiguration", "apiVersion": "admissionregistration.k8s.io/v1",
        "metadata": {"name": "v"},
        "webhooks": [{
            "name": "deny.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": {"service": {"name": "nobody", "namespace": "default"}},
            "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}],
        }],
    });
    let (code, created) = post(&server, configurations, &configuration).await;
    assert_eq!((code, &created["webhooks"][0]["timeoutSeconds"]), (201, &json!(10)));
    check(
        post(&server, CONFIG_MAPS, &config_map("a")).await,
        500,
        "InternalError",
        "Internal error occurred: failed calling webhook \"deny.example.com\": failed to call webhook: Post \
         \"https://nobody.default.svc:443/?timeout=10s\": service \"nobody\" not found",
    );
    assert_eq!(delete(&server, &format!("{configurations}/v"), None).await.0, 200);
    assert_eq!(post(&server, CONFIG_MAPS, &config_map("a")).await.0, 201);
}

#[tokio::test]
async fn each_request_is_audited() {
    let events = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&events);
    let audit = Arc::new(move |event: &Value| sink.lock().unwrap().push(event.clone()));
    let server = ApiServer::new(Options { audit: Some(audit), ..Options::default() });
    let body = config_map("a").to_string();
    let response = respond(&server, &Method::POST, CONFIG_MAPS, "application/json", body).await;
    let events = events.lock().unwrap();
    let [event] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!(response.headers()["audit-id"], event["auditID"].as_str().unwrap());
    assert_eq!((&event["verb"], &event["responseStatus"]["code"]), (&json!("create"), &json!(201)));
    assert_eq!(
        event["objectRef"],
        json!({"resource": "configmaps", "namespace": "default", "name": "a", "apiVersion": "v1"})
    );
    assert_eq!(event["requestObject"]["data"], json!({"k": "v"}));
}

#[tokio::test]
async fn kubectl_discovery_is_served() {
    let server = server();
    let router = server.router(Authentication::Always(administrator()));
    let aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let accept = format!("{aggregated},application/json");
    let request = Request::get("/apis").header("accept", accept).body(Body::empty()).unwrap();
    let response = router.oneshot(request).await.unwrap();
    assert_eq!(response.headers()["content-type"], aggregated);
    let (_, groups) = get(&server, "/apis").await;
    assert_eq!(groups["groups"][1]["preferredVersion"], json!({"groupVersion": "apps/v1", "version": "v1"}));
    let (_, core) = get(&server, "/api/v1").await;
    let eviction =
        core["resources"].as_array().unwrap().iter().find(|r| r["name"] == "pods/eviction").unwrap();
    assert_eq!((&eviction["group"], &eviction["kind"]), (&json!("policy"), &json!("Eviction")));
}

#[tokio::test]
async fn access_review_is_not_stored() {
    let server = server();
    let review = json!({"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}});
    let (code, answer) =
        post(&server, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", &review).await;
    assert_eq!((code, &answer["status"]), (201, &json!({"allowed": true})));
    let (code, answer) = post(&server, "/apis/authentication.k8s.io/v1/selfsubjectreviews", &json!({})).await;
    assert_eq!((code, &answer["status"]["userInfo"]["username"]), (201, &json!("admin")));
}

#[tokio::test]
async fn rules_of_items_in_a_schema_that_is_not_a_list_cannot_be_compiled() {
    let server = server();
    let definition = |backend: Value| {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "ts.example.com"},
            "spec": {
                "group": "example.com", "scope": "Cluster", "names": {"plural": "ts", "kind": "T"},
                "versions": [{
                    "name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"backend": backend}}},
                }],
            },
        })
    };
    let items = json!({
        "type": "object", "properties": {"replicas": {"type": "integer"}},
        "x-kubernetes-validations": [{"rule": "self.replicas >= 2"}],
    });
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let of_list = definition(json!({"type": "array", "maxItems": 10, "items": items}));
    assert_eq!(post(&server, definitions, &of_list).await.0, 201);
    let object = json!({
        "apiVersion": "example.com/v1", "kind": "T", "metadata": {"name": "x"}, "backend": [{"replicas": 8}],
    });
    assert_eq!(post(&server, "/apis/example.com/v1/ts", &object).await.0, 201);
    let path = format!("{definitions}/ts.example.com");
    let (_, stored) = get(&server, &path).await;
    let mut of_object = definition(json!({"type": "object", "items": items}));
    of_object["metadata"]["resourceVersion"] = stored["metadata"]["resourceVersion"].clone();
    assert_eq!(put(&server, &path, &of_object).await.0, 200);
    let change = json!({"metadata": {"labels": {"a": "b"}}});
    let merge = "application/merge-patch+json";
    let why = "T.example.com \"x\" is invalid: backend[0]: Invalid value: \"object\": rule compiler initialization \
               error: failed to convert to declType for CEL validation rules";
    check(patch(&server, "/apis/example.com/v1/ts/x", merge, &change).await, 422, "Invalid", why);
}
