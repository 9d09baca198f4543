//! Compares our strategic merge patch implementation with random merges by the API server's library.
//!
//! `data/strategic-merge.jsonl` has one merge per line, recorded from k8s.io/apimachinery by
//! `harness/tools/strategic_merge.sh`: `kind` (apiVersion and kind), `object`, `patch`, and the result: an object
//! (`ok`), an error (`error`), or a `panic`.

use std::error::Error;

use kubernetes_admission::patch::strategic::{GroupVersionKind, StrategicError, apply};
use serde_json::{Value, json};

const CASES: &str = include_str!("data/strategic-merge.jsonl");

#[test]
fn every_recorded_merge_matches() -> Result<(), Box<dyn Error>> {
    let (mut differing, mut count) = (Vec::new(), 0);
    for line in CASES.lines() {
        let case: Value = serde_json::from_str(line)?;
        let kind =
            GroupVersionKind::from_object(&json!({"apiVersion": case["kind"][0], "kind": case["kind"][1]}));
        let patch = case["patch"].as_object().ok_or("a patch is an object")?;
        let (ours, recorded) = match apply(&case["object"], patch, &kind) {
            Err(StrategicError::Unsupported(_)) => (json!({"panic": true}), json!({"panic": case["panic"]})),
            Err(error) => (json!({"error": error.to_string()}), json!({"error": case["error"]})),
            Ok(object) => (json!({"ok": object}), json!({"ok": case["ok"]})),
        };
        if ours != recorded {
            differing.push(format!("{line}\n  recorded {recorded}\n  ours     {ours}"));
        }
        count += 1;
    }
    assert!(count >= 1000, "only {count} cases");
    assert!(differing.is_empty(), "{} of {count} differ:\n{}", differing.len(), differing.join("\n"));
    Ok(())
}

#[test]
fn items_are_deleted_from_lists_within_the_limit() -> Result<(), Box<dyn Error>> {
    let names = |count: usize| (0..count).map(|number| json!({"name": number.to_string()}));
    let secrets = |items: Vec<Value>| json!({"apiVersion": "v1", "kind": "ServiceAccount", "secrets": items});
    let merged = |count: usize, deletes: bool| {
        let mut items: Vec<Value> = names(count).collect();
        let order: Vec<Value> = items.iter().skip(usize::from(deletes)).cloned().collect();
        if deletes && let Some(item) = items.first_mut() {
            *item = json!({"name": "0", "$patch": "delete"});
        }
        let patch = json!({"secrets": items, "$setElementOrder/secrets": order});
        let object = secrets(names(1000).collect());
        apply(
            &object,
            patch.as_object().ok_or("a patch is an object")?,
            &GroupVersionKind::from_object(&object),
        )
        .map_err(Box::<dyn Error>::from)
    };
    assert_eq!(merged(1000, true)?, secrets(names(1000).skip(1).collect()));
    assert_eq!(merged(1001, false)?, secrets(names(1001).collect()));
    let error = merged(1001, true).unwrap_err().to_string();
    assert!(error.contains("$setElementOrder of very long lists"), "{error}");
    Ok(())
}
