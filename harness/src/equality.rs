//! Stub.
use serde_json::Value;
pub fn semantically_equal(a: &Value, b: &Value, _built_in: bool) -> bool { a == b }
