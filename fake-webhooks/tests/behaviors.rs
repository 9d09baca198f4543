//! Tests the parsing of behaviors, and its errors.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on must stop")]

use fake_webhooks::Behavior;

#[derive(Debug, serde::Deserialize)]
struct File {
    #[expect(dead_code, reason = "only the errors are looked at")]
    behavior: Behavior,
}

/// Checks the error for an invalid value of `behavior:`. Lines in the value are counted from 1.
#[track_caller]
fn refused(yaml: &str, line: u64, parts: &[&str]) {
    let file = match yaml.split_once('\n') {
        None => format!("behavior: {yaml}"),
        Some(_) => format!("behavior:\n  {}", yaml.replace('\n', "\n  ")),
    };
    let line = if yaml.contains('\n') { line + 1 } else { line };
    let error = serde_saphyr::from_str::<File>(&file).unwrap_err();
    let message = error.without_snippet().to_string();
    assert_eq!(error.location().map(|location| location.line()), Some(line), "{message}");
    for part in parts {
        assert!(message.contains(part), "`{part}` is not in: {message}");
    }
}

#[test]
fn errors_contain_line_and_expectation() {
    refused("alow", 1, &["alow", "allow", "bad-response"]);
    refused("foo:\n  x: 1", 1, &["foo", "always-mutate"]);
    refused("deny:\n  code: 400\n  mesage: no", 3, &["mesage", "message", "auditAnnotations"]);
    refused("deny:\n  code: many", 2, &["i32"]);
    refused("patch", 1, &["`patch` needs `operations`"]);
    refused("patch:\n  warnings: []", 2, &["operations"]);
    refused("bad-response", 1, &["not-json"]);
    refused("bad-response:\n  wrong-uuid", 2, &["wrong-uuid", "wrong-uid"]);
    refused("bad-response:\n  status: 42", 2, &["42", "200 to 999"]);
    refused("timeout:\n  hang: soon", 2, &["soon", "forever"]);
    refused("{sequence: []}", 1, &["at least one"]);
    refused("sequence:\n- allow\n- denny", 3, &["denny", "deny"]);
    refused("allow: {}\ndeny: {}", 1, &["`deny` next to `allow`", "sequence"]);
    refused("when:\n  if: {container: x}", 2, &["then"]);
    refused("rate:\n  of: deny\n  probability: 2", 3, &["invalid probability 2", "0 to 1"]);
    refused("rate", 1, &["`of` and `probability`"]);
    refused("delay:\n  for: {fixed: soon}", 2, &["invalid duration `soon`", "500ms"]);
    refused("delay:\n  for: {sometimes: 1}", 2, &["sometimes", "uniform"]);
    refused("{cycle: []}", 1, &["at least one"]);
    refused("first:\n  calls: 3", 2, &["of"]);
    refused("{mutate: []}", 1, &["at least one change"]);
    refused("mutate:\n- set: {/a: 1}\n- sett: {/a: 1}", 3, &["sett", "each-container"]);
    refused("mutate:\n- set: {labels: 1}", 2, &["invalid JSON pointer `labels`", "/metadata/labels/name"]);
    refused("mutate:\n- append:\n    path: /a\n    vale: 1", 4, &["vale", "value", "repeat"]);
    refused("when:\n  if: {labels: {a: b}}\n  then: deny", 2, &["labels", "label", "dry-run"]);
    refused("when:\n  if: {operations: [CREAT]}\n  then: deny", 2, &["CREAT", "CREATE"]);
    refused("when:\n  if: {every: 0}\n  then: deny", 2, &["nonzero"]);
    refused("side-effect:\n  write: {url: 'ftp://a'}", 2, &["ftp://a", "https://"]);
    refused("leak:\n  bytes: -1", 2, &["u32"]);
    refused("mix-up:\n  hold: forever", 2, &["forever", "invalid duration"]);
    refused("{}", 1, &["a behavior"]);
    refused("7", 1, &["a behavior"]);
}

#[test]
fn serialized_behaviors_are_parsed_back() {
    for yaml in [
        "allow",
        "deny: {code: 400, message: no}",
        "patch: {operations: [{op: add}]}",
        "always-mutate",
        "non-idempotent",
        "non-idempotent: {list: {path: /a, value: 1}}",
        "sidecar: {repeat: every-call}",
        "container-env",
        "when: {if: {absent: /a}, then: deny}",
        "timeout: {hang: 1500ms}",
        "bad-response: {status: 500}",
        "bad-response: closed",
        "sequence: [allow, deny]",
        "cycle: [allow, deny]",
        "first: {calls: 2, of: deny}",
        "rate: {of: deny, probability: 0.25, seed: 7}",
        "delay: {for: {uniform: {from: 1ms, to: 2s}}, then: deny}",
        "side-effect: {write: {url: 'http://a/'}, then: deny}",
        "leak",
        "mix-up: {hold: 1s}",
        "convert",
        "convert: {moves: [{version: v2, from: /a, to: /b}], trail: c, objects: {/d: 1}, review: {/response: null}}",
        "mutate: [{set: {/a: 1}}, {remove: [/b]}, {reorder-lists: {}}, {drop-unknown-fields: {}}]",
        "mutate: [{in-any-order: {changes: [{remove-containers: {except: [a]}}, {replace-containers: {keep: none}}]}}]",
        "when: {if: {all: [{round: first}, {not: {every: 2}}, {operations: [CREATE]}]}, then: deny}",
    ] {
        let behavior: Behavior =
            serde_saphyr::from_str(yaml).unwrap_or_else(|error| panic!("{yaml}\n{error}"));
        let json = serde_json::to_value(&behavior).unwrap();
        assert_eq!(serde_json::from_value::<Behavior>(json).unwrap(), behavior);
        let written = serde_saphyr::to_string(&behavior).unwrap();
        assert_eq!(serde_saphyr::from_str::<Behavior>(&written).unwrap(), behavior, "{written}");
    }
}
