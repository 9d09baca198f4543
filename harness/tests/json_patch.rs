//! Every recorded case of the API server's JSON patch library, against ours.
//!
//! `data/json-patch.jsonl` has one case a line, recorded from gopkg.in/evanphx/json-patch.v4 4.13.0: a document, a
//! patch, and the document that came of it (`ok`), or the error (`decode_err`, `apply_err`), or the text of a panic.

use std::error::Error;

use harness::patch::{ApplyError, Patch};
use serde_json::{Value, json};

const CASES: &str = include_str!("data/json-patch.jsonl");

/// What our library makes of a case, under the recording's names.
fn outcome(case: &Value) -> Value {
    let patch = match Patch::decode(case["patch"].to_string().as_bytes()) {
        Ok(patch) => patch,
        Err(error) => return json!({"decode_err": error.to_string()}),
    };
    match patch.apply_to_text(case["doc"].to_string().as_bytes()) {
        Ok(document) => json!({"ok": document}),
        Err(ApplyError::Panic(text)) => json!({"panic": text}),
        Err(error) => json!({"apply_err": error.to_string()}),
    }
}

#[test]
fn every_recorded_case_agrees() -> Result<(), Box<dyn Error>> {
    let mut differing = Vec::new();
    let mut count = 0;
    for line in CASES.lines() {
        let mut case: Value = serde_json::from_str(line)?;
        let ours = outcome(&case);
        let recorded = case.as_object_mut().ok_or("a case is an object")?;
        let name = recorded.remove("name").unwrap_or_default();
        recorded.remove("doc");
        recorded.remove("patch");
        // A JSON value tells 1 from 1.0.
        if case != ours {
            differing.push(format!("{name}\n  recorded {case}\n  ours     {ours}"));
        }
        count += 1;
    }
    assert!(count >= 75, "only {count} cases");
    assert!(differing.is_empty(), "{} of {count} cases differ:\n{}", differing.len(), differing.join("\n"));
    Ok(())
}
