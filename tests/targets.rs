//! Runs the shipped features in process and on a real kube-apiserver: each scenario must have the same result.
//!
//! Needs KUBEBUILDER_ASSETS; without it, the comparison is skipped with a message.

#![expect(clippy::indexing_slicing, reason = "a wrong index fails the test")]
#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "what a test does not expect may panic, and it says what it counted"
)]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::helpers::machine;

/// The result of a scenario on one target: its status, and the reports of its steps.
#[derive(Debug, PartialEq, Eq)]
struct ScenarioResult {
    status: String,
    told: Vec<String>,
}

/// Runs the shipped features and returns the results, by the position of the scenario in the files.
fn run(target: &str, folder: &Path) -> BTreeMap<String, ScenarioResult> {
    let report = folder.join(format!("{target}.json"));
    let status = Command::new(env!("CARGO_BIN_EXE_admit"))
        .args(["run", "--quiet", "--target", target, "--json"])
        .arg(&report)
        .status()
        .expect("admit starts");
    println!("admit run --target {target}: {status}");
    let report = std::fs::read(&report).expect("the report is written, also when scenarios fail");
    let report: Value = serde_json::from_slice(&report).expect("the report is JSON");
    println!("{target}: {}", report["counts"]);
    let mut seen = BTreeMap::new();
    for feature in list(&report["features"]) {
        let rules = list(&feature["rules"]).iter().flat_map(|rule| list(&rule["scenarios"]));
        for scenario in list(&feature["scenarios"]).iter().chain(rules) {
            let place = format!("{}:{} {}", feature["path"], scenario["line"], scenario["name"]);
            seen.insert(place, ScenarioResult { status: text(&scenario["status"]), told: told(scenario) });
        }
    }
    seen
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Returns every call, every decision, and every verdict of a check in the steps of the last attempt.
///
/// The result does not contain UIDs, times, ports, and namespaces, because they differ in every run; nor the order of
/// validating webhooks, because they are called concurrently; nor notes, which are about data that only admit's API server
/// records: why a webhook was not called, what policies did, which calls did not reach a fake, and why a call failed.
fn told(scenario: &Value) -> Vec<String> {
    let drawn = regex::Regex::new(
        r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|(127.0.0.1|[.]svc):[0-9]+|[0-9-]{10}T[0-9:]{8}Z|admit-a[0-9a-f]{8}",
    )
    .expect("it is an expression");
    let is_compared =
        regex::Regex::new(r#"^[0-9]{3} |^[^"]*: (CREATE|UPDATE|DELETE|CONNECT) |^V[0-9]{2} for ""#)
            .expect("it is an expression");
    let attempt = list(&scenario["attempts"]).last().unwrap_or(&Value::Null);
    let mut told = Vec::new();
    for step in list(&attempt["steps"]) {
        let lines = list(&step["notes"]).iter().filter_map(Value::as_str);
        let is_unsent =
            |line: &str| line.contains(": failed: ") || line.contains(": failed to call webhook: ");
        let is_call = |line: &str| line.ends_with(" (rejected)") || line.ends_with(" (failed open)");
        let lines = lines.filter(|line| is_compared.is_match(line) && !(is_call(line) && is_unsent(line)));
        let lines = lines.map(|line| {
            let line = line.strip_suffix(" (failed open)").unwrap_or(line);
            line.strip_suffix(" (rejected)").unwrap_or(line)
        });
        let mut lines: Vec<_> = lines.map(|line| drawn.replace_all(line, "#").into_owned()).collect();
        lines.sort();
        told.extend(lines);
    }
    told
}

#[test]
fn every_scenario_ends_alike_in_process_and_on_a_real_kube_apiserver() {
    if !machine::has_kube_apiserver() {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let (ours, theirs) = (run("in-process", folder.path()), run("envtest", folder.path()));
    assert!(ours.len() > 20, "only {} scenarios were run", ours.len());
    let mut differences = Vec::new();
    let mut skipped = 0;
    for (place, ours) in &ours {
        match theirs.get(place) {
            Some(theirs) if ours == theirs && ours.status == "passed" => {}
            // These scenarios require an option: tests/webhook_authentication runs them with it on both targets.
            Some(theirs) if ours == theirs && ours.status == "skipped" => skipped += 1,
            theirs => differences.push(format!("{place}\n  in process: {ours:?}\n  envtest: {theirs:?}")),
        }
    }
    assert_eq!(ours.len(), theirs.len(), "a scenario was run on one target only");
    let feature = include_str!("../features/authentication.feature");
    let tagged = feature.lines().filter(|line| line.trim() == "@admission-control-config-file");
    assert_eq!(skipped, tagged.count(), "other scenarios were skipped");
    assert!(differences.is_empty(), "{} scenarios differ:\n{}", differences.len(), differences.join("\n"));
}
