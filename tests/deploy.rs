//! Tests `admit fakes deploy` without a cluster: its output and its errors.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on must stop")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use expect_test::expect_file;
use serde_json::Value;

const FAKES: &str = "\
version: 1
name: team
webhooks:
- {name: labels, type: mutating, behavior: always-mutate, reinvocationPolicy: IfNeeded}
- {name: slow, type: validating, behavior: timeout, timeoutSeconds: 1, failurePolicy: Ignore}
- {name: stale, type: validating, behavior: allow, certificate: expired, namespaceSelector: {}, failurePolicy: Ignore}
";

/// Runs `admit fakes deploy` with a fakes file and without a cluster.
fn deploy(fakes: &str, arguments: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("fakes.yaml");
    fs::write(&file, fakes).unwrap();
    run(&file, folder.path(), arguments)
}

fn run(file: &Path, folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_admit"))
        .args(["fakes", "deploy", "-f"])
        .arg(file)
        .args(arguments)
        .env("KUBECONFIG", folder.join("none"))
        .env("HOME", folder)
        .env_remove("KUBERNETES_SERVICE_HOST")
        .output()
        .unwrap()
}

fn printed(arguments: &[&str]) -> String {
    let output = deploy(FAKES, arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn dry_run_prints_every_object() {
    let yaml = printed(&["--dry-run=client", "--namespace", "demo", "--image", "example.com/fakes:1"]);
    // These differ in each run; the hash depends on the Rust version.
    let drawn = r"(ca\.crt|ca\.key|token|caBundle|fakes\.local/content): (?:[>|]-?\n +)?\S+";
    let masked = regex::Regex::new(drawn).unwrap().replace_all(&yaml, "$1: DRAWN").into_owned();
    expect_file!["deployed.yaml"].assert_eq(&masked);
}

#[test]
fn configurations_contain_the_ca_of_the_secret() {
    let list: Value = serde_json::from_str(&printed(&["--dry-run=client", "-o", "json"])).unwrap();
    let objects = list["items"].as_array().unwrap();
    let kinds: Vec<_> = objects.iter().map(|object| object["kind"].as_str().unwrap()).collect();
    let (secret, configurations) = (&objects[1], &objects[5..]);
    assert_eq!(kinds[1], "Secret");
    for webhook in configurations.iter().flat_map(|object| object["webhooks"].as_array().unwrap()) {
        assert_eq!(webhook["clientConfig"]["caBundle"], secret["data"]["ca.crt"]);
        assert_eq!(webhook["clientConfig"]["service"]["namespace"], "admit-fakes");
    }
    let pem = |key: &str| STANDARD.decode(secret["data"][key].as_str().unwrap()).unwrap();
    assert!(pem("ca.key").starts_with(b"-----BEGIN PRIVATE"));
    assert_eq!(pem("token").len(), 43);
}

#[track_caller]
fn refused(fakes: &str, arguments: &[&str], status: i32, parts: &[&str]) {
    let output = deploy(fakes, arguments);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(status), 0), "{stderr}");
    for part in parts {
        assert!(stderr.contains(part), "`{part}` is not in: {stderr}");
    }
}

#[test]
fn dangerous_webhooks_are_rejected_without_contacting_the_cluster() {
    let everything = FAKES.replace("namespaceSelector: {}, failurePolicy: Ignore", "namespaceSelector: {}");
    let words = ["webhook `stale.fakes.local`", "every namespace", "--allow-everything"];
    refused(&everything, &[], 2, &words);
    refused(&everything, &["--dry-run=client"], 2, &words);
    let output = deploy(&everything, &["--dry-run=client", "--allow-everything"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn what_is_wrong_is_named_with_its_status() {
    refused(FAKES, &[], 3, &["cannot use the kubeconfig", "--kubeconfig"]);
    refused(FAKES, &["-o", "json"], 2, &["--dry-run"]);
    let nothing = "version: 1\nwebhooks: []\n";
    refused(nothing, &["--dry-run=client"], 2, &["fakes.yaml", "`webhooks` is empty", "at least one"]);
    refused(FAKES, &["--namespace", "a.b"], 2, &["a.b", "lower-case letters"]);
    refused(
        &FAKES.replace("always-mutate", "always"),
        &["--dry-run=client"],
        2,
        &["fakes.yaml:4:", "always"],
    );
    let folder = tempfile::tempdir().unwrap();
    let missing = run(&folder.path().join("none.yaml"), folder.path(), &[]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(String::from_utf8(missing.stderr).unwrap().contains("none.yaml: No such file"));
}
