//! Tests what `admit run` and `admit review` say about a call in addition to the messages of kube-apiserver.

#![expect(clippy::expect_used, reason = "a command that cannot be started fails the test")]

use std::fs;
use std::process::Command;

use tempfile::TempDir;

/// Runs `admit` with files in a new directory, and returns its output, in which lines are not wrapped.
fn admit(arguments: &str, files: &[(&str, &str)]) -> String {
    admit_in(&tempfile::tempdir().expect("a folder"), arguments, files)
}

fn admit_in(folder: &TempDir, arguments: &str, files: &[(&str, &str)]) -> String {
    for (name, text) in files {
        fs::write(folder.path().join(name), text).expect("it is written");
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_admit"));
    command.args(arguments.split(' ')).current_dir(folder.path()).env("NO_COLOR", "1");
    let output = command.output().expect("the command runs");
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A custom resource whose schema keeps the unknown fields of `spec.any` only.
const DEFINITION: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              properties:
                replicas: {type: integer}
                any: {type: object, x-kubernetes-preserve-unknown-fields: true}
";

/// Runs a feature in which a fake patches an object.
fn patch(object: &str, resource: &str, operations: &[&str]) -> String {
    let indented = |text: &str| text.trim().replace('\n', "\n      ");
    let operations: Vec<String> = operations.iter().map(|operation| format!("- {operation}")).collect();
    let feature = format!(
        r#"
Feature: Patches
  Scenario: A patch
    Given these objects exist:
      """yaml
      {definition}
      """
    And a mutating webhook "defaults" for {resource}
    And "defaults" patches the object:
      """yaml
      {operations}
      """
    When this object is created:
      """yaml
      {object}
      """
    Then the object contains:
      """yaml
      kind: {kind}
      """
"#,
        definition = indented(DEFINITION),
        operations = indented(&operations.join("\n")),
        object = indented(object),
        kind = if object.contains("Widget") { "Widget" } else { "Deployment" },
    );
    let found = admit("run my.feature", &[("my.feature", &feature)]);
    assert!(found.contains("1 passed, 0 failed"), "{found}");
    found
}

const DEPLOYMENT: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: nginx}]}
";

const WIDGET: &str = "{apiVersion: example.com/v1, kind: Widget, metadata: {name: a}, spec: {any: {}}}";

const DROPPED: &str = "the API server drops it";

#[test]
fn run_names_the_fields_of_a_patch_that_the_kind_does_not_have() {
    let found = patch(
        DEPLOYMENT,
        "deployments in apps/v1",
        &["{op: add, path: /spec/template/spec/priorityClas, value: high}"],
    );
    let expected = "defaults: spec.template.spec.priorityClas is not a field of Deployment: the API server drops it (did \
                    you mean priorityClassName?)";
    assert!(found.contains(expected), "{found}");
    let found = patch(WIDGET, "widgets", &["{op: add, path: /spec/replica, value: 1}"]);
    let expected =
        "defaults: spec.replica is not a field of Widget: the API server drops it (did you mean replicas?)";
    assert!(found.contains(expected), "{found}");
}

#[test]
fn run_does_not_report_fields_that_the_kind_has_or_that_the_patch_removes() {
    for operations in [
        &[
            "{op: test, path: /spec/template/spec/containers/0/name, value: web}",
            "{op: add, path: /spec/paused, value: true}",
        ],
        &["{op: add, path: /spec/extra, value: 1}", "{op: remove, path: /spec/extra}"],
        &[
            "{op: add, path: /metadata/annotations, value: {any: value}}",
            "{op: add, path: /spec/replicas, value: 0}",
        ],
    ] {
        let found = patch(DEPLOYMENT, "deployments in apps/v1", operations);
        assert!(!found.contains(DROPPED), "{found}");
    }
    let found = patch(WIDGET, "widgets", &["{op: add, path: /spec/any/extra, value: 1}"]);
    assert!(!found.contains(DROPPED), "{found}");
}

#[test]
fn review_names_the_fields_of_a_patch_that_the_kind_does_not_have() {
    let fakes = "
version: 1
webhooks:
- name: defaults
  type: mutating
  namespaceSelector: {}
  rules: [{operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*']}]
  behavior: {patch: {operations: [{op: add, path: /spec/template/spec/priorityClas, value: high}]}}
";
    let files = [("web.yaml", DEPLOYMENT), ("fakes.yaml", fakes)];
    let folder = tempfile::tempdir().expect("a folder");
    let found = admit_in(&folder, "review -f web.yaml --fakes fakes.yaml --html page.html", &files);
    let expected = "note: spec.template.spec.priorityClas is not a field of Deployment: the API server drops it (did you \
                    mean priorityClassName?)";
    assert!(found.contains(expected), "{found}");
    let page = fs::read_to_string(folder.path().join("page.html")).expect("the page");
    assert!(page.contains("priorityClas is not a field of Deployment"), "{page}");
}

const CONFIG_MAP: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}}";

/// Runs a feature in which the request for a `ConfigMap` is expected to be admitted, with these steps about "policy".
fn policy(steps: &str) -> String {
    let feature = format!(
        r#"
Feature: Failures
  Scenario: A failure
    Given a validating webhook "policy" for configmaps
    {}
    When this object is created:
      """yaml
      {CONFIG_MAP}
      """
    Then the request is admitted
"#,
        steps.trim().replace('\n', "\n    ")
    );
    admit("run my.feature", &[("my.feature", &feature)])
}

/// Reviews a `ConfigMap` with a fake that has these fields.
fn review(fields: &str) -> String {
    let fakes = format!(
        "
version: 1
webhooks:
- name: policy
  type: validating
  namespaceSelector: {{}}
  rules: [{{operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*']}}]
  {fields}
"
    );
    admit("review -f object.yaml --fakes fakes.yaml", &[("object.yaml", CONFIG_MAP), ("fakes.yaml", &fakes)])
}

#[test]
fn match_condition_that_fails_is_named() {
    let found = policy(
        "And \"policy\" has the match condition \"few\":\n  \"\"\"\n  object.data.size() < 3\n  \"\"\"",
    );
    let reason = "not called: its match condition \"few\" failed, and its failurePolicy is Fail: ";
    assert!(found.contains(&format!("= note: policy: {reason}")), "{found}");
    assert!(found.contains("no such key: data") && found.contains("= help: "), "{found}");

    let found =
        review("matchConditions: [{name: few, expression: object.data.size() < 3}]\n  behavior: allow");
    assert!(found.contains("= webhook: admit-fakes/policy.fakes.local"), "{found}");
    assert!(found.contains(&format!("= note: the webhook was {reason}")), "{found}");
    assert!(found.contains("= help: "), "{found}");
}

#[test]
fn body_of_an_http_error_is_shown_and_cut() {
    let body = r#"raw: {status: 500, text: '{"error": "KeyError: replicas"}'}"#;
    let expected = "the webhook responded with HTTP status 500 for the path /";
    let found = policy(&format!("And \"policy\" behaves like this:\n  \"\"\"yaml\n  {body}\n  \"\"\""));
    assert!(found.contains("policy: CREATE configmaps: "), "{found}");
    assert!(found.contains(expected), "{found}");
    assert!(found.contains(r#"the response begins with: {"error": "KeyError: replicas"}"#), "{found}");
    let found = review(&format!("behavior: {{{body}}}"));
    assert!(found.contains(&format!("= note: {expected}")), "{found}");
    assert!(found.contains(r#"= response: {"error": "KeyError: replicas"}"#), "{found}");

    let long = "x".repeat(5000);
    let body = format!(r#"raw: {{status: 500, text: "\x1b[2J{long}"}}"#);
    let found = review(&format!("behavior: {{{body}}}"));
    let (_, shown) = found.split_once("= response: ").expect("the body");
    assert!(shown.starts_with(r"\u{1b}[2Jxxx"), "{found}");
    assert!(shown.contains("x\u{2026}") && !found.contains(&"x".repeat(310)), "{found}");
}

#[test]
fn redirect_of_a_failed_call_is_named() {
    let found = review(
        "behavior: {raw: {status: 307, headers: {location: 'https://127.0.0.1:1/elsewhere'}, text: ''}}",
    );
    assert!(
        found.contains(
            "= note: the webhook redirects /policy.fakes.local to /elsewhere, and the redirected request failed"
        ),
        "{found}"
    );
}

#[test]
fn response_without_allowed_is_explained() {
    let body = "raw: {response: {uid: '{uid}', allow: true}}";
    let expected = "response.allowed is missing, so the API server denies the request; response.allow is not a field of the \
                    response (did you mean allowed?)";
    let found = review(&format!("behavior: {{{body}}}"));
    assert!(found.contains(&format!("= note: {expected}")), "{found}");
    let found = policy(&format!("And \"policy\" behaves like this:\n  \"\"\"yaml\n  {body}\n  \"\"\""));
    assert!(found.contains(&format!("= note: policy: {expected}")), "{found}");
    let denied = review("behavior: {deny: {message: no}}");
    assert!(!denied.contains("response.allowed"), "{denied}");
}

#[test]
fn resource_of_a_rule_that_is_misspelled_is_named() {
    let rules =
        "rules: [{operations: [CREATE], apiGroups: [\"\"], apiVersions: [v1], resources: [configmap]}]";
    let configured = |rules: &str| {
        policy(&format!("And \"policy\" is configured with:\n  \"\"\"yaml\n  {rules}\n  \"\"\""))
    };
    let found = configured(rules);
    let expected = r#"rules[0].resources has ["configmap"], but the request has "configmaps" (is the resource name misspelled?)"#;
    assert!(found.contains(expected), "{found}");
    let found = configured(&rules.replace("configmap]", "pods]"));
    assert!(
        found.contains(r#"rules[0].resources has ["pods"], but the request has "configmaps""#),
        "{found}"
    );
    assert!(!found.contains("misspelled"), "{found}");
}

#[test]
fn run_says_that_a_rejected_request_has_no_second_round() {
    let feature = |behavior: &str| {
        format!(
            r#"
Feature: Reinvocation
  Scenario: Twice
    Given a mutating webhook "sidecar" for configmaps
    And "sidecar" has the reinvocation policy IfNeeded
    And {behavior}
    When this object is created:
      """yaml
      {{apiVersion: v1, kind: ConfigMap, metadata: {{name: a}}}}
      """
    Then "sidecar" is called twice
"#
        )
    };
    let rejected = "note: sidecar: not called again: the request was rejected in the first round";
    let patch = "{op: add, path: /metadata/labels/a, value: b}";
    for behavior in [
        "\"sidecar\" responds with the HTTP status 500".to_owned(),
        format!("\"sidecar\" patches the object:\n      \"\"\"yaml\n      - {patch}\n      \"\"\""),
    ] {
        let found = admit("run my.feature", &[("my.feature", &feature(&behavior))]);
        assert!(found.contains(rejected) && !found.contains("no webhook changed"), "{found}");
    }
    let patch = "{op: add, path: /metadata/labels, value: {a: b}}";
    let behavior =
        format!("\"sidecar\" patches the object:\n      \"\"\"yaml\n      - {patch}\n      \"\"\"");
    let found = admit("run my.feature", &[("my.feature", &feature(&behavior))]);
    assert!(found.contains("not called again: no webhook changed the object after its call"), "{found}");
}

#[test]
fn the_same_error_of_several_steps_is_printed_once() {
    let scenario = |name: &str| {
        format!(
            r#"
  Scenario: {name}
    When this object is created:
      """yaml
      {{apiVersion: v1, kind: ConfigMap, metadata: {{name: a}}}}
      """
    Then the request is rejected with 403
"#
        )
    };
    let feature = format!("Feature: Same{}{}", scenario("One"), scenario("Two"));
    let found = admit("run my.feature --quiet", &[("my.feature", &feature)]);
    assert_eq!(found.matches("error: ").count(), 1, "{found}");
    assert!(found.contains("= scenario: One (my.feature:2) = scenario: Two (my.feature:9)"), "{found}");
}

#[test]
fn path_without_slash_that_changes_another_field_is_named() {
    let found = patch(DEPLOYMENT, "deployments in apps/v1", &["{op: add, path: spec/paused, value: true}"]);
    let expected = "defaults: the path `spec/paused` in the patch does not begin with a slash: the API server ignores the \
                    text before the first slash";
    assert!(found.contains(expected), "{found}");
}

#[test]
fn review_says_that_the_server_keeps_nothing_of_a_patch_with_unknown_fields() {
    const POD: &str =
        "{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: c, image: i}]}}";
    let fakes = "version: 1\nname: f\nwebhooks:\n- name: f\n  type: mutating\n  behavior: {patch: {operations: [{op: add, \
                 path: /spec/other, value: 1}]}}\n";
    let found = admit("review -f web.yaml --fakes f.yaml", &[("web.yaml", POD), ("f.yaml", fakes)]);
    assert!(
        found.contains("allowed, but the API server drops all changes of the patch note: spec.other is not"),
        "{found}"
    );
}

/// A fake whose behavior is `behavior`, for a Pod without `spec.nodeSelector`.
fn broken_patch(behavior: &str) -> String {
    format!(
        r#"Feature: A broken patch
  Scenario: The parent is missing
    Given a mutating webhook "injector" for pods
    And "injector" behaves like this:
      """yaml
      {behavior}
      """
    When a pod is created
    Then the request is admitted
"#
    )
}

#[test]
fn junit_has_the_notes_that_explain_a_failure() {
    let folder = tempfile::tempdir().expect("a folder");
    let feature = broken_patch("patch: {operations: [{op: add, path: /spec/nodeSelector/disk, value: ssd}]}");
    admit_in(&folder, "run my.feature --junit report.xml --retries 1", &[("my.feature", &feature)]);
    let report = fs::read_to_string(folder.path().join("report.xml")).expect("it is written");
    let help = "\nhelp: the patch operation (`add`) writes /spec/nodeSelector/disk: the object does not have /spec/nodeSelector;";
    for element in ["<failure ", "<rerunFailure "] {
        let text = report.split(element).nth(1).and_then(|rest| rest.split("</").next()).expect("an element");
        assert!(text.contains("my.feature:9\nexpected the request to be admitted"), "{report}");
        assert!(text.contains(help), "{report}");
    }
}

#[test]
fn behavior_without_a_map_of_parameters_names_them() {
    let feature = broken_patch("patch: [{op: add, path: /spec/nodeSelector/disk, value: ssd}]");
    let found = admit("run my.feature", &[("my.feature", &feature)]);
    let expected = "invalid behavior on line 6 of the feature file: `patch` needs a map of its parameters: expected one of `operations`,";
    assert!(found.contains(expected), "{found}");
}
