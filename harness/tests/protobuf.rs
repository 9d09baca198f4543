//! Tests protobuf bodies without a socket.
//!
//! The expected texts are the responses of kube-apiserver 1.37.1 to the same requests, except for those about custom
//! resources, on which kube-apiserver panics.
#![expect(clippy::indexing_slicing, reason = "a wrong index fails the test")]
#![expect(clippy::unwrap_used, reason = "helpers of tests are not in a test function")]

use axum::body::Body;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use harness::attributes::UserInfo;
use harness::server::{ApiServer, Authentication, Options};
use http::{Method, Request};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const JSON: &str = "application/json";

/// Recorded requests of kubectl: the method, the path, the body, and the JSON that Go decodes from the body.
const RECORDED: &str = include_str!("../api-server/src/apimachinery/protobuf/recorded.jsonl");

fn server() -> ApiServer {
    ApiServer::new(Options::default())
}

async fn send(
    server: &ApiServer,
    method: Method,
    path: &str,
    content_type: &str,
    body: Vec<u8>,
) -> (u16, Value) {
    let request = Request::builder().method(method).uri(path).header("content-type", content_type);
    let request = request.header("accept", JSON).body(Body::from(body)).unwrap();
    let user = UserInfo {
        username: "admin".to_owned(),
        groups: vec!["system:masters".to_owned()],
        ..UserInfo::default()
    };
    let response = server.router(Authentication::Always(user)).oneshot(request).await.unwrap();
    assert_eq!(response.headers()["content-type"], "application/json");
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&body).unwrap())
}

fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut field = vec![number << 3 | 2, u8::try_from(bytes.len()).unwrap()];
    field.extend_from_slice(bytes);
    field
}

/// Returns a protobuf body for an object with `apiVersion` and `kind`.
fn body(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let type_meta = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
    [b"k8s\0".to_vec(), field(1, &type_meta), field(2, raw)].concat()
}

fn named(name: &str) -> Vec<u8> {
    field(1, &field(1, name.as_bytes()))
}

/// Removes the fields that differ between servers, such as UIDs and addresses.
fn without_identity(object: &Value) -> Value {
    // A Job's uid is also in labels.
    let uid = object["metadata"]["uid"].as_str().unwrap_or("none").to_owned();
    let mut object: Value = serde_json::from_str(&object.to_string().replace(&uid, "uid")).unwrap();
    if let Some(spec) = object["spec"].as_object_mut() {
        for field in ["clusterIP", "clusterIPs"] {
            spec.remove(field);
        }
    }
    if let Some(status) = object["status"].as_object_mut() {
        // Each server has its own key.
        status.remove("token");
        status.remove("expirationTimestamp");
    }
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for field in ["uid", "creationTimestamp", "resourceVersion"] {
            metadata.remove(field);
        }
        for entry in metadata.get_mut("managedFields").and_then(Value::as_array_mut).into_iter().flatten() {
            entry["time"] = "then".into();
        }
    }
    object
}

#[tokio::test]
async fn protobuf_and_json_objects_are_stored_alike() {
    let (one, other) = (server(), server());
    let mut created = 0;
    for line in RECORDED.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let Some(path) = case["name"].as_str().unwrap().strip_prefix("POST /") else { continue };
        let path = format!("/{path}");
        let body = STANDARD.decode(case["body"].as_str().unwrap()).unwrap();
        let (code, answer) = send(&one, Method::POST, &path, PROTOBUF, body).await;
        let expected = send(&other, Method::POST, &path, JSON, case["object"].to_string().into_bytes()).await;
        assert_eq!((code, without_identity(&answer)), (expected.0, without_identity(&expected.1)), "{path}");
        created += usize::from(code == 201);
    }
    assert_eq!(created, 18);
}

#[tokio::test]
async fn protobuf_objects_can_be_replaced_and_deleted() {
    let server = server();
    let path = "/api/v1/namespaces/default/configmaps";
    let (code, _) = send(&server, Method::POST, path, PROTOBUF, body("v1", "ConfigMap", &named("x"))).await;
    assert_eq!(code, 201);
    let entry = field(2, &[field(1, b"k"), field(2, b"v")].concat());
    let changed = body("v1", "ConfigMap", &[named("x"), entry].concat());
    let path = format!("{path}/x");
    let (code, answer) = send(&server, Method::PUT, &path, PROTOBUF, changed).await;
    assert_eq!((code, &answer["data"]), (200, &json!({"k": "v"})));

    let wrong = body("v1", "DeleteOptions", &field(4, b"Sideways"));
    let (code, answer) = send(&server, Method::DELETE, &path, PROTOBUF, wrong).await;
    assert_eq!((code, &answer["reason"]), (422, &json!("Invalid")), "{answer}");
    let options = body("v1", "DeleteOptions", &field(4, b"Background"));
    let (code, answer) = send(&server, Method::DELETE, &path, PROTOBUF, options).await;
    assert_eq!((code, &answer["status"]), (200, &json!("Success")));
}

#[tokio::test]
async fn mismatched_body_is_rejected() {
    let server = server();
    let check = async |method: Method, path: &str, body: Vec<u8>, expected_code: u16, message: &str| {
        let (code, answer) = send(&server, method, path, PROTOBUF, body).await;
        assert_eq!((code, answer["message"].as_str().unwrap()), (expected_code, message));
    };
    let path = "/api/v1/namespaces/default/configmaps";
    for (body, message) in [
        (Vec::new(), "the object provided is unrecognized (must be of type ConfigMap): empty data (<empty>)"),
        (
            b"{\"a\":1}".to_vec(),
            "the object provided is unrecognized (must be of type ConfigMap): provided data does not appear to be a \
             protobuf message, expected prefix [107 56 115 0] ({\"a\":1})",
        ),
        (
            b"k8s\0".to_vec(),
            "the object provided is unrecognized (must be of type ConfigMap): empty body (6b387300)",
        ),
        (
            body("v1", "ConfigMap", b"\x0a\x50a"),
            "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: unexpected EOF",
        ),
        (
            body("v1", "Nonsense", b""),
            "Nonsense in version \"v1\" cannot be handled as a ConfigMap: no kind \"Nonsense\" is registered for \
             version \"v1\" in scheme \"pkg/runtime/scheme.go:111\"",
        ),
        (
            body("v2", "ConfigMap", b""),
            "ConfigMap in version \"v2\" cannot be handled as a ConfigMap: no kind \"ConfigMap\" is registered for \
             version \"v2\" in scheme \"pkg/runtime/scheme.go:111\"",
        ),
    ] {
        check(Method::POST, path, body, 400, message).await;
    }
    let object = format!("{path}/x");
    let message =
        "no kind \"ConfigMap\" is registered for version \"v1\" in scheme \"pkg/runtime/scheme.go:111\"";
    check(Method::DELETE, &object, body("v1", "ConfigMap", b""), 400, message).await;
    let message = "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]";
    check(Method::DELETE, &object, b"garbage".to_vec(), 400, message).await;
    let message = "415: Unsupported Media Type";
    check(Method::PATCH, &object, body("v1", "ConfigMap", b""), 415, message).await;
}

#[tokio::test]
async fn custom_resources_do_not_support_protobuf() {
    let server = server();
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "ws.e.com"},
        "spec": {
            "group": "e.com", "scope": "Namespaced", "names": {"plural": "ws", "kind": "W"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}},
            }],
        },
    });
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let (code, answer) =
        send(&server, Method::POST, definitions, JSON, definition.to_string().into_bytes()).await;
    assert_eq!(code, 201, "{answer}");
    let path = "/apis/e.com/v1/namespaces/default/ws";
    let (code, answer) =
        send(&server, Method::POST, path, PROTOBUF, body("e.com/v1", "W", &named("x"))).await;
    let message = "the body of the request was in an unknown format - accepted media types include: \
                   application/json, application/yaml";
    assert_eq!((code, &answer["message"]), (415, &json!(message)));
    let options = body("v1", "DeleteOptions", b"");
    let (code, _) = send(&server, Method::DELETE, &format!("{path}/x"), PROTOBUF, options).await;
    assert_eq!(code, 404);
}
