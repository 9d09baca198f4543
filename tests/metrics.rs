//! Tests `/metrics`: after the same requests, admit and kube-apiserver expose the same admission metrics.
//!
//! The help, types, labels, buckets, and counts of the metrics are equal.

#![expect(clippy::expect_used, reason = "what is not there fails the test")]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use admit_command::target::{Launched, TargetArguments, TargetKind};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fake_webhooks::{Fake, FakeWebhook};
use http::Request;
use kube::client::Body;
use serde_json::{Value, json};

use crate::helpers::machine;

const REGISTRATION: &str = "/apis/admissionregistration.k8s.io/v1";
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// The webhooks: the name, the phase, the behavior, and extra configuration fields of each.
const WEBHOOKS: [(&str, &str, &str, &str); 14] = [
    ("allows", "mutating", r#""allow""#, "{}"),
    (
        "patches",
        "mutating",
        r#"{"patch": {"operations": [{"op": "add", "path": "/data", "value": {"a": "b"}}]}}"#,
        "{}",
    ),
    (
        "is-asked-again",
        "mutating",
        r#""allow""#,
        r#"{"reinvocationPolicy": "IfNeeded", "objectSelector": {"matchLabels": {"all": "yes"}}}"#,
    ),
    ("denies-mutating", "mutating", r#"{"deny": {"message": "no"}}"#, "{}"),
    ("fails-open", "mutating", r#"{"fault": "E07-wrong"}"#, r#"{"failurePolicy": "Ignore"}"#),
    ("fails-closed", "mutating", r#"{"fault": "E07-wrong"}"#, "{}"),
    ("is-no-patch", "mutating", r#"{"patch": {"operations": [{"op": "remove", "path": "/none"}]}}"#, "{}"),
    ("is-late", "mutating", r#"{"fault": "H01"}"#, r#"{"timeoutSeconds": 1, "failurePolicy": "Ignore"}"#),
    ("agrees", "validating", r#""allow""#, "{}"),
    ("denies", "validating", r#"{"deny": {"message": "no"}}"#, "{}"),
    ("opens", "validating", r#"{"fault": "E07-wrong"}"#, r#"{"failurePolicy": "Ignore"}"#),
    ("closes", "validating", r#"{"fault": "E07-wrong"}"#, "{}"),
    (
        "is-left-out",
        "validating",
        r#""allow""#,
        r#"{"matchConditions": [{"name": "no", "expression": "request.operation == 'DELETE'"}]}"#,
    ),
    (
        "cannot-tell",
        "validating",
        r#""allow""#,
        r#"{"matchConditions": [{"name": "what", "expression": "object.none == 'a'"}], "failurePolicy": "Ignore"}"#,
    ),
];

/// Returns a configuration entry for `ConfigMap`s that have a label with this name.
fn entry(name: &str, fake: &FakeWebhook, more: &str) -> Value {
    let mut entry = json!({
        "name": format!("{name}.example.com"),
        "rules": [{"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}],
        "clientConfig": {
            "url": format!("https://127.0.0.1:{}/", fake.address().port()),
            "caBundle": STANDARD.encode(fake.ca_bundle()),
        },
        "objectSelector": {"matchLabels": {name: "yes"}},
        "sideEffects": "None", "admissionReviewVersions": ["v1"],
    });
    let more: Value = serde_json::from_str(more).expect("JSON");
    for (field, value) in more.as_object().expect("an object") {
        entry.as_object_mut().expect("an object").insert(field.clone(), value.clone());
    }
    entry
}

async fn send(client: &kube::Client, method: &str, path: &str, body: &Value) -> u16 {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("Content-Type", "application/json")
        .body(Body::from(body.to_string().into_bytes()))
        .expect("a request");
    client.send(request).await.expect("an answer").status().as_u16()
}

async fn scrape(client: &kube::Client) -> Exposition {
    let request = Request::get("/metrics").body(Vec::new()).expect("a request");
    Exposition::parse(&client.request_text(request).await.expect("the metrics"))
}

/// The identity of a sample: its metric name, and its labels in alphabetical order.
type Series = (String, Vec<String>);

/// The admission metrics that a server exposes.
struct Exposition {
    /// The `# HELP` and `# TYPE` lines.
    heads: BTreeSet<String>,
    samples: BTreeMap<Series, f64>,
}

impl Exposition {
    fn parse(text: &str) -> Self {
        let is_ours = |line: &&str| {
            let name = line.trim_start_matches("# HELP ").trim_start_matches("# TYPE ");
            name.starts_with("apiserver_admission_") || name.starts_with("pod_security_")
        };
        let mut exposition = Self { heads: BTreeSet::new(), samples: BTreeMap::new() };
        for line in text.lines().filter(is_ours) {
            if line.starts_with('#') {
                exposition.heads.insert(line.to_owned());
                continue;
            }
            let (series, value) = line.rsplit_once(' ').expect("a sample and its value");
            let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
            let labels = labels.trim_end_matches('}').split("\",");
            let mut labels: Vec<String> =
                labels.map(|label| label.trim_end_matches('"').to_owned()).collect();
            labels.sort();
            exposition.samples.insert((name.to_owned(), labels), value.parse().expect("a number"));
        }
        exposition
    }

    /// Returns whether a line is about metrics for admission policies. The test does not compare them.
    fn is_of_policies(line: &str) -> bool {
        ["validating_admission_policy", "mutating_admission_policy"].iter().any(|name| line.contains(name))
    }

    /// Returns the increase of each sample since `before`; `None` for a time, which is compared only for existence.
    fn since(&self, before: &Self) -> BTreeMap<Series, Option<f64>> {
        let mut counted = BTreeMap::new();
        for (series, value) in &self.samples {
            let (name, labels) = series;
            let more = value - before.samples.get(series).unwrap_or(&0.0);
            let is_quantile = labels.iter().any(|label| label.starts_with("quantile="));
            let is_time = is_quantile || name.ends_with("_sum") || name.ends_with("_bucket");
            let is_of_a_webhook = labels.iter().any(|label| label.ends_with(".example.com"));
            // The server itself also sends requests, which webhooks do not see and nothing rejects.
            let is_refused = labels.iter().any(|label| label == "rejected=\"true")
                && labels
                    .iter()
                    .all(|label| !label.starts_with("name=") || label.ends_with("AdmissionWebhook"));
            if is_of_a_webhook || is_refused || name.starts_with("pod_security_") {
                counted.insert(series.clone(), (!is_time).then_some(more));
            }
        }
        counted
    }
}

/// Sends the requests to a server with the webhooks.
///
/// Returns the status codes, the `# HELP` and `# TYPE` lines, and the increase of each sample.
async fn play(client: &kube::Client) -> (Vec<u16>, BTreeSet<String>, BTreeMap<Series, Option<f64>>) {
    let mut fakes = Vec::new();
    let mut entries: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    for (name, phase, behavior, more) in WEBHOOKS {
        let behavior = serde_json::from_str(behavior).expect("a behavior");
        let fake = FakeWebhook::start(Fake { behavior, ..Fake::default() }).await.expect("it starts");
        entries.entry(phase).or_default().push(entry(name, &fake, more));
        fakes.push(fake);
    }
    for (phase, kind) in
        [("mutating", "MutatingWebhookConfiguration"), ("validating", "ValidatingWebhookConfiguration")]
    {
        let configuration = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": "counted"},
            "webhooks": entries.get(phase),
        });
        let path = format!("{REGISTRATION}/{phase}webhookconfigurations");
        assert_eq!(send(client, "POST", &path, &configuration).await, 201, "the {phase} webhooks");
    }
    let map = |name: &str, labels: &[&str]| {
        let labels: BTreeMap<&str, &str> = labels.iter().map(|label| (*label, "yes")).collect();
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}})
    };
    // A configuration takes effect a moment after it is created.
    let deadline = tokio::time::Instant::now() + Duration::from_secs(30);
    for label in ["denies-mutating", "denies"] {
        let probe = map("probe", &[label]);
        while send(client, "POST", &format!("{CONFIG_MAPS}?dryRun=All"), &probe).await == 201 {
            assert!(tokio::time::Instant::now() < deadline, "{label} is called");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    let before = scrape(client).await;
    let mut codes = Vec::new();
    for (name, ..) in WEBHOOKS {
        for path in [CONFIG_MAPS.to_owned(), format!("{CONFIG_MAPS}?dryRun=All")] {
            codes.push(send(client, "POST", &path, &map(name, &[name])).await);
        }
        let path = format!("{CONFIG_MAPS}/{name}");
        codes.push(send(client, "PUT", &path, &map(name, &[name])).await);
        codes.push(send(client, "DELETE", &path, &Value::Null).await);
    }
    let several =
        map("several", &["patches", "all", "is-asked-again", "fails-open", "agrees", "denies", "opens"]);
    codes.push(send(client, "POST", CONFIG_MAPS, &several).await);
    codes.extend(secure_pods(client).await);
    let after = scrape(client).await;
    (codes, after.heads.clone(), after.since(&before))
}

/// Sends requests that the plugin `PodSecurity` evaluates. Returns the status codes.
async fn secure_pods(client: &kube::Client) -> Vec<u16> {
    let mut codes = Vec::new();
    for (namespace, labels) in [
        (
            "secured",
            json!({"enforce": "baseline", "warn": "restricted", "audit": "restricted", "audit-version": "v1.30"}),
        ),
        ("unreadable", json!({"enforce": "other", "warn": "baseline"})),
        ("unlabeled", json!({})),
    ] {
        let labels = labels.as_object().expect("an object").iter();
        let labels: BTreeMap<String, &Value> =
            labels.map(|(mode, level)| (format!("pod-security.kubernetes.io/{mode}"), level)).collect();
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": labels}});
        codes.push(send(client, "POST", "/api/v1/namespaces", &object).await);
        for (name, uses_host) in [("plain", false), ("privileged", true)] {
            let containers = json!([{"name": "main", "image": "example.com/main:1"}]);
            let spec = json!({"hostNetwork": uses_host, "containers": containers});
            let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec});
            let pods = format!("/api/v1/namespaces/{namespace}/pods");
            codes.push(send(client, "POST", &format!("{pods}?dryRun=All"), &pod).await);
            codes.push(send(client, "POST", &pods, &pod).await);
            codes.push(send(client, "PUT", &format!("{pods}/{name}"), &pod).await);
            let labels = json!({"name": name});
            let template = json!({"metadata": {"labels": labels}, "spec": spec});
            let deployment = json!({
                "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
                "spec": {"selector": {"matchLabels": labels}, "template": template},
            });
            let path = format!("/apis/apps/v1/namespaces/{namespace}/deployments");
            codes.push(send(client, "POST", &path, &deployment).await);
        }
    }
    codes
}

#[tokio::test(flavor = "multi_thread")]
async fn both_servers_count_the_same() {
    if !machine::has_kube_apiserver() {
        return;
    }
    let mut played = Vec::new();
    for kind in [TargetKind::InProcess, TargetKind::Envtest] {
        let launched = Launched::start(&TargetArguments::new(kind), |_| ()).await.expect("the server starts");
        played.push(play(&launched.target.client).await);
    }
    let [(codes, heads, counted), (their_codes, their_heads, their_counted)] =
        <[_; 2]>::try_from(played).expect("two");
    assert_eq!(codes, their_codes);
    let theirs: BTreeSet<_> =
        their_heads.into_iter().filter(|head| !Exposition::is_of_policies(head)).collect();
    assert_eq!(heads, theirs);
    let differing: Vec<_> = counted
        .iter()
        .filter(|(series, count)| their_counted.get(*series) != Some(count))
        .map(|series| format!("admit: {series:?}"))
        .chain(
            their_counted
                .iter()
                .filter(|(series, count)| counted.get(*series) != Some(count))
                .map(|series| format!("kube-apiserver: {series:?}")),
        )
        .collect();
    assert!(differing.is_empty(), "{differing:#?}");
    let named =
        counted.keys().filter(|(_, labels)| labels.iter().any(|label| label.ends_with(".example.com")));
    assert!(named.count() > 100, "the webhooks were counted");
    let of_pods = counted.keys().filter(|(name, _)| name.starts_with("pod_security_"));
    assert!(of_pods.count() > 10, "the Pods were counted");
}
