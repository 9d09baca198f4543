//! Tests the arguments and exit statuses of the command.

use std::fs;

use serde_json::Value;

use super::{lint, lint_with_input, prints, root};

const KUBE_SYSTEM: &str = "tests/lint/findings/V50-kube-system.yaml";
const TIMEOUT: &str = "tests/lint/findings/L06-timeout.yaml";

#[track_caller]
fn complains(arguments: &[&str], status: i32, what: &str) {
    let output = lint(arguments);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{stderr}");
    assert!(stderr.contains(what), "{stderr}");
}

#[test]
fn warnings_fail_the_run_only_with_fail_on() {
    prints(&lint(&["-c", KUBE_SYSTEM]), 1);
    prints(&lint(&["-c", KUBE_SYSTEM, "--fail-on", "never"]), 0);
    prints(&lint(&["-c", TIMEOUT]), 0);
    prints(&lint(&["-f", TIMEOUT, "--fail-on", "warning"]), 1);
}

#[test]
fn checks_are_chosen_and_skipped_with_a_reason() {
    let text = prints(&lint(&["-c", KUBE_SYSTEM, "--check", "l04,V51"]), 0);
    assert_eq!(
        text,
        "1 configuration: no problems found\n\n2 checks passed (-v lists them)\n0 findings in 1 configuration\n"
    );
    let text = prints(&lint(&["-c", KUBE_SYSTEM, "--skip", "V50=it guards kube-system"]), 0);
    assert!(text.contains("\n1 check skipped: V50 (-v says why)\n0 findings in 1 configuration\n"), "{text}");
    let text = prints(&lint(&["-v", "-c", KUBE_SYSTEM, "--skip", "V50=it guards kube-system"]), 0);
    assert!(text.contains("\nV50 skipped        it guards kube-system\n"), "{text}");
    complains(&["-c", KUBE_SYSTEM, "--check", "V50", "--skip", "V50=why not"], 4, "all checks are skipped");
    complains(
        &["-c", KUBE_SYSTEM, "--check", "L12"],
        4,
        "none of the selected checks applies to the objects in the files",
    );
    complains(&["-c", KUBE_SYSTEM, "--skip", "V50"], 2, "expected ID=REASON");
    complains(
        &["-c", KUBE_SYSTEM, "--check", "V01"],
        2,
        "V01 is a check of `admit verify`, not of `admit lint`; see `admit lint --list`",
    );
    complains(&["-c", KUBE_SYSTEM, "--check", "L99"], 2, "unknown check `L99`; see `admit lint --list`\n");
}

#[test]
fn folders_and_standard_input_are_read_and_lines_are_those_of_the_fields() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = fs::read_to_string(root().join(TIMEOUT)).expect("the file is there");
    let list: Vec<String> = text.lines().map(|line| format!("  {line}\n")).collect();
    let list = list.concat();
    let list =
        format!("apiVersion: v1\nkind: List\nitems:\n-{}", list.strip_prefix(' ').expect("it is indented"));
    fs::write(folder.path().join("list.yaml"), &list).expect("it is written");
    let path = folder.path().to_string_lossy().into_owned();
    let line = |text: &str| {
        let place = text.lines().find_map(|line| line.trim_start().strip_prefix("--> "));
        place.unwrap_or_default().to_owned()
    };
    let own = 1 + text.lines().position(|line| line.contains("timeoutSeconds")).expect("it has a timeout");
    assert_eq!(line(&prints(&lint(&["-c", &path]), 0)), format!("{path}/list.yaml:{}", own + 3));
    assert_eq!(line(&prints(&lint_with_input(&["-c", "-"], &text), 0)), format!("STDIN:{own}"));
}

#[test]
fn a_rejected_field_does_not_hide_the_findings_of_other_entries() {
    let entry = |name: &str, rule: &str| {
        format!(
            "- name: {name}.example.com\n  clientConfig: {{url: 'https://example.com/'}}\n  sideEffects: None\n  \
             failurePolicy: Fail\n  admissionReviewVersions: [v1]\n  rules: [{rule}]\n"
        )
    };
    let everything = r#"{operations: ["*"], apiGroups: ["*"], apiVersions: ["*"], resources: ["*/*"]}"#;
    for (rejected, field) in [
        (r#"{operations: [UPDAT], apiGroups: [""], apiVersions: [v1], resources: [pods]}"#, "operations"),
        (r#"{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: []}"#, "resources"),
    ] {
        let text = format!(
            "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\n\
             metadata: {{name: c}}\nwebhooks:\n{}{}",
            entry("a", rejected),
            entry("b", everything)
        );
        let text = prints(&lint_with_input(&["-c", "-"], &text), 1);
        assert!(text.contains(&format!("webhooks[0].rules[0].{field}")), "{text}");
        for id in ["V50", "L05", "V53"] {
            let is_about_b = text
                .split("\n\n")
                .any(|it| it.contains(&format!("[{id}]")) && it.contains("c/b.example.com"));
            assert!(is_about_b, "{id} {field}: {text}");
        }
    }
}

#[test]
fn notes_about_usual_defaults_appear_only_with_v() {
    let file = "tests/lint/findings/L08-path.yaml";
    let text = prints(&lint(&["-c", file]), 0);
    assert!(!text.contains("[L08]"), "{text}");
    assert!(text.ends_with("\n0 findings in 1 configuration; 1 minor note (-v shows it)\n"), "{text}");
    let text = prints(&lint(&["-v", "-c", file]), 0);
    assert!(text.contains("note[L08]: clientConfig.service.path is not set"), "{text}");
    // Minor notes do not change the exit status, and are not in a baseline.
    prints(&lint(&["-v", "-c", file, "--fail-on", "note"]), 0);
    let folder = tempfile::tempdir().expect("a folder");
    let baseline = folder.path().join("known.yaml");
    prints(&lint(&["-v", "-c", file, "--write-baseline", &baseline.to_string_lossy()]), 0);
    let written = fs::read_to_string(&baseline).expect("it is written");
    assert!(!written.contains("L08"), "{written}");
}

#[test]
fn other_documents_in_a_folder_are_skipped_and_lines_stay_those_of_the_fields() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = fs::read_to_string(root().join(TIMEOUT)).expect("the file is there");
    fs::write(folder.path().join("a.yaml"), format!("replicas: 1\n---\n{text}")).expect("it is written");
    fs::write(folder.path().join("package.json"), "{\"name\": \"x\"}").expect("it is written");
    let path = folder.path().to_string_lossy().into_owned();
    let output = lint(&["-c", &path]);
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(
        stderr,
        format!("skipped 2 documents that are not Kubernetes objects, such as {path}/a.yaml:1\n")
    );
    let own = 1 + text.lines().position(|line| line.contains("timeoutSeconds")).expect("it has a timeout");
    assert!(stdout.contains(&format!("--> {path}/a.yaml:{}\n", own + 2)), "{stdout}");
}

#[test]
fn duplicate_key_is_a_warning_and_a_template_is_an_error() {
    let text = fs::read_to_string(root().join(TIMEOUT)).expect("the file is there");
    let twice = text.replace("metadata:\n", "metadata: {}\nmetadata:\n");
    let output = lint_with_input(&["-c", "-"], &twice);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.starts_with("warning: STDIN:4:1: duplicate key \"metadata\": "), "{stderr}");
    assert_eq!(output.status.code(), Some(0));
    let template = text.replace("name: injector\n", "name: \"{{ .Release.Name }}\"\n");
    let output = lint_with_input(&["-c", "-"], &template);
    let stderr = String::from_utf8_lossy(&output.stderr);
    let message =
        "error: STDIN:1: the configuration contains template expressions; render it first: helm template";
    assert!(stderr.starts_with(message), "{stderr}");
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn input_that_cannot_be_read_names_file_and_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("f.yaml");
    let path = file.to_string_lossy().into_owned();
    fs::write(&file, "apiVersion: v1\nkind: [\n").expect("it is written");
    complains(&["-c", &path], 2, &format!("{path}:2"));
    fs::write(&file, "").expect("it is written");
    complains(&["-c", &path], 2, "it does not contain an object");
    fs::write(&file, "{apiVersion: v1, kind: ConfigMap}").expect("it is written");
    complains(&["-c", &path], 4, "do not contain a webhook configuration or an admission policy");
    complains(&["--list", "-o", "sarif"], 2, "expected --output text, json, yaml, or markdown");
    complains(&[], 2, "--configuration");
}

#[test]
fn checks_that_need_unknown_definitions_are_counted_and_printed() {
    let text =
        fs::read_to_string(root().join("tests/lint/findings/L04-custom.yaml")).expect("the file is there");
    let (alone, _) = text.split_once("---").expect("a definition follows");
    let text = prints(&lint_with_input(&["-c", "-"], alone), 0);
    let last = "\n1 check not completed: L04 (-v says why)\n0 findings in 1 configuration\n";
    assert!(text.ends_with(last), "{text}");
    let text = prints(&lint_with_input(&["-v", "-c", "-"], alone), 0);
    let reason = " not checked: STDIN:6: injector/pods.example.com: admit cannot determine whether widget of example.com is \
                  served: add the CustomResourceDefinition\n";
    assert!(text.contains(reason), "{text}");
}

#[test]
fn sarif_and_junit_have_the_finding_with_its_line() {
    let sarif: Value =
        serde_json::from_str(&prints(&lint(&["-c", KUBE_SYSTEM, "-o", "sarif"]), 1)).expect("JSON");
    let result = &sarif["runs"][0]["results"][0];
    assert_eq!(result["ruleId"], "V50");
    let rule = result["ruleIndex"].as_u64().and_then(|index| usize::try_from(index).ok()).expect("an index");
    assert_eq!(sarif["runs"][0]["tool"]["driver"]["rules"][rule]["id"], "V50");
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], KUBE_SYSTEM);
    assert!(place["region"]["startLine"].as_u64().is_some_and(|line| line > 5), "{place}");
    let folder = tempfile::tempdir().expect("a folder");
    let [written_junit, written_sarif] = ["lint.xml", "lint.sarif"].map(|name| folder.path().join(name));
    let paths = [&written_junit, &written_sarif].map(|path| path.to_string_lossy().into_owned());
    let yaml =
        prints(&lint(&["-c", KUBE_SYSTEM, "-o", "yaml", "--junit", &paths[0], "--sarif", &paths[1]]), 1);
    let report: Value = serde_saphyr::from_str(&yaml).expect("YAML");
    assert_eq!(report["findings"][0]["check"], "V50");
    let written = fs::read_to_string(written_sarif).expect("it is written");
    assert_eq!(serde_json::from_str::<Value>(&written).expect("JSON"), sarif);
    let junit = prints(&lint(&["-c", KUBE_SYSTEM, "-o", "junit"]), 1);
    assert_eq!(fs::read_to_string(written_junit).expect("it is written"), junit);
    assert!(junit.contains("failures=\"1\"") && junit.contains(KUBE_SYSTEM), "{junit}");
}

#[test]
fn the_labels_of_the_backend_in_the_manifests_decide_whether_it_is_locked_out() {
    let text =
        fs::read_to_string(root().join("tests/lint/findings/flawless.yaml")).expect("the file is there");
    // Only the backend's own pods have the label.
    let text = text
        .replace("values: [injector, kube-system]", "values: [kube-system]")
        .replace("objectSelector: {}", "objectSelector: {matchLabels: {app: webhook}}");
    let arguments = ["-c", "-", "--check", "V48"];
    let found = prints(&lint_with_input(&arguments, &text), 1);
    // Both webhooks have the finding, which is printed once.
    assert_eq!(
        found.matches("called for pods in injector, where its backend (Service webhook) runs;").count(),
        1
    );
    assert_eq!(found.matches(" --> STDIN:").count(), 2, "{found}");
    let (configurations, _) = text.split_once("---\napiVersion: v1").expect("a Service follows");
    let found = prints(&lint_with_input(&arguments, configurations), 0);
    assert!(found.ends_with("\n1 check passed (-v lists them)\n0 findings in 2 configurations\n"), "{found}");
}

#[test]
fn a_workflow_shows_the_finding_at_its_line() {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_admit"));
    command.args(["lint", "-c", KUBE_SYSTEM]).current_dir(root()).env("GITHUB_ACTIONS", "true");
    let output = command.output().expect("the command runs");
    let annotations = String::from_utf8_lossy(&output.stderr);
    assert!(annotations.starts_with(&format!("::error file={KUBE_SYSTEM},line=")), "{annotations}");
    assert!(annotations.contains(",title=V50 system resources"), "{annotations}");
}

#[test]
fn a_workflow_gets_a_summary_of_the_findings() {
    let folder = tempfile::tempdir().expect("a directory");
    let step = folder.path().join("step.md");
    std::fs::write(&step, "# earlier\n").expect("the file is written");
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_admit"));
    command.args(["lint", "-c", KUBE_SYSTEM]).current_dir(root()).env("GITHUB_STEP_SUMMARY", &step);
    let printed = command.output().expect("the command runs");
    assert!(!String::from_utf8_lossy(&printed.stdout).contains("## admit lint"));
    let summary = fs::read_to_string(step).expect("the file exists");
    assert!(summary.starts_with("# earlier\n## admit lint\n\n"), "{summary}");
    let (before, _) = summary.split_once("<details>").expect("the checks are hidden");
    assert!(
        before.contains("### [V50](https://") && before.contains(&format!(" {KUBE_SYSTEM}:")),
        "{summary}"
    );
    assert!(before.contains("\n- ❌ **") && before.contains("\n**Help:** "), "{summary}");
}

#[test]
fn documentation_of_a_check_is_printed() {
    let text = prints(&lint(&["--explain", "l04"]), 0);
    assert!(text.starts_with("L04 served resources: "), "{text}");
    assert!(text.contains("/docs/reference/lint-checks.md#l04\n"), "{text}");
    complains(&["--explain", "V99"], 2, "unknown check `V99`");
    complains(&[TIMEOUT], 2, &format!("tip: pass webhook configurations with -c: admit lint -c {TIMEOUT}"));
}

#[test]
fn rejected_configuration_is_checked_as_far_as_it_can_be_read() {
    let text =
        fs::read_to_string(root().join("tests/lint/findings/flawless.yaml")).expect("the file is there");
    let text = text.replacen("resources: [pods]", "resources: [pod]", 1);
    let (first, rest) = text.split_once("sideEffects: None").expect("a field");
    let rest = rest.replacen("timeoutSeconds: 5", "timeoutSeconds: 60", 1);
    let text = format!("{first}sideEffects: Some{rest}");
    let found = prints(&lint_with_input(&["-c", "-", "-v"], &text), 1);
    assert!(found.contains("error[L01]: ") && found.contains("sideEffects"), "{found}");
    assert!(found.contains("error[L04]: Kubernetes 1.37 does not serve pod in v1"), "{found}");
    // Checks whose result depends on the rejected field do not pass; the others do.
    assert!(found.contains("\nL06 not checked "), "{found}");
    let reason = "the API server rejects webhooks[0].timeoutSeconds, on which the result depends: see L01\n";
    assert!(found.contains(reason), "{found}");
    for id in ["L07", "L08", "V48", "V54"] {
        assert!(found.contains(&format!("\n{id} passed ")), "{id}: {found}");
    }
}

/// Lints a configuration whose second webhook has `entry`, and returns the report.
fn linted_with(entry: &str) -> String {
    let text = format!(
        "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {{name: c}}\n\
         webhooks:\n- name: a.example.com\n  clientConfig: {{url: 'https://example.com/a'}}\n  sideEffects: None\n  \
         failurePolicy: Fail\n  timeoutSeconds: 5\n  admissionReviewVersions: [v1]\n  rules: [{{operations: [CREATE], \
         apiGroups: [\"\"], apiVersions: [v1], resources: [pods]}}]\n{entry}"
    );
    String::from_utf8_lossy(&lint_with_input(&["-c", "-"], &text).stdout).into_owned()
}

#[test]
fn checks_that_depend_on_a_rejected_field_are_named_with_the_reason() {
    let entry = |side_effects: &str, rule: &str| {
        format!(
            "- name: b.example.com\n  clientConfig: {{url: 'https://example.com/b'}}\n  failurePolicy: Fail\n  \
             sideEffects: {side_effects}\n  timeoutSeconds: 5\n  admissionReviewVersions: [v1]\n  rules: [{rule}]\n"
        )
    };
    let rule = r#"{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods]}"#;
    let found = linted_with(&entry("Some", rule));
    assert!(found.contains("error[L01]") && !found.contains("not completed"), "{found}");
    let rule = r#"{operations: [CREATE], apiGroups: [""], apiVersions: [v1]}"#;
    let found = linted_with(&entry("None", rule));
    let line =
        found.lines().find(|line| line.contains("not completed")).expect("some checks depend on the rule");
    let reason = ": c: the API server rejects webhooks[1].rules[0], on which the result depends: see L01";
    assert!(line.contains("L04") && line.ends_with(reason), "{line}");
    assert!(!line.contains("L06") && !line.contains("L08"), "{line}");
}

/// Returns a second webhook with these values and, if not empty, this `caBundle`.
fn second_webhook(failure_policy: &str, timeout: u32, ca_bundle: &str) -> String {
    let ca_bundle = if ca_bundle.is_empty() { String::new() } else { format!(", caBundle: {ca_bundle}") };
    format!(
        "- name: b.example.com\n  clientConfig: {{url: 'https://example.com/b'{ca_bundle}}}\n  failurePolicy: \
         {failure_policy}\n  sideEffects: None\n  timeoutSeconds: {timeout}\n  admissionReviewVersions: [v1]\n  \
         rules: [{{operations: [CREATE], apiGroups: [\"\"], apiVersions: [v1], resources: [pods]}}]\n"
    )
}

#[test]
fn finding_about_the_substitute_of_a_rejected_field_is_not_reported() {
    let found = linted_with(&second_webhook("Sometimes", 5, ""));
    assert!(found.contains("V50]: ") && !found.contains(": with failurePolicy Ignore"), "{found}");
    // The finding about the first webhook does not complete the check for the second.
    let line = found.lines().find(|line| line.contains("not completed")).expect("V50 depends on the field");
    let reason = "the API server rejects webhooks[1].failurePolicy, on which the result depends: see L01";
    assert!(line.contains("V50") && line.ends_with(reason), "{line}");
}

#[test]
fn other_rejected_fields_are_reported_next_to_a_ca_bundle_that_is_not_base64() {
    let found = linted_with(&second_webhook("Fail", 60, "CA_BUNDLE"));
    assert_eq!(found.matches("error[L01]: ").count(), 2, "{found}");
    assert!(found.contains("webhooks[1].timeoutSeconds: Invalid value: 60: "), "{found}");
    // L01 does not name the other fields of a configuration with a value of the wrong type.
    let found = linted_with(&second_webhook("Fail", 60, "5"));
    assert_eq!(found.matches("error[L01]: ").count(), 1, "{found}");
    let line = found.lines().find(|line| line.contains("webhooks[1].timeoutSeconds"));
    assert!(line.is_some_and(|line| line.ends_with(", on which the result depends")), "{found}");
}

#[test]
fn webhook_that_cannot_be_read_has_its_name_in_the_file() {
    for (entry, name) in
        [("- pods\n", "c/webhooks[1]"), ("- {name: b.example.com, rules: 7}\n", "c/b.example.com")]
    {
        let found = linted_with(entry);
        assert!(found.contains(&format!("= webhook: {name}\n")), "{found}");
        assert!(!found.contains("rejected-"), "{found}");
    }
}

#[test]
fn placeholder_of_a_ca_bundle_has_its_own_advice() {
    let entry = |ca_bundle: &str| {
        format!(
            "- name: b.example.com\n  clientConfig: {{service: {{namespace: hooks, name: hook, path: /}}, caBundle: {ca_bundle}}}\n  \
             failurePolicy: Fail\n  sideEffects: None\n  timeoutSeconds: 5\n  admissionReviewVersions: [v1]\n  \
             rules: [{{operations: [CREATE], apiGroups: [\"\"], apiVersions: [v1], resources: [pods]}}]\n"
        )
    };
    let found = linted_with(&entry("CA_BUNDLE"));
    assert!(
        found.contains("error[L01]") && found.contains("= help: Replace the placeholder with "),
        "{found}"
    );
    let text = linted_with(&entry("'${CA_BUNDLE}'"));
    assert!(text.contains("= help: Replace the placeholder with "), "{text}");
    let found = linted_with(&entry("CABUNDLE"));
    assert!(found.contains("warning[L07]: caBundle is the placeholder `CABUNDLE`"), "{found}");
    let found = linted_with(&entry("Cg=="));
    assert!(found.contains("kube-apiserver accepts it, but each call fails until it is replaced"), "{found}");
}

#[test]
fn multi_line_error_is_printed_below_the_source_line() {
    let text =
        fs::read_to_string(root().join("tests/lint/findings/V55-does-not-compile.yaml")).expect("the file");
    let found = prints(&lint_with_input(&["-c", "-"], &text), 1);
    assert!(!found.contains("\\n") && found.contains("\n   |    | ...."), "{found}");
}

#[test]
fn strings_that_yaml_reads_as_other_types_do_not_hide_other_errors() {
    let configuration = "\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: hook, labels: {on: yes}}
webhooks:
- name: hook.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  timeoutSeconds: 60
  clientConfig: {service: {namespace: hooks, name: y, path: /validate}}
  rules: [{operations: [create], apiGroups: [apps], apiVersions: [v1], resources: [deployments, 0777]}]
";
    let output = lint_with_input(&["-c", "-", "--check", "L01", "-o", "json"], configuration);
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let findings = report["findings"].as_array().expect("a list");
    let found: Vec<(&str, &str)> = findings
        .iter()
        .map(|finding| (finding["field"].as_str().unwrap_or(""), finding["help"].as_str().unwrap_or("")))
        .collect();
    let quote = |written: &str, kind: &str| {
        format!("Quote the value: YAML reads `{written}` without quotes as {kind}.")
    };
    let other = "Correct the field that the message names.";
    assert_eq!(
        found,
        [
            ("metadata.labels.on", &*quote("yes", "a boolean")),
            ("webhooks[0].clientConfig.service.name", &*quote("y", "a boolean")),
            ("webhooks[0].rules[0].resources[1]", &*quote("0777", "a number")),
            ("webhooks[0].rules[0].operations[0]", other),
            ("webhooks[0].timeoutSeconds", other),
        ]
    );
}
