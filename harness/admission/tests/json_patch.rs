//! Compares our JSON patch implementation with recorded cases of the API server's library.
//!
//! `data/json-patch.jsonl` has one case per line, recorded from gopkg.in/evanphx/json-patch.v4 4.13.0: a document, a
//! patch, and the resulting document (`ok`), the error (`decode_err`, `apply_err`), or the text of a panic.
//! `data/json-patch-random.jsonl` has random patches in the same form, with documents and patches as strings.

use std::error::Error;

use kubernetes_admission::patch::{ApplyError, Patch};
use serde_json::{Value, json};

const CASES: &str = include_str!("data/json-patch.jsonl");

const RANDOM_CASES: &str = include_str!("data/json-patch-random.jsonl");

/// Returns the result of our implementation, with the names of the recording.
fn outcome(document: &str, patch: &str) -> Value {
    let patch = match Patch::decode(patch.as_bytes()) {
        Ok(patch) => patch,
        Err(error) => return json!({"decode_err": error.to_string()}),
    };
    match patch.apply_to_text(document.as_bytes()) {
        Ok(document) => json!({"ok": document}),
        Err(ApplyError::Panic(text)) => json!({"panic": text}),
        Err(error) => json!({"apply_err": error.to_string()}),
    }
}

#[test]
fn every_recorded_case_matches() -> Result<(), Box<dyn Error>> {
    let mut differing = Vec::new();
    let mut count = 0;
    for line in CASES.lines() {
        let mut case: Value = serde_json::from_str(line)?;
        let ours = outcome(&case["doc"].to_string(), &case["patch"].to_string());
        let recorded = case.as_object_mut().ok_or("a case is an object")?;
        let name = recorded.remove("name").unwrap_or_default();
        recorded.remove("doc");
        recorded.remove("patch");
        // A JSON value distinguishes 1 from 1.0.
        if case != ours {
            differing.push(format!("{name}\n  recorded {case}\n  ours     {ours}"));
        }
        count += 1;
    }
    assert!(count >= 75, "only {count} cases");
    assert!(differing.is_empty(), "{} of {count} cases differ:\n{}", differing.len(), differing.join("\n"));
    Ok(())
}

#[test]
fn every_recorded_random_patch_matches() -> Result<(), Box<dyn Error>> {
    let mut differing = Vec::new();
    for line in RANDOM_CASES.lines() {
        let mut case: Value = serde_json::from_str(line)?;
        let recorded = case.as_object_mut().ok_or("a case is an object")?;
        let document = recorded.remove("doc").unwrap_or_default();
        let patch = recorded.remove("patch").unwrap_or_default();
        let ours = outcome(document.as_str().unwrap_or_default(), patch.as_str().unwrap_or_default());
        if let Some(text) = recorded.get("ok").and_then(Value::as_str) {
            let read: Value = serde_json::from_str(text)?;
            recorded.insert("ok".to_owned(), read);
        }
        if case != ours {
            differing.push(format!("{patch} on {document}\n  recorded {case}\n  ours     {ours}"));
        }
    }
    assert_eq!(RANDOM_CASES.lines().count(), 400);
    assert!(differing.is_empty(), "{} cases differ:\n{}", differing.len(), differing.join("\n"));
    Ok(())
}
