//! Tests that `admit run` shows rejected objects with the names and lines of the user's files.

#![expect(clippy::expect_used, reason = "a command that cannot be started fails the test")]

use std::process::Command;

const POLICY: &str = "\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: limit}
spec:
  matchConstraints:
    resourceRules: [{operations: [CREATE], apiGroups: [''], apiVersions: [v1], resources: [configmaps]}]
  validations:
  - expression: object.data.size( <= 3
";

/// Runs a feature in a folder with `policy.yaml`, and returns the output, in which lines are not wrapped.
fn run(feature: &str) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("my.feature"), feature).expect("it is written");
    std::fs::write(folder.path().join("policy.yaml"), POLICY).expect("it is written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_admit"));
    command.args(["run", "my.feature"]).current_dir(folder.path()).env("NO_COLOR", "1");
    let output = command.output().expect("the command runs");
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{text}");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn feature(given: &str) -> String {
    format!("Feature: A\n  Scenario: B\n{given}    When a pod is created\n    Then the request is admitted\n")
}

#[test]
fn rejected_policy_has_its_name_and_the_line_of_the_field() {
    let expected = "the API server rejects ValidatingAdmissionPolicy \"limit\": 422 Invalid: \
                    ValidatingAdmissionPolicy.admissionregistration.k8s.io \"limit\" is invalid: \
                    spec.validations[0].expression: ";
    let found = run(&feature("    Given the objects in the file \"policy.yaml\" exist\n"));
    assert!(found.contains(&format!("policy.yaml:8: {expected}")), "{found}");
    let text = POLICY.lines().fold(String::new(), |text, line| text + "      " + line + "\n");
    let found =
        run(&feature(&format!("    Given this object exists:\n      \"\"\"yaml\n{text}      \"\"\"\n")));
    assert!(found.contains(&format!("line 12 of the feature file: {expected}")), "{found}");
}

#[test]
fn rejected_webhook_has_its_name_and_the_line_of_its_step() {
    let given = "    Given a mutating webhook \"first\" for pods\n    And a mutating webhook \"labels\" for pods\n    And \
                 \"labels\" has a timeout of 90 seconds\n";
    let found = run(&feature(given));
    let expected = "the API server rejects the webhook \"labels\" on line 4 of the feature file: \
                    webhooks[1].timeoutSeconds: Invalid value: 90";
    assert!(found.contains(expected), "{found}");
    assert!(!found.contains("\"admit-a"), "{found}");
}
