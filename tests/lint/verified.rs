//! The manifests of well-known projects have no error that `admit verify` did not find in their running webhooks, too.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{report, root};

/// The ids of the checks that found something in a project.
fn found(project: &str) -> BTreeSet<String> {
    let file = root().join("tests/verified").join(project).join("found.json");
    let found: Value = serde_json::from_slice(&std::fs::read(file).expect("it is there")).expect("JSON");
    let mut ids = BTreeSet::new();
    collect(&found, &mut ids);
    ids
}

/// All texts that are an id of a check, wherever they stand.
fn collect(value: &Value, ids: &mut BTreeSet<String>) {
    match value {
        Value::String(text) if text.len() == 3 && text.starts_with('V') => {
            ids.insert(text.clone());
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, ids)),
        Value::Object(members) => {
            ids.extend(members.keys().filter(|key| key.len() == 3 && key.starts_with('V')).cloned());
            members.values().for_each(|value| collect(value, ids));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn no_well_known_project_has_a_false_alarm() {
    let mut projects = 0;
    for entry in std::fs::read_dir(root().join("tests/verified")).expect("the folder is there") {
        let project = entry.expect("an entry").file_name().to_string_lossy().into_owned();
        let file = format!("tests/verified/{project}/configuration.yaml");
        if !root().join(&file).is_file() {
            continue;
        }
        projects += 1;
        let (report, _) = report(&file);
        let verified = found(&project);
        for finding in report["findings"].as_array().expect("a list") {
            let is_error = finding["severity"] == "error";
            let id = finding["check"].as_str().unwrap_or_default();
            assert!(!is_error || verified.contains(id), "{project}: {finding:#}");
        }
    }
    assert!(projects >= 11, "{projects} projects");
}
