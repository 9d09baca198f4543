//! Tests `admit fakes` with webhooks that require credentials.
//!
//! The command also writes the configuration that an API server needs to send these credentials.

use std::fmt::Write as _;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::{machine, run};

const FAKES: &str = "\
version: 1
webhooks:
- {name: token, type: mutating, behavior: {demand: {credentials: {token: s3cret}}}}
- {name: other-token, type: validating, behavior: {demand: {credentials: {token: 0ther}, then: {deny: {message: known}}}}}
- {name: basic, type: mutating, behavior: {demand: {credentials: {basic: {username: jane, password: passw0rd}}}}}
- {name: certificate, type: mutating, behavior: {demand: {credentials: {certificate: kube-apiserver}}}}
- {name: open, type: mutating, behavior: allow}
";

/// The name of each webhook, and its log lines for a call with credentials and for a call without.
const LOGGED: [(&str, &str, &str); 5] = [
    ("token", "by a token: allowed", ": 401: no credentials: expected Bearer"),
    ("other-token", "by a token: denied: known", ": 401: no credentials: expected Bearer"),
    ("basic", "by the user jane: allowed", ": 401: no credentials: expected Basic"),
    ("certificate", "by the certificate kube-apiserver: allowed", ""),
    ("open", ": allowed", ": allowed"),
];

/// A running `admit fakes`. It is killed if the test fails before stopping it.
struct Fakes(Child);

impl Drop for Fakes {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Fakes {
    /// Starts the fakes; returns them with the configurations that they print.
    fn start(folder: &Path) -> (Self, Vec<Value>) {
        std::fs::write(folder.join("fakes.yaml"), FAKES).expect("it is written");
        let child = Command::new(env!("CARGO_BIN_EXE_admit"))
            .args(["fakes", "-f", "fakes.yaml", "--write-admission-configuration", "credentials"])
            .current_dir(folder)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let mut fakes = Self(child.expect("it starts"));
        let mut printed = String::new();
        let mut stdout = fakes.0.stdout.take().expect("a pipe");
        stdout.read_to_string(&mut printed).expect("it can be read");
        (fakes, serde_saphyr::from_multiple(&printed).expect("configurations"))
    }

    /// Stops the fakes; returns the log.
    fn stop(mut self) -> String {
        kill_process(Pid::from_child(&self.0), Signal::TERM).expect("it runs");
        let mut logged = String::new();
        let mut stderr = self.0.stderr.take().expect("a pipe");
        stderr.read_to_string(&mut logged).expect("it can be read");
        logged
    }
}

/// Writes a scenario for each webhook, with a separate configuration.
fn write(folder: &Path, configurations: &[Value], outcome: impl Fn(&str) -> String) {
    let mut feature = String::from("Feature: Fakes that demand credentials\n");
    for configuration in configurations {
        for webhook in configuration["webhooks"].as_array().into_iter().flatten() {
            let name = webhook["name"].as_str().and_then(|name| name.split('.').next()).expect("a name");
            let mut webhook = webhook.clone();
            webhook.as_object_mut().expect("an object").remove("namespaceSelector");
            let manifest = json!({
                "apiVersion": configuration["apiVersion"], "kind": configuration["kind"],
                "metadata": {"name": name}, "webhooks": [webhook],
            });
            let file = folder.join(format!("{name}.json"));
            std::fs::write(file, manifest.to_string()).expect("it is written");
            let _ = write!(
                feature,
                "  Scenario: {name}\n    Given the objects in the file \"{name}.json\" exist\n    \
                 When a pod is created\n    {}\n",
                outcome(name)
            );
        }
    }
    std::fs::write(folder.join("authentication.feature"), feature).expect("it is written");
}

fn refused(code: u16, message: &str) -> String {
    format!("Then the request is rejected with {code}\n    And the message contains \"{message}\"")
}

async fn check(target: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let (fakes, configurations) = Fakes::start(folder);
    let credentials = folder.join("credentials");
    for file in ["admission.yaml", "kubeconfig"] {
        let metadata = credentials.join(file).metadata().expect("it is there");
        assert_eq!(metadata.permissions().mode() & 0o777, 0o600, "{file}");
    }
    write(folder, &configurations, |name| match name {
        "other-token" => refused(400, "known"),
        _ => "Then the request is admitted".to_owned(),
    });
    run(folder, target, &credentials.join("admission.yaml")).await;
    write(folder, &configurations, |name| match name {
        "open" => "Then the request is admitted".to_owned(),
        // Go's client may report a closed connection instead of the alert.
        "certificate" if target == "envtest" => refused(500, "failed to call webhook: Post"),
        // The connection may close before or after the request is sent: repeated often enough to see both.
        "certificate" => [(); 10]
            .map(|()| refused(500, "tls: certificate required"))
            .join("\n    When a pod is created\n    "),
        _ => refused(500, "the server has asked for the client to provide credentials"),
    });
    // Without a kubeconfig the calls are anonymous.
    let plugin = json!({"name": "MutatingAdmissionWebhook", "configuration": {
        "apiVersion": "apiserver.config.k8s.io/v1", "kind": "WebhookAdmissionConfiguration",
    }});
    let anonymous = json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": [plugin]});
    std::fs::write(folder.join("anonymous.json"), anonymous.to_string()).expect("it is written");
    run(folder, target, &folder.join("anonymous.json")).await;

    let logged = fakes.stop();
    for (name, known, unknown) in LOGGED {
        let of = |line: &&str| line.contains(&format!(" {name}.fakes.local CREATE "));
        let lines: Vec<_> = logged.lines().filter(of).collect();
        let expected = [known, unknown].into_iter().filter(|text| !text.is_empty());
        assert_eq!(lines.len(), expected.clone().count(), "{name}: {logged}");
        for (line, text) in lines.iter().zip(expected) {
            assert!(line.ends_with(text), "{line}");
        }
    }
    for secret in ["s3cret", "0ther", "passw0rd"] {
        assert!(!logged.contains(secret), "{logged}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn admit_is_let_in_by_fakes_that_demand_credentials() {
    check("in-process").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kube_apiserver_is_let_in_as_well() {
    if machine::has_kube_apiserver() {
        check("envtest").await;
    }
}
