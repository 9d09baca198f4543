//! Tests the directories of `--proofs`: their content, and whether their commands work.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::command::{Stage, ends_with};
use super::environment::{configuration, entry};
use crate::helpers::machine;

fn files(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .expect("the folder is there")
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn a_finding_ends_with_1_and_has_a_proof_that_reproduces_it() {
    let stage = Stage::with("non-idempotent").await;
    let output = stage
        .verify(&["-c", "configuration.yaml", "-f", "pods.yaml", "--check", "V01", "--proofs", "proofs"])
        .await;
    let text = ends_with(&output, 1);
    assert!(text.contains("error[V01]: not idempotent: called with its own result"), "{text}");
    assert!(text.contains("  | - \"x\"\n  | + \"xx\"\n"), "{text}");

    let proof = stage.path("proofs/V01-1-c_w.example.com");
    assert!(text.contains("  = proof: proofs/V01-1-c_w.example.com"), "{text}");
    let expected = [
        "1-reply.json",
        "1-review.json",
        "2-reply.json",
        "2-review.json",
        "README.md",
        "c_w.example.com.pem",
        "c_w.example.com.yaml",
        "object.yaml",
        "proof.feature",
        "with.yaml",
    ];
    assert_eq!(files(&proof), expected);
    let readme = std::fs::read_to_string(proof.join("README.md")).expect("it can be read");
    let line = "admit review -f 2-review.json -c c_w.example.com.yaml --with with.yaml";
    assert!(readme.contains(line) && readme.contains("curl -sS --cacert c_w.example.com.pem"), "{readme}");
    // The command line works.
    let review = Command::new(env!("CARGO_BIN_EXE_admit"))
        .args(line.split(' ').skip(1))
        .current_dir(&proof)
        .env("NO_COLOR", "1")
        .output();
    let review = review.expect("the command runs");
    let text = String::from_utf8_lossy(&review.stdout).into_owned();
    assert!(text.contains("w.example.com") && text.contains("xx"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mutating_and_a_validating_webhook_of_one_name_are_two() {
    let stage = Stage::with("always-mutate").await;
    let mut entry = entry("w", &stage.fake.url(), stage.fake.ca_bundle());
    let mutating = configuration("MutatingWebhookConfiguration", "c", &[entry.clone()]);
    entry["timeoutSeconds"] = json!(7);
    let validating = configuration("ValidatingWebhookConfiguration", "c", &[entry]);
    stage.write("configuration.yaml", &[mutating, validating]);
    let arguments = ["-c", "configuration.yaml", "-f", "pods.yaml", "--check", "V24", "-o", "json"];
    let output = stage.verify(&[&arguments[..], &["--proofs", "proofs"]].concat()).await;
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");

    let of = |name: &str| (report["webhooks"][name].clone(), report["locations"][name]["line"].clone());
    let (mutating, first) = of("c/w.example.com (mutating)");
    let (validating, second) = of("c/w.example.com (validating)");
    assert_eq!((&first, &second), (&json!(1), &json!(3)));
    assert_eq!((&mutating["mutating"], &validating["mutating"]), (&json!(true), &json!(false)));
    assert!(mutating["patched"].as_u64() > Some(0) && validating["called"].as_u64() > Some(0), "{report}");
    // Only the validating webhook must not send a patch, and the proof calls this webhook.
    let finding = &report["checks"][0]["findings"][0];
    let names: Vec<&String> = finding["webhooks"].as_object().expect("the webhooks").keys().collect();
    assert_eq!(names, ["c/w.example.com (validating)"]);
    let readme = stage.path(finding["proof"].as_str().expect("a folder")).join("README.md");
    let readme = std::fs::read_to_string(readme).expect("it can be read");
    assert!(readme.contains("?timeout=7s"), "{readme}");
    // The feature in the proof also calls the validating webhook, because the mutating webhook may send patches.
    let proof = stage.path(finding["proof"].as_str().expect("a folder"));
    let manifest = std::fs::read_to_string(proof.join("c_w.example.com-validating.yaml"));
    let manifest = manifest.expect("the feature names a manifest");
    assert!(manifest.contains("kind: ValidatingWebhookConfiguration"), "{manifest}");
    let mut command = Command::new(env!("CARGO_BIN_EXE_admit"));
    command.args(["run", "proof.feature"]).current_dir(&proof).env("NO_COLOR", "1");
    ends_with(&Stage::run(command).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_proof_of_a_malformed_request_sends_it_again() {
    let no_review =
        "when: {if: {in-review: /request/uid}, then: allow, otherwise: {bad-response: {status: 500}}}";
    let stage = Stage::with(no_review).await;
    let arguments = [
        "-c",
        "configuration.yaml",
        "-f",
        "pods.yaml",
        "--check",
        "V37",
        "--proofs",
        "proofs",
        "--fail-on=never",
    ];
    ends_with(&stage.verify(&arguments).await, 0);
    let mut sent = Vec::new();
    for folder in std::fs::read_dir(stage.path("proofs")).expect("there are proofs") {
        let folder = folder.expect("it can be read").path();
        let readme = std::fs::read_to_string(folder.join("README.md")).expect("it can be read");
        assert!(!readme.contains("admit review"), "no API server sends that: {readme}");
        for line in readme.lines().filter_map(|line| line.trim().strip_prefix("$ curl ")) {
            let before = stage.fake.journal().len();
            let script = format!("curl -o answer -w '%{{http_code}}' {line}");
            let Ok(output) = Command::new("sh").args(["-c", &script]).current_dir(&folder).output() else {
                return machine::skipped("sh cannot be run");
            };
            if output.status.code() == Some(127) {
                return machine::skipped("curl cannot be run");
            }
            assert_eq!(String::from_utf8_lossy(&output.stdout), "500", "{line}: {output:?}");
            let calls = stage.fake.journal();
            sent.push(calls[before..].iter().map(|call| call.body.clone()).collect::<Vec<_>>());
        }
    }
    assert_eq!(sent.len(), 6, "as many as malformed inputs");
    assert!(sent.iter().all(|calls| calls.len() == 1), "{sent:?}");
    assert!(sent.iter().any(|calls| calls[0] == "this is no JSON"), "{sent:?}");
}
