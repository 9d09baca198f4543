//! Tests `admit serve --record`, and the output of `admit review --record` for the recording.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fake_webhooks::{Behavior, Deny, Fake, FakeWebhook};
use http_body_util::BodyExt as _;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::files::{Files, files};

/// A server that records requests, and a webhook that denies Pods. The server is killed on drop.
struct Recording {
    process: Child,
    folder: tempfile::TempDir,
    client: kube::Client,
    webhook: FakeWebhook,
}

impl Recording {
    async fn start(options: &[&str]) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let folder = tempfile::tempdir().unwrap();
        let kubeconfig = folder.path().join("kubeconfig");
        let mut process = Command::new(env!("CARGO_BIN_EXE_admit"))
            .args(["serve", "--kubeconfig-out", kubeconfig.to_str().unwrap(), "--record"])
            .arg(folder.path().join("record"))
            .args(options)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        assert_eq!(lines.take(2).count(), 2, "it serves");
        let config = Kubeconfig::read_from(kubeconfig).unwrap();
        let config =
            kube::Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await.unwrap();
        let client = kube::Client::try_from(config).unwrap();
        let deny = Behavior::Deny(Deny { message: Some("not today".to_owned()), ..Deny::default() });
        let webhook = FakeWebhook::start(Fake { behavior: deny, ..Fake::default() }).await.unwrap();
        let recording = Self { process, folder, client, webhook };
        let bundle = STANDARD.encode(recording.webhook.ca_bundle());
        let configuration = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "deny"},
            "webhooks": [{
                "name": "deny.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
                "clientConfig": {"url": recording.webhook.url(), "caBundle": bundle},
                "rules": [{"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}],
            }],
        });
        let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
        assert_eq!(recording.ask("POST", path, &configuration).await, 201);
        recording
    }

    async fn ask(&self, method: &str, path: &str, body: &Value) -> u16 {
        let media_type = match (method, body) {
            ("PATCH", Value::Array(_)) => "application/json-patch+json",
            ("PATCH", _) => "application/merge-patch+json",
            _ => "application/json",
        };
        let request = http::Request::builder().method(method).uri(path).header("content-type", media_type);
        let body = Body::from(body.to_string().into_bytes());
        let response = self.client.send(request.body(body).unwrap()).await.unwrap();
        let status = response.status().as_u16();
        response.into_body().collect().await.unwrap();
        status
    }

    fn signal(&mut self, signal: Signal) -> Option<i32> {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
        self.process.wait().unwrap().code()
    }

    fn file(&self) -> PathBuf {
        let mut entries = fs::read_dir(self.folder.path().join("record")).unwrap();
        let file = entries.next().unwrap().unwrap().path();
        assert!(entries.next().is_none(), "one file for one server");
        file
    }

    /// Copies the recording to a new directory.
    fn taken(&self) -> Files {
        files([("record/a.jsonl", &fs::read_to_string(self.file()).unwrap())])
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        // The process may have exited already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

const PODS: &str = "/api/v1/namespaces/default/pods";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";

fn pod() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"},
        "spec": {"containers": [{"name": "web", "image": "nginx"}]},
    })
}

fn secret() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key"},
        "stringData": {"password": "correct-horse"},
    })
}

/// Returns the rows of the list, without the time, the user, and the alignment.
fn rows(text: &str) -> Vec<String> {
    let cells = regex::Regex::new("  +").unwrap();
    text.lines()
        .skip(1)
        .map(|line| {
            let cells: Vec<&str> = cells.split(line.trim_end()).collect();
            let [number, _time, _user, rest @ ..] = cells.as_slice() else { panic!("{line}") };
            format!("{number} {}", rest.join(" | "))
        })
        .collect()
}

#[tokio::test]
async fn requests_of_a_server_are_listed_and_shown() {
    let mut server = Recording::start(&[]).await;
    assert_eq!(server.ask("POST", PODS, &pod()).await, 400);
    assert_eq!(server.ask("POST", SECRETS, &secret()).await, 201);
    let patch = json!({"stringData": {"password": "battery-staple"}});
    assert_eq!(server.ask("PATCH", &format!("{SECRETS}/key?dryRun=All"), &patch).await, 200);
    assert_eq!(server.ask("GET", &format!("{SECRETS}/key"), &Value::Null).await, 200);
    assert_eq!(server.ask("DELETE", SECRETS, &Value::Null).await, 200);
    // The recording contains all answered requests while the server is still running.
    let running = server.taken().review("--record record");
    assert_eq!(server.signal(Signal::TERM), Some(0));
    let taken = server.taken();
    let list = taken.review("--record record");
    assert_eq!((list.status, &list.stdout), (0, &running.stdout));
    assert_eq!(
        rows(&list.stdout),
        [
            "1 CREATE | validatingwebhookconfigurations.admissionregistration.k8s.io | deny | - | admitted | - | -",
            "2 CREATE | pods | default/web | - | denied by deny.example.com | deny.example.com | 1",
            "3 CREATE | secrets | default/key | - | admitted | - | -",
            "4 UPDATE (patch) | secrets | default/key | yes | admitted | - | -",
            "5 DELETE (deletecollection) | secrets | default | - | admitted | - | -",
        ]
    );
    let text = fs::read_to_string(server.file()).unwrap();
    for secret in ["correct-horse", "battery-staple", "Y29ycmVjdC1ob3JzZ"] {
        assert!(!text.contains(secret), "{secret} is masked");
    }
    assert_eq!(fs::metadata(server.file()).unwrap().permissions().mode() & 0o777, 0o600);

    for (filter, numbers) in [
        ("--denied", &["2"][..]),
        ("--webhook deny.example.com", &["2"]),
        ("--resource secrets -n default", &["3", "4", "5"]),
        ("--operation create --as admin", &["1", "2", "3"]),
        ("--resource pods/status", &[]),
        ("-n other", &[]),
    ] {
        let said = taken.review(&format!("--record record {filter}"));
        let found: Vec<String> = rows(&said.stdout);
        let found: Vec<&str> = found.iter().filter_map(|row| row.split(' ').next()).collect();
        assert_eq!((said.status, found), (0, numbers.to_vec()), "{filter}: {}", said.stderr);
    }
    let said = taken.review("--record record 2");
    let denial = "admission webhook \"deny.example.com\" denied the request: not today";
    assert!(said.stdout.contains(denial), "{}", said.stdout);
    assert!(said.stdout.contains("deny.example.com"), "{}", said.stdout);
    let report = taken.report("--record record 4");
    assert_eq!(report["recorded"]["number"], 4);
    assert_eq!(report["request"]["patch"], json!({"stringData": {"password": "***"}}));
    assert_eq!(report["source"], json!({"file": "record/a.jsonl", "line": 4}));
    let all = taken.report("--record record");
    assert_eq!(all["items"].as_array().unwrap().len(), 5);
    let said = taken.review("--record record 9");
    assert_eq!(
        (said.status, said.stderr.as_str()),
        (2, "error: --record record: no request 9; the record contains 5\n")
    );
}

#[tokio::test]
async fn record_contains_the_request_that_a_webhook_received() {
    let server = Recording::start(&[]).await;
    assert_eq!(server.ask("POST", PODS, &pod()).await, 400);
    let report = server.taken().report("--record record 2");
    let request = &report["calls"][0]["request"];
    assert_eq!(request["uid"], report["calls"][0]["uid"]);
    assert_eq!(
        report["request"]["object"],
        pod(),
        "without the fields that the server adds when it decodes the body"
    );
    assert_eq!(request["object"]["metadata"]["namespace"], "default", "the server has set it");
    assert_eq!(request["object"]["spec"]["containers"][0]["terminationMessagePolicy"], "File");
}

#[tokio::test]
async fn record_masks_secrets_in_the_request_that_a_webhook_received() {
    let server = Recording::start(&[]).await;
    let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/deny";
    let rules =
        json!([{"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["secrets"]}]);
    let rule_change = json!([{"op": "replace", "path": "/webhooks/0/rules", "value": rules}]);
    assert_eq!(server.ask("PATCH", path, &rule_change).await, 200);
    assert_eq!(server.ask("POST", SECRETS, &secret()).await, 400);
    let text = fs::read_to_string(server.file()).unwrap();
    assert!(text.contains("\"operation\":\"CREATE\"") && !text.contains("Y29ycmVjdC1ob3JzZ"), "{text}");
    let report = server.taken().report("--record record 3");
    assert_eq!(report["calls"][0]["request"]["object"]["data"]["password"], STANDARD.encode("***"));
}

#[tokio::test]
async fn a_server_that_is_killed_leaves_what_it_had_written() {
    let mut server = Recording::start(&["--show-secrets"]).await;
    assert_eq!(server.ask("POST", SECRETS, &secret()).await, 201);
    server.signal(Signal::KILL);
    let text = fs::read_to_string(server.file()).unwrap();
    assert!(text.contains("correct-horse"), "it was asked for");
    assert_eq!(rows(&server.taken().review("--record record").stdout).len(), 2);
    let torn = files([("record/a.jsonl", text.get(..text.len() - 9).unwrap())]);
    let said = torn.review("--record record");
    assert_eq!((said.status, rows(&said.stdout).len()), (0, 1));
    assert_eq!(said.stderr, "record/a.jsonl:2: the last request is incomplete\n");
    let (first, _) = text.split_once('\n').unwrap();
    for (damage, expected) in [
        (
            format!("{first}\nx\n"),
            "error: record/a.jsonl:2: not a request that --record recorded: expected value",
        ),
        ("{}\n".to_owned(), "error: record/a.jsonl:1: not a request that --record recorded: missing field"),
        (
            first.replace("admit.dev/v1alpha1", "admit.dev/v9") + "\n",
            "error: record/a.jsonl:1: not a request that --record recorded: expected AdmissionReport of",
        ),
    ] {
        let said = files([("record/a.jsonl", &damage)]).review("--record record");
        assert!(said.status == 2 && said.stderr.starts_with(expected), "{}", said.stderr);
    }
}

#[test]
fn directory_without_records_is_rejected() {
    let files = files([("record/a.txt", "")]);
    for (line, expected) in [
        ("--record record", "error: --record record: no *.jsonl file in this directory\n"),
        ("--record none", "error: --record none: No such file or directory\n"),
    ] {
        let said = files.review(line);
        assert_eq!((said.status, said.stderr.as_str()), (2, expected));
    }
    assert_eq!(files.review("--record record -f pod.yaml").status, 2);
    assert_eq!(files.review("--denied -f pod.yaml -c x").status, 2);
}
