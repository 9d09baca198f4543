//! Tests `proof.feature`: it reproduces the finding, and fails once the webhook has changed.
//!
//! The tests also run it on a real kube-apiserver.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use fake_webhooks::{Behavior, Certificate, FakeWebhook};
use futures::stream::{self, StreamExt as _};
use serde_json::Value;
use tempfile::TempDir;

use super::command::{Stage, ends_with};
use super::environment::{configuration, entry_of_service, pods};
use super::one_defect::{TestedWebhook, webhooks};
use crate::helpers::{SAMPLE, machine};

/// The checks that write a feature for at least one of their findings in these tests.
const WITH_FEATURES: &str = "V01 V02 V03 V04 V05 V06 V07 V08 V09 V10 V15 V17 V18 V21 V22 V24 V25 V28 V29 V30 V31 V32 V34 V36 V38 V45 V48 V49 V50 \
     V54 V55";

/// The webhooks that are installed together, and the directory with the proofs of their findings.
struct Proven {
    webhooks: Vec<(TestedWebhook, FakeWebhook)>,
    folder: PathBuf,
    /// The check and the kind of each finding without a feature.
    without: Vec<String>,
}

/// Starts webhooks, and writes proofs of the findings. Only the checks in the webhooks' table entries run.
async fn proven(webhooks: Vec<TestedWebhook>, folder: PathBuf) -> Proven {
    std::fs::create_dir(&folder).expect("the folder is made");
    let mut configurations = Vec::new();
    let mut started = Vec::new();
    for (tested, name) in webhooks.into_iter().zip(["a", "b"]) {
        let (fake, configuration) = tested.start(name).await;
        configurations.push(configuration);
        started.push((tested, fake));
    }
    let others = started.iter().flat_map(|(tested, _)| &tested.objects);
    let objects: Vec<Value> = pods().into_iter().chain(others.cloned()).collect();
    for (name, objects) in [("objects.yaml", objects), ("configuration.yaml", configurations)] {
        let documents: Vec<String> = objects.iter().map(ToString::to_string).collect();
        std::fs::write(folder.join(name), documents.join("\n---\n")).expect("it is written");
    }
    let checks = started.iter().flat_map(|(tested, _)| tested.finds.keys());
    let checks: BTreeSet<&str> = checks.map(String::as_str).collect();
    let name = &started[0].0.name;
    let mut without = Vec::new();
    // With all checks in one run, findings with one cause would share one proof.
    for id in checks {
        let mut command = Command::new(env!("CARGO_BIN_EXE_admit"));
        command.args(["verify", "-c", "configuration.yaml", "-f", "objects.yaml", "--proofs", "proofs"]);
        command.args(["-o", "json", "--fail-on", "never", "--check", id]).current_dir(&folder);
        let output = Stage::run(command).await;
        assert_eq!(output.status.code(), Some(0), "{name}: {output:?}");
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let found = report["checks"][0]["findings"].as_array().expect("findings").iter();
        let expected = started.iter().filter_map(|(tested, _)| tested.finds.get(id)).flatten();
        let mut expected: Vec<&str> = expected.map(String::as_str).collect();
        let is_listed = |finding: &&Value| {
            finding["severity"] != "note" || expected.iter().any(|kind| finding["kind"] == *kind)
        };
        let found: Vec<&Value> = found.filter(is_listed).collect();
        for finding in &found {
            let proof = finding["proof"].as_str().expect("a proof");
            if !folder.join(proof).join("proof.feature").exists() {
                without.push(format!("{id} {}", finding["kind"]));
            }
        }
        let consequences = found.iter().filter_map(|finding| finding["consequences"].as_array()).flatten();
        let consequences = consequences.filter(is_listed);
        let all = found.iter().copied().chain(consequences);
        let mut kinds: Vec<&str> = all.filter_map(|finding| finding["kind"].as_str()).collect();
        kinds.sort_unstable();
        expected.sort_unstable();
        assert_eq!(kinds, expected, "{name}: {id}");
    }
    Proven { webhooks: started, folder, without }
}

/// Asserts that a failed scenario has sent its request, and failed only afterward.
///
/// An error that admit does not support creating a subresource of `serviceaccounts` is also accepted, because it occurs
/// only if no webhook has rejected the request.
fn fails_in_a_then(scenario: &Value) {
    let steps = scenario["attempts"][0]["steps"].as_array().expect("steps");
    let request =
        steps.iter().find(|step| step["keyword"].as_str().is_some_and(|word| word.trim() == "When"));
    let request = request.expect("there is a When");
    let says = |message: &str| message.starts_with("admit does not support this: creating serviceaccounts/");
    let is_not_imitated = request["message"].as_str().is_some_and(says);
    assert!(request["status"] == "passed" || is_not_imitated, "{scenario:#}");
}

/// Runs the features below a directory. Returns the number of failed scenarios in each.
async fn run(folder: &Path, target: &str) -> (BTreeMap<String, usize>, String) {
    let report = folder.join(format!("{target}.json"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_admit"));
    command.args(["run", ".", "--quiet", "--target", target, "--json"]).arg(&report).current_dir(folder);
    command.env("NO_COLOR", "1").stdin(Stdio::null());
    let output = Stage::run(command).await;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!([Some(0), Some(1)].contains(&output.status.code()), "{text}{error}");
    let report = std::fs::read(&report).expect("the report is written");
    let report: Value = serde_json::from_slice(&report).expect("JSON");
    let mut failed: BTreeMap<String, usize> = BTreeMap::new();
    for feature in report["features"].as_array().expect("features") {
        let scenarios = feature["scenarios"].as_array().expect("scenarios").iter();
        let failed_scenarios = scenarios.filter(|scenario| scenario["status"] != "passed");
        let count = failed_scenarios.inspect(|scenario| fails_in_a_then(scenario)).count();
        failed.insert(feature["path"].as_str().expect("a path").to_owned(), count);
    }
    (failed, text)
}

/// Sets fields of the webhooks in the manifests of all proofs below a directory.
fn mend(folder: &Path, fields: &BTreeMap<String, Value>) {
    for proof in std::fs::read_dir(folder.join("proofs")).expect("there are proofs") {
        for file in std::fs::read_dir(proof.expect("it can be read").path()).expect("it is a folder") {
            let path = file.expect("it can be read").path();
            if path.extension().is_none_or(|extension| extension != "yaml") {
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("it can be read");
            let manifest: Option<Value> = serde_saphyr::from_str(&text).ok();
            if let Some(mut manifest) = manifest.filter(|manifest| manifest.get("webhooks").is_some()) {
                for (field, value) in fields {
                    manifest["webhooks"][0][field] = value.clone();
                }
                std::fs::write(&path, manifest.to_string()).expect("it is written");
            }
        }
    }
}

/// Asserts that the features of these webhooks, and of combinations of webhooks, pass only while the webhooks are faulty.
///
/// Returns the checks that wrote the features.
async fn assert_reproduced(alone: Vec<TestedWebhook>, others: Vec<Vec<TestedWebhook>>) -> Vec<String> {
    let folder = TempDir::new().expect("a folder");
    let count = alone.len();
    let alone = alone.into_iter().map(|tested| vec![tested]);
    let all = alone.chain(others).zip(1..);
    let all = all.map(|(webhooks, number)| proven(webhooks, folder.path().join(number.to_string())));
    let all: Vec<Proven> = stream::iter(all).buffered(2).collect().await;
    let without: Vec<&String> = all.iter().skip(count).flat_map(|proven| &proven.without).collect();
    assert!(without.is_empty(), "these of the table have no feature: {without:?}");
    let mut targets = vec!["in-process"];
    if machine::has_kube_apiserver() {
        targets.push("envtest");
    }
    let mut features = BTreeSet::new();
    for target in &targets {
        let (failed, text) = run(folder.path(), target).await;
        let wrong: Vec<&String> =
            failed.iter().filter(|(_, count)| **count > 0).map(|(name, _)| name).collect();
        assert!(wrong.is_empty(), "{target}: these do not show what they claim: {wrong:#?}\n{text}");
        features.extend(failed.into_keys());
    }
    let checks: BTreeSet<&str> =
        features.iter().filter_map(|path| path.split('/').nth(3)?.get(..3)).collect();
    let checks: Vec<String> = checks.into_iter().map(str::to_owned).collect();
    for Proven { webhooks, folder, .. } in &all {
        for (tested, fake) in webhooks {
            fake.set_behavior(Behavior::default());
            fake.rotate(Certificate::default()).expect("it shows another certificate");
            if !tested.mended.is_empty() {
                mend(folder, &tested.mended);
            }
        }
    }
    for target in targets {
        let (failed, text) = run(folder.path(), target).await;
        let idle: Vec<&String> =
            failed.iter().filter(|(_, count)| **count == 0).map(|(name, _)| name).collect();
        assert!(idle.is_empty(), "{target}: these pass with a flawless webhook: {idle:#?}\n{text}");
    }
    checks
}

fn faulty() -> impl Iterator<Item = TestedWebhook> {
    webhooks().into_iter().filter(|tested| !tested.finds.is_empty())
}

/// Returns the combinations of webhooks in `proof_features.yaml`.
fn combinations() -> Vec<Vec<TestedWebhook>> {
    serde_saphyr::from_str(include_str!("proof_features.yaml")).expect("the table")
}

#[tokio::test(flavor = "multi_thread")]
async fn feature_of_a_proof_in_a_sample_passes_only_with_the_faulty_webhook() {
    let combinations = combinations().into_iter().step_by(SAMPLE).collect();
    let checks = assert_reproduced(faulty().step_by(SAMPLE).collect(), combinations).await;
    assert!(!checks.is_empty());
    let others: Vec<_> =
        checks.iter().filter(|check| !WITH_FEATURES.split(' ').any(|it| it == *check)).collect();
    assert!(others.is_empty(), "{others:?}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes long"]
async fn feature_of_a_proof_passes_only_with_the_faulty_webhook() {
    let checks = assert_reproduced(faulty().collect(), combinations()).await;
    assert_eq!(checks.join(" "), WITH_FEATURES);
}

/// Returns the commands in a proof's README.md that run its feature.
fn commands(readme: &str) -> Vec<&str> {
    readme.lines().filter_map(|line| line.strip_prefix("$ admit run ")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_readme_of_a_proof_runs_the_feature_with_a_webhook_behind_a_service() {
    let stage = Stage::with("non-idempotent").await;
    let entry = entry_of_service("w", stage.fake.ca_bundle());
    stage.write("service.yaml", &[configuration("MutatingWebhookConfiguration", "c", &[entry])]);
    let service = format!("injector/webhook={}", stage.fake.address());
    let arguments = ["-c", "service.yaml", "-f", "pods.yaml", "--check", "V01,V11", "--service", &service];
    let output = stage.verify(&[&arguments[..], &["--proofs", "proofs"]].concat()).await;
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let proof = stage.path("proofs/V01-1-c_w.example.com");
    let readme = std::fs::read_to_string(proof.join("README.md")).expect("it can be read");
    let [envtest, in_process] = commands(&readme)[..] else { panic!("two commands: {readme}") };
    let mut lines = vec![in_process];
    if machine::has_kube_apiserver() {
        lines.push(envtest);
    }
    for line in lines {
        let mut command = Command::new(env!("CARGO_BIN_EXE_admit"));
        command.arg("run").args(line.split(' ')).current_dir(&proof).env("NO_COLOR", "1");
        ends_with(&Stage::run(command).await, 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_readme_of_a_proof_without_a_feature_says_why() {
    let stage = Stage::with("fault: M05-random-name").await;
    let arguments = ["-c", "configuration.yaml", "-f", "pods.yaml", "--check", "V11", "--proofs", "proofs"];
    ends_with(&stage.verify(&arguments).await, 1);
    let proof = stage.path("proofs/V11-1-c_w.example.com");
    let readme = std::fs::read_to_string(proof.join("README.md")).expect("it can be read");
    assert!(
        readme.contains("There is no `proof.feature` for this: it shows only in several requests"),
        "{readme}"
    );
    assert!(!proof.join("proof.feature").exists() && commands(&readme).is_empty());
}
