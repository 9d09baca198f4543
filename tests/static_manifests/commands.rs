//! Checks that commands other than `admit serve` also read webhooks from files.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use fake_webhooks::FakeWebhook;
use serde_json::{Value, json};

use super::{configuration, entry, fake, rule, write_plugins};

/// Returns a directory with a manifest of a webhook for webhook configurations, and a webhook configuration.
async fn stage() -> (tempfile::TempDir, FakeWebhook) {
    let (stage, fake) = (tempfile::tempdir().expect("a folder"), fake(json!("deny")).await);
    let path = |name: &str| stage.path().join(name);
    fs::create_dir(path("manifests")).expect("a folder");
    let webhook = entry("w.example.com", &fake, &rule("admissionregistration.k8s.io", "*"));
    let manifest = configuration("MutatingWebhookConfiguration", "a.static.k8s.io", &[webhook]);
    fs::write(path("manifests/a.json"), manifest.to_string()).expect("the file is written");
    let object = configuration("ValidatingWebhookConfiguration", "created", &[]);
    fs::write(path("object.json"), object.to_string()).expect("the file is written");
    write_plugins(&path("admission.json"), &path("manifests").display().to_string(), None);
    (stage, fake)
}

/// Runs `admit` in the directory; returns its exit status and its output.
async fn admit(stage: &tempfile::TempDir, arguments: &[&str]) -> (Option<i32>, Value) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_admit"));
    command.args(arguments).args(["--admission-control-config-file", "admission.json"]);
    command.current_dir(stage.path()).env("NO_COLOR", "1");
    let output = tokio::task::spawn_blocking(move || command.output().expect("the command runs"));
    let output = output.await.expect("it ends");
    let printed = serde_json::from_slice(&output.stdout);
    let printed = printed.unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    (output.status.code(), printed)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_review_meets_the_webhooks_from_files() {
    let (stage, fake) = stage().await;
    let (code, report) = admit(&stage, &["review", "-f", "object.json", "-o", "json"]).await;
    assert_eq!((code, fake.journal().len()), (Some(1), 1), "{report:#}");
    let webhook = &report["webhooks"][0];
    assert_eq!(webhook["configuration"], "a.static.k8s.io", "{report:#}");
    assert_eq!(webhook["called"], true, "{report:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_webhooks_from_files_are_verified() {
    let (stage, _fake) = stage().await;
    let (_, report) = admit(&stage, &["verify", "--check", "V57", "-o", "json", "--quiet"]).await;
    let check = &report["checks"][0];
    assert_eq!(check["results"][0]["webhook"], "a.static.k8s.io/w.example.com", "{report:#}");
    // The configuration omits failurePolicy, so the default applies.
    assert_eq!(check["results"][0]["verdict"], "found", "{report:#}");
}

/// Rule: LOAD-14.
#[tokio::test(flavor = "multi_thread")]
async fn server_reports_the_outcome_of_a_change() {
    let (stage, _fake) = stage().await;
    let mut server = Command::new(env!("CARGO_BIN_EXE_admit"))
        .args([
            "serve",
            "--kubeconfig-out",
            "kubeconfig",
            "--admission-control-config-file",
            "admission.json",
        ])
        .current_dir(stage.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the server starts");
    let mut lines = BufReader::new(server.stdout.take().expect("standard output")).lines();
    assert!(lines.next().expect("a line").expect("text").starts_with("admit serve: https://"));
    let folder = stage.path().join("manifests");
    let mut said = BufReader::new(server.stderr.take().expect("standard error")).lines();
    let mut next = || said.next().expect("a line").expect("text");
    let place = format!("admit serve: MutatingAdmissionWebhook: {}: ", folder.display());
    let moved = folder.join("a.json").display().to_string();
    fs::rename(&moved, stage.path().join("a.json")).expect("the file is moved");
    // The server may be reading the folder at this moment: then it has listed the file, and does not find it.
    let missed = format!(
        "{place}reloading admission manifest config: failed to read file \"{moved}\": open {moved}: no such file or \
         directory; the previous webhooks stay in use"
    );
    let said = next();
    let said = if said == missed { next() } else { said };
    assert_eq!(said, format!("{place}reloaded admission manifest config"));
    fs::rename(stage.path().join("object.json"), folder.join("object.json")).expect("the file is moved");
    let file = folder.join("object.json").display().to_string();
    assert_eq!(
        next(),
        format!(
            "{place}reloading admission manifest config: error loading {file}: unsupported resource type \
             *v1.ValidatingWebhookConfiguration; the previous webhooks stay in use"
        )
    );
    server.kill().expect("the server ends");
    server.wait().expect("it has ended");
}
