//! Tests the API server with arbitrary requests and with concurrent requests.
#![expect(clippy::indexing_slicing, reason = "a wrong index fails the test")]
#![expect(clippy::unwrap_used, reason = "helpers of tests are not in a test function")]

use std::collections::BTreeSet;

use axum::body::Body;
use harness::attributes::UserInfo;
use harness::server::{ApiServer, Authentication, Options};
use http::{Method, Request};
use http_body_util::BodyExt as _;
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tower::ServiceExt as _;

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const MERGE_PATCH: &str = "application/merge-patch+json";

async fn send(
    server: &ApiServer,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: Vec<u8>,
) -> Option<(u16, Vec<u8>)> {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    // Anything other than an HTTP request does not reach the server.
    let request = request.body(Body::from(body)).ok()?;
    let user = UserInfo { groups: vec!["system:masters".to_owned()], ..UserInfo::default() };
    let router = server.router(Authentication::Always(user));
    let response = router.oneshot(request).await.unwrap();
    let code = response.status().as_u16();
    Some((code, response.into_body().collect().await.unwrap().to_bytes().to_vec()))
}

async fn send_json(server: &ApiServer, method: Method, path: &str, body: &Value) -> (u16, Value) {
    let content_type = if method == Method::PATCH { MERGE_PATCH } else { "application/json" };
    let body = body.to_string().into_bytes();
    let (code, answer) = send(server, method, path, &[("content-type", content_type)], body).await.unwrap();
    (code, serde_json::from_slice(&answer).unwrap())
}

fn config_map(name: &str) -> Value {
    json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}, "data": {}})
}

/// Generates URL paths from valid and invalid segments.
fn path() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "api",
        "apis",
        "v1",
        "apps",
        "namespaces",
        "default",
        "configmaps",
        "pods",
        "deployments",
        "a",
        "status",
        "scale",
        "exec",
        "proxy",
        "eviction",
        "binding",
        "watch",
        "x",
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        "admissionregistration.k8s.io",
        "mutatingwebhookconfigurations",
        "%2F",
        "%",
        "%ff",
        "",
        "..",
    ]);
    let segment = prop_oneof![9 => known.prop_map(str::to_owned), 1 => "[!-~]{0,6}"];
    let query = prop_oneof![
        3 => Just(String::new()),
        1 => "(dryRun|timeout|limit|labelSelector|fieldSelector|watch|fieldValidation|gracePeriodSeconds|\
              propagationPolicy|force|continue)=[ -~]{0,8}",
        1 => "[ -~]{0,12}",
    ];
    (prop::collection::vec(segment, 0..8), query).prop_map(|(segments, query)| {
        let query = query.replace(' ', "+");
        format!("/{}{}{query}", segments.join("/"), if query.is_empty() { "" } else { "?" })
    })
}

/// Generates JSON with the members that the server reads. The members have values of any type.
fn document() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[ -~é]{0,8}".prop_map(Value::from),
        prop::sample::select(vec!["v1", "apps/v1", "ConfigMap", "Pod", "Deployment", "default", "a", "All"])
            .prop_map(Value::from),
    ];
    let key = prop::sample::select(vec![
        "apiVersion",
        "kind",
        "metadata",
        "name",
        "generateName",
        "namespace",
        "labels",
        "annotations",
        "finalizers",
        "ownerReferences",
        "uid",
        "resourceVersion",
        "generation",
        "deletionTimestamp",
        "spec",
        "status",
        "phase",
        "containers",
        "resources",
        "limits",
        "requests",
        "cpu",
        "template",
        "selector",
        "matchLabels",
        "replicas",
        "webhooks",
        "clientConfig",
        "rules",
        "versions",
        "names",
        "schema",
        "subresources",
        "scale",
        "group",
        "data",
        "target",
        "op",
        "path",
        "value",
        "preconditions",
        "propagationPolicy",
    ]);
    leaf.prop_recursive(5, 48, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key.clone().prop_map(str::to_owned), inner, 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn headers() -> impl Strategy<Value = Vec<(&'static str, String)>> {
    let header = prop_oneof![
        4 => prop::sample::select(vec![
            "application/json", MERGE_PATCH, "application/json-patch+json", "application/yaml",
            "application/vnd.kubernetes.protobuf", "application/strategic-merge-patch+json",
        ])
        .prop_map(|value| ("content-type", value.to_owned())),
        1 => (
            prop::sample::select(vec![
                "accept", "audit-id", "impersonate-user", "impersonate-group", "impersonate-extra-a%zz",
                "impersonate-uid", "user-agent", "x-forwarded-for", "authorization", "content-type",
            ]),
            "[ -~]{0,20}",
        ),
    ];
    prop::collection::vec(header, 0..3)
}

/// Returns whether a Kubernetes client can decode the response.
fn is_understood(code: u16, body: &[u8]) -> bool {
    if code < 400 {
        return true;
    }
    let status = serde_json::from_slice::<Value>(body);
    body == b"404 page not found\n"
        || status.is_ok_and(|status| status["kind"] == "Status" && status["code"] == code)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_request_gets_a_valid_response(
        requests in prop::collection::vec((
            prop::sample::select(vec!["GET", "POST", "PUT", "PATCH", "DELETE", "FOO"]),
            path(),
            headers(),
            prop_oneof![
                4 => document().prop_map(|document| document.to_string().into_bytes()),
                1 => prop::collection::vec(any::<u8>(), 0..40),
            ],
        ), 1..4),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let server = ApiServer::new(Options::default());
            // A response that lasts half an hour is not a failure.
            server.end_watches();
            send_json(&server, Method::POST, CONFIG_MAPS, &config_map("a")).await;
            for (method, path, headers, body) in requests {
                let pairs: Vec<(&str, &str)> =
                    headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
                let told = format!("{method} {path} {pairs:?} {}", String::from_utf8_lossy(&body));
                if let Some((code, answer)) =
                    send(&server, method.parse().unwrap(), &path, &pairs, body).await
                {
                    let text = String::from_utf8_lossy(&answer);
                    assert!(is_understood(code, &answer), "{told}: {code} {text}");
                }
            }
        });
    }

    #[test]
    fn any_object_can_be_sent_to_any_collection(
        document in document(),
        path in prop::sample::select(vec![
            CONFIG_MAPS,
            "/api/v1/namespaces",
            "/api/v1/namespaces/default/pods",
            "/api/v1/namespaces/default/services",
            "/api/v1/namespaces/default/limitranges",
            "/apis/apps/v1/namespaces/default/deployments",
            "/apis/apps/v1/namespaces/default/daemonsets",
            "/apis/batch/v1/namespaces/default/cronjobs",
            "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers",
            "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        ]),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let server = ApiServer::new(Options::default());
            // A response that lasts half an hour is not a failure.
            server.end_watches();
            let mut object = json!({"metadata": {"name": "a"}});
            if let (Some(object), Value::Object(members)) = (object.as_object_mut(), document) {
                object.extend(members.into_iter().filter(|(key, _)| key != "kind" && key != "apiVersion"));
            }
            let body = object.to_string().into_bytes();
            let pairs = [("content-type", "application/json")];
            let (code, answer) = send(&server, Method::POST, path, &pairs, body).await.unwrap();
            assert!(is_understood(code, &answer), "{object}: {code} {}", String::from_utf8_lossy(&answer));
        });
    }
}

/// Checks that no update is lost when many writers read an object and then increment a counter in it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_update_is_lost() {
    const WRITERS: u64 = 8;
    const EACH: u64 = 25;
    let server = ApiServer::new(Options::default());
    send_json(&server, Method::POST, CONFIG_MAPS, &config_map("a")).await;
    let path = format!("{CONFIG_MAPS}/a");
    let version =
        |object: &Value| -> u64 { object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap() };
    let created = version(&send_json(&server, Method::GET, &path, &Value::Null).await.1);
    let mut writers = JoinSet::new();
    for _ in 0..WRITERS {
        let (server, path) = (server.clone(), path.clone());
        writers.spawn(async move {
            let mut written = 0;
            while written < EACH {
                let (_, mut object) = send_json(&server, Method::GET, &path, &Value::Null).await;
                let count: u64 = object["data"]["count"].as_str().unwrap_or("0").parse().unwrap();
                object["data"]["count"] = (count + 1).to_string().into();
                match send_json(&server, Method::PUT, &path, &object).await.0 {
                    200 => written += 1,
                    code => assert_eq!(code, 409),
                }
            }
        });
    }
    while let Some(writer) = writers.join_next().await {
        writer.unwrap();
    }
    let (_, object) = send_json(&server, Method::GET, &path, &Value::Null).await;
    assert_eq!(object["data"]["count"], (WRITERS * EACH).to_string());
    // One version for each write.
    assert_eq!(version(&object), created + WRITERS * EACH);
}

/// Checks that the server retries patches without a resource version instead of losing them.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_patches_are_applied_or_conflict() {
    let server = ApiServer::new(Options::default());
    send_json(&server, Method::POST, CONFIG_MAPS, &config_map("a")).await;
    let path = format!("{CONFIG_MAPS}/a");
    let mut writers = JoinSet::new();
    for index in 0..40 {
        let (server, path) = (server.clone(), path.clone());
        writers.spawn(async move {
            let key = format!("k{index}");
            let (code, _) =
                send_json(&server, Method::PATCH, &path, &json!({"data": {key.as_str(): "v"}})).await;
            (key, code)
        });
    }
    let mut written = BTreeSet::new();
    while let Some(writer) = writers.join_next().await {
        match writer.unwrap() {
            (key, 200) => assert!(written.insert(key)),
            (_, code) => assert_eq!(code, 409),
        }
    }
    let (_, object) = send_json(&server, Method::GET, &path, &Value::Null).await;
    let stored: BTreeSet<String> = object["data"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(stored, written);
}

/// Checks that exactly one of several concurrent creations, or deletions, of one object succeeds.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_creates_and_deletes_succeed_once() {
    let server = ApiServer::new(Options::default());
    for round in 0..10 {
        for (method, taken, done) in [(Method::POST, 409, 201), (Method::DELETE, 404, 200)] {
            let mut requests = JoinSet::new();
            for _ in 0..8 {
                let (server, method) = (server.clone(), method.clone());
                requests.spawn(async move {
                    if method == Method::POST {
                        send_json(&server, method, CONFIG_MAPS, &config_map("a")).await.0
                    } else {
                        let path = format!("{CONFIG_MAPS}/a");
                        send(&server, method, &path, &[], Vec::new()).await.unwrap().0
                    }
                });
            }
            let codes = requests.join_all().await;
            assert_eq!(codes.iter().filter(|code| **code == done).count(), 1, "{round} {codes:?}");
            // A concurrent deletion may return a conflict.
            assert!(codes.iter().all(|code| [done, taken, 409].contains(code)), "{round} {codes:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn generated_names_are_unique() {
    let server = ApiServer::new(Options::default());
    let mut requests = JoinSet::new();
    for _ in 0..300 {
        let server = server.clone();
        requests.spawn(async move {
            let object = json!({"metadata": {"generateName": "gen-"}});
            let (code, created) = send_json(&server, Method::POST, CONFIG_MAPS, &object).await;
            assert_eq!(code, 201, "{created}");
            created["metadata"]["name"].as_str().unwrap().to_owned()
        });
    }
    let names: BTreeSet<String> = requests.join_all().await.into_iter().collect();
    assert_eq!(names.len(), 300);
    for name in names {
        assert!(name.strip_prefix("gen-").is_some_and(|suffix| suffix.len() == 5), "{name}");
    }
}
