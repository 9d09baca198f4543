//! Tests webhook configurations of `admissionregistration.k8s.io/v1beta1` in files.
//!
//! Every command that reads them uses the defaults of that version, and reports the equivalent configuration in v1.

use std::fs;
use std::process::Output;

use crate::helpers::folder::{admit, folder};

/// A configuration in v1beta1. Nothing listens at its address, so the failure policy determines the result.
const OLD: &str = "\
apiVersion: admissionregistration.k8s.io/v1beta1
kind: ValidatingWebhookConfiguration
metadata: {name: old}
webhooks:
- name: pods.example.com
  clientConfig: {url: 'https://127.0.0.1:1/'}
  rules:
  - {operations: [CREATE], apiGroups: [''], apiVersions: [v1], resources: [pods]}
";
const POD: &str =
    "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, image: i}]}}";
const DIFFERENCES: [&str; 3] = [
    "webhooks[0].failurePolicy is not set: Ignore in v1beta1, Fail in v1",
    "webhooks[0].matchPolicy is not set: Exact in v1beta1, Equivalent in v1",
    "webhooks[0].timeoutSeconds is not set: 30 in v1beta1, 10 in v1",
];
const ERRORS: [&str; 2] = [
    "webhooks[0].sideEffects: Required value: must specify one of None, NoneOnDryRun",
    "webhooks[0].admissionReviewVersions: Required value: must specify one of v1, v1beta1",
];

/// Returns the standard output and the standard error; asserts that the exit status is `status`.
#[track_caller]
fn ends_with(output: &Output, status: i32) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(status), "{stdout}{stderr}");
    (stdout, stderr)
}

#[track_caller]
fn warns(text: &str) {
    assert!(text.contains("API servers have not served since Kubernetes 1.22"), "{text}");
    for line in DIFFERENCES.iter().chain(&ERRORS) {
        assert_eq!(text.matches(line).count(), 1, "{line}\n{text}");
    }
}

#[test]
fn review_fails_open_by_default_as_v1beta1_does() {
    let folder = folder(&[("old.yaml", OLD), ("pod.yaml", POD)]);
    let (stdout, stderr) = ends_with(&admit(&folder, "review -f pod.yaml -c old.yaml"), 0);
    warns(&stderr);
    assert!(
        stderr.starts_with("warning: old.yaml:1: ValidatingWebhookConfiguration \"old\" is of "),
        "{stderr}"
    );
    assert!(stdout.contains("failed open"), "{stdout}");
}

#[test]
fn review_rejects_a_dry_run_for_unknown_side_effects() {
    let folder = folder(&[("old.yaml", OLD), ("pod.yaml", POD)]);
    let output = admit(&folder, "review -f pod.yaml -c old.yaml --dry-run=server -o json");
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("does not support dry run"), "{text}");
    assert_ne!(output.status.code(), Some(0), "{text}");
}

#[test]
fn review_rejects_v1_without_the_fields_that_v1beta1_defaults() {
    let new = OLD.replace("/v1beta1", "/v1");
    let folder = folder(&[("new.yaml", &new), ("pod.yaml", POD)]);
    let (_, stderr) = ends_with(&admit(&folder, "review -f pod.yaml -c new.yaml"), 2);
    assert!(stderr.contains(ERRORS[0]) && stderr.contains(ERRORS[1]), "{stderr}");
}

#[test]
fn verify_checks_it_with_the_defaults_of_v1beta1() {
    let folder = folder(&[("old.yaml", OLD)]);
    let (stdout, stderr) = ends_with(&admit(&folder, "verify -c old.yaml --check V57 -v"), 1);
    warns(&stderr);
    assert!(stdout.contains("failurePolicy is not set and defaults to Ignore"), "{stdout}");
    assert!(stdout.contains("matchPolicy: Exact, timeoutSeconds: 30"), "{stdout}");
    let (_, stderr) = ends_with(&admit(&folder, "verify -c old.yaml --check V57 --quiet"), 1);
    warns(&stderr);
}

#[test]
fn lint_has_a_finding_for_each_difference() {
    let folder = folder(&[("old.yaml", OLD)]);
    let (stdout, _) = ends_with(&admit(&folder, "lint -c old.yaml --check L01,L03"), 1);
    assert!(stdout.starts_with("old: 1 error, 5 warnings\n\nerror[L03]: "), "{stdout}");
    assert!(stdout.contains(" --> old.yaml:1\n") && stdout.contains("  = field: apiVersion\n"), "{stdout}");
    for (field, value) in [("failurePolicy", "Ignore"), ("matchPolicy", "Exact"), ("timeoutSeconds", "30")] {
        let message = format!("warning[L03]: webhooks[0].{field} is not set: {value} in v1beta1, ");
        assert!(
            stdout.contains(&message)
                && stdout.contains(&format!(": set {value} to keep the behavior in v1\n")),
            "{stdout}"
        );
    }
    for error in ERRORS {
        assert!(stdout.contains(&format!("v1 rejects the configuration: {error}")), "{stdout}");
    }
    assert!(stdout.ends_with("6 findings (1 error, 5 warnings) in 1 configuration\n"), "{stdout}");
}

#[test]
fn run_stores_the_configuration_in_v1_and_reports_that() {
    let feature = "\
Feature: Old manifests
  Scenario: A webhook of v1beta1 fails open
    Given the objects in the file \"old.yaml\" exist
    When a pod is created
    Then the request is admitted
";
    let valid = format!("{OLD}  sideEffects: None\n");
    let folder = folder(&[("old.yaml", &valid), ("old.feature", feature)]);
    let (stdout, _) = ends_with(&admit(&folder, "run old.feature"), 0);
    assert!(stdout.contains("old.yaml: ValidatingWebhookConfiguration \"old\" is of "), "{stdout}");
    assert!(stdout.contains(DIFFERENCES[0]), "{stdout}");

    // Fields that v1 does not support cannot be stored.
    fs::write(folder.path().join("old.yaml"), OLD).expect("it is written");
    let (stdout, _) = ends_with(&admit(&folder, "run old.feature"), 1);
    assert!(stdout.contains("sideEffects: Unsupported value: \"Unknown\""), "{stdout}");
}
