//! Checks that the command reports the errors with which a real kube-apiserver rejected configurations.
//!
//! The configurations and the exact errors come from the recordings of cases.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::{lint_with_input, root};

fn yaml(path: &Path) -> Value {
    serde_saphyr::from_str(&fs::read_to_string(path).expect("it is there")).expect("YAML")
}

/// Returns the errors in a response of the server: `FIELD: MESSAGE` of each cause of a 422, or the message of a 400.
fn refused(answer: &Value) -> BTreeSet<String> {
    let body = &answer["body"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match (answer["status"].as_u64(), body["details"]["causes"].as_array()) {
        (Some(422), Some(causes)) => causes
            .iter()
            .map(|cause| format!("{}: {}", text(&cause["field"]), text(&cause["message"])))
            .collect(),
        (Some(400), _) => BTreeSet::from([text(&body["message"])]),
        _ => BTreeSet::new(),
    }
}

/// Returns the API server errors that the command reports for a configuration.
fn reported(configuration: &Value) -> BTreeSet<String> {
    let output = lint_with_input(&["-c", "-", "-o", "json"], &configuration.to_string());
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let findings = report["findings"].as_array().into_iter().flatten();
    let messages = findings.filter_map(|finding| finding["message"].as_str());
    messages
        .filter_map(|message| message.strip_prefix("the API server rejects the configuration: "))
        .map(str::to_owned)
        .collect()
}

#[test]
fn recorded_rejections_are_reported_in_the_servers_words() {
    let (mut refusals, mut accepted) = (0, 0);
    for entry in fs::read_dir(root().join("tests/cases/configurations")).expect("the folder is there") {
        let folder = entry.expect("an entry").path();
        if !folder.join("apiserver.yaml").is_file() {
            continue;
        }
        let (case, recording) = (yaml(&folder.join("case.yaml")), yaml(&folder.join("apiserver.yaml")));
        let requests = case["requests"].as_array().into_iter().flatten();
        let recorded = recording["requests"].as_array().into_iter().flatten();
        for (request, recorded) in requests.zip(recorded) {
            let is_plain = request["verb"] == "create" && request["namespace"].is_null();
            let Some(configuration) = request.get("body").filter(|body| is_plain && body.is_object()) else {
                continue;
            };
            // The recorded name contains the ID of a run.
            let text = configuration.to_string().replace("<id>", "1");
            let mut configuration: Value = serde_json::from_str(&text).expect("it was JSON");
            let name = request["name"].as_str().unwrap_or_default().replace("<id>", "1");
            if configuration["metadata"]["name"].is_null() && !name.is_empty() {
                configuration["metadata"]["name"] = json!(name);
            }
            let expected = refused(&recorded["answer"]);
            let expected: BTreeSet<String> = expected.iter().map(|text| text.replace("<id>", "1")).collect();
            if expected.is_empty() && recorded["answer"]["status"] != 201 {
                continue;
            }
            let mut found = reported(&configuration);
            // Without strict field validation, an API server ignores these fields.
            found.retain(|text| !text.starts_with("strict decoding error"));
            // An API server reports only the first value that it cannot decode.
            if recorded["answer"]["status"] == 400 {
                found.retain(|text| expected.contains(text));
            }
            assert_eq!(found, expected, "{}: {configuration}", folder.display());
            if expected.is_empty() { accepted += 1 } else { refusals += 1 }
        }
    }
    assert!(refusals >= 20 && accepted >= 5, "{refusals} refusals, {accepted} accepted");
}
