//! Tests `admit cel`: types, values, errors, and costs, compared with recordings of Kubernetes' own packages.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on must stop")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

const OBJECT: &str = r"
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: demo, labels: {team: blue}}
data: {stage: test}
";

fn cel(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_admit")).current_dir(folder).arg("cel").args(arguments).output().unwrap()
}

fn code(output: &Output) -> Option<i32> {
    output.status.code()
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn reports(output: &Output) -> Vec<Value> {
    text(output).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_owned();
    std::fs::write(path.join("settings.yaml"), OBJECT).unwrap();
    (folder, path)
}

#[test]
fn namespace_object_of_match_conditions_cannot_be_set() {
    let (_folder, path) = folder();
    let configuration = "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: \
        {name: c}, webhooks: [{name: w, matchConditions: [{name: a, expression: namespaceObject == null}]}]}";
    std::fs::write(path.join("webhook.yaml"), configuration).unwrap();
    std::fs::write(path.join("demo.yaml"), "{apiVersion: v1, kind: Namespace, metadata: {name: demo}}")
        .unwrap();
    let arguments = ["-c", "webhook.yaml", "-f", "settings.yaml"];
    let null = cel(&path, &arguments);
    assert!(code(&null) == Some(0) && text(&null).contains("value  true"), "{null:?}");
    let set = cel(&path, &[&arguments[..], &["--namespace-object", "demo.yaml"]].concat());
    let message = String::from_utf8(set.stderr.clone()).unwrap();
    assert!(code(&set) == Some(2) && message.contains("namespaceObject is always null"), "{set:?}");
}

#[test]
fn expressions_have_the_types_values_costs_and_errors_of_kubernetes() {
    let rows = std::fs::read_to_string("tests/cel/expressions.jsonl").unwrap();
    let expressions = [
        "1 == 1.0",
        "2 + 3 == 5",
        "'abc'.startsWith('ab')",
        "[1, 2, 3].all(x, x > 0)",
        "quantity('1000m') == quantity('1')",
        "ip('10.0.0.1').isUnspecified()",
        "int('x') == 42",
        "optional.none().value() == 1",
        "duration('1h') > duration('59m')",
    ];
    let expected: BTreeMap<&str, Value> = rows
        .lines()
        .filter_map(|row| serde_json::from_str::<Value>(row).ok())
        .filter_map(|row| Some((*expressions.iter().find(|it| row["expr"] == **it)?, row)))
        .collect();
    let known: Vec<&str> = expressions.into_iter().filter(|it| expected.contains_key(it)).collect();
    assert!(known.len() >= 6, "{known:?}");
    let arguments: Vec<&str> = known.iter().copied().chain(["-o", "json"]).collect();
    let (_folder, path) = folder();
    for report in reports(&cel(&path, &arguments)) {
        let expression = report["expression"].as_str().unwrap();
        let expected = &expected[expression];
        assert_eq!(report["type"], expected["type"], "{expression}");
        assert_eq!(report["cost"], expected["cost"], "{expression}");
        assert_eq!(report["value"], expected["value"]["bool"], "{expression}");
        assert_eq!(report["compileError"], expected["compile_error"], "{expression}");
        assert_eq!(report["runError"].is_null(), expected["run_error"].is_null(), "{expression}");
    }
}

#[test]
fn variables_come_from_files_and_the_request_from_the_objects() {
    let (_folder, path) = folder();
    let expressions = [
        "object.data.stage == 'test' && oldObject == null",
        "request.operation == 'CREATE' && request.resource.resource == 'configmaps'",
        "request.namespace == 'demo' && request.userInfo.username == 'jane' && 'dev' in request.userInfo.groups",
        "authorizer.requestResource.check('create').allowed()",
    ];
    let arguments =
        [&expressions[..], &["-f", "settings.yaml", "--as", "jane", "--as-group", "dev", "-o", "json"]];
    let output = cel(&path, &arguments.concat());
    let values: Vec<Value> = reports(&output).into_iter().map(|report| report["value"].clone()).collect();
    assert_eq!((values, code(&output)), (vec![json!(true), json!(true), json!(true), json!(false)], Some(0)));

    std::fs::write(
        path.join("roles.yaml"),
        r#"
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: writer, namespace: demo}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [create]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: writer, namespace: demo}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: writer}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: jane}]
"#,
    )
    .unwrap();
    let arguments =
        [expressions[3], "-f", "settings.yaml", "--as", "jane", "--with", "roles.yaml", "-o", "json"];
    assert_eq!(reports(&cel(&path, &arguments))[0]["value"], true);

    let deletion = "object == null && oldObject.metadata.name == 'settings' && request.operation == 'DELETE'";
    assert_eq!(reports(&cel(&path, &[deletion, "--old", "settings.yaml", "-o", "json"]))[0]["value"], true);
}

#[test]
fn an_admission_review_is_the_request() {
    let (_folder, path) = folder();
    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "u", "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"}, "subResource": "status",
        "operation": "UPDATE", "name": "web", "namespace": "shop", "userInfo": {"username": "kubelet"},
        "object": {"a": 1}, "oldObject": {"a": 2}, "dryRun": true,
    }});
    std::fs::write(path.join("review.json"), review.to_string()).unwrap();
    let expression = "object.a + oldObject.a == 3 && request.subResource == 'status' && request.dryRun && \
                      request.name == 'web' && request.userInfo.username == 'kubelet'";
    let output = cel(&path, &[expression, "--request", "review.json", "-o", "json"]);
    assert_eq!((reports(&output)[0]["value"].clone(), code(&output)), (json!(true), Some(0)));
}

#[test]
fn conditions_of_a_configuration_are_evaluated_and_must_be_bool() {
    let (_folder, path) = folder();
    std::fs::write(
        path.join("hook.yaml"),
        "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: c}\n\
         webhooks:\n- name: w.example.com\n  matchConditions:\n  - {name: staged, expression: \" object.data.stage == \
         'test' \"}\n  - {name: named, expression: request.name}\n",
    )
    .unwrap();
    let output = cel(&path, &["-c", "hook.yaml", "-f", "settings.yaml", "-o", "json"]);
    let reports = reports(&output);
    assert_eq!((reports.len(), code(&output)), (2, Some(1)));
    assert_eq!(
        reports[0],
        json!({"webhook": "w.example.com", "condition": "staged", "expression": "object.data.stage == 'test'",
            "type": "bool", "value": true, "cost": 4})
    );
    assert_eq!(reports[1]["compileError"], "must evaluate to bool but got string");
    std::fs::write(path.join("none.yaml"), "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n").unwrap();
    assert_eq!(code(&cel(&path, &["-c", "none.yaml"])), Some(4));
}

#[test]
fn text_output_shows_the_position_of_an_error_and_the_value_of_each_part() {
    let (_folder, path) = folder();
    let output = cel(&path, &["true && object.data.missing == 'x'", "-f", "settings.yaml"]);
    assert_eq!(code(&output), Some(1));
    let shown = text(&output);
    assert!(shown.contains("resulted in error: no such key: missing"), "{shown}");
    assert!(
        shown.contains("| true && object.data.missing == 'x'\n         | ....................^^^^^^^\n"),
        "{shown}"
    );

    let output = cel(&path, &["object.data.size() + 1 == 2", "-f", "settings.yaml", "--each"]);
    let shown = text(&output);
    assert!(shown.contains("object.data.size() + 1"), "{shown}");
    assert!(shown.contains(r#"{"stage":"test"}  (cost 2)"#), "{shown}");

    let output = cel(&path, &["object.", "-f", "settings.yaml"]);
    assert_eq!(code(&output), Some(1));
    assert!(text(&output).contains("ERROR: <input>:1:8: Syntax error"), "{}", text(&output));
}

const POLICY: &str = r#"
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: stages}
spec:
  paramKind: {apiVersion: v1, kind: ConfigMap}
  matchConstraints:
    resourceRules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]
  matchConditions:
  - {name: has-stage, expression: "'stage' in object.data"}
  variables:
  - {name: wanted, expression: params.data.stage}
  validations:
  - {expression: object.data.stage == variables.wanted, message: wrong stage, reason: Forbidden}
  - {expression: object.metadata.labels.team == 'blue'}
"#;

#[test]
fn policy_is_evaluated_with_its_variables_and_its_param() {
    let (_kept, folder) = folder();
    std::fs::write(folder.join("policy.yaml"), POLICY).unwrap();
    let param = "{apiVersion: v1, kind: ConfigMap, metadata: {name: p}, data: {stage: production}}";
    std::fs::write(folder.join("param.yaml"), param).unwrap();
    let arguments = ["--policy", "policy.yaml", "--param", "param.yaml", "-f", "settings.yaml", "-o", "json"];
    let output = cel(&folder, &arguments);
    assert_eq!(code(&output), Some(0), "{output:?}");
    // A policy and its binding are usually in the same file.
    let binding = "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: b}}";
    std::fs::write(folder.join("both.yaml"), format!("{binding}\n---{POLICY}")).unwrap();
    let both = cel(&folder, &[&["--policy", "both.yaml"], &arguments[2..]].concat());
    assert_eq!(text(&both), text(&output), "{both:?}");
    for (content, expected) in [
        (binding.to_owned(), "binding.yaml: it does not contain an admission policy"),
        (
            format!("{POLICY}\n---\n{{apiVersion: v1, kind: ConfigMap, metadata: {{name: a}}}}"),
            "expected a ValidatingAdmissionPolicy or a MutatingAdmissionPolicy",
        ),
    ] {
        std::fs::write(folder.join("binding.yaml"), content).unwrap();
        let output = cel(&folder, &[&["--policy", "binding.yaml"], &arguments[2..]].concat());
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(code(&output) == Some(2) && errors.contains(expected), "{errors}");
    }
    // The files of --with are read once.
    std::fs::create_dir(folder.join("existing")).unwrap();
    std::fs::write(folder.join("existing/a.yaml"), format!("{param}\n---\nvalues: 1\n")).unwrap();
    let with = cel(&folder, &[&arguments[..], &["--with", "existing"]].concat());
    assert_eq!(String::from_utf8_lossy(&with.stderr).matches("skipped").count(), 1, "{with:?}");
    let parts: Vec<Value> = reports(&output)
        .iter()
        .map(|it| {
            assert!(it["cost"].as_u64().unwrap() > 0, "{it}");
            json!([it["field"], it["value"], it["result"]])
        })
        .collect();
    let expected = [
        json!(["match condition has-stage", true, null]),
        json!(["variable wanted", "production", null]),
        json!(["validation 0", false, "denied: wrong stage (Forbidden)"]),
        json!(["validation 1", true, null]),
    ];
    assert_eq!(parts, expected);
}

#[test]
fn policy_whose_expression_fails_or_that_does_not_match_has_an_exit_status() {
    let (_kept, folder) = folder();
    std::fs::write(folder.join("policy.yaml"), POLICY.replace("labels.team", "labels.other")).unwrap();
    let output = cel(&folder, &["--policy", "policy.yaml", "-f", "settings.yaml"]);
    assert_eq!(code(&output), Some(1), "{output:?}");
    let text = text(&output);
    assert!(text.contains("resulted in error: no such key: other"), "{text}");
    let pod = "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: a, image: b}]}}";
    std::fs::write(folder.join("pod.yaml"), pod).unwrap();
    let output = cel(&folder, &["--policy", "policy.yaml", "-f", "pod.yaml"]);
    assert_eq!(code(&output), Some(4), "{output:?}");
    std::fs::write(folder.join("policy.yaml"), POLICY.replace("variables.wanted", "variables.other"))
        .unwrap();
    let output = cel(&folder, &["--policy", "policy.yaml", "-f", "settings.yaml"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("policy.yaml:2: spec.validations[0].expression: Invalid value"), "{errors}");
    assert_eq!(code(&output), Some(2), "{errors}");

    let null = POLICY
        .replace("params.data.stage", "\"object.metadata.?labels['team'].orValue(null)\"")
        .replace("object.data.stage == variables.wanted", "variables.wanted == 'test'");
    std::fs::write(folder.join("policy.yaml"), null).unwrap();
    let output = cel(&folder, &["--policy", "policy.yaml", "-f", "settings.yaml"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    let help =
        "\nhelp: Do not use null here: the other operand of `==` has the type string, which cannot be null. ";
    assert!(errors.contains(help), "{errors}");
    assert_eq!(code(&output), Some(2), "{errors}");
}

#[test]
fn mutation_of_a_policy_is_evaluated() {
    let (_kept, folder) = folder();
    let policy = r#"
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: labels}
spec:
  reinvocationPolicy: Never
  matchConstraints:
    resourceRules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]
  mutations:
  - patchType: JSONPatch
    jsonPatch: {expression: "[JSONPatch{op: 'add', path: '/metadata/labels/a', value: 'b'}]"}
  - patchType: JSONPatch
    jsonPatch: {expression: "[JSONPatch{op: 'remove', path: '/metadata/labels/c'}]"}
"#;
    std::fs::write(folder.join("policy.yaml"), policy).unwrap();
    let output = cel(&folder, &["--policy", "policy.yaml", "-f", "settings.yaml", "-o", "json"]);
    assert_eq!(code(&output), Some(1), "{output:?}");
    let reports = reports(&output);
    assert_eq!(reports[0]["result"], "changed the object", "{reports:?}");
    let error = reports[1]["runError"].as_str().unwrap();
    assert!(error.starts_with("JSON Patch: "), "{error}");
    // Each of several policies is evaluated for the original object.
    std::fs::write(folder.join("both.yaml"), format!("{policy}---{POLICY}")).unwrap();
    let both = cel(&folder, &["--policy", "both.yaml", "-f", "settings.yaml", "-o", "json"]);
    let both = self::reports(&both);
    assert!(both.starts_with(&reports), "{both:?}");
    assert!(both.len() > reports.len() && both.last().unwrap()["field"] == "validation 1", "{both:?}");
    let pod = "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: a, image: b}]}}";
    std::fs::write(folder.join("pod.yaml"), pod).unwrap();
    let output = cel(&folder, &["--policy", "both.yaml", "-f", "pod.yaml"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("the matchConstraints of the policies do not match the request"), "{errors}");
}

#[test]
fn failed_part_of_an_expression_is_marked() {
    let (_folder, path) = folder();
    let before = "object.data.stage == 'test' && object.data.";
    for rest in ["none == 'a'", "none.nonesuch.x == 'a'", "none['a'] == 'a'"] {
        let output = cel(&path, &[&format!("{before}{rest}"), "-f", "settings.yaml"]);
        let marked = format!("| {}^^^^\n", ".".repeat(before.len()));
        assert!(text(&output).contains(&marked), "{}", text(&output));
    }
}

#[test]
fn existing_namespace_is_the_namespace_object() {
    let (_folder, path) = folder();
    let namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: demo, labels: {team: blue}}\n";
    std::fs::write(path.join("namespace.yaml"), namespace).unwrap();
    let expression = "namespaceObject.metadata.labels.team == 'blue'";
    let output = cel(&path, &[expression, "-f", "settings.yaml", "--with", "namespace.yaml", "-o", "json"]);
    assert_eq!(reports(&output)[0]["value"], true);
    let note = "note: namespaceObject is null, as in match conditions of webhooks. For an expression of a policy, pass the Namespace with --namespace-object FILE or in the files of --with\n";
    assert!(!String::from_utf8_lossy(&output.stderr).contains(note), "{output:?}");
    let output = cel(&path, &[expression, "-f", "settings.yaml"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains(note), "{output:?}");
}
