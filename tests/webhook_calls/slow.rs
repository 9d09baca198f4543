//! Tests calls that take longer than 500 ms: admit and kube-apiserver log the same spans and steps of the request.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use admit_testing::envtest::{Envtest, Settings};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fake_webhooks::{Fake, FakeWebhook};
use http_body_util::BodyExt as _;
use kube::client::Body;
use regex::Regex;
use serde_json::{Value, json};

use super::machine;
use crate::helpers::serve::Serve;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const TIMEOUT: Duration = Duration::from_secs(20);

/// The log of kube-apiserver 1.37.1 with `-v=4` for each request.
///
/// The log does not contain variable values, nor the spans of the storage and of the encoding of responses.
/// `services/proxy` does not have a span, so each of its calls is logged separately.
const EXPECTED: &str = r#"
"Create" accept:application/json,audit-id:create,client:127.0.0.1,api-group:,api-version:v1,name:,subresource:,namespace:default,protocol:HTTP,resource:configmaps,scope:resource,url:/api/v1/namespaces/default/configmaps,user-agent:test,verb:POST
---"limitedReadBody succeeded" len:65
---"About to convert to expected version"
---"Conversion done"
---"About to store object in database"
["Call mutating webhook" configuration:changes,webhook:changes.example.com,resource:/v1, Resource=configmaps,subresource:,operation:CREATE,UID:…
 ---"Request completed"
 ---"Patch applied"
["Call validating webhook" configuration:looks,webhook:looks.example.com,resource:/v1, Resource=configmaps,subresource:,operation:CREATE,UID:…
 ---"Request completed"
---"Write to database call succeeded" len:65
---"About to write a response"
---"Writing http response done"

"Update" accept:application/json,audit-id:update,client:127.0.0.1,api-group:,api-version:v1,name:slow,subresource:,namespace:default,protocol:HTTP,resource:configmaps,scope:resource,url:/api/v1/namespaces/default/configmaps/slow,user-agent:test,verb:PUT
---"limitedReadBody succeeded" len:82
---"About to convert to expected version"
---"Conversion done"
---"About to store object in database"
["Call mutating webhook" configuration:changes,webhook:changes.example.com,resource:/v1, Resource=configmaps,subresource:,operation:UPDATE,UID:…
 ---"Request completed"
 ---"Patch applied"
["Call validating webhook" configuration:looks,webhook:looks.example.com,resource:/v1, Resource=configmaps,subresource:,operation:UPDATE,UID:…
 ---"Request completed"
---"Write to database call succeeded" len:82
---"About to write a response"
---"Writing http response done"

"Patch" accept:application/json,audit-id:patch,client:127.0.0.1,api-group:,api-version:v1,name:slow,subresource:,namespace:default,protocol:HTTP,resource:configmaps,scope:resource,url:/api/v1/namespaces/default/configmaps/slow,user-agent:test,verb:PATCH
---"limitedReadBody succeeded" len:19
---"Recorded the audit event"
---"About to apply patch"
---"About to check admission control"
["Call mutating webhook" configuration:changes,webhook:changes.example.com,resource:/v1, Resource=configmaps,subresource:,operation:UPDATE,UID:…
 ---"Request completed"
 ---"Patch applied"
["Call validating webhook" configuration:looks,webhook:looks.example.com,resource:/v1, Resource=configmaps,subresource:,operation:UPDATE,UID:…
 ---"Request completed"
---"Object stored in database"
---"About to write a response"
---"Writing http response done"

"Create" accept:application/json,audit-id:denied,client:127.0.0.1,api-group:,api-version:v1,name:,subresource:,namespace:default,protocol:HTTP,resource:configmaps,scope:resource,url:/api/v1/namespaces/default/configmaps,user-agent:test,verb:POST
---"limitedReadBody succeeded" len:90
---"About to convert to expected version"
---"Conversion done"
---"About to store object in database"
["Call mutating webhook" configuration:changes,webhook:changes.example.com,resource:/v1, Resource=configmaps,subresource:,operation:CREATE,UID:…
 ---"Request completed"
 ---"Patch applied"
["Call validating webhook" configuration:looks,webhook:looks.example.com,resource:/v1, Resource=configmaps,subresource:,operation:CREATE,UID:…
 ---"Request completed"
---"Write to database call failed" len:90,err:admission webhook "looks.example.com" denied the request: no

"Call mutating webhook" configuration:changes,webhook:changes.example.com,resource:/v1, Resource=services,subresource:proxy,operation:CONNECT,UID:…
---"Request completed"
---"Patch applied"

"Call validating webhook" configuration:looks,webhook:looks.example.com,resource:/v1, Resource=services,subresource:proxy,operation:CONNECT,UID:…
---"Request completed"

"Delete" accept:application/json,audit-id:delete,client:127.0.0.1,api-group:,api-version:v1,name:slow,subresource:,namespace:default,protocol:HTTP,resource:configmaps,scope:resource,url:/api/v1/namespaces/default/configmaps/slow,user-agent:test,verb:DELETE
---"limitedReadBody succeeded" len:0
---"About to delete object from database"
["Call validating webhook" configuration:looks,webhook:looks.example.com,resource:/v1, Resource=configmaps,subresource:,operation:DELETE,UID:…
 ---"Request completed"
---"Object deleted from database"
---"About to write a response"
---"Writing http response done"
"#;

/// Returns the lines of [`EXPECTED`] that a server always logs at this verbosity.
fn with_detail(verbosity: &str) -> Vec<String> {
    let is_told = |line: &&str| verbosity == "4" || is_always_told(line);
    let request = |request: &str| request.lines().filter(is_told).collect::<Vec<_>>().join("\n");
    EXPECTED.trim().split("\n\n").map(request).collect()
}

fn is_always_told(line: &str) -> bool {
    !line.trim_start().starts_with("---") || line.contains("---\"Request completed\"")
}

/// Sends a request with this `Audit-ID`. Returns the status code and the body of the response.
async fn send(client: &kube::Client, method: &str, path: &str, audit_id: &str, body: &Value) -> (u16, Value) {
    let content_type = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let request = http::Request::builder().method(method).uri(path).header("Audit-ID", audit_id);
    let request = request
        .header("Accept", "application/json")
        .header("User-Agent", "test")
        .header("Content-Type", content_type)
        .body(Body::from(body));
    let response = client.send(request.unwrap()).await.unwrap();
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&body).unwrap_or_default())
}

/// Waits until the server's cache contains the object. A write that begins with an older object runs twice.
async fn cached(client: &kube::Client, object: &Value) {
    let version = object.pointer("/metadata/resourceVersion").unwrap();
    let started = tokio::time::Instant::now();
    loop {
        let path = format!("{MAPS}/slow?resourceVersion=0");
        let (_, found) = send(client, "GET", &path, "read", &Value::Null).await;
        if found.pointer("/metadata/resourceVersion") == Some(version) {
            return;
        }
        assert!(started.elapsed() < TIMEOUT, "the cache does not get {version}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Starts a webhook that answers dry runs immediately and other requests after 600 ms.
///
/// Waits until the server calls the webhook.
async fn webhook(
    client: &kube::Client,
    kind: &str,
    name: &str,
    answer: &Value,
    operations: &[&str],
) -> FakeWebhook {
    let slow = json!({"delay": {"for": {"fixed": "600ms"}, "then": answer}});
    let behavior = json!({"when": {"if": {"dry-run": true}, "then": "allow", "otherwise": slow}});
    let behavior = serde_json::from_value(behavior).unwrap();
    let webhook = FakeWebhook::start(Fake { behavior, ..Fake::default() }).await.unwrap();
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name},
        "webhooks": [{
            "name": format!("{name}.example.com"),
            "rules": [{
                "operations": operations, "apiGroups": [""], "apiVersions": ["v1"],
                "resources": ["configmaps", "services/proxy"],
            }],
            "clientConfig": {
                "url": format!("https://127.0.0.1:{}/", webhook.address().port()),
                "caBundle": STANDARD.encode(webhook.ca_bundle()),
            },
            "sideEffects": "None", "admissionReviewVersions": ["v1"], "timeoutSeconds": 30,
        }],
    });
    let path = format!("/apis/admissionregistration.k8s.io/v1/{}s", kind.to_lowercase());
    let (status, answer) = send(client, "POST", &path, "configuration", &configuration).await;
    assert_eq!(status, 201, "{answer}");
    let started = tokio::time::Instant::now();
    while webhook.journal().is_empty() {
        assert!(started.elapsed() < TIMEOUT, "the webhook is not called");
        let probe = json!({"metadata": {"name": "probe"}});
        send(client, "POST", &format!("{MAPS}?dryRun=All"), "probe", &probe).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    webhook
}

/// Sends the requests in [`EXPECTED`], and compares the log entries about them.
async fn check(client: &kube::Client, log: &Path, verbosity: &str) {
    let patch = json!({"patch": {"operations": [{"op": "add", "path": "/data", "value": {"a": "b"}}]}});
    let when = json!({"when": {"if": {"label": {"denied": ""}}, "then": {"deny": {"message": "no"}}, "otherwise": "allow"}});
    let operations = ["CREATE", "UPDATE", "CONNECT"];
    let _changes = webhook(client, "MutatingWebhookConfiguration", "changes", &patch, &operations).await;
    let _looks = webhook(client, "ValidatingWebhookConfiguration", "looks", &when, &["*"]).await;
    let map = |more: Value| {
        let mut map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "slow"}});
        map.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        map
    };
    let one = format!("{MAPS}/slow");
    let (status, created) = send(client, "POST", MAPS, "create", &map(json!({}))).await;
    assert_eq!(status, 201, "{created}");
    cached(client, &created).await;
    let (status, updated) = send(client, "PUT", &one, "update", &map(json!({"data": {"a": "c"}}))).await;
    assert_eq!(status, 200, "{updated}");
    cached(client, &updated).await;
    let (status, patched) = send(client, "PATCH", &one, "patch", &json!({"immutable": false})).await;
    assert_eq!(status, 200, "{patched}");
    cached(client, &patched).await;
    let denied = map(json!({"metadata": {"name": "denied", "labels": {"denied": ""}}}));
    let (status, refused) = send(client, "POST", MAPS, "denied", &denied).await;
    assert!((400..500).contains(&status), "{refused}");
    // The result of the connection does not matter.
    send(client, "POST", "/api/v1/namespaces/default/services/none/proxy", "connect", &Value::Null).await;
    let (status, deleted) = send(client, "DELETE", &one, "delete", &Value::Null).await;
    assert_eq!(status, 200, "{deleted}");
    let expected = with_detail(verbosity);
    let started = tokio::time::Instant::now();
    let logged = loop {
        let logged = slow_requests(&fs::read_to_string(log).unwrap(), verbosity);
        // The line may be written after the response.
        if logged.len() >= expected.len() || started.elapsed() > TIMEOUT {
            break logged;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert_eq!(logged.join("\n\n"), expected.join("\n\n"));
}

/// Returns the log entries about requests for which these webhooks were called, without variable values.
fn slow_requests(log: &str, verbosity: &str) -> Vec<String> {
    let head = Regex::new(
        r#"Trace\[\d+\]: ("[^"]*" .*)\(\d\d-[A-Z][a-z]{2}-\d{4} [\d:.]+\) \(total time: \d+ms\):$"#,
    );
    let item = Regex::new(r#"^Trace\[\d+\]: ( *)((?:\[|---)".*) -?\d+ms \([\d:.]+\)\]*$"#).unwrap();
    let (head, uid) = (head.unwrap(), Regex::new("UID:[-0-9a-f]{36}").unwrap());
    let mut requests: Vec<Vec<String>> = Vec::new();
    // The indentation of the omitted spans.
    let mut left_out: Option<usize> = None;
    for line in log.lines() {
        if let Some(found) = head.captures(line) {
            let line = found[1].trim_end().replace("HTTP/2.0", "HTTP").replace("HTTP/1.1", "HTTP");
            requests.push(vec![uid.replace(&line, "UID:…").into_owned()]);
            left_out = None;
        } else if let (Some(found), Some(request)) = (item.captures(line), requests.last_mut()) {
            let indent = found[1].len();
            if left_out.is_some_and(|outer| indent > outer) {
                continue;
            }
            let is_shown = !found[2].starts_with('[') || found[2].starts_with("[\"Call ");
            left_out = (!is_shown).then_some(indent);
            let line = uid.replace(&format!("{}{}", &found[1], &found[2]), "UID:…").into_owned();
            if is_shown && (verbosity == "4" || is_always_told(&line)) {
                request.push(line);
            }
        }
    }
    // The server also sends requests, and on a busy machine logs the probes of `webhook`.
    let is_probe =
        |request: &Vec<String>| request.first().is_some_and(|head| head.contains("audit-id:probe,"));
    let is_ours = |request: &Vec<String>| {
        request.iter().any(|line| line.contains(".example.com")) && !is_probe(request)
    };
    requests.into_iter().filter(is_ours).map(|request| request.join("\n")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn both_servers_log_slow_calls() {
    for verbosity in ["4", "2"] {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("admit.log");
        let (_server, client) = Serve::start_logged(folder.path(), &["-v", verbosity], &log).await;
        check(&client, &log, verbosity).await;
    }
    if !machine::has_kube_apiserver() {
        return;
    }
    for verbosity in ["4", "2"] {
        let mut settings = Settings::default();
        settings.flags = vec![format!("-v={verbosity}")];
        let envtest = Envtest::start(settings, |_| ()).await.unwrap();
        let client = kube::Client::try_from(envtest.config().clone()).unwrap();
        check(&client, envtest.server_log(), verbosity).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_call_is_logged_as_json() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("admit.log");
    let (_server, client) = Serve::start_logged(folder.path(), &["--log-format", "json"], &log).await;
    let operations = ["CREATE"];
    let _slow =
        webhook(&client, "ValidatingWebhookConfiguration", "looks", &json!("allow"), &operations).await;
    let map = json!({"metadata": {"name": "slow"}});
    let (status, created) = send(&client, "POST", MAPS, "create", &map).await;
    assert_eq!(status, 201, "{created}");
    let started = tokio::time::Instant::now();
    let (line, trace) = loop {
        let text = fs::read_to_string(&log).unwrap();
        let mut lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let of_create =
            |line: &Value| line.pointer("/trace/fields/audit-id").is_some_and(|it| it == "create");
        if let Some(mut line) = lines.find(of_create) {
            let trace = line.as_object_mut().unwrap().remove("trace").unwrap();
            break (line, trace);
        }
        assert!(started.elapsed() < TIMEOUT, "not logged: {text}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    let text = |value: &Value, path: &str| value.pointer(path).unwrap().as_str().unwrap().to_owned();
    text(&line, "/ts").parse::<jiff::Timestamp>().unwrap();
    assert_eq!((text(&line, "/level"), text(&line, "/msg")), ("info".to_owned(), "slow request".to_owned()));
    assert_eq!(text(&trace, "/name"), "Create");
    let steps = trace.pointer("/steps").unwrap().as_array().unwrap();
    let call = steps.iter().find(|step| step.get("steps").is_some()).unwrap();
    assert_eq!(text(call, "/name"), "Call validating webhook");
    assert_eq!(text(call, "/fields/configuration"), "looks");
    assert_eq!(text(call, "/steps/0/name"), "Request completed");
}

#[test]
fn fatal_errors_are_also_logged_as_json() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["serve", "--kubeconfig-out", "kubeconfig", "--logging-format=json"];
    let ended = Command::new(env!("CARGO_BIN_EXE_admit"))
        .args(arguments)
        .args(["--tracing-config-file", "tracing.yaml"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert_eq!(ended.status.code(), Some(2));
    let line: Value = serde_json::from_slice(&ended.stderr).unwrap();
    let of = |field: &str| line.get(field).unwrap().clone();
    assert_eq!((of("level"), of("exitCode")), (json!("error"), json!(2)));
    assert_eq!(of("msg"), "--tracing-config-file tracing.yaml: No such file or directory");
}
