//! Tests the parsing of fakes files, and the resulting configurations.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on must stop")]

use std::sync::Arc;

use fake_webhooks::{FakesFile, Fleet, Log};
use serde_json::{Value, json};

fn file(webhook: &str) -> String {
    format!("version: 1\nwebhooks:\n- name: one\n  type: mutating\n  behavior: allow\n{webhook}")
}

#[track_caller]
fn refused(text: &str, place: &str, parts: &[&str]) {
    let message = FakesFile::parse(text, "fakes.yaml").unwrap_err().to_string();
    assert!(message.starts_with(&format!("fakes.yaml:{place} ")), "{message}");
    for part in parts {
        assert!(message.contains(part), "`{part}` is not in: {message}");
    }
}

#[test]
fn file_errors_contain_file_line_and_expectation() {
    refused("", "", &["empty"]);
    refused("version: 1", "1:1:", &["webhooks"]);
    refused("version: 2\nwebhooks: []", "1:10:", &["2", "must be 1"]);
    refused("version: v1\nwebhooks: []", "1:10:", &["\"v1\"", "must be 1"]);
    refused("version: 1\nwebhook: []", "2:1:", &["webhook", "listen"]);
    refused("version: 1\nlisten: nowhere\nwebhooks: []", "2:9:", &["socket address"]);
    refused("version: 1\nhost: a b\nwebhooks: []", "2:7:", &["`a b`"]);
    refused(&file("  tpye: x\n"), "6:3:", &["tpye", "type"]);
    refused(&file("  failurePolicy: Ignor\n"), "6:18:", &["Ignor", "Fail, Ignore"]);
    refused(&file("  certificate: expird\n"), "6:16:", &["`expird`", "expired"]);
    refused(&file("  path: a\n"), "6:9:", &["`a`", "must start with `/`"]);
    refused(&file("  path: /a?b\n"), "6:9:", &["`/a?b`"]);
    refused(&file("  timeoutSeconds: 31\n"), "6:19:", &["31", "1 to 30"]);
    refused(
        &file("  rules:\n  - operations: [CREAT]\n    resources: [pods]\n"),
        "7:18:",
        &["CREAT", "CREATE"],
    );
    refused(&file("  rules:\n  - resource: [pods]\n"), "7:5:", &["resource", "resources"]);
    refused(
        &file("- {name: one, type: mutating, behavior: allow}\n"),
        "6:10:",
        &["duplicate webhook name", "one.fakes.local"],
    );
    refused(&file("").replace("name: one", "name: One"), "3:9:", &["`One`", "lower-case letters"]);
    refused(&file("").replace("name: one", "name: one.two"), "3:9:", &["at least three"]);
    let validating = file("  reinvocationPolicy: Never\n").replace("mutating", "validating");
    refused(&validating, "6:23:", &["validating"]);
}

#[test]
fn deep_nesting_is_rejected() {
    for open in ["[", "{sequence: [", "{when: {if: {every: 2}, then: ", "- "] {
        let text = file("").replace("allow", &open.repeat(100_000));
        assert!(FakesFile::parse(&text, "fakes.yaml").is_err(), "{open}");
    }
}

async fn configurations(texts: &[&str]) -> Vec<Value> {
    let files: Vec<_> = texts.iter().map(|text| FakesFile::parse(text, "fakes.yaml").unwrap()).collect();
    let log: Log = Arc::new(|_| {});
    Fleet::start(&files, &log).await.unwrap().configurations().to_vec()
}

#[tokio::test]
async fn defaults_are_harmless() {
    let configurations = configurations(&[&file("")]).await;
    let mut webhook = configurations[0]["webhooks"][0].clone();
    webhook.as_object_mut().unwrap().remove("clientConfig");
    let expected = json!({
        "name": "one.fakes.local",
        "rules": [{
            "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"],
            "resources": ["pods", "configmaps"], "scope": "*",
        }],
        "namespaceSelector": {"matchLabels": {"admit-fakes": "enabled"}},
        "objectSelector": {},
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "sideEffects": "None",
        "timeoutSeconds": 10,
        "admissionReviewVersions": ["v1"],
        "reinvocationPolicy": "Never",
    });
    assert_eq!(webhook, expected);
}

#[tokio::test]
async fn webhooks_keep_their_order_and_share_a_port_for_each_certificate() {
    let text = "
version: 1
name: mine
webhooks:
- {name: c, type: mutating, behavior: allow}
- {name: b, type: mutating, behavior: allow, certificate: expired, path: /b}
- {name: a, type: mutating, behavior: allow}
";
    let configurations = configurations(&[text]).await;
    assert_eq!(configurations[0]["metadata"]["name"], "mine");
    let webhooks = configurations[0]["webhooks"].as_array().unwrap();
    let names: Vec<_> = webhooks.iter().map(|webhook| webhook["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["c.fakes.local", "b.fakes.local", "a.fakes.local"]);
    let port = |index: usize| {
        let url = webhooks[index]["clientConfig"]["url"].as_str().unwrap();
        url.strip_prefix("https://127.0.0.1:").unwrap().split('/').next().unwrap()
    };
    assert_eq!(port(0), port(2));
    assert_ne!(port(0), port(1));
    assert!(webhooks[1]["clientConfig"]["url"].as_str().unwrap().ends_with("/b"));
}
