//! Tests the files that the command writes, and the merged report of several shards.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::command::{Stage, ends_with};

/// The arguments of `admit verify` for a run with 40 pods.
const BASE: [&str; 8] = [
    "-c",
    "configuration.yaml",
    "-f",
    "many.yaml",
    "--check",
    "V01,V11,V22,V45",
    "--quiet",
    "--fail-on=error",
];

async fn stage(behavior: &str) -> Stage {
    let stage = Stage::with(behavior).await;
    let pods: Vec<Value> = (0..40)
        .map(|number| {
            let containers: Vec<Value> = (0..=number % 3)
                .map(|number| json!({"name": format!("c{number}"), "image": "example.com/app:1"}))
                .collect();
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("pod-{number}")},
                "spec": {"containers": containers}})
        })
        .collect();
    stage.write("many.yaml", &pods);
    stage
}

/// Returns the part of a report that does not depend on the time or on the order of objects.
fn essence(report: &Value) -> (u64, BTreeSet<String>) {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut said = BTreeSet::new();
    for check in list(&report["checks"]) {
        for result in list(&check["results"]) {
            let place = format!("{} {}", check["id"], result["webhook"]);
            said.insert(format!(
                "{place} {} held {} missed {} {}",
                result["verdict"], result["held"], result["notChecked"], result["notApplicable"]
            ));
        }
        for finding in list(&check["findings"]) {
            said.insert(format!(
                "{} {} {} {} {}",
                check["id"], finding["kind"], finding["severity"], finding["webhooks"], finding["object"]
            ));
        }
    }
    (report["objects"].as_u64().unwrap_or_default(), said)
}

/// Returns the messages of the warnings and notes in a text report that are not about a check.
fn remarks_in(text: &str) -> Vec<&str> {
    let lines = text.lines();
    lines.filter_map(|line| line.strip_prefix("warning: ").or_else(|| line.strip_prefix("note: "))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn warnings_and_notes_of_the_text_report_are_in_the_json_report() {
    let invalid =
        "when: {if: {equals: {/metadata/name: bare}}, then: {fault: E07-missing}, otherwise: allow}";
    for (behavior, expected) in [
        ("allow", "never changed an object"),
        (invalid, "did not return a valid response"),
        ("fault: E07-missing", "did not return a valid response to any call"),
    ] {
        let stage = Stage::with(behavior).await;
        let arguments =
            ["-c", "configuration.yaml", "-f", "pods.yaml", "--check", "V01,V11,V25,V38", "--wait", "1"];
        let text = stage.verify(&arguments).await;
        let text = String::from_utf8(text.stdout).expect("a text");
        let json = stage.verify(&[&arguments[..], &["-o", "json"]].concat()).await;
        let report: Value = serde_json::from_slice(&json.stdout).expect("JSON");
        let remarks = report["remarks"].as_array().expect("a list");
        let has = |message: &str| remarks.iter().any(|remark| remark["message"] == message);
        let shown = remarks_in(&text);
        assert!(shown.iter().any(|message| message.contains(expected)), "{text}");
        for message in &shown {
            assert!(has(message), "{message}: {remarks:#?}");
        }
        // The summary of the text report has the same reasons.
        if let Some((_, reason)) = text.split_once("exit status 6: ") {
            assert!(has(reason.lines().next().unwrap_or_default()), "{reason}: {remarks:#?}");
        }
        // Advice does not name an option that the user passed.
        for help in remarks.iter().filter_map(|remark| remark["help"].as_array()).flatten() {
            let help = help.as_str().unwrap_or_default();
            for advised in ["--wait", "with -f", "use -f"] {
                assert!(!help.contains(advised), "{help}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn merged_reports_of_all_shards_equal_the_report_of_one_run() {
    let stage = stage("non-idempotent").await;
    let whole = stage.verify(&[&BASE[..], &["-o", "json"]].concat()).await;
    ends_with(&whole, 1);
    let whole: Value = serde_json::from_slice(&whole.stdout).expect("JSON");
    let mut files = Vec::new();
    for shard in ["1/3", "2/3", "3/3"] {
        let part = stage.verify(&[&BASE[..], &["-o", "json", "--shard", shard]].concat()).await;
        ends_with(&part, 1);
        let name = format!("{}.json", shard.replace('/', "-of-"));
        std::fs::write(stage.path(&name), &part.stdout).expect("the file is written");
        files.push(name);
    }
    let files: Vec<&str> = files.iter().map(String::as_str).collect();

    let merged = stage.verify(&[&["merge"], &files[..], &["-o", "json"]].concat()).await;
    ends_with(&merged, 1);
    let merged: Value = serde_json::from_slice(&merged.stdout).expect("JSON");
    assert_eq!(essence(&merged), essence(&whole));
    assert_eq!(merged["webhooks"]["c/w.example.com"]["objects"], 40);
    assert_eq!(essence(&whole).0, 40);
    assert!(merged.get("shard").is_none());

    // The severity threshold is evaluated again.
    ends_with(&stage.verify(&[&["merge"], &files[..], &["--fail-on", "never"]].concat()).await, 0);
    // A missing shard is not a pass.
    let text = ends_with(&stage.verify(&[&["merge"], &files[..2]].concat()).await, 2);
    assert!(text.contains("the report of shard 3/3 is missing"), "{text}");
    let text = ends_with(&stage.verify(&["merge", "many.yaml"]).await, 2);
    assert!(text.contains("many.yaml: not a report of `admit verify -o json`"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shard_is_that_of_the_pod_in_a_job() {
    let stage = stage("allow").await;
    let mut command = stage.command(&[&BASE[..], &["-o", "json", "--shard", "auto/16"]].concat());
    command.env("JOB_COMPLETION_INDEX", "15");
    let output = Stage::run(command).await;
    ends_with(&output, 0);
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["shard"], json!({"index": 16, "count": 16}));
    assert_eq!(report["objects"], 2);
    let output = stage.verify(&[&BASE[..], &["--shard", "17/16"]].concat()).await;
    ends_with(&output, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_run_writes_every_report_and_names_file_and_line() {
    let stage = stage("non-idempotent").await;
    let mut command =
        stage.command(&[&BASE[..], &["--junit", "junit.xml", "--sarif", "log.sarif", "-o", "yaml"]].concat());
    command.env("GITHUB_ACTIONS", "true").env("GITHUB_STEP_SUMMARY", stage.path("step.md"));
    std::fs::write(stage.path("step.md"), "# earlier\n").expect("the file is written");
    let output = Stage::run(command).await;
    ends_with(&output, 1);

    let report: Value = serde_saphyr::from_slice(&output.stdout).expect("YAML");
    assert_eq!(report["locations"]["c/w.example.com"], json!({"file": "configuration.yaml", "line": 1}));
    let annotations = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        annotations.starts_with("::error file=configuration.yaml,line=1,title=V01 ")
            && annotations.contains("::c/w.example.com: not idempotent: called with its own result")
            && annotations.contains("%0Ahelp: Check whether the object already has the field"),
        "{annotations}"
    );
    let read = |name: &str| std::fs::read_to_string(stage.path(name)).expect("the file is there");
    let sarif: Value = serde_json::from_str(&read("log.sarif")).expect("JSON");
    let result = &sarif["runs"][0]["results"][0];
    assert_eq!(result["ruleId"], "V01");
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "configuration.yaml");
    let junit = read("junit.xml");
    assert!(junit.contains(r#"<testcase name="c/w.example.com" classname="V01""#));
    let (help, why) = (junit.find("\nhelp: Check whether"), junit.find("\nwhy: kube-apiserver calls"));
    assert!(help.is_some() && help < why, "{junit}");
    assert!(
        result["message"]["text"].as_str().is_some_and(|text| text.contains("\nhelp: Check whether")),
        "{result}"
    );
    let summary = read("step.md");
    assert!(summary.starts_with("# earlier\n## admit verify\n"), "{summary}");
    let order = [
        "\n- ❌ **c/w.example.com**: NOT idempotent (",
        "### V01 error: c/w.example.com",
        "\n**Help:** ",
        "<details>",
    ];
    let order = order.map(|part| summary.find(part).unwrap_or_else(|| panic!("{part}: {summary}")));
    assert!(order.is_sorted(), "{summary}");

    // An unwritable file is reported before the first call.
    let text = ends_with(&stage.verify(&[&BASE[..], &["--sarif", "no/such/folder"]].concat()).await, 3);
    assert!(text.contains("cannot write the report no/such/folder"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn connection_that_is_closed_for_one_object_makes_the_run_incomplete() {
    let closed = "{bad-response: closed}";
    let is_bare = "{equals: {/metadata/name: bare}}";
    let stage =
        Stage::with(&format!("when: {{if: {is_bare}, then: {closed}, otherwise: always-mutate}}")).await;
    let arguments = ["-c", "configuration.yaml", "-f", "pods.yaml", "--check", "V01"];
    let text = ends_with(&stage.verify(&arguments).await, 6);
    assert!(text.contains("1 call failed"), "{text}");
    let warning = "1 call failed without a response, first for Pod default/bare: ";
    assert!(text.contains(warning), "{text}");
    let output = stage.verify(&[&arguments[..], &["-o", "json"]].concat()).await;
    ends_with(&output, 6);
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let remarks = report["remarks"].to_string();
    assert!(remarks.contains(warning), "{remarks}");
}
