//! Tests files with objects whose kind or version the API server does not serve.

use tempfile::TempDir;

use crate::helpers::folder::{self, folder};

const POD: &str =
    "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, image: i}]}}";

/// A configuration for Pods. Nothing listens at its address.
const VALID: &str = "\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: pods}
webhooks:
- name: pods.example.com
  clientConfig: {url: 'https://127.0.0.1:1/'}
  sideEffects: None
  admissionReviewVersions: [v1]
  namespaceSelector: {matchLabels: {env: prod}}
  rules:
  - {operations: [CREATE], apiGroups: [''], apiVersions: [v1], resources: [pods]}
";

const FEATURE: &str = "\
Feature: pods
  Scenario: A pod is created
    Given the objects in the file \"c.yaml\" exist
    When a pod is created
    Then the request is admitted
";

/// Runs the command in `folder`, and returns its output; asserts that the exit status is `status`.
#[track_caller]
fn admit(folder: &TempDir, line: &str, status: i32) -> String {
    let output = folder::admit(folder, line);
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(status), "{text}");
    text
}

#[test]
fn unknown_kind_next_to_a_valid_configuration_is_an_error() {
    let misspelled = VALID.replace("ValidatingWebhookConfiguration", "ValidatingWebhookConfig");
    let folder = folder(&[("c.yaml", &format!("{VALID}---\n{misspelled}")), ("pod.yaml", POD)]);
    let expected = "c.yaml:13: no matches for kind \"ValidatingWebhookConfig\" in version \
                    \"admissionregistration.k8s.io/v1\" (did you mean ValidatingWebhookConfiguration?)\n";
    for line in ["lint -c c.yaml", "review -f pod.yaml -c c.yaml", "verify -c c.yaml --check V57"] {
        let text = admit(&folder, line, 2);
        assert!(text.ends_with(expected), "{line}: {text}");
    }
}

#[test]
fn unknown_version_of_a_configuration_is_an_error() {
    let folder = folder(&[("c.yaml", &VALID.replace("k8s.io/v1", "k8s.io/v2")), ("pod.yaml", POD)]);
    let expected = "c.yaml:1: no matches for kind \"ValidatingWebhookConfiguration\" in version \
                    \"admissionregistration.k8s.io/v2\" (did you mean admissionregistration.k8s.io/v1?)\n";
    for line in ["lint -c c.yaml", "review -f pod.yaml -c c.yaml", "verify -c c.yaml --check V57"] {
        let text = admit(&folder, line, 2);
        assert!(text.ends_with(expected), "{line}: {text}");
    }
}

#[test]
fn objects_of_other_groups_are_still_ignored() {
    let widget = VALID
        .replace("admissionregistration.k8s.io", "example.com")
        .replace("ValidatingWebhookConfiguration", "Widget");
    let folder = folder(&[("c.yaml", &format!("{VALID}---\n{widget}"))]);
    let text = admit(&folder, "lint -c c.yaml --check L01", 0);
    assert!(text.contains("1 configuration: no problems found"), "{text}");
}

#[test]
fn run_does_not_install_an_object_of_another_kind_as_a_configuration() {
    let kind = |kind: &str| VALID.replace("ValidatingWebhookConfiguration", kind);
    let cases = [
        (
            kind("MutatingWebhookConfigurations"),
            "c.yaml:2: no matches for kind \"MutatingWebhookConfigurations\" in version \
             \"admissionregistration.k8s.io/v1\" (did you mean MutatingWebhookConfiguration?)",
        ),
        (
            VALID.replace("k8s.io/v1", "k8s.io/v2"),
            "c.yaml:2: no matches for kind \"ValidatingWebhookConfiguration\" in version \
             \"admissionregistration.k8s.io/v2\" (did you mean admissionregistration.k8s.io/v1?)",
        ),
        (
            kind("Widget").replace("admissionregistration.k8s.io", "example.com"),
            "c.yaml:2: no matches for kind \"Widget\" in version \"example.com/v1\"",
        ),
    ];
    run_rejects(&cases);
}

#[test]
fn run_names_the_version_or_the_kind_that_is_probably_meant() {
    let object = |api_version: &str, kind: &str| {
        format!("apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: a}}\n")
    };
    run_rejects(&[
        (
            object("v1", "Deployment"),
            "c.yaml:2: no matches for kind \"Deployment\" in version \"v1\" (did you mean apps/v1?)",
        ),
        (
            object("apps/v1", "Pod"),
            "c.yaml:2: no matches for kind \"Pod\" in version \"apps/v1\" (did you mean v1?)",
        ),
        (
            object("apps/v1", "Deploymnt"),
            "c.yaml:2: no matches for kind \"Deploymnt\" in version \"apps/v1\" (did you mean Deployment?)",
        ),
    ]);
}

#[test]
fn review_names_the_version_that_is_probably_meant() {
    let folder =
        folder(&[("pod.yaml", &POD.replace("apiVersion: v1", "apiVersion: apps/v1")), ("c.yaml", VALID)]);
    let expected = "pod.yaml:1: no matches for kind \"Pod\" in version \"apps/v1\" (did you mean v1?)\n";
    for line in ["review -f pod.yaml -c c.yaml", "review -f c.yaml -c c.yaml --with pod.yaml"] {
        let text = admit(&folder, line, 2);
        assert!(text.ends_with(expected), "{line}: {text}");
    }
}

/// Asserts that the step that loads each text as a manifest fails with the message.
#[track_caller]
fn run_rejects(cases: &[(String, &str)]) {
    for (text, expected) in cases {
        let folder = folder(&[("c.yaml", text), ("f.feature", FEATURE)]);
        let output = admit(&folder, "run f.feature", 1);
        assert!(output.contains(*expected), "{output}");
    }
}

#[test]
fn lint_finds_unknown_fields_next_to_a_value_of_the_wrong_type() {
    let wrong = format!("{VALID}  failPolicy: Ignore\n").replace("env: prod", "env: true");
    let folder = folder(&[("c.yaml", &wrong)]);
    let text = admit(&folder, "lint -c c.yaml --check L02", 1);
    assert!(text.contains("error[L02]: ") && text.contains("--> c.yaml:12\n"), "{text}");
}

#[test]
fn review_uses_the_labels_of_a_namespace_next_to_the_configuration() {
    let namespace = "{apiVersion: v1, kind: Namespace, metadata: {name: default, labels: {env: prod}}}";
    let folder = folder(&[
        ("c.yaml", VALID),
        ("ns.yaml", namespace),
        ("dev.yaml", &namespace.replace("prod", "dev")),
        ("pod.yaml", POD),
    ]);
    let text = admit(&folder, "review -f pod.yaml -c c.yaml ns.yaml", 3);
    assert!(text.contains("failed calling webhook \"pods.example.com\""), "{text}");
    let text = admit(&folder, "review -f pod.yaml -c c.yaml ns.yaml --with dev.yaml", 0);
    assert!(!text.contains("failed calling webhook"), "{text}");
}
