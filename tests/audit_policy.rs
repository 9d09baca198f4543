//! Tests `--audit-policy-file`: admit and kube-apiserver write the same events for the same requests.

#![expect(clippy::unwrap_used, reason = "what a test does not expect may panic")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use admit_command::target::{Launched, TargetArguments, TargetKind};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fake_webhooks::{Fake, FakeWebhook};
use kube::client::Body;
use serde_json::{Value, json};

use crate::helpers::machine;
use crate::helpers::serve::Serve;

const POLICY: &str = r#"
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- level: None
  resources: [{group: "", resources: [namespaces]}]
- level: None
  nonResourceURLs: ["/readyz*", "/healthz*", "/livez*"]
- level: None
  userGroups: [system:nodes]
- level: Metadata
  resources: [{resources: [secrets], resourceNames: [named]}]
  omitStages: [ResponseStarted]
- level: Request
  namespaces: [default]
  verbs: [create, get]
  resources: [{resources: [secrets, configmaps, "*/status"]}]
- level: RequestResponse
  namespaces: [default]
  resources: [{resources: ["configmaps"]}]
- level: Metadata
  nonResourceURLs: ["/version"]
- level: RequestResponse
  nonResourceURLs: ["/api/*"]
- level: Metadata
  omitManagedFields: false
  namespaces: [""]
  resources: [{group: "admissionregistration.k8s.io", resources: ["*"]}]
- level: None
"#;

const MUTATING: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
const VALIDATING: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
/// The number of webhook configurations. The requests that create them are sent before [`requests`].
const CONFIGURATIONS: usize = 2;

/// A request: its method, path, optional user, and body.
type Request = (&'static str, &'static str, Option<&'static str>, Value);

const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn requests() -> Vec<Request> {
    let object = |kind: &str, name: &str| {
        let managed = json!([{"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {}}]);
        json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "managedFields": managed}})
    };
    vec![
        ("POST", "/api/v1/namespaces", None, json!({"metadata": {"name": "quiet"}})),
        ("POST", SECRETS, None, object("Secret", "named")),
        ("GET", "/api/v1/namespaces/default/secrets/named", None, Value::Null),
        ("POST", MAPS, None, object("ConfigMap", "a")),
        ("GET", "/api/v1/namespaces/default/configmaps/a", None, Value::Null),
        ("GET", "/api/v1/namespaces/default/configmaps/none", None, Value::Null),
        ("GET", "/api/v1/namespaces/default/configmaps?labelSelector=none", None, Value::Null),
        (
            "DELETE",
            "/api/v1/namespaces/default/configmaps/a",
            None,
            json!({"kind": "DeleteOptions", "apiVersion": "v1"}),
        ),
        ("DELETE", "/api/v1/namespaces/default/configmaps/a", None, Value::Null),
        ("POST", "/api/v1/namespaces/quiet/configmaps", None, object("ConfigMap", "a")),
        ("GET", "/version", None, Value::Null),
        ("GET", "/api/v2", None, Value::Null),
        ("GET", "/readyz", None, Value::Null),
        ("DELETE", MAPS, Some("jane"), Value::Null),
        ("GET", "/api/v1/namespaces/default/configmaps?watch=true", Some("jane"), Value::Null),
        ("GET", "/api/v1/namespaces/default/configmaps?watch=true&timeoutSeconds=1", None, Value::Null),
        (
            "GET",
            "/api/v1/namespaces/default/secrets?watch=true&timeoutSeconds=1&fieldSelector=metadata.name=named",
            None,
            Value::Null,
        ),
    ]
}

/// Starts a webhook that waits for more than half a second, and then has the behavior `then`.
async fn slow(then: Value) -> FakeWebhook {
    let behavior = json!({"delay": {"for": {"fixed": "600ms"}, "then": then}});
    let behavior = serde_json::from_value(behavior).unwrap();
    FakeWebhook::start(Fake { behavior, ..Fake::default() }).await.unwrap()
}

/// Returns a configuration with two webhooks that both call `webhook` for each created ConfigMap.
fn configuration(kind: &str, webhook: &FakeWebhook) -> Value {
    let entry = |name: &str| {
        json!({
            "name": name,
            "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}],
            "clientConfig": {
                "url": format!("https://127.0.0.1:{}/", webhook.address().port()),
                "caBundle": STANDARD.encode(webhook.ca_bundle()),
            },
            "sideEffects": "None", "admissionReviewVersions": ["v1"],
        })
    };
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": "slow"},
        "webhooks": [entry("slow.example.com"), entry("slow-too.example.com")],
    })
}

/// Sends the requests in order, and reads the audit events of each. The `Audit-ID` is the number of the request.
async fn events(client: &kube::Client, log: &Path) -> Vec<(usize, Vec<Value>)> {
    let patch = json!([{"op": "add", "path": "/data", "value": {"a": "b"}}]);
    let webhooks = [slow(json!({"patch": {"operations": patch}})).await, slow(json!("allow")).await];
    let [mutating, validating] = &webhooks;
    let mut all: Vec<Request> = vec![
        ("POST", MUTATING, None, configuration("MutatingWebhookConfiguration", mutating)),
        ("POST", VALIDATING, None, configuration("ValidatingWebhookConfiguration", validating)),
    ];
    all.extend(requests());
    let requests = all;
    for (number, (method, path, user, body)) in requests.iter().enumerate() {
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let mut request =
            http::Request::builder().method(*method).uri(*path).header("Audit-ID", number.to_string());
        if let Some(user) = user {
            request = request.header("Impersonate-User", *user);
        }
        let request = request.header("Content-Type", "application/json").header("User-Agent", "test");
        let response = client.send(request.body(Body::from(body)).unwrap()).await.unwrap();
        // A watch ends on its own.
        let body = http_body_util::BodyExt::collect(response.into_body()).await.unwrap();
        drop(body);
        if number + 1 == CONFIGURATIONS {
            are_used(client, &webhooks).await;
        }
    }
    // The last event of a watch follows its response.
    let expected = |log: &str| log.lines().filter(|line| line.contains("watch=true")).count() >= 5;
    for _ in 0..100 {
        if expected(&fs::read_to_string(log).unwrap()) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let text = fs::read_to_string(log).unwrap();
    let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |number: usize| {
        let audit_id = number.to_string();
        events.iter().filter(|event| event["auditID"] == audit_id.as_str()).map(comparable).collect()
    };
    (0..requests.len()).map(|number| (number, of(number))).collect()
}

/// Waits until the server calls the webhooks. Nothing else shows that the server uses the configurations.
async fn are_used(client: &kube::Client, webhooks: &[FakeWebhook]) {
    let body = json!({"metadata": {"name": "probe"}}).to_string();
    for _ in 0..100 {
        let request = http::Request::post("/api/v1/namespaces/kube-public/configmaps?dryRun=All");
        let request =
            request.header("Content-Type", "application/json").body(Body::from(body.clone().into_bytes()));
        let response = client.send(request.unwrap()).await.unwrap();
        assert!(response.status().is_success());
        if webhooks.iter().all(|webhook| !webhook.journal().is_empty()) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the webhooks are not called");
}

/// Removes the values from an event that vary between runs or between servers.
fn comparable(event: &Value) -> Value {
    let mut event = event.clone();
    let members = event.as_object_mut().unwrap();
    for field in ["requestReceivedTimestamp", "stageTimestamp", "sourceIPs"] {
        assert!(members.remove(field).is_some(), "{field}");
    }
    // The users of the two servers have different names, and the impersonated user is in the event.
    members.remove("user");
    if let Some(reason) = event.pointer_mut("/annotations/authorization.k8s.io~1reason") {
        *reason = json!("");
    }
    if let Some(annotations) = event.get_mut("annotations").and_then(Value::as_object_mut) {
        // kube-apiserver reports more durations, and other plugins.
        annotations.retain(|key, _| {
            !key.starts_with("apiserver.latency.k8s.io/")
                || ["mutating-webhook", "validating-webhook", "total"].iter().any(|what| key.ends_with(what))
        });
        let seconds: BTreeMap<String, f64> = annotations
            .iter()
            .filter_map(|(key, value)| {
                let what = key.strip_prefix("apiserver.latency.k8s.io/")?;
                Some((what.to_owned(), duration(value.as_str()?)))
            })
            .collect();
        if let (Some(mutating), Some(validating), Some(total)) =
            (seconds.get("mutating-webhook"), seconds.get("validating-webhook"), seconds.get("total"))
        {
            // Two sequential calls, and two parallel calls.
            assert!(*mutating >= 1.2 && *validating >= 0.6, "{seconds:?}");
            assert!(mutating + validating <= *total, "{seconds:?}");
        }
        annotations.retain(|key, _| !key.starts_with("apiserver.latency.k8s.io/"));
        annotations.insert("latencies of".to_owned(), json!(seconds.into_keys().collect::<Vec<_>>()));
    }
    mask(&mut event);
    event
}

/// Parses `612.3ms` or `1.2s` as seconds.
fn duration(text: &str) -> f64 {
    match text.strip_suffix("ms") {
        Some(milliseconds) => milliseconds.parse::<f64>().unwrap() / 1000.0,
        None => text.strip_suffix('s').unwrap().parse().unwrap(),
    }
}

/// Replaces the values that each server generates with placeholders.
fn mask(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                let chosen = ["uid", "creationTimestamp", "resourceVersion", "caBundle", "url"];
                if chosen.contains(&name.as_str()) && value.is_string() {
                    *value = json!(format!("<{name}>"));
                }
                mask(value);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(mask),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

async fn of_admit(folder: &Path) -> Vec<(usize, Vec<Value>)> {
    let flags = ["--audit-policy-file", "policy.yaml", "--audit-log", "admit.log"];
    let (_server, client) = Serve::start(folder, &flags).await;
    events(&client, &folder.join("admit.log")).await
}

#[tokio::test(flavor = "multi_thread")]
async fn both_servers_write_the_events_that_rules_ask_for() {
    let Some(events) = compared(POLICY).await else { return };
    let untold = events.iter().filter(|(_, events)| events.is_empty()).count();
    assert_eq!(untold, 3, "requests of which nothing is told");
}

#[tokio::test(flavor = "multi_thread")]
async fn both_servers_write_the_same_events_at_every_stage() {
    let policy = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitManagedFields: true\nrules: [{level: RequestResponse}]\n";
    let Some(events) = compared(policy).await else { return };
    let stages = |event: &[Value]| event.iter().map(|event| event["stage"].clone()).collect::<Vec<_>>();
    for (_, events) in &events {
        let stages = stages(events);
        assert_eq!(
            (stages.first(), stages.last()),
            (Some(&json!("RequestReceived")), Some(&json!("ResponseComplete")))
        );
    }
}

/// Checks that kube-apiserver and admit write the same events, and returns the events of kube-apiserver.
///
/// Returns `None` if the test is skipped.
async fn compared(policy: &str) -> Option<Vec<(usize, Vec<Value>)>> {
    if !machine::has_kube_apiserver() {
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let (file, log) = (folder.path().join("policy.yaml"), folder.path().join("real.log"));
    fs::write(&file, policy).unwrap();
    let arguments = TargetArguments::new(TargetKind::Envtest).with_audit(file, log.clone());
    let launched = Launched::start(&arguments, |_| ()).await.unwrap_or_else(|failure| panic!("{failure}"));
    let expected = events(&launched.target.client, &log).await;
    drop(launched);
    let found = of_admit(folder.path()).await;
    let requests = requests();
    for ((number, expected), (_, found)) in expected.iter().zip(&found) {
        let request = number.checked_sub(CONFIGURATIONS).and_then(|number| requests.get(number));
        let pretty = |events: &[Value]| serde_json::to_string_pretty(events).unwrap();
        let (expected, found) = (pretty(expected), pretty(found));
        assert!(expected == found, "{request:?}\nkube-apiserver: {expected}\nadmit: {found}");
    }
    Some(expected)
}
