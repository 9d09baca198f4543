//! Tests the API server with requests of the maximum size.
//!
//! The processing time is linear in the size of the requests, and the server answers other requests in the meantime.
#![expect(clippy::indexing_slicing, reason = "a wrong index fails the test")]
#![expect(clippy::unwrap_used, reason = "helpers of tests are not in a test function")]

use std::time::Duration;

use axum::body::Body;
use harness::attributes::UserInfo;
use harness::server::{ApiServer, Authentication, Options};
use http::{Method, Request};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
/// The maximum time to wait for a response.
///
/// With quadratic algorithms, these requests took many minutes. With the current ones, they take seconds in a debug
/// build on a busy machine.
const LONG: Duration = Duration::from_secs(120);

struct Answer {
    code: u16,
    warnings: Vec<String>,
    body: Value,
}

async fn send(server: &ApiServer, method: Method, path: &str, content_type: &str, body: &Value) -> Answer {
    send_text(server, method, path, content_type, body.to_string()).await
}

async fn send_text(
    server: &ApiServer,
    method: Method,
    path: &str,
    content_type: &str,
    body: String,
) -> Answer {
    let request = Request::builder().method(method).uri(path).header("content-type", content_type);
    let request = request.body(Body::from(body)).unwrap();
    let user = UserInfo { groups: vec!["system:masters".to_owned()], ..UserInfo::default() };
    let answer = server.router(Authentication::Always(user)).oneshot(request);
    let response = tokio::time::timeout(LONG, answer).await.unwrap().unwrap();
    let warnings = response.headers().get_all("warning").iter();
    let warnings = warnings.map(|warning| warning.to_str().unwrap().to_owned()).collect();
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    Answer { code, warnings, body: serde_json::from_slice(&body).unwrap_or_default() }
}

async fn create(server: &ApiServer, path: &str, object: &Value) -> Answer {
    send(server, Method::POST, path, "application/json", object).await
}

fn config_map(metadata: &Value) -> Value {
    let mut object = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata});
    object["metadata"]["name"] = "a".into();
    object
}

fn owner(uid: usize) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": uid.to_string()})
}

#[tokio::test]
async fn other_requests_are_answered_during_a_large_one() {
    let server = ApiServer::new(Options::default());
    let large = config_map(&json!({"ownerReferences": (0..30_000).map(owner).collect::<Vec<_>>()}));
    tokio::select! {
        // It starts first; on this single-threaded runtime it would otherwise finish first.
        biased;
        _ = create(&server, CONFIG_MAPS, &large) => panic!("the large request kept the other one waiting"),
        healthy = send(&server, Method::GET, "/healthz", "application/json", &Value::Null) => {
            assert_eq!(healthy.code, 200);
        }
    }
}

#[tokio::test]
async fn owner_references_are_compared_in_linear_time() {
    let server = ApiServer::new(Options::default());
    let owners: Vec<Value> = (0..30_000).map(owner).chain([owner(7)]).collect();
    let created = create(&server, CONFIG_MAPS, &config_map(&json!({"ownerReferences": owners}))).await;
    assert_eq!((created.code, created.warnings.len()), (201, 1));
    assert!(created.warnings[0].ends_with("duplicate UID(s) observed: 7\""), "{:?}", created.warnings);
    let kept = created.body["metadata"]["ownerReferences"].as_array().unwrap();
    assert_eq!(kept.len(), 30_000);

    let nameless = vec![json!({}); 20_000];
    let refused = create(&server, CONFIG_MAPS, &config_map(&json!({"ownerReferences": nameless[..1]}))).await;
    assert_eq!((refused.code, refused.body["details"]["causes"].as_array().unwrap().len()), (422, 4));
    let numbered: Vec<Value> = (0..20_000).map(|number| json!({"uid": number.to_string()})).collect();
    let refused = create(&server, CONFIG_MAPS, &config_map(&json!({"ownerReferences": numbered}))).await;
    assert_eq!((refused.code, refused.body["details"]["causes"].as_array().unwrap().len()), (422, 60_000));
}

#[tokio::test]
async fn number_of_errors_is_limited() {
    let server = ApiServer::new(Options::default());
    let refused = create(&server, CONFIG_MAPS, &config_map(&json!({"finalizers": vec![""; 900_000]}))).await;
    assert_eq!((refused.code, refused.body["reason"].as_str().unwrap()), (501, "NotImplemented"));
    assert_eq!(refused.body["message"], "admit does not support this: objects with more than 100000 errors");
}

#[tokio::test]
async fn webhooks_are_compared_in_linear_time() {
    let server = ApiServer::new(Options::default());
    let configuration = |field: &str, value: Value| {
        let mut webhook = json!({
            "name": "w.example.com",
            "clientConfig": {"url": "https://127.0.0.1/"},
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        });
        webhook[field] = value;
        json!({"kind": "ValidatingWebhookConfiguration", "apiVersion": "admissionregistration.k8s.io/v1",
            "metadata": {"name": "c"}, "webhooks": [webhook]})
    };
    let versions: Vec<String> = (0..90_000).map(|number| format!("v{number}")).collect();
    let versions = configuration("admissionReviewVersions", versions.into());
    assert_eq!(create(&server, CONFIGURATIONS, &versions).await.code, 201);

    let names = |name: &'static str| vec![name; 50_000];
    let rule = json!({"operations": ["CREATE"], "apiVersions": ["*"],
        "apiGroups": names("authentication.k8s.io"), "resources": names("tokenreviews")});
    let mut rules = configuration("rules", json!([rule]));
    rules["metadata"]["name"] = "d".into();
    let created = create(&server, CONFIGURATIONS, &rules).await;
    assert_eq!(created.code, 201);
    assert_eq!(
        created.warnings,
        [
            "299 - \"webhooks[0].rules[0]: tokenreviews.authentication.k8s.io is excluded from admission webhooks; this rule \
          will have no effect\""
        ]
    );
}

#[tokio::test]
async fn unknown_field_warnings_are_limited() {
    let server = ApiServer::new(Options::default());
    let mut object = config_map(&json!({}));
    for number in 0..200 {
        object[format!("x{number:03}")] = 1.into();
    }
    let created = create(&server, CONFIG_MAPS, &object).await;
    assert_eq!((created.code, created.warnings.len()), (201, 100));
}

#[tokio::test]
async fn strategic_merge_patch_takes_linear_time() {
    let server = ApiServer::new(Options::default());
    let finalizers: Vec<String> = (0..100_000).map(|number| format!("a/{number}")).collect();
    let object = config_map(&json!({"finalizers": finalizers}));
    assert_eq!(create(&server, CONFIG_MAPS, &object).await.code, 201);
    let one = format!("{CONFIG_MAPS}/a");
    let more: Vec<String> = (50_000..150_000).map(|number| format!("a/{number}")).collect();
    let patch = json!({"metadata": {"finalizers": more}});
    let patched = send(&server, Method::PATCH, &one, STRATEGIC, &patch).await;
    assert_eq!(
        (patched.code, patched.body["metadata"]["finalizers"].as_array().unwrap().len()),
        (200, 150_000)
    );
    let patch = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": more}});
    let patched = send(&server, Method::PATCH, &one, STRATEGIC, &patch).await;
    assert_eq!(
        (patched.code, patched.body["metadata"]["finalizers"].as_array().unwrap().len()),
        (200, 50_000)
    );

    let owners: Vec<Value> = (0..20_000).map(owner).collect();
    let patch = json!({"metadata": {"ownerReferences": owners}});
    let patched = send(&server, Method::PATCH, &one, STRATEGIC, &patch).await;
    assert_eq!(
        (patched.code, patched.body["metadata"]["ownerReferences"].as_array().unwrap().len()),
        (200, 20_000)
    );
    let gone: Vec<Value> =
        (0..20_000).map(|uid| json!({"$patch": "delete", "uid": uid.to_string()})).collect();
    let patch = json!({"metadata": {"ownerReferences": gone}});
    let patched = send(&server, Method::PATCH, &one, STRATEGIC, &patch).await;
    assert_eq!((patched.code, &patched.body["metadata"]["ownerReferences"]), (200, &Value::Null));
}

#[tokio::test]
async fn deeply_nested_body_is_rejected() {
    let server = ApiServer::new(Options::default());
    assert_eq!(create(&server, CONFIG_MAPS, &config_map(&json!({}))).await.code, 201);
    let one = format!("{CONFIG_MAPS}/a");
    let deep = |open: &str| open.repeat(100_000);
    let posted = ["application/json", "application/yaml"];
    let patched = ["application/merge-patch+json", "application/json-patch+json", STRATEGIC];
    for open in ["[", "{\"a\":", "{a: [", "- ", "["] {
        for content_type in posted {
            assert_eq!(
                send_text(&server, Method::POST, CONFIG_MAPS, content_type, deep(open)).await.code,
                400
            );
        }
        for content_type in patched {
            assert_eq!(send_text(&server, Method::PATCH, &one, content_type, deep(open)).await.code, 400);
        }
    }
    for selector in ["labelSelector", "fieldSelector"] {
        let path = format!("{CONFIG_MAPS}?{selector}={}", "(".repeat(60_000));
        assert_eq!(send_text(&server, Method::GET, &path, "", String::new()).await.code, 400, "{selector}");
    }
    let claim = |quantity: String| {
        json!({"kind": "PersistentVolumeClaim", "apiVersion": "v1", "metadata": {"name": "a"}, "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": quantity}}}})
    };
    let claims = "/api/v1/namespaces/default/persistentvolumeclaims";
    assert_eq!(create(&server, claims, &claim("-".repeat(100_000))).await.code, 400);
    for quantity in ["1".repeat(2_000_000), format!("1{}", "0".repeat(2_000_000))] {
        // A quantity that cannot be parsed is stored unchanged.
        assert!([201, 409].contains(&create(&server, claims, &claim(quantity)).await.code));
    }
}
