//! Law: a failed patch changes nothing, and the result of a patch is deterministic and limited in size.
//!
//! The limit depends on the size of the input and the limit on copies.
//!
//! The input is a line with the format (`json`, `merge`, `strategic`) and the number of repetitions of the operations
//! of a JSON patch, and then the object as in [`documents`], `---`, and the patch.

use harness::patch::Patch;
use serde_json::{Value, json};

use super::stored::Stored;
use super::{documents, runtime, with_text};

/// The maximum number of operations in one patch.
///
/// Source: apiserver pkg/endpoints/handlers/patch.go, `maxJSONPatchOperations`.
const MAX_OPERATIONS: usize = 10_000;
/// The limit on copied bytes, multiplied by the maximum length of the escape sequence for one byte.
const MAX_COPIED: usize = 6 * 3 * 1024 * 1024;

/// Checks the law for one input.
///
/// # Panics
/// Panics if the law does not hold.
pub(super) fn check(input: &[u8]) {
    with_text(input, |text| {
        let Some((head, rest)) = text.split_once('\n') else { return };
        let (format, times) = head.split_once(' ').unwrap_or((head, ""));
        let [object, patch] = documents::parts(rest);
        let Some(object) = documents::object(&object) else { return };
        match format {
            "json" => check_operations(&object, patch.as_bytes(), times.parse().unwrap_or(1)),
            "merge" => runtime::block_on(check_merge(object, &patch)),
            "strategic" => runtime::block_on(check_strategic(object, &patch)),
            _ => {}
        }
    });
}

fn check_operations(object: &Value, patch: &[u8], times: usize) {
    let Ok(patch) = Patch::decode(patch) else { return };
    let given = object.to_string().len() + json!(patch.operations()).to_string().len();
    let once = patch.apply(object);
    assert_eq!(once, patch.apply(object), "another result the second time");
    if let Ok(result) = &once {
        assert!(result.to_string().len() <= 6 * given + MAX_COPIED, "unbounded");
    }
    if let ([operation], Ok(result)) = (patch.operations(), &once)
        && operation.get("op").is_some_and(|op| op == "replace")
        && operation.get("path").is_some_and(|path| path != "")
    {
        assert_eq!(patch.apply(result).as_ref(), Ok(result), "{operation} is not idempotent");
    }
    if patch.is_empty() || times < 2 {
        return;
    }
    // Must be fast for any number of operations, because libFuzzer stops slow inputs.
    let operations: Vec<&Value> = patch
        .operations()
        .iter()
        .cycle()
        .take((patch.operations().len() * times).min(MAX_OPERATIONS))
        .collect();
    let repeated = Patch::decode(json!(operations).to_string().as_bytes());
    let repeated = repeated.unwrap_or_else(|error| panic!("its operations can be read: {error}"));
    if let Ok(result) = repeated.apply(object) {
        assert!(result.to_string().len() <= 6 * given * times.min(MAX_OPERATIONS) + MAX_COPIED, "unbounded");
    }
}

/// Checks that applying a merge patch a second time changes nothing.
async fn check_merge(object: Value, patch: &str) {
    let Some(stored) = Stored::new(object) else { return };
    let Some(first) = stored.patch("", "application/merge-patch+json", patch).await else { return };
    let patch: Value = serde_json::from_str(patch).unwrap_or_default();
    // The requested version is no longer the current one.
    if patch.pointer("/metadata/resourceVersion").is_none() {
        let second = stored.patch("", "application/merge-patch+json", &patch.to_string()).await;
        assert_eq!(second, Some(first), "{patch} is not idempotent");
    }
}

async fn check_strategic(object: Value, patch: &str) {
    let Some(stored) = Stored::new(object) else { return };
    stored.patch("", "application/strategic-merge-patch+json", patch).await;
}
