//! Tests `admit fakes` on the command line, and its webhooks as called by an API server.
#![expect(clippy::indexing_slicing, reason = "a wrong index fails the test")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on must stop")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

const TWO: &str = "\
version: 1
webhooks:
- name: labels
  type: mutating
  behavior: always-mutate
  reinvocationPolicy: IfNeeded
- name: no.example.com
  type: validating
  behavior: {deny: {message: not today}}
  certificate: expired
  failurePolicy: Ignore
";

const A_MINUTE: Duration = Duration::from_secs(60);

/// A running `admit fakes`. It is killed if a test fails.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It has already ended unless the test fails.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(yaml: &str, arguments: &[&str]) -> Running {
    let mut child = Command::new(env!("CARGO_BIN_EXE_admit"))
        .args(["fakes", "-f", "-"])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(yaml.as_bytes()).unwrap();
    Running(child)
}

impl Running {
    /// Returns the configurations from the standard output, which the fakes close after printing them.
    fn configurations(&mut self) -> Vec<Value> {
        let mut text = String::new();
        self.0.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        serde_saphyr::from_multiple(&text).unwrap()
    }

    /// Sends a signal and returns the exit status and standard error.
    fn stop(mut self, signal: Signal) -> (Option<i32>, String) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
        let mut stderr = String::new();
        self.0.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        (self.0.wait().unwrap().code(), stderr)
    }
}

async fn call(webhook: &Value) -> reqwest::Result<Value> {
    // An error means that another test has already installed it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let bundle = STANDARD.decode(webhook["clientConfig"]["caBundle"].as_str().unwrap()).unwrap();
    let authority = reqwest::Certificate::from_pem(&bundle).unwrap();
    let client = reqwest::Client::builder().tls_certs_only([authority]).no_proxy().build().unwrap();
    let review = json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "7", "operation": "CREATE", "kind": {"kind": "ConfigMap"}, "namespace": "demo", "name": "one",
            "object": {"metadata": {"name": "one"}},
        },
    });
    let url = webhook["clientConfig"]["url"].as_str().unwrap();
    let body = client.post(url).body(review.to_string()).send().await?.bytes().await?;
    Ok(serde_json::from_slice(&body).unwrap())
}

#[tokio::test]
async fn printed_configurations_point_to_running_fakes() {
    let mut running = start(TWO, &[]);
    let configurations = running.configurations();
    let [mutating, validating] = configurations.as_slice() else { panic!("{configurations:?}") };
    assert_eq!(mutating["kind"], "MutatingWebhookConfiguration");
    assert_eq!(validating["kind"], "ValidatingWebhookConfiguration");
    let labels = &mutating["webhooks"][0];
    assert_eq!(
        (&labels["name"], &labels["reinvocationPolicy"]),
        (&json!("labels.fakes.local"), &json!("IfNeeded"))
    );
    assert_eq!(call(labels).await.unwrap()["response"]["patchType"], "JSONPatch");
    let no = &validating["webhooks"][0];
    assert_eq!((&no["failurePolicy"], &no["sideEffects"]), (&json!("Ignore"), &json!("None")));
    assert!(call(no).await.unwrap_err().is_connect());

    let (status, stderr) = running.stop(Signal::TERM);
    assert_eq!(status, Some(0), "{stderr}");
    let line = "labels.fakes.local CREATE ConfigMap demo/one: allowed, patched with 2 operations";
    assert!(stderr.lines().any(|logged| logged.ends_with(line)), "{stderr}");
}

/// A typical manifest: two webhooks with the same name, one of them in v1beta1.
const MANIFEST: &str = "\
apiVersion: v1
kind: Service
metadata: {name: webhook, namespace: injector}
---
apiVersion: admissionregistration.k8s.io/v1beta1
kind: MutatingWebhookConfiguration
metadata: {name: injector}
webhooks:
- name: pods.example.com
  clientConfig: {service: {namespace: injector, name: webhook}}
  rules: [{operations: [CREATE], apiGroups: [''], apiVersions: [v1], resources: [pods]}]
  sideEffects: None
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: injector}
webhooks:
- name: pods.example.com
  clientConfig: {service: {namespace: injector, name: webhook}}
  sideEffects: None
  admissionReviewVersions: [v1]
";

#[tokio::test]
async fn fakes_replace_the_webhooks_of_a_manifest() {
    let mut running = start(MANIFEST, &[]);
    let mut configurations = running.configurations();
    for configuration in &mut configurations {
        let webhook = &mut configuration["webhooks"][0];
        assert_eq!(call(webhook).await.unwrap()["response"]["allowed"], true);
        webhook.as_object_mut().unwrap().remove("clientConfig");
    }
    let configuration = |kind: &str, webhook: Value| {
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": kind,
            "metadata": {"name": "injector"},
            "webhooks": [webhook],
        })
    };
    let mutating = json!({
        "name": "pods.example.com",
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"], "scope": "*"}],
        "namespaceSelector": {}, "objectSelector": {}, "failurePolicy": "Ignore", "matchPolicy": "Exact",
        "sideEffects": "None", "timeoutSeconds": 30, "admissionReviewVersions": ["v1beta1"], "reinvocationPolicy": "Never",
    });
    let validating = json!({
        "name": "pods.example.com", "rules": [], "namespaceSelector": {}, "objectSelector": {}, "failurePolicy": "Fail",
        "matchPolicy": "Equivalent", "sideEffects": "None", "timeoutSeconds": 10, "admissionReviewVersions": ["v1"],
    });
    let expected = [
        configuration("MutatingWebhookConfiguration", mutating),
        configuration("ValidatingWebhookConfiguration", validating),
    ];
    assert_eq!(configurations, expected);

    let (status, stderr) = running.stop(Signal::TERM);
    assert_eq!(status, Some(0), "{stderr}");
    assert!(
        stderr.contains("webhooks[0].failurePolicy is not set: Ignore in v1beta1, Fail in v1"),
        "{stderr}"
    );
    for name in ["pods.example.com", "validating.pods.example.com"] {
        let line = format!(" {name} CREATE ConfigMap demo/one: allowed");
        assert!(stderr.lines().any(|logged| logged.ends_with(&line)), "{stderr}");
    }
}

#[test]
fn both_signals_end_it_cleanly_also_while_a_call_hangs() {
    for signal in [Signal::INT, Signal::TERM] {
        let mut running =
            start("version: 1\nwebhooks:\n- {name: a, type: mutating, behavior: timeout}\n", &[]);
        let url =
            running.configurations()[0]["webhooks"][0]["clientConfig"]["url"].as_str().unwrap().to_owned();
        let authority = url.strip_prefix("https://").and_then(|rest| rest.split('/').next()).unwrap();
        let open = std::net::TcpStream::connect(authority).unwrap();
        let (status, stderr) = running.stop(signal);
        assert_eq!(status, Some(0), "{stderr}");
        assert!(std::net::TcpStream::connect(authority).is_err());
        drop(open);
    }
}

#[test]
fn configurations_can_be_written_to_a_file_as_json() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("configurations.json");
    let mut running =
        start(TWO, &["-o", "json", "--write-configurations", file.to_str().unwrap(), "--host", "localhost"]);
    let list: Value = loop {
        if let Ok(text) = fs::read(&file) {
            break serde_json::from_slice(&text).unwrap();
        }
        assert_eq!(running.0.try_wait().unwrap(), None);
    };
    assert_eq!((&list["kind"], list["items"].as_array().unwrap().len()), (&json!("List"), 2));
    let url = list["items"][0]["webhooks"][0]["clientConfig"]["url"].as_str().unwrap();
    assert!(url.starts_with("https://localhost:") && url.ends_with("/labels.fakes.local"), "{url}");
    assert_eq!(running.stop(Signal::INT).0, Some(0));
}

/// Runs `admit fakes` with arguments that it must reject. With valid arguments, the command would not exit.
fn fakes(arguments: &[&str]) -> Output {
    let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_admit"));
    command.arg("fakes").args(arguments).stdin(Stdio::null()).kill_on_drop(true);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let ended = runtime.block_on(async { tokio::time::timeout(A_MINUTE, command.output()).await });
    let Ok(output) = ended else { panic!("it was not refused: {arguments:?}") };
    output.unwrap()
}

#[track_caller]
fn refused(arguments: &[&str], status: i32, parts: &[&str]) {
    let output = fakes(arguments);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(status), 0), "{stderr}");
    for part in parts {
        assert!(stderr.contains(part), "`{part}` is not in: {stderr}");
    }
}

#[test]
fn what_is_wrong_is_named_with_its_file_and_status() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str, text: &str| {
        let path = directory.path().join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    refused(&["-f", "no-such.yaml"], 2, &["no-such.yaml", "No such file"]);
    let typo = path("typo.yaml", &TWO.replace("always-mutate", "always-mutat"));
    refused(&["-f", &typo], 2, &["typo.yaml:5:", "always-mutat", "non-idempotent"]);
    let map = "version: 1\nwebhooks:\n- name: a\n  type: mutating\n  behavior: {mutate: {set: {/metadata/labels/a: b}}}\n";
    let map = path("map.yaml", map);
    refused(&["-f", &map], 2, &["map.yaml:5:", "`mutate` must be a list of changes"]);
    let empty = path("empty.yaml", "version: 1\nwebhooks: []\n");
    refused(&["-f", &empty], 2, &["empty.yaml", "`webhooks` is empty", "--admin"]);
    let good = path("good.yaml", TWO);
    refused(&["-f", &good, "--listen", "0.0.0.0:0"], 2, &["--host"]);
    refused(&["-f", &good, "--listen", "0.0.0.0:0", "--host", "a.b"], 3, &["loopback", "--allow-remote"]);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    refused(&["-f", &good, "--listen", &address], 3, &[&address, "in use"]);
    refused(&["-f", &good, "-f", &good], 2, &["admit-fakes", "`name`"]);
}

fn list(arguments: &[&str]) -> String {
    let output = fakes(&[&["list"], arguments].concat());
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), stderr.as_str()), (Some(0), ""));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn catalog_is_printed_as_table_and_json() {
    let table = list(&[]);
    assert!(table.starts_with("ID "), "{table}");
    let row = "E07-missing uid-missing policy response.uid is missing";
    assert!(table.lines().any(|line| line.split_whitespace().eq(row.split(' '))), "{table}");
    let document: Value = serde_json::from_str(&list(&["-o", "json"])).unwrap();
    assert_eq!(document["version"], 1);
    let faults = document["faults"].as_array().unwrap();
    assert_eq!(faults.len(), table.lines().count() - 1);
    for (fault, line) in faults.iter().zip(table.lines().skip(1)) {
        let words: Vec<&str> = line.splitn(2, ' ').collect();
        assert_eq!(fault["id"], words[0]);
        assert!(line.ends_with(fault["help"].as_str().unwrap()), "{line}");
    }
}

#[test]
fn catalog_can_be_filtered_by_class_and_family() {
    let ids = |arguments: &[&str]| -> Vec<String> {
        let text = list(arguments);
        let rows = text.lines().skip(1);
        rows.map(|line| line.split_whitespace().next().unwrap().to_owned()).collect()
    };
    let document: Value = serde_json::from_str(&list(&["--class", "refused", "-o", "json"])).unwrap();
    let all = document["faults"].as_array().unwrap();
    assert!(!all.is_empty() && all.iter().all(|fault| fault["class"] == "refused"));
    let two = ids(&["transport", "patch"]);
    assert!(two.iter().any(|id| id.starts_with('T')) && two.iter().any(|id| id.starts_with('P')), "{two:?}");
    assert!(two.iter().all(|id| id.starts_with(['T', 'P'])), "{two:?}");
    let both = ids(&["transport", "--class", "accepted"]);
    assert!(
        !both.is_empty() && both.len() < two.len() && both.iter().all(|id| id.starts_with('T')),
        "{both:?}"
    );
    refused(&["list", "--class", "broken"], 2, &["invalid value", "immune"]);
    refused(&["list", "tls"], 2, &["invalid value", "transport"]);
}

const TOKEN: &str = "a-token-that-nobody-guesses-0123456789";

/// Returns a directory with the certificate and key of a certificate authority, and a token.
fn secrets() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let authority = certs::CertificateAuthority::new("an authority that stays").unwrap();
    fs::write(directory.path().join("ca.crt"), authority.certificate_pem()).unwrap();
    fs::write(directory.path().join("ca.key"), authority.key_pem()).unwrap();
    fs::write(directory.path().join("token"), format!("{TOKEN}\n")).unwrap();
    directory
}

/// The admin endpoint of running fakes.
struct Admin {
    address: String,
    client: reqwest::Client,
    /// The rest of the log, after the line with the address.
    log: BufReader<ChildStderr>,
}

impl Admin {
    /// Reads the address of the admin endpoint from the log. Also returns the lines before it.
    fn from_output(running: &mut Running, authority_pem: &[u8]) -> (Self, Vec<String>) {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut log = BufReader::new(running.0.stderr.take().unwrap());
        let mut before = Vec::new();
        let address = loop {
            let mut line = String::new();
            assert_ne!(log.read_line(&mut line).unwrap(), 0, "{before:?}");
            match line.trim_end().split_once("admin endpoint: ") {
                Some((_, address)) => break address.to_owned(),
                None => before.push(line),
            }
        };
        let authority = reqwest::Certificate::from_pem(authority_pem).unwrap();
        let client = reqwest::Client::builder().tls_certs_only([authority]).no_proxy().build().unwrap();
        (Self { address, client, log }, before)
    }

    async fn send(&self, method: &str, path: &str, token: &str, body: Value) -> (u16, Value) {
        let url = format!("{}{path}", self.address);
        let request = self.client.request(method.parse().unwrap(), url).bearer_auth(token);
        let response = request.body(body.to_string()).send().await.unwrap();
        let status = response.status().as_u16();
        let text = response.text().await.unwrap();
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }
}

#[tokio::test]
async fn running_fakes_are_observed_and_steered() {
    let secrets = secrets();
    let path = |name: &str| secrets.path().join(name).display().to_string();
    let token_file = path("token");
    let arguments = ["--admin", "127.0.0.1:0", "--admin-token-file", &token_file, "--authority", &path("")];
    let mut running = start(TWO, &arguments);
    let labels = running.configurations()[0]["webhooks"][0].clone();
    let bundle = fs::read(path("ca.crt")).unwrap();
    assert_eq!(labels["clientConfig"]["caBundle"], STANDARD.encode(&bundle));
    let (admin, _) = Admin::from_output(&mut running, &bundle);
    assert_eq!(admin.send("GET", "/healthz", "", Value::Null).await.0, 200);
    assert_eq!(admin.send("GET", "/journal", "another", Value::Null).await.0, 401);

    assert_eq!(call(&labels).await.unwrap()["response"]["allowed"], true);
    let (status, journal) = admin.send("GET", "/journal?fake=labels&wait=1", TOKEN, Value::Null).await;
    assert_eq!((status, journal["entries"].as_array().unwrap().len()), (200, 1));
    assert_eq!(journal["entries"][0]["review"]["request"]["name"], "one");

    let deny = json!({"deny": {"message": "swapped"}});
    assert_eq!(admin.send("PUT", "/fakes/labels/behavior", TOKEN, deny).await.0, 200);
    assert_eq!(call(&labels).await.unwrap()["response"]["status"]["message"], "swapped");

    for (certificate, is_accepted) in [("expired", false), ("valid", true)] {
        let wanted = json!({"certificate": certificate});
        assert_eq!(admin.send("POST", "/certificates/rotate", TOKEN, wanted).await.0, 200);
        assert_eq!(call(&labels).await.is_ok(), is_accepted, "{certificate}");
    }
    drop(admin.log);
}

#[tokio::test]
async fn without_a_file_the_token_is_logged_and_fakes_may_come_later() {
    let secrets = secrets();
    let authority = secrets.path().display().to_string();
    let mut running =
        start("version: 1\nwebhooks: []\n", &["--admin", "127.0.0.1:0", "--authority", &authority]);
    let bundle = fs::read(secrets.path().join("ca.crt")).unwrap();
    let (admin, before) = Admin::from_output(&mut running, &bundle);
    let token = before.iter().find_map(|line| line.split_once("admin token: ")).unwrap().1.trim();
    let fake = json!({"type": "validating", "fault": "E07-missing"});
    let (status, added) = admin.send("PUT", "/fakes/late", token, fake).await;
    assert_eq!((status, &added["name"]), (201, &json!("late.fakes.local")));
    let answer = call(&json!({"clientConfig": added})).await.unwrap();
    assert_eq!((&answer["response"]["allowed"], &answer["response"]["uid"]), (&json!(true), &Value::Null));
    drop(admin.log);
}

#[test]
fn invalid_authority_or_token_is_rejected() {
    let secrets = secrets();
    let path = |name: &str| secrets.path().join(name).display().to_string();
    let file = path("fakes.yaml");
    fs::write(&file, TWO).unwrap();
    refused(&["-f", &file, "--authority", &path("none")], 2, &["none/ca.crt", "No such file"]);
    fs::write(path("ca.key"), "no key").unwrap();
    refused(&["-f", &file, "--authority", &path("")], 2, &["ca.crt and ca.key", "invalid private key"]);
    fs::write(path("token"), "short").unwrap();
    let token = path("token");
    refused(&["-f", &file, "--admin", "127.0.0.1:0", "--admin-token-file", &token], 2, &["token: "]);
    refused(&["-f", &file, "--admin-token-file", &token], 2, &["--admin"]);
}
