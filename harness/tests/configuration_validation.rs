//! Compares kube-apiserver's recorded responses to new webhook configurations with admit's responses.
//!
//! `data/configuration-validation.jsonl` has one case per line, recorded from kube-apiserver 1.37.1 with POST requests
//! and `dryRun=All`: a configuration, and the `Status` that rejected it (`status`) or the stored webhooks (`stored`).
//! The recorder wrote generated names into the configuration.

#![expect(clippy::indexing_slicing, reason = "a wrong index fails the test")]

use std::error::Error;

use harness::config;
use harness::status::Status;
use serde_json::{Value, json};

const CASES: &str = include_str!("data/configuration-validation.jsonl");

/// Cases that may differ, each with the reason. A listed case that agrees fails the test.
const KNOWN_DIFFERENCES: [(&str, &str); 1] =
    [("reinvocationPolicy of a validating webhook", "unknown fields are dropped by the server, not here")];

fn outcome(configuration: &Value) -> Result<Value, Box<dyn Error>> {
    let mut configuration = configuration.clone();
    config::set_defaults(&mut configuration);
    let errors = config::validate(&configuration);
    if errors.is_empty() {
        // The server omits an empty list.
        let webhooks = configuration["webhooks"].as_array().filter(|webhooks| !webhooks.is_empty());
        return Ok(json!({"stored": webhooks}));
    }
    let kind = configuration["kind"].as_str().unwrap_or_default();
    let name = configuration["metadata"]["name"].as_str().unwrap_or_default();
    let status = Status::invalid("admissionregistration.k8s.io", kind, name, &errors);
    Ok(json!({"status": serde_json::to_value(status)?}))
}

#[test]
fn recorded_configurations_match() -> Result<(), Box<dyn Error>> {
    let mut wrong = Vec::new();
    let mut count = 0;
    for line in CASES.lines() {
        let mut case: Value = serde_json::from_str(line)?;
        let recorded = case.as_object_mut().ok_or("a case is an object")?;
        let name = recorded.remove("name").unwrap_or_default();
        let configuration = recorded.remove("configuration").unwrap_or_default();
        let ours = outcome(&configuration)?;
        let known = KNOWN_DIFFERENCES.iter().any(|(known, _)| name == *known);
        if known && ours == case {
            wrong.push(format!("{name} agrees by now: take it off the list"));
        } else if !known && ours != case {
            wrong.push(format!("{name}\n  recorded {case}\n  ours     {ours}"));
        }
        count += 1;
    }
    assert!(count >= 170, "only {count} cases");
    assert!(wrong.is_empty(), "{} of {count} cases:\n{}", wrong.len(), wrong.join("\n"));
    Ok(())
}
