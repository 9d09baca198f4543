//! Tests the error messages of failed scenarios.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{FEATURE, Stage, ends_with, feature};
use crate::helpers::machine;

#[tokio::test(flavor = "multi_thread")]
async fn certificate_that_the_api_server_does_not_trust_is_explained() {
    let ignore = "    And \"inject.example.com\" has the failure policy Ignore\n";
    let stage = Stage::with(&feature(ignore, "    Then the object has the label \"injected=true\"\n")).await;
    let other = Stage::with(FEATURE).await;
    let manifest = std::fs::read_to_string(other.folder.path().join("manifest.yaml")).expect("the manifest");
    std::fs::write(stage.folder.path().join("manifest.yaml"), &manifest).expect("it is written");
    let text = ends_with(&stage.run("in-process").await, 1);
    let address = stage.webhook.address();
    let note = text.lines().find(|line| line.contains("x509: certificate signed by unknown authority"));
    assert!(note.is_some_and(|note| note.ends_with("(failed open)")), "{text}");
    let help = "= help: the caBundle of \"inject.example.com\" is empty or does not contain the CA that";
    assert!(text.contains(help), "{text}");
    assert!(!text.contains("listens there") && !text.contains("did not reach"), "{text}");
    let warning = format!(
        "warning: 1 call to the webhook behind injector/webhook at {address} failed in the TLS handshake\n"
    );
    assert!(text.contains(&warning), "{text}");

    // A manifest may still contain the placeholder of its template.
    let bundle = STANDARD.encode(other.webhook.ca_bundle());
    std::fs::write(stage.folder.path().join("manifest.yaml"), manifest.replace(&bundle, "CA_BUNDLE"))
        .expect("it is written");
    let text = ends_with(&stage.run("in-process").await, 1);
    assert!(text.contains("illegal base64 data"), "{text}");
    assert!(
        text.contains("= help: webhooks[0].clientConfig.caBundle is the placeholder \"CA_BUNDLE\""),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn namespace_outside_of_the_scenario_is_named_on_each_target() {
    let feature = r#"
Feature: Elsewhere
  Scenario: An object in another namespace
    Given a validating webhook "policy" for configmaps
    And "policy" denies the request with the message "no"
    When this object is created:
      """yaml
      {apiVersion: v1, kind: ConfigMap, metadata: {name: elsewhere, namespace: default}}
      """
    Then the request is rejected with 403
"#;
    let targets =
        if machine::has_kube_apiserver() { vec!["in-process", "envtest"] } else { vec!["in-process"] };
    for target in targets {
        let stage = Stage::with(feature).await;
        let text = ends_with(&stage.run(target).await, 1);
        let note = text.lines().find(|line| line.trim_start().starts_with("= note: "));
        let expected = "the namespace \"default\" is not part of the scenario: add the step \
                        `webhooks are also called in the namespace \"default\"`";
        assert!(note.is_some_and(|note| note.ends_with(expected)), "{target}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn failure_of_a_background_step_is_one_error_without_the_whole_object() {
    let feature = r#"
Feature: Shared steps
  Background:
    Given the objects in the file "manifest.yaml" exist
    When a pod is created
    Then the object has the label "stamp=on"
  Scenario: One
    Then the request is admitted
  Scenario: Two
    Then the request is admitted
"#;
    let stage = Stage::with(feature).await;
    let service = format!("injector/webhook={}", stage.webhook.address());
    let text = ends_with(&stage.run("in-process").await, 1);
    let errors: Vec<&str> = text.lines().filter(|line| line.starts_with("error: ")).collect();
    assert_eq!(errors, ["error: 2 scenarios fail in the same step"], "{text}");
    assert!(text.contains("= scenario: One (my.feature:7)\n"), "{text}");
    assert!(text.contains("= scenario: Two (my.feature:9)\n"), "{text}");
    assert_eq!(text.matches("metadata.labels.stamp: expected \"on\", found nothing").count(), 1, "{text}");
    assert!(text.contains("metadata.labels of the object:"), "{text}");
    assert!(!text.contains("tolerations") && !text.contains("terminationMessagePath"), "{text}");
    let quiet = ends_with(&stage.run_with(&["--quiet", "--service", &service]).await, 1);
    assert!(!quiet.contains("FAIL") && quiet.contains(errors[0]), "{quiet}");
    let verbose = ends_with(&stage.run_with(&["--verbose", "--service", &service]).await, 1);
    assert_eq!(verbose.matches("terminationMessagePath").count(), 1, "{verbose}");
}

#[tokio::test(flavor = "multi_thread")]
async fn failure_of_a_call_that_is_ignored_is_explained() {
    let ignore = "    And \"inject.example.com\" has the failure policy Ignore\n";
    let label = "    Then the object has the label \"injected=true\"\n";
    let stage = Stage::with(&feature(ignore, label)).await;
    stage.remove("Service");
    let text = ends_with(&stage.run_with(&[]).await, 1);
    let (_, error) = text.split_once("error: ").expect("a failed scenario");
    assert!(error.contains("service \"webhook\" not found"), "{text}");
    let help = "= help: set the address of the webhook with --service injector/webhook=HOST:PORT";
    assert!(error.contains(help), "{text}");
}

/// Returns the output of a run in which the webhook has this behavior, without the lines of the steps.
async fn quiet_run_with(behavior: &str) -> String {
    let stage = Stage::with(FEATURE).await;
    stage.webhook.set_behavior(serde_saphyr::from_str(behavior).expect("a behavior"));
    let service = format!("injector/webhook={}", stage.webhook.address());
    ends_with(&stage.run_with(&["--quiet", "--service", &service]).await, 1)
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_that_do_not_match_are_shown_with_the_values_of_the_request() {
    let stage = Stage::with(FEATURE).await;
    let manifest = stage.folder.path().join("manifest.yaml");
    let text = std::fs::read_to_string(&manifest).expect("the manifest");
    let text = text.replace(r#""apiGroups":[""]"#, r#""apiGroups":["apps"]"#);
    std::fs::write(&manifest, text).expect("it is written");
    let text = ends_with(&stage.run("in-process").await, 1);
    let note = "inject.example.com: not called: none of its rules matches the request: rules[0].apiGroups has \
                [\"apps\"], but the request has \"\"";
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(&format!("= note: {note}")), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn unusable_responses_are_explained_as_in_explain_error() {
    for (behavior, help) in [
        ("{bad-response: closed}", "the webhook panicked or stopped during the call; read its log"),
        (
            r#"{bytes: {text: "HTTP/1.0 404 Not Found\r\n\r\n", then: cut}}"#,
            "common causes: (1) the path in clientConfig is missing or wrong",
        ),
        (
            r#"{bytes: {text: "HTTP/1.1 404 Not Found\r\nContent-Length: 9\r\n\r\n"}}"#,
            "the webhook responded with status 404, but its body could not be read; common causes: (1) the path in clientConfig is missing",
        ),
        ("{raw: {text: '<html></html>'}}", "common causes: (1) the response is an HTML page of a proxy"),
        (
            "{raw: {response: {uid: '{uid}', allowed: true, patch: [{}], patchType: JSONPatch}}}",
            "the webhook returns the patch itself",
        ),
        (
            "{bad-response: wrong-version}",
            "common causes: (1) admissionReviewVersions lists a version that the webhook does not support",
        ),
        (
            "{patch: {operations: [{op: add, path: /spec/none/team, value: blue}]}}",
            "the patch operation (`add`) writes /spec/none/team: the object does not have /spec/none; if the map is \
             missing, first add it with the value {}, or add it with its content",
        ),
    ] {
        let text = quiet_run_with(behavior).await;
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(&format!("= help: {help}")), "{behavior}: {text}");
        let names = [
            "failed calling webhook \"inject.example.com\"",
            "= note: inject.example.com, first round: CREATE pods: the API server rejected the request because of this call",
        ];
        assert!(names.iter().any(|name| words.contains(name)), "{behavior}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_object_names_the_webhook_that_added_the_invalid_part() {
    let container = "{op: add, path: /spec/containers/-, value: {name: proxy}}";
    let text = quiet_run_with(&format!("{{patch: {{operations: [{container}]}}}}")).await;
    assert!(text.contains("spec.containers[1].image: Required value"), "{text}");
    assert!(text.contains("  = note: inject.example.com added spec.containers[1]\n"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn misspelled_fields_are_named_if_the_server_misses_the_right_ones() {
    let stage = Stage::with(FEATURE).await;
    let manifest = stage.folder.path().join("manifest.yaml");
    let text = std::fs::read_to_string(&manifest).expect("the manifest");
    std::fs::write(&manifest, text.replace("\"sideEffects\"", "\"sideEffect\"")).expect("it is written");
    let text = ends_with(&stage.run("in-process").await, 1);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let help = "= help: the API server ignores the unknown field";
    let expected = format!("{help} webhooks[0].sideEffect (did you mean sideEffects?)");
    assert!(words.contains(&expected), "{text}");
    // The unique name that the scenario gives the configuration is not part of the message.
    assert!(words.contains("Configuration.admissionregistration.k8s.io \"injector\" is invalid"), "{text}");

    let feature = r#"
Feature: A misspelled field
  Scenario: The image
    When this object is created:
      """yaml
      apiVersion: v1
      kind: Pod
      metadata: {name: web}
      spec: {containers: [{name: web, imge: a}], other: 1}
      """
    Then the request is admitted
"#;
    let stage = Stage::with(feature).await;
    let text = ends_with(&stage.run_with(&[]).await, 1);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let expected = format!("{help}s spec.containers[0].imge (did you mean image?), spec.other");
    assert!(words.contains(&expected), "{text}");

    // An optional field does not make the object invalid.
    let stage = Stage::with(&feature.replace("imge: a", "image: a")).await;
    let text = ends_with(&stage.run_with(&[]).await, 0);
    assert!(text.contains("Warning: unknown field \"spec.other\"\n"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn ignored_field_of_a_configuration_is_shown_with_a_similar_field() {
    let stage = Stage::with(FEATURE).await;
    let manifest = stage.folder.path().join("manifest.yaml");
    let text = std::fs::read_to_string(&manifest).expect("the manifest");
    let misspelled = "\"reinvokePolicy\":\"IfNeeded\",\"sideEffects\"";
    std::fs::write(&manifest, text.replace("\"sideEffects\"", misspelled)).expect("it is written");
    let text = ends_with(&stage.run("in-process").await, 0);
    let expected = "Configuration \"injector\": unknown field \"webhooks[0].reinvokePolicy\" (did you mean \
                    reinvocationPolicy?)";
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(expected), "{text}");
    // A warning at the end of the run is not hidden.
    let service = format!("injector/webhook={}", stage.webhook.address());
    let quiet = ends_with(&stage.run_with(&["--quiet", "--service", &service]).await, 0);
    let expected = "warning: MutatingWebhookConfiguration \"injector\": the API server ignores the unknown field \
                    \"webhooks[0].reinvokePolicy\" (did you mean reinvocationPolicy?)\n";
    assert!(quiet.contains(expected), "{quiet}");
}

#[tokio::test(flavor = "multi_thread")]
async fn admitted_request_that_should_be_rejected_names_the_calls() {
    let feature =
        FEATURE.replace("the object has the label \"injected=true\"", "the request is rejected with 403");
    let stage = Stage::with(&feature).await;
    let service = format!("injector/webhook={}", stage.webhook.address());
    let text = ends_with(&stage.run_with(&["--quiet", "--service", &service]).await, 1);
    let note = "  = note: inject.example.com, first round: CREATE pods: allowed, patched with 2 operations\n";
    assert!(text.contains(note), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_field_of_a_configuration_is_reported_with_its_line() {
    let stage = Stage::with(FEATURE).await;
    let manifest = stage.folder.path().join("manifest.yaml");
    let text = std::fs::read_to_string(&manifest).expect("the manifest");
    // The configuration is the third document, each of which is one line.
    let text = text.replace(r#""operations":["CREATE"]"#, "\n\"operations\":[\"create\"]");
    std::fs::write(&manifest, text).expect("it is written");
    let text = ends_with(&stage.run("in-process").await, 1);
    let expected =
        "manifest.yaml:6: the API server rejects MutatingWebhookConfiguration \"injector\": 422 Invalid: ";
    assert!(text.contains(expected), "{text}");
}
