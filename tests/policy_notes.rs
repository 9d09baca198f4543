//! Tests what `admit run` says about the admission policies of a scenario.

#![expect(clippy::expect_used, reason = "a command that cannot be started fails the test")]

use std::process::Command;

use tempfile::TempDir;

/// A policy for `ConfigMaps` with at most 3 entries, and a binding; tests replace some of their lines.
const POLICY: &str = r#"
Feature: The limit
  Scenario: Too many entries
    Given these objects exist:
      """yaml
      apiVersion: admissionregistration.k8s.io/v1
      kind: ValidatingAdmissionPolicy
      metadata: {name: entries}
      spec:
        failurePolicy: Fail
        paramKind: {apiVersion: v1, kind: ConfigMap}
        matchConstraints:
          resourceRules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]
        matchConditions: [{name: has-data, expression: has(object.data)}]
        validations: [{expression: object.data.size() <= 3, message: at most 3 entries, reason: Forbidden}]
      ---
      apiVersion: admissionregistration.k8s.io/v1
      kind: ValidatingAdmissionPolicyBinding
      metadata: {name: limit}
      spec:
        policyName: entries
        matchResources: {}
        validationActions: [Deny]
      """
    When this object is created:
      """yaml
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: settings, labels: {team: blue}}
      data: {a: '1', b: '2', c: '3', d: '4'}
      """
    Then the request is rejected with 403 Forbidden
"#;

/// Runs a feature in process, and returns its output, in which lines are not wrapped.
fn run(feature: &str) -> String {
    run_in(&tempfile::tempdir().expect("a folder"), feature, &[])
}

fn run_in(folder: &TempDir, feature: &str, options: &[&str]) -> String {
    std::fs::write(folder.path().join("my.feature"), feature).expect("it is written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_admit"));
    command.args(["run", "my.feature"]).args(options).current_dir(folder.path()).env("NO_COLOR", "1");
    let output = command.output().expect("the command runs");
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn explains(replaced: &str, with: &str, expected: &str) {
    assert!(POLICY.contains(replaced), "{replaced}");
    let found = run(&POLICY.replace(replaced, with));
    assert!(found.contains(&format!("= note: {expected}")), "{expected}\n{found}");
}

#[test]
fn denial_names_the_policy_and_the_binding() {
    let found = run(POLICY);
    assert!(found.contains(r#"policy "entries" with binding "limit": denied 403 Forbidden: "#), "{found}");
    assert!(found.contains("1 passed, 0 failed"), "{found}");
}

#[test]
fn ignored_field_of_a_policy_is_shown_with_a_similar_field() {
    let found = run(&POLICY.replace("failurePolicy: Fail", "failPolicy: Fail"));
    let expected = r#"Warning: ValidatingAdmissionPolicy "entries": unknown field "spec.failPolicy" (did you mean failurePolicy?)"#;
    assert!(found.contains(expected), "{found}");
}

#[test]
fn policy_that_does_not_match_shows_the_compared_values() {
    let policy = r#"policy "entries": not applied: matchConstraints"#;
    explains(
        "operations: [CREATE]",
        "operations: [DELETE]",
        r#"policy "entries": not applied: matchConstraints.resourceRules[0].operations has ["DELETE"], but the request has "CREATE""#,
    );
    explains(
        "resourceRules: [{operations: [CREATE]",
        "namespaceSelector: {matchLabels: {env: prod}}\n          resourceRules: [{operations: [CREATE]",
        &format!("{policy}.namespaceSelector requires env=prod; the namespace \"admit-"),
    );
    explains(
        "resourceRules: [{operations: [CREATE]",
        "objectSelector: {matchLabels: {team: red}}\n          resourceRules: [{operations: [CREATE]",
        &format!(r#"{policy}.objectSelector requires team=red; the object has the labels {{"team":"blue"}}"#),
    );
    explains(
        "matchResources: {}",
        "matchResources: {objectSelector: {matchLabels: {team: red}}}",
        r#"policy "entries" with binding "limit": not applied: matchResources.objectSelector requires team=red"#,
    );
    explains(
        "metadata: {name: settings,",
        "metadata: {name: settings, namespace: default,",
        r#"policy "entries": not applied: the namespace "default" is not part of the scenario: add the step `webhooks are"#,
    );
}

#[test]
fn policy_that_is_not_evaluated_shows_the_reason() {
    let bound = r#"policy "entries" with binding "limit": not applied:"#;
    explains(
        "expression: has(object.data)}",
        "expression: '!has(object.data)'}",
        &format!(r#"{bound} its match condition "has-data" is false"#),
    );
    explains(
        "matchResources: {}",
        "paramRef: {name: none, parameterNotFoundAction: Allow}",
        &format!("{bound} its paramRef selects no object, and its parameterNotFoundAction is Allow"),
    );
    explains(
        "policyName: entries",
        "policyName: entires",
        r#"policy "entries": not applied: no ValidatingAdmissionPolicyBinding of the scenario has the policyName "entries""#,
    );
    explains(
        "policyName: entries",
        "policyName: entires",
        r#"policy "entires" with binding "limit": not applied: the scenario does not create the ValidatingAdmissionPolicy "entires""#,
    );
}

#[test]
fn violation_that_does_not_deny_shows_the_reason() {
    let bound = r#"policy "entries" with binding "limit": not enforced:"#;
    explains(
        "validationActions: [Deny]",
        "validationActions: [Warn, Audit]",
        &format!("{bound} its validationActions are [Warn, Audit]: at most 3 entries"),
    );
    let ignoring = POLICY.replace("failurePolicy: Fail", "failurePolicy: Ignore");
    let found = run(&ignoring.replace("object.data.size() <= 3", "object.data.none == '1'"));
    let expected = "its failurePolicy is Ignore: expression 'object.data.none == '1'' resulted in error: no such key: none";
    assert!(found.contains(&format!("= note: {bound} {expected}")), "{found}");
}

#[test]
fn policy_that_allows_the_request_is_named_in_the_error() {
    explains(
        "object.data.size() <= 3",
        "object.data.size() <= 9",
        r#"policy "entries" with binding "limit": allowed: all validations are true"#,
    );
}

#[test]
fn failed_audit_annotation_denies_whatever_the_actions_are() {
    let warning = POLICY.replace("validationActions: [Deny]", "validationActions: [Warn]");
    let annotation =
        "auditAnnotations: [{key: a, valueExpression: 'string(object.data.none)'}]\n        validations:";
    let found = run(&warning.replace("validations:", annotation));
    assert!(
        found.contains(r#"policy "entries" with binding "limit": failed, and its failurePolicy is Fail"#),
        "{found}"
    );
    assert!(!found.contains("not enforced"), "{found}");
}

/// A mutating policy for `ConfigMaps`, and a binding; tests replace some of their lines.
const MUTATING_POLICY: &str = r#"
Feature: The owner
  Scenario: An annotation
    Given these objects exist:
      """yaml
      apiVersion: admissionregistration.k8s.io/v1
      kind: MutatingAdmissionPolicy
      metadata: {name: owner}
      spec:
        failurePolicy: Fail
        reinvocationPolicy: Never
        matchConstraints:
          resourceRules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]
        matchConditions: [{name: has-data, expression: has(object.data)}]
        mutations:
        - patchType: ApplyConfiguration
          applyConfiguration: {expression: 'Object{metadata: Object.metadata{annotations: {"owner": "platform"}}}'}
      ---
      apiVersion: admissionregistration.k8s.io/v1
      kind: MutatingAdmissionPolicyBinding
      metadata: {name: all}
      spec: {policyName: owner}
      """
    When this object is created:
      """yaml
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: settings, annotations: {team: blue}}
      data: {a: '1'}
      """
    Then the object contains:
      """yaml
      metadata: {annotations: {owner: shop}}
      """
"#;

#[test]
fn mutating_policy_says_whether_it_changed_the_object() {
    let applied = r#"= note: policy "owner" with binding "all": applied:"#;
    let found = run(MUTATING_POLICY);
    assert!(found.contains(&format!("{applied} changed the object")), "{found}");
    // The second round does not apply the policy again.
    assert!(!found.contains("not applied"), "{found}");
    let found = run(&MUTATING_POLICY.replace("team: blue", "owner: platform"));
    assert!(found.contains(&format!("{applied} did not change the object")), "{found}");
}

#[test]
fn failed_match_condition_of_a_mutating_policy_applies_the_failure_policy() {
    let failing = MUTATING_POLICY.replace("has(object.data)}", "object.data.none == '1'}");
    let found = run(&failing);
    assert!(
        found.contains(r#"policy "owner" with binding "all": failed, and its failurePolicy is Fail"#),
        "{found}"
    );
    assert!(!found.contains("failurePolicy is Ignore"), "{found}");
    let found = run(&failing.replace("failurePolicy: Fail", "failurePolicy: Ignore"));
    let expected = "not applied: its matchConditions cannot be evaluated, and its failurePolicy is Ignore: expression \
                    'object.data.none == '1'' resulted in error: no such key: none";
    assert!(found.contains(expected), "{found}");
}

#[test]
fn status_of_a_mutation_that_fails_is_attributed_to_the_api_server() {
    let failing = MUTATING_POLICY.replace("\"owner\": \"platform\"", "\"owner\": object.data.none");
    let found = run(&failing);
    let expected = r#"policy "owner" with binding "all": failed, and its failurePolicy is Fail (403 Invalid is kube-apiserver's status for this)"#;
    assert!(found.contains(expected), "{found}");
}

#[test]
fn idempotence_step_fails_for_a_webhook_that_changes_no_object() {
    let found = run(r#"
Feature: An injector
  Scenario: It does nothing
    Given a mutating webhook "injector" for pods
    Then "injector" is idempotent
"#);
    assert!(found.contains("= message: not exercised: the webhook never changed an object"), "{found}");
    assert!(found.contains("0 passed, 1 failed"), "{found}");
}

#[test]
fn code_without_a_reason_differs_from_the_same_code_with_a_reason() {
    let found = run(r#"
Feature: A denial
  Scenario: Only a code
    Given a validating webhook "policy" for pods
    And "policy" behaves like this:
      """yaml
      deny: {code: 403, message: no}
      """
    When a pod is created
    Then the request is rejected with 403 Forbidden
"#);
    let expected = "message: expected 403 Forbidden, found 403 (no reason): admission webhook";
    assert!(found.contains(expected), "{found}");
    let help = "help: the webhook's status has a code but no reason: return the reason \"Forbidden\", or use the step `the request is rejected with 403`";
    assert!(found.contains(help), "{found}");
}

#[test]
fn code_of_a_denial_without_a_code_is_explained() {
    let feature = |expected: &str| {
        format!(
            r#"
Feature: A denial
  Scenario: No code
    Given a validating webhook "policy" for pods
    And "policy" behaves like this:
      """yaml
      deny: {{message: no}}
      """
    When a pod is created
    Then the request is rejected with {expected}
"#
        )
    };
    for (expected, status) in [("403", "code: 403"), ("403 Forbidden", "code: 403, reason: Forbidden")] {
        let found = run(&feature(expected));
        let help = "help: kube-apiserver responds with 400 if `status.code` in the webhook's response is missing or less than 400: return";
        assert!(found.contains(&format!("{help} `status: {{{status}}}`, or expect 400")), "{found}");
    }
    let found = run(&feature("400 Forbidden"));
    assert!(!found.contains("or less than 400"), "{found}");
}

#[test]
fn review_reports_what_each_policy_did() {
    let folder = tempfile::tempdir().expect("a folder");
    let write =
        |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("it is written");
    let objects = POLICY.split("\"\"\"yaml\n").nth(1).and_then(|rest| rest.split("\"\"\"").next());
    let objects = objects.expect("the step has a doc string").replace("\n      ", "\n");
    write("policies.yaml", objects.trim_start());
    write(
        "map.yaml",
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: '', b: '', c: '', d: ''}}",
    );
    write("secret.yaml", "{apiVersion: v1, kind: Secret, metadata: {name: a}}");
    write(
        "webhooks.yaml",
        "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: a}}",
    );
    let review = |file: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_admit"));
        command.args(["review", "-f", file, "-c", "webhooks.yaml", "--with", "policies.yaml", "-o", "json"]);
        let output = command.current_dir(folder.path()).output().expect("the command runs");
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
        report["policies"].clone()
    };
    // Webhooks are not required.
    let mut command = Command::new(env!("CARGO_BIN_EXE_admit"));
    command.args(["review", "-f", "map.yaml", "--with", "policies.yaml"]).env("NO_COLOR", "1");
    let output = command.current_dir(folder.path()).output().expect("the command runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{text}{}", String::from_utf8_lossy(&output.stderr));
    for part in [
        "= policy: entries (binding limit)",
        "= why: The request was rejected because the binding has the action Deny.",
        "= help: the policy rejects such requests; ",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let denied = serde_json::json!([{
        "type": "validating", "round": 1, "policy": "entries", "binding": "limit", "outcome": "denied", "message": "at most 3 entries",
    }]);
    assert_eq!(review("map.yaml"), denied);
    let reason =
        "matchConstraints.resourceRules[0].resources has [\"configmaps\"], but the request has \"secrets\"";
    let skipped = serde_json::json!([{
        "type": "validating", "round": 1, "policy": "entries", "outcome": "skipped", "message": reason,
    }]);
    assert_eq!(review("secret.yaml"), skipped);
}

#[test]
fn missing_file_names_a_similar_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let feature = "Feature: a\n  Scenario: b\n    Given the objects in the file \"web-hook.yaml\" exist\n";
    std::fs::write(folder.path().join("my.feature"), feature).expect("it is written");
    std::fs::write(folder.path().join("webhook.yaml"), "").expect("it is written");
    for (path, expected) in [
        ("myy.feature", "myy.feature: No such file or directory: did you mean my.feature?"),
        ("my.feature", "No such file or directory: did you mean webhook.yaml?"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_admit"));
        let output =
            command.args(["run", path]).current_dir(folder.path()).output().expect("the command runs");
        let text = String::from_utf8_lossy(&output.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn misspelled_names_suggest_the_most_similar_name_of_the_scenario() {
    let feature = r#"
Feature: Names
  Scenario: A namespace
    Given these objects exist:
      """yaml
      {apiVersion: v1, kind: Namespace, metadata: {name: payments}}
      ---
      {apiVersion: v1, kind: Namespace, metadata: {name: shop}}
      """
    When this object is created:
      """yaml
      {apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: shpo}}
      """
    Then the request is admitted
  Scenario: A webhook
    Given a mutating webhook "labels" for pods
    And a mutating webhook "sidecar" for pods
    And "sidecra" adds the container "proxy"
    When a pod is created
    Then the request is admitted
"#;
    let found = run(feature);
    for expected in [
        r#"= help: did you mean the namespace "shop"? Otherwise, create the namespace with the step"#,
        r#"= message: unknown webhook "sidecra": the scenario defines "sidecar", "labels""#,
    ] {
        assert!(found.contains(expected), "{expected}\n{found}");
    }
}

#[test]
fn rejection_by_a_policy_that_fails_is_a_warning_unless_the_scenario_checks_the_message() {
    let failing = POLICY
        .replace("object.data.size() <= 3", "object.dat.size() <= 3")
        .replace("403 Forbidden", "422 Invalid");
    let warning = r#"warning: policy "entries" rejected 1 request because its evaluation failed: expression 'object.dat.size() <= 3' resulted in error: no such key: dat"#;
    let folder = tempfile::tempdir().expect("a folder");
    let found = run_in(&folder, &failing, &["--quiet", "--html", "page.html"]);
    assert!(found.contains("1 passed, 0 failed"), "{found}");
    assert!(found.contains(warning), "{found}");
    let page = std::fs::read_to_string(folder.path().join("page.html")).expect("the page");
    assert!(page.contains("because its evaluation failed"), "{page}");

    let checked = format!("{failing}    And the message contains \"no such key: dat\"\n");
    for feature in [checked.as_str(), POLICY] {
        let found = run_in(&folder, feature, &["--quiet"]);
        assert!(found.contains("1 passed, 0 failed") && !found.contains("warning"), "{found}");
    }
}

/// Returns the run of [`POLICY`] with another validation, for a request that the step expects to be admitted.
fn run_with_validation(validation: &str) -> String {
    let feature = POLICY.replace(
        "expression: object.data.size() <= 3, message: at most 3 entries, reason: Forbidden",
        validation,
    );
    run(&feature.replace("the request is rejected with 403 Forbidden", "the request is admitted"))
}

#[test]
fn rejection_by_a_policy_has_help_that_fits_the_reason() {
    for (validation, help) in [
        (
            "expression: object.data.size() <= 3",
            "change the object. To tell clients the reason, set `message` in the validation",
        ),
        (
            "expression: object.data.none == ''",
            "the expression reads the field `none`, which the object does not have: if the name is correct, check the field with has()",
        ),
        ("expression: params.data.limit != ''", "params is null because the binding has no paramRef"),
    ] {
        let found = run_with_validation(validation);
        assert!(found.contains("= help: ") && found.contains(help), "{validation}\n{found}");
        assert!(!found.contains("common causes"), "{validation}\n{found}");
    }
    let missing = POLICY.replace(
        "matchResources: {}",
        "paramRef: {name: none, namespace: default, parameterNotFoundAction: Deny}",
    );
    let found =
        run(&missing.replace("the request is rejected with 403 Forbidden", "the request is admitted"));
    assert!(found.contains("the object that paramRef names does not exist"), "{found}");
}

#[test]
fn failed_message_expression_of_a_denial_is_shown() {
    let found = run_with_validation(
        "expression: object.data.size() <= 3, messageExpression: \"'too many in ' + object.metadata.nam\"",
    );
    let expected = "denied: failed expression: object.data.size() <= 3 (its messageExpression failed: ";
    assert!(found.contains(expected) && found.contains("no such key: nam)"), "{found}");
}
