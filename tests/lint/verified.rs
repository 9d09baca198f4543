//! Checks the manifests of well-known projects for false errors.
//!
//! `admit verify` must also find each error in the running webhooks of the project.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{report, root};

/// Returns the check and the webhook of each finding of `admit verify` for a project.
fn found(project: &str) -> BTreeSet<(String, String)> {
    let file = root().join("tests/verified").join(project).join("found.json");
    let found: Value = serde_json::from_slice(&std::fs::read(file).expect("it is there")).expect("JSON");
    let mut all = BTreeSet::new();
    for finding in found["findings"].as_array().expect("findings") {
        let check = finding["check"].as_str().expect("a check");
        for webhook in finding["webhooks"].as_array().expect("webhooks") {
            all.insert((check.to_owned(), without_phase(webhook.as_str().expect("a name")).to_owned()));
        }
    }
    all
}

/// Removes the phase from a webhook's name. It distinguishes a mutating and a validating webhook with the same name.
fn without_phase(webhook: &str) -> &str {
    webhook.trim_end_matches(" (mutating)").trim_end_matches(" (validating)")
}

#[test]
fn no_well_known_project_has_a_false_alarm() {
    let (mut projects, mut errors) = (0, 0);
    for entry in std::fs::read_dir(root().join("tests/verified")).expect("the folder is there") {
        let project = entry.expect("an entry").file_name().to_string_lossy().into_owned();
        let file = format!("tests/verified/{project}/configuration.yaml");
        if !root().join(&file).is_file() {
            continue;
        }
        projects += 1;
        let (report, _) = report(&file);
        let verified = found(&project);
        for finding in report["findings"].as_array().expect("a list") {
            let is_error = finding["severity"] == "error";
            let check = finding["check"].as_str().expect("a check").to_owned();
            let webhook = without_phase(finding["webhook"].as_str().expect("a webhook")).to_owned();
            assert!(!is_error || verified.contains(&(check, webhook)), "{project}: {finding:#}");
            errors += usize::from(is_error);
        }
    }
    assert!(projects >= 11 && errors > 0, "{projects} projects, {errors} errors");
}
