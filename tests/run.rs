//! Tests the output and exit statuses of `admit run` and `admit steps`.

#![expect(clippy::indexing_slicing, reason = "a wrong index fails the test")]
#![expect(clippy::expect_used, reason = "what is not there fails the test")]
#![expect(clippy::needless_raw_string_hashes, reason = "UPDATE_EXPECT=1 writes them")]

use std::path::Path;
use std::process::{Command, Output};

use expect_test::{Expect, expect};
use serde_json::Value;

/// Returns the command in the workspace directory, so that paths are the same on every machine.
fn admit(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_admit"));
    command.args(arguments).current_dir(env!("CARGO_MANIFEST_DIR"));
    for variable in [
        "KUBEBUILDER_ASSETS",
        "NO_COLOR",
        "CLICOLOR",
        "CLICOLOR_FORCE",
        "CI",
        "GITHUB_ACTIONS",
        "GITHUB_STEP_SUMMARY",
    ] {
        command.env_remove(variable);
    }
    command
}

/// Removes durations, the only part of the output that varies.
fn without_durations(text: &str) -> String {
    let words = text.split_inclusive([' ', '\n']).collect::<Vec<_>>();
    let is_unit = |word: Option<&&str>| word.is_some_and(|word| matches!(word.trim_end(), "ms" | "s"));
    words
        .iter()
        .enumerate()
        .map(|(at, word)| {
            let is_number = word.trim_end().parse::<f64>().is_ok();
            if is_number && is_unit(words.get(at + 1)) {
                "_ "
            } else if is_unit(Some(word)) && at > 0 && words[at - 1].trim_end().parse::<f64>().is_ok() {
                if word.ends_with('\n') { "s\n" } else { "s " }
            } else {
                word
            }
        })
        .collect()
}

fn output(command: &mut Command) -> Output {
    command.output().expect("the command starts")
}

fn stderr(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    // On a slow machine there may be progress lines.
    text.split_inclusive('\n').filter(|line| !line.starts_with("running scenarios (")).collect()
}

/// Checks that the command prints exactly this to the standard output.
#[track_caller]
pub(crate) fn prints(arguments: &[&str], status: i32, expected: &Expect) {
    let output = output(&mut admit(arguments));
    expected.assert_eq(&without_durations(&String::from_utf8_lossy(&output.stdout)));
    assert_eq!((stderr(&output), output.status.code()), (String::new(), Some(status)));
}

/// Checks that the command prints exactly this to the standard error.
#[track_caller]
fn complains(arguments: &[&str], status: i32, expected: &Expect) {
    let output = output(&mut admit(arguments));
    expected.assert_eq(&stderr(&output));
    assert_eq!((output.stdout, output.status.code()), (Vec::new(), Some(status)));
}

#[test]
fn scenarios_that_pass_are_shown_with_their_steps_and_counted() {
    prints(
        &["run", "tests/features/passes.feature", "--jobs", "1"],
        0,
        &expect![[r#"
            Feature: Passing steps  tests/features/passes.feature
                ok A webhook is configured  _ s
                  ok Given a mutating webhook "first" for pods
                  ok Then the pod "web" does not exist
              Rule: A rule has scenarios of its own
                ok The webhook second is configured  _ s
                  ok Given a mutating webhook "second" for pods
                  ok Then the pod "web" does not exist

            skipped: 1 scenario tagged @envtest @cluster, and this target is in-process
            1 feature, 3 scenarios (2 passed, 1 skipped), 4 steps, _ s
            2 passed, 0 failed, 1 skipped
        "#]],
    );
}

#[test]
fn a_scenario_that_fails_says_where_and_why() {
    prints(
        &["run", "tests/features/fails.feature"],
        1,
        &expect![[r#"
            Feature: Failing steps  tests/features/fails.feature
                FAIL A step without a request fails  _ s
                  ok Given a mutating webhook "first" for pods
                  FAIL Then the request is admitted
                    - And "first" is called once

            error: A step without a request fails
             --> tests/features/fails.feature:5
              |
            5 | Then the request is admitted
              |
              = message: no request was sent: add a When step before this step

            1 feature, 1 scenario (1 failed), 3 steps, _ s
            0 passed, 1 failed
        "#]],
    );
}

#[test]
fn a_scenario_without_steps_is_a_mistake() {
    complains(
        &["run", "tests/features/empty.feature"],
        2,
        &expect![[r#"
        error: tests/features/empty.feature:3:3: the scenario `The keyword is misspelled` has no steps: a line that begins with none of Given, When, Then, And, But belongs to its description
        `admit steps` prints every step
    "#]],
    );
}

#[test]
fn quiet_shows_only_what_failed() {
    prints(
        &["run", "-q", "--jobs", "1", "tests/features/passes.feature", "tests/features/fails.feature"],
        1,
        &expect![[r#"

            error: A step without a request fails
             --> tests/features/fails.feature:5
              |
            5 | Then the request is admitted
              |
              = message: no request was sent: add a When step before this step

            skipped: 1 scenario tagged @envtest @cluster, and this target is in-process
            2 features, 4 scenarios (2 passed, 1 failed, 1 skipped), 7 steps, _ s
            2 passed, 1 failed, 1 skipped
        "#]],
    );
}

#[test]
fn failed_steps_are_annotated_in_a_github_workflow() {
    let output = output(admit(&["run", "tests/features/fails.feature"]).env("GITHUB_ACTIONS", "true"));
    let expected = "::error file=tests/features/fails.feature,line=5,title=A step without a request fails::Then the \
                    request is admitted%0Ano request was sent: add a When step before this step\n";
    assert_eq!((stderr(&output).as_str(), output.status.code()), (expected, Some(1)));
}

#[test]
fn a_github_workflow_gets_a_summary_of_the_run() {
    let folder = tempfile::tempdir().expect("a directory");
    let step = folder.path().join("step.md");
    std::fs::write(&step, "# earlier\n").expect("the file is written");
    let run = |arguments: &[&str]| {
        let mut command = admit(&[&["run", "tests/features/fails.feature"], arguments].concat());
        assert_eq!(output(command.env("GITHUB_STEP_SUMMARY", &step)).status.code(), Some(1));
        std::fs::read_to_string(&step).expect("the file exists")
    };
    let summary = run(&[]);
    assert!(summary.starts_with("# earlier\n## admit run\n\n1 feature, "), "{summary}");
    assert!(summary.contains("| ❌ tests/features/fails.feature |"), "{summary}");
    assert!(
        summary.contains(
            "### ❌ A step without a request fails\n\ntests/features/fails.feature:5: **Then** the request is \
             admitted\n\n```text\nno request was sent: add a When step before this step\n```\n"
        ),
        "{summary}"
    );
    // The option replaces the file of the workflow.
    let other = folder.path().join("other.md");
    assert_eq!(run(&["--summary", other.to_str().expect("text")]), summary);
    let requested = std::fs::read_to_string(other).expect("the file is written");
    assert!(requested.starts_with("## admit run\n"), "{requested}");
}

#[test]
fn the_features_that_the_binary_carries_pass_in_process() {
    let output = output(&mut admit(&["run"]));
    let text = String::from_utf8_lossy(&output.stdout);
    // So many scenarios are shown without their steps.
    assert!(!text.lines().any(|line| line.trim_start().starts_with("ok Given ")), "{text}");
    let last = text.lines().last().unwrap_or_default();
    assert!(last.contains(" passed, 0 failed"), "{text}");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn a_path_that_is_not_there_is_named() {
    complains(
        &["run", "tests/features/missing.feature"],
        2,
        &expect![[r#"
        error: tests/features/missing.feature: No such file or directory
    "#]],
    );
}

/// A feature about objects with a finalizer and about objects in files.
const OBJECTS: &str = r#"
Feature: Objects
  Scenario: An object that is being deleted is updated
    Given this object exists:
      """
      {apiVersion: v1, kind: ConfigMap, metadata: {name: kept, finalizers: [example.com/keep]}}
      """
    And the configmap "kept" is being deleted
    When the object in the file "kept.yaml" is updated
    Then the request is admitted
    And the configmap "kept" does not exist
  Scenario: Nothing keeps it
    Given a ConfigMap "settings" exists
    And the configmap "settings" is being deleted
  Scenario: There are two objects in the file
    When the object in the file "two.yaml" is created
"#;

#[test]
fn objects_are_kept_by_finalizers_and_a_file_of_a_request_has_one_object() {
    let folder = tempfile::tempdir().expect("a folder");
    let object = "{apiVersion: v1, kind: ConfigMap, metadata: {name: kept}}";
    let files = [
        ("objects.feature", OBJECTS.to_owned()),
        ("kept.yaml", object.to_owned()),
        ("two.yaml", format!("{object}\n---\n{object}\n")),
    ];
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).expect("it is written");
    }
    let feature = folder.path().join("objects.feature");
    let output = output(&mut admit(&["run", "--quiet", feature.to_str().expect("text")]));
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(
        text.contains("configmap \"settings\" was deleted immediately: it must have a finalizer"),
        "{text}"
    );
    assert!(text.contains("two.yaml contains 2 objects: must contain exactly one"), "{text}");
    assert!(text.contains("1 passed, 2 failed"), "{text}");
}

#[test]
fn line_that_is_not_gherkin_is_reported_with_the_expected_keywords() {
    complains(
        &["run", "tests/features/unreadable.feature"],
        2,
        &expect![[r#"
        error: tests/features/unreadable.feature:5:5: expected a line that begins with Feature, Background, Rule, Scenario, Examples, Given, When, Then, And, But or *, found `Perhaps the request is admitted`
    "#]],
    );
}

#[test]
fn file_without_a_feature_is_reported_with_the_expected_first_line() {
    complains(
        &["run", "tests/features/nameless.feature"],
        2,
        &expect![[r#"
        error: tests/features/nameless.feature:3:1: the file must begin with `Feature: NAME`, found `Scenario: A pod is admitted`
    "#]],
    );
}

#[test]
fn undefined_step_is_reported_before_the_run() {
    complains(
        &["run", "tests/features/passes.feature", "tests/features/undefined.feature"],
        2,
        &expect![[r#"
            error: tests/features/undefined.feature:4:5: no step matches `Given a mutating webhok "first" for pods`
              also at: tests/features/undefined.feature:10:5
              the nearest: Given a {admission} webhook {string} for {word}
              {admission}: `mutating` or `validating`
              for example: Given a mutating webhook "sidecar" for pods
            tests/features/undefined.feature:7:5: no step matches `When the moon is full of cheese and mice dance upon it`
            `admit steps` prints every step
        "#]],
    );
}

#[test]
fn nothing_selected_is_a_failure_of_its_own() {
    complains(
        &["run", "--tags", "@nowhere", "tests/features/passes.feature"],
        4,
        &expect![[r#"
            error: no scenarios selected; see --list
        "#]],
    );
}

#[test]
fn run_without_matching_scenarios_is_an_error() {
    complains(
        &["run", "--name", "elsewhere", "tests/features/passes.feature"],
        4,
        &expect![[r#"
            error: no scenarios selected; see --list
        "#]],
    );
}

#[test]
fn a_tag_expression_that_cannot_be_read_is_a_mistake_on_the_command_line() {
    let output = output(&mut admit(&["run", "--tags", "fast and"]));
    assert_eq!(output.status.code(), Some(2));
    let message = stderr(&output);
    assert!(message.contains("`@a and not (@b or @c)`"), "{message}");
}

#[test]
fn envtest_without_its_binaries_says_how_to_get_them() {
    complains(
        &["run", "--target", "envtest", "tests/features/passes.feature"],
        3,
        &expect![[r#"
            error: --target envtest: KUBEBUILDER_ASSETS is not set: it must name a directory with etcd and kube-apiserver
              get them with: export KUBEBUILDER_ASSETS=$(setup-envtest use 1.37.x -p path)
        "#]],
    );
}

#[test]
fn cluster_target_requires_a_place_for_fakes() {
    complains(
        &["run", "--target", "cluster", "tests/features/passes.feature"],
        2,
        &expect![[r#"
            error: --target cluster requires --fakes-in-cluster, which runs the fakes in a pod behind a Service, or --fakes-host HOST, the name or address at which the cluster's API server reaches this machine (for kind on Linux, the gateway of the docker network `kind`)
        "#]],
    );
}

#[test]
fn cluster_options_are_rejected_for_other_targets() {
    for option in ["--fakes-in-cluster", "--fakes-in-cluster=fakes", "--fakes-host=here", "--keep"] {
        let output = output(&mut admit(&["run", "tests/features/passes.feature", option]));
        let message = stderr(&output);
        let (name, _) = option.split_once('=').unwrap_or((option, ""));
        assert_eq!(message, format!("error: {name} requires --target cluster\n"));
        assert_eq!(output.status.code(), Some(2));
    }
}

#[test]
fn a_list_names_every_scenario_with_its_place_and_tags() {
    prints(
        &["run", "--list", "tests/features/passes.feature", "tests/features/fails.feature"],
        0,
        &expect![[r#"
            Feature: Passing steps  tests/features/passes.feature
                A webhook is configured  tests/features/passes.feature:4  @fast
              Rule: A rule has scenarios of its own  tests/features/passes.feature:8
                The webhook second is configured  tests/features/passes.feature:16  @fast  @second
                Another webhook is configured  tests/features/passes.feature:19  @fast  @envtest  @cluster  skipped: tagged @envtest @cluster, and this target is in-process

            Feature: Failing steps  tests/features/fails.feature
                A step without a request fails  tests/features/fails.feature:3
        "#]],
    );
}

#[test]
fn a_report_that_cannot_be_written_is_known_before_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing/report.xml");
    let output = output(admit(&["run", "tests/features/passes.feature", "--junit"]).arg(&missing));
    assert_eq!(output.status.code(), Some(3));
    assert!(output.stdout.is_empty());
    let message = stderr(&output);
    assert!(
        message.starts_with(&format!("error: cannot write the report {}", missing.display())),
        "{message}"
    );
}

#[test]
fn reports_mask_secrets_and_only_their_owner_can_read_them() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let feature = "Feature: Secrets\n  Scenario: One\n    When this object is created:\n      \"\"\"yaml\n      \
        {apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: {password: hunter2}}\n      \"\"\"\n    \
        Then the object has the label \"a=b\"\n";
    std::fs::write(folder.path().join("my.feature"), feature).unwrap();
    let files = ["--junit", "r.xml", "--json", "r.json", "--summary", "r.md", "--html", "r.html"];
    let arguments = [&["run", "my.feature", "--verbose"][..], &files].concat();
    let output = output(admit(&arguments).current_dir(folder.path()));
    assert_eq!(output.status.code(), Some(1));
    let screen = String::from_utf8_lossy(&output.stdout);
    assert!(screen.contains("password: Kioq") && !screen.contains("aHVudGVyMg"), "{screen}");
    for file in ["r.xml", "r.json", "r.md", "r.html"] {
        let path = folder.path().join(file);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600, "{file}");
        assert!(!read(&path).contains("aHVudGVyMg"), "{file}");
    }
    assert!(read(&folder.path().join("r.xml")).contains("password: Kioq"));
}

#[test]
fn reports_are_written_also_when_a_scenario_fails() {
    let folder = tempfile::tempdir().unwrap();
    let (junit, json) = (folder.path().join("report.xml"), folder.path().join("report.json"));
    let arguments =
        ["run", "--retries", "1", "tests/features/passes.feature", "tests/features/fails.feature", "--junit"];
    let output = output(admit(&arguments).arg(&junit).arg("--json").arg(&json));
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "nothing else is left behind");

    let report: Value = serde_json::from_str(&read(&json)).unwrap();
    assert_eq!(report["version"], 1);
    assert_eq!(report["target"], "in-process");
    assert_eq!(report["counts"]["passed"], 2);
    assert_eq!(report["counts"]["failed"], 1);
    assert_eq!(report["counts"]["skipped"], 1);
    let passes = &report["features"][0];
    assert_eq!(passes["path"], "tests/features/passes.feature");
    assert_eq!(passes["scenarios"][0]["status"], "passed");
    let rule = &passes["rules"][0];
    assert_eq!(rule["scenarios"][0]["name"], "The webhook second is configured");
    assert_eq!(rule["scenarios"][0]["tags"], serde_json::json!(["fast", "second"]));
    assert_eq!(rule["scenarios"][1]["reason"], "tagged @envtest @cluster, and this target is in-process");
    let attempts = report["features"][1]["scenarios"][0]["attempts"].as_array().unwrap();
    assert_eq!(attempts.len(), 2);
    let statuses: Vec<_> = attempts[1]["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| step["status"].as_str().unwrap())
        .collect();
    assert_eq!(statuses, ["passed", "failed", "notReached"]);

    let junit = read(&junit);
    assert!(
        junit.contains(r#"<testsuites name="admit run" tests="4" skipped="1" failures="1" errors="0""#),
        "{junit}"
    );
    assert!(
        junit.contains(r#"<failure message="Then the request is admitted">tests/features/fails.feature:5"#)
    );
    assert!(junit.contains("<rerunFailure"), "{junit}");
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).expect("the report exists")
}

#[test]
fn colors_are_used_on_terminals_and_on_request() {
    let colored = |arguments: &[&str], variable: Option<&str>| {
        let mut command = admit(&["run", "tests/features/fails.feature"]);
        command.args(arguments);
        if let Some(variable) = variable {
            command.env(variable, "1");
        }
        output(&mut command).stdout.contains(&b'\x1b')
    };
    assert!(!colored(&[], None));
    assert!(colored(&["--color", "always"], None));
    assert!(colored(&[], Some("CLICOLOR_FORCE")));
    assert!(!colored(&["--color", "never"], Some("CLICOLOR_FORCE")));
    assert!(!colored(&[], Some("NO_COLOR")));
}

#[test]
fn every_step_is_printed_for_people_and_for_programs() {
    let people = output(&mut admit(&["steps"]));
    assert!(people.status.success());
    let programs = output(&mut admit(&["steps", "-o", "json"]));
    assert!(programs.status.success());
    let document: Value = serde_json::from_slice(&programs.stdout).unwrap();
    assert_eq!(document["version"], 1);
    let text = String::from_utf8_lossy(&people.stdout);
    for step in document["steps"].as_array().unwrap() {
        let expression = step["expression"].as_str().unwrap();
        assert!(text.contains(expression), "{expression}");
    }
}
