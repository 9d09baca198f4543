//! The commands that serve nothing take the webhooks from files, too.

use std::fs;
use std::process::Command;

use fake_webhooks::FakeWebhook;
use serde_json::{Value, json};

use super::{configuration, entry, fake, rule, write_plugins};

/// A folder with a webhook for everything that configures admission, and an object of the kind.
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

/// Runs `admit` there; its exit status, and what it printed.
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
    // It leaves its failurePolicy to the default.
    assert_eq!(check["results"][0]["verdict"], "found", "{report:#}");
}
