//! Compares quantities that Go parsed and formatted with admit's results.
//!
//! `data/quantities.jsonl` has one case per line, recorded from apimachinery 0.37.1 `resource.ParseQuantity`: a text,
//! and its formatted value (`String`: unchanged if it looks canonical) or the error.

use std::error::Error;

use harness::quantity::{Quantity, QuantityError};
use serde_json::{Value, json};

const CASES: &str = include_str!("data/quantities.jsonl");

#[test]
fn recorded_quantities_match() -> Result<(), Box<dyn Error>> {
    let mut wrong = Vec::new();
    let mut count = 0;
    for line in CASES.lines() {
        let case: Value = serde_json::from_str(line)?;
        let text = case["text"].as_str().ok_or("a case has a text")?;
        let ours = match Quantity::parse(text) {
            Ok(quantity) => json!({"text": text, "printed": quantity.to_string()}),
            // Reported as unsupported: see the variant.
            Err(QuantityError::TooLarge) => continue,
            Err(error) => json!({"text": text, "error": error.to_string()}),
        };
        if ours != case {
            wrong.push(format!("recorded {case}\n  ours     {ours}"));
        }
        count += 1;
    }
    assert!(count >= 425, "only {count} cases");
    assert!(wrong.is_empty(), "{} of {count} cases differ:\n{}", wrong.len(), wrong.join("\n"));
    Ok(())
}
