//! Tests for the YAML encoder.

use super::*;

/// Checks that the YAML of `sample.json` equals the output of Go's library.
#[test]
fn sample_is_encoded_like_go() {
    let sample: Value = serde_json::from_str(include_str!("sample.json")).unwrap();
    let (found, expected) = (String::from_utf8(encode(&sample)).unwrap(), include_str!("sample.yaml"));
    for (number, (found, expected)) in found.lines().zip(expected.lines()).enumerate() {
        assert_eq!(found, expected, "line {}", number + 1);
    }
    assert_eq!(found.len(), expected.len());
}
