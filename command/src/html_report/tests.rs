//! Tests the pages without a browser; `tests/html_report.rs` opens pages in a browser.

use std::io::Read as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::ZlibDecoder;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::document::{Content, parse};
use super::page::{SCRIPT, STYLE, page};

const HOSTILE: &str =
    "</script><script>alert(1)</script>\u{2028}\u{202e}<img src=x onerror=alert(1)>\"'&<!--";

fn run(text: &str) -> Value {
    let step = json!({"keyword": "Then", "text": text, "line": 2, "status": "failed", "seconds": 0.1, "message": text, "notes": [text]});
    let attempt = json!({"status": "failed", "seconds": 0.1, "trouble": text, "steps": [step]});
    let scenario = json!({"name": text, "line": 1, "tags": [text], "status": "failed", "flaky": false, "attempts": [attempt]});
    json!({
        "version": 1, "admit": text, "target": text, "seconds": 0.1, "auditChecksNotMade": 0,
        "counts": {"passed": 0, "failed": 1, "flaky": 0, "unsupported": 0, "skipped": 0, "notRun": 0},
        "features": [{"path": text, "name": text, "scenarios": [scenario], "rules": []}],
    })
}

fn review(object: &Value, webhooks: usize, text: &str) -> Value {
    let webhook = |number: usize| {
        json!({
            "type": "validating", "configuration": text, "name": format!("w{number}.example.com"), "failurePolicy": "Fail",
            "considered": true, "called": false, "skipped": [{"round": 1, "test": "rules", "reason": text}],
        })
    };
    json!({
        "apiVersion": "admit.dev/v1alpha1", "kind": "AdmissionReport", "source": {"file": text, "line": 1},
        "request": {
            "operation": "CREATE", "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "resource": {"group": "", "version": "v1", "resource": "pods"}, "namespace": "default", "name": text,
            "userInfo": {"username": text}, "dryRun": false, "object": object,
        },
        "decision": {"verdict": "admitted", "allowed": true, "code": 201, "message": text},
        "warnings": [text], "auditAnnotations": {"a/b": text},
        "webhooks": (0..webhooks).map(webhook).collect::<Vec<_>>(),
        "calls": [], "steps": [], "object": object, "notes": [text], "durationMs": 1.0,
    })
}

fn lint(text: &str) -> Value {
    json!({
        "version": 1, "configurations": 1, "notChecked": [], "skipped": [],
        "findings": [{
            "check": "L01", "severity": "error", "file": text, "line": 1, "webhook": text, "field": text, "kind": text,
            "message": text, "help": text, "page": "https://example.com",
        }],
    })
}

fn verify(text: &str) -> Value {
    let finding = json!({
        "kind": text, "severity": "error", "message": text, "webhooks": {text: 1}, "examples": [text],
        "differences": [{"path": text, "expected": text}], "steps": [], "object": {"a": text},
    });
    json!({
        "version": 2, "objects": 1, "calls": 1, "leftOut": {text: 1},
        "remarks": [{"severity": "warning", "message": text, "help": [text]}],
        "webhooks": {text: {"mutating": true, "called": 1, "patched": 1}},
        "checks": [{
            "id": "V01", "title": text, "severity": "error", "why": text, "source": text, "findings": [finding],
            "results": [{"webhook": text, "verdict": "found", "held": 0, "notChecked": {}, "notApplicable": {}}],
        }],
    })
}

/// Returns the page for a file that contains `reports`.
fn rendered(reports: &[Value]) -> String {
    let text: Vec<String> = reports.iter().map(Value::to_string).collect();
    page(&parse("reports.json", text.join("\n").as_bytes()).unwrap()).unwrap()
}

/// Returns the reports that a page contains.
fn embedded(page: &str) -> Value {
    let (_, rest) = page.split_once("id=\"data\">").unwrap();
    let compressed = STANDARD.decode(rest.split_once('<').unwrap().0).unwrap();
    let mut json = String::new();
    ZlibDecoder::new(compressed.as_slice()).read_to_string(&mut json).unwrap();
    serde_json::from_str(&json).unwrap()
}

#[test]
fn hostile_texts_are_escaped_and_kept() {
    let reports = [run(HOSTILE), review(&json!({"a": HOSTILE}), 1, HOSTILE), verify(HOSTILE), lint(HOSTILE)];
    for report in &reports {
        let page = rendered(std::slice::from_ref(report));
        let markup = page.replace(SCRIPT, "").replace(STYLE, "");
        assert_eq!(markup.matches("<script").count(), 2, "{markup}");
        assert_eq!(markup.matches("</script").count(), 2, "{markup}");
        for forbidden in ["<img", "<!--", "\u{2028}", "\u{202e}"] {
            assert!(!markup.contains(forbidden), "{forbidden}");
        }
        assert!(markup.contains("&lt;/script&gt;&lt;script&gt;alert(1)"), "{markup}");
        let data = embedded(&page).to_string();
        assert!(data.contains(&Value::from(HOSTILE).to_string()), "{data}");
    }
    assert_eq!(embedded(&rendered(&reports))["documents"].as_array().unwrap().len(), 4);
}

#[test]
fn consecutive_requests_are_one_document() {
    let request = review(&json!({}), 0, "text");
    let list = json!({"apiVersion": "admit.dev/v1alpha1", "kind": "AdmissionReportList", "items": [request, request]});
    let mut recorded = request.clone();
    recorded["recorded"] = json!({"time": "2026-01-01T00:00:00Z", "verb": "create", "auditID": "1"});
    let page = rendered(&[recorded, list, run("text"), request]);
    let data = embedded(&page);
    let documents = data["documents"].as_array().unwrap();
    let commands: Vec<_> = documents.iter().map(|document| document["command"].as_str().unwrap()).collect();
    assert_eq!(commands, ["admit review", "admit run", "admit review"]);
    assert_eq!(documents[0]["report"].as_array().unwrap().len(), 3);
    assert_eq!(documents[0]["report"][0]["recorded"]["number"], 1);
}

#[test]
fn what_is_not_a_supported_report_is_rejected_with_the_file() {
    let with = |mut report: Value, field: &str, value: Value| {
        report[field] = value;
        report.to_string()
    };
    let version = |version: &str| Value::from(version);
    for (text, expected) in [
        (String::new(), "it does not contain a report"),
        ("{".to_owned(), "invalid JSON: EOF while parsing an object at line 1 column 1"),
        ("{}".to_owned(), "not a report: expected the JSON of `admit run`, `review`, `verify`, or `lint`"),
        (
            with(run(""), "version", 2.into()),
            "unsupported report of admit run of version 2: expected version 1",
        ),
        (
            with(verify(""), "version", 1.into()),
            "unsupported report of admit verify of version 1: expected version 2",
        ),
        (
            with(lint(""), "version", Value::Null),
            "unsupported report of admit lint of version null: expected version 1",
        ),
        (
            with(review(&json!({}), 0, ""), "apiVersion", version("admit.dev/v2")),
            "unsupported report of admit review of version admit.dev/v2: expected version admit.dev/v1alpha1",
        ),
        (
            with(lint(""), "findings", 1.into()),
            "invalid report of admit lint: invalid type: integer `1`, expected a sequence",
        ),
    ] {
        let error = parse("old.json", text.as_bytes()).unwrap_err().to_string();
        assert_eq!(error, format!("old.json: {expected}"));
    }
}

#[test]
fn large_reports_stay_small() {
    let entries = (0..20_000).map(|key| (format!("key-{key}"), Value::from("x".repeat(40))));
    let object = json!({"data": entries.collect::<serde_json::Map<_, _>>()});
    assert!(object.to_string().len() > 1 << 20);
    let page = rendered(&[review(&object, 1_000, "text")]);
    assert!(page.len() < 1 << 20, "{}", page.len());
    assert_eq!(embedded(&page)["documents"][0]["report"][0]["object"], object);
    let requests: Vec<Value> = (0..1_000).map(|_| review(&json!({"a": 1}), 3, "text")).collect();
    let page = rendered(&requests);
    assert!(page.len() < 1 << 20, "{}", page.len());
}

#[test]
fn content_security_policy_allows_only_the_bundle() {
    let page = rendered(&[run("text")]);
    for (text, kind) in [(SCRIPT, "script"), (STYLE, "style")] {
        let hash = STANDARD.encode(Sha256::digest(text));
        assert!(page.contains(&format!("{kind}-src 'sha256-{hash}'")));
        assert!(page.contains(&format!("<{kind}>{text}</{kind}>")));
    }
    assert!(page.contains("default-src 'none'"));
    assert_eq!(page.matches("http").count() - SCRIPT.matches("http").count(), 1, "only http-equiv");
}

#[test]
fn bundle_is_small_and_names_its_licenses() {
    assert!(SCRIPT.len() + STYLE.len() <= 150 << 10);
    assert!(!SCRIPT.contains("</script") && !SCRIPT.contains("<!--") && !STYLE.contains("</style"));
    for notice in ["The MIT License (MIT)", "BSD 3-Clause License"] {
        assert!(SCRIPT.contains(notice), "{notice}");
    }
}

#[test]
fn summary_names_what_failed() {
    let page = rendered(&[run("no request was sent"), lint("risky")]);
    assert!(page.contains("<caption>Failed scenarios</caption>"));
    assert!(
        page.contains("<p>0 passed, 1 failed of 1 feature on target no request was sent in 0.1 s</p>"),
        "{page}"
    );
    assert!(page.contains("<p>1 finding, 0 accepted in 1 object; 0 not checked</p>"));
    let page = rendered(&[verify("w was never called")]);
    assert!(page.contains("<caption>Warnings and notes</caption>"));
    let documents = parse("a", verify("w").to_string().as_bytes()).unwrap();
    assert!(matches!(documents.as_slice(), [document] if matches!(document.content, Content::Verify(_))));
}
