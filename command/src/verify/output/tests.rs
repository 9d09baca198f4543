//! Compares every report of a run with golden files.
//!
//! `UPDATE_EXPECT=1 cargo test -p admit --lib verify::output` writes the golden files.

use expect_test::{ExpectFile, expect_file};
use serde_json::json;

use super::*;

/// Returns a report with a check for each outcome. Its strings contain characters that are special in some format.
fn report() -> Report {
    let counts = json!({});
    let mut report = json!({
        "version": 2, "objects": 12, "calls": 96, "leftOut": {"no kind \"Gadget\" is served": 2},
        "locations": {
            "injector/a.example.com": {"file": "./charts/my injector.yaml", "line": 7},
            "injector/b.example.com": {"file": "./charts/my injector.yaml", "line": 31},
        },
        "interactions": [
            {"webhook": "injector/a.example.com", "other": "injector/b.example.com", "relation": "dependsOn",
                "fields": ["spec.containers.env", "spec.containers.image", "spec.volumes", "metadata.labels.\"x\""],
                "objects": 3, "example": "Pod demo/web"},
            {"webhook": "injector/b.example.com", "other": "injector/a.example.com", "relation": "overwrites",
                "fields": ["metadata.labels.team"], "objects": 1, "example": "Pod demo/web"},
        ],
        "caveats": {"injector/a.example.com": "its matchConditions (no-leases) ask what a user may do"},
        "checks": [
            {"id": "V01", "title": "idempotent", "severity": "error", "why": "It is called again.", "source": "KEP-492",
                "help": "Check whether the object already has the field or list item before you add it.",
                "results": [
                    {"webhook": "injector/a.example.com", "verdict": "found", "held": 3, "notChecked": counts,
                        "notApplicable": counts},
                    {"webhook": "injector/b.example.com", "verdict": "passed", "held": 12, "notChecked": counts,
                        "notApplicable": counts},
                ], "findings": [
                    {"kind": "grows", "severity": "error", "message": "adds | once more,\n100% of `x`",
                        "webhooks": {"injector/a.example.com": 9}, "examples": ["Pod demo/web", "Pod demo/db"],
                        "differences": [
                            {"path": "metadata.labels", "expected": {"a": "```"}},
                            {"path": "spec.containers[app].image", "expected": "x", "found": "xx"},
                        ], "object": {"kind": "Pod"}, "steps": [], "proof": "proofs/V01-1"},
                    {"kind": "order", "severity": "note", "message": "in another order",
                        "webhooks": {"injector/a.example.com": 1}, "examples": ["Pod demo/web"],
                        "differences": [], "steps": []},
                ]},
            {"id": "V06", "title": "any order will do", "severity": "warning", "why": "Names decide.", "source": "good practices",
                "results": [
                    {"webhook": "all webhooks together", "verdict": "notApplicable", "held": 0, "notChecked": counts,
                        "notApplicable": {"there is only one": 12}},
                ], "findings": []},
            {"id": "V11", "title": "deterministic", "severity": "warning", "why": "Retries.", "source": "good practices",
                "results": [], "findings": [], "skipped": "it deals cards"},
            {"id": "V20", "title": "quiet", "severity": "warning", "why": "It is stored.", "source": "docs",
                "results": [
                    {"webhook": "injector/a.example.com", "verdict": "found", "held": 0, "notChecked": counts,
                        "notApplicable": counts},
                ], "findings": [
                    {"kind": "patches | nothing", "severity": "error", "message": "it patches nothing",
                        "webhooks": {"injector/a.example.com": 1}, "examples": [], "differences": [], "steps": [],
                        "accepted": "injector#12 | next release"},
                ]},
            {"id": "V37", "title": "robust", "severity": "warning", "why": "Anybody can reach it.", "source": "net/http",
                "help": "Return status 400 for a body that you cannot decode, and recover from panics in the handler.",
                "results": [
                    {"webhook": "injector/a.example.com", "verdict": "found", "held": 0, "notChecked": counts,
                        "notApplicable": counts},
                    {"webhook": "injector/b.example.com", "verdict": "found", "held": 0, "notChecked": counts,
                        "notApplicable": counts},
                ], "findings": [
                    {"kind": "gives no answer", "severity": "warning", "message": "on an empty body it panics",
                        "webhooks": {"injector/a.example.com": 1, "injector/b.example.com": 1}, "examples": [],
                        "differences": [], "steps": [], "proof": "proofs/V37-1"},
                ]},
            {"id": "V38", "title": "honest: no writes", "severity": "error", "why": "Dry runs.", "source": "docs",
                "results": [
                    {"webhook": "injector/a.example.com", "verdict": "notChecked", "held": 0,
                        "notChecked": {"connection refused": 1}, "notApplicable": counts},
                    {"webhook": "injector/b.example.com", "verdict": "passed", "held": 1, "notChecked": counts,
                        "notApplicable": counts},
                ], "findings": []},
            {"id": "V41", "title": "fast", "severity": "warning", "why": "It is waited for.", "source": "good practices",
                "results": [
                    {"webhook": "injector/a.example.com", "verdict": "notChecked", "held": 0,
                        "notChecked": {"connection refused": 1}, "notApplicable": counts},
                    {"webhook": "injector/b.example.com", "verdict": "passed", "held": 1, "notChecked": counts,
                        "notApplicable": counts, "notes": ["99 % of 100 calls in 3 ms"]},
                ], "findings": []},
        ],
    });
    report["checks"][0]["findings"][0]["consequences"] = json!([
        {"check": "V02", "kind": "new", "severity": "error", "message": "m", "webhooks": ["injector/a.example.com"]},
        {"check": "V10", "kind": "loops", "severity": "error", "message": "m", "webhooks": ["injector/a.example.com"],
            "fields": ["spec.nodeSelector"], "accepted": "known"},
    ]);
    report["stale"] = json!([{"check": "V02", "kind": "misses", "webhook": "injector/b.example.com",
        "place": {"file": "./base line.yaml", "line": 9}}]);
    report["webhooks"] = json!({
        "injector/a.example.com": {"mutating": true, "called": 90, "patched": 7, "objects": 12,
            "denied": {"a | must be *set*": 1, "without explanation": 2}},
        "injector/b.example.com": {"mutating": true, "called": 6, "patched": 0, "selects": ["inject"]},
    });
    serde_json::from_value(report).unwrap()
}

/// Compares a report with a golden file. In golden files, `VERSION` replaces the version of admit.
#[track_caller]
fn check(found: &str, expected: &ExpectFile) {
    expected.assert_eq(&found.replace(env!("CARGO_PKG_VERSION"), "VERSION"));
}

#[test]
fn text_begins_with_the_verdicts() {
    let text = anstream::adapter::strip_str(&text::text(&report(), false, ExitCode::Failed, 0)).to_string();
    check(&text, &expect_file!["golden/text.txt"]);
}

#[test]
fn reasons_of_checks_that_were_not_exercised_are_one_sentence() {
    let summary = |reasons: &[&str]| {
        let check = |(index, reason): (usize, &&str)| {
            json!({"id": format!("V0{index}"), "title": "t", "severity": "error", "why": "w", "source": "s", "findings": [],
                "results": [{"webhook": "c/w", "verdict": "notExercised", "held": 0, "notChecked": {},
                    "notApplicable": {}, "notExercised": {(*reason): 1}}]})
        };
        let checks: Vec<_> = reasons.iter().enumerate().map(check).collect();
        let report = json!({"version": 2, "objects": 1, "calls": 1, "leftOut": {}, "checks": checks});
        let text = text::text(&serde_json::from_value(report).unwrap(), false, ExitCode::Failed, 0);
        let text = anstream::adapter::strip_str(&text).to_string();
        let line = text.lines().rfind(|line| line.contains("not exercised")).unwrap().to_owned();
        line.rsplit_once(": ").unwrap().1.to_owned()
    };
    let (never, none) = (harness::verify::NEVER_CHANGED, harness::verify::NONE_CHANGED);
    let denied = "the webhook denied no object";
    let expected = "the webhook denied no object and the webhook never changed an object; in a separate run, use \
                    --check V00,V01,V02,V03 and -f with objects that the webhook denies and objects that it changes";
    assert_eq!(summary(&[never, none, denied, never]), expected);
    let expected = "no webhook changed an object; in a separate run, use --check V00 and -f with objects that the webhook \
                    changes";
    assert_eq!(summary(&[none]), expected);
}

#[test]
fn verbose_text_lists_every_check() {
    let text = anstream::adapter::strip_str(&text::text(&report(), true, ExitCode::Failed, 0)).to_string();
    check(&text, &expect_file!["golden/verbose.txt"]);
}

#[test]
fn an_interrupted_report_says_so_first() {
    let mut report = report();
    report.interrupted = true;
    let text = anstream::adapter::strip_str(&text::text(&report, false, ExitCode::Failed, 0)).to_string();
    assert!(text.starts_with("warning: the run was interrupted after 12 objects\n"), "{text}");
    assert!(text.contains("  = object: {") && !text.contains("smallest object"), "{text}");
}

#[test]
fn markdown_shows_what_a_webhook_says_as_text() {
    check(&markdown::summary(&report(), FailOn::Warning), &expect_file!["golden/summary.md"]);
}

#[test]
fn objects_of_a_finding_are_not_counted_once_for_each_webhook() {
    let finding = json!({"kind": "k", "severity": "error", "message": "m", "webhooks": {"c/a": 18, "c/b": 17},
        "examples": ["Pod a", "Pod b"], "differences": [], "steps": []});
    let finding: Finding = serde_json::from_value(finding).unwrap();
    assert_eq!(examples(&finding).as_deref(), Some("Pod a, Pod b and 16 more"));
}

#[test]
fn annotation_of_a_shared_finding_names_every_place() {
    let commands = annotations::commands(&report());
    let shared = commands.lines().find(|line| line.contains("V37")).unwrap();
    assert!(shared.contains("line=7,") && shared.contains("also at charts/my injector.yaml:31"), "{shared}");
}

#[test]
fn markdown_marks_a_webhook_whose_warnings_fail_the_run() {
    let finding = json!({"kind": "k", "severity": "warning", "message": "m", "webhooks": {"c/w": 1}, "examples": [],
        "differences": [], "steps": []});
    let report = json!({"version": 2, "objects": 1, "calls": 1, "leftOut": {}, "checks": [
        {"id": "V17", "title": "t", "severity": "warning", "why": "w", "source": "s", "findings": [finding],
            "results": [{"webhook": "c/w", "verdict": "found", "held": 0, "notChecked": {}, "notApplicable": {}}]},
    ]});
    let report: Report = serde_json::from_value(report).unwrap();
    for (fail_on, code, expected) in [
        (FailOn::Warning, ExitCode::Failed, "- ❌ **c/w**: no errors (1 warning)"),
        (FailOn::Error, ExitCode::Ok, "- ✅ **c/w**: no errors (1 warning)"),
    ] {
        assert_eq!(fail_on.exit_code(&report), code);
        let summary = markdown::summary(&report, fail_on);
        assert!(summary.lines().any(|line| line == expected), "{summary}");
    }
}

#[test]
fn junit_has_a_case_for_each_check_and_webhook() {
    check(&junit::document(&report(), FailOn::Warning).unwrap(), &expect_file!["golden/junit.xml"]);
}

#[test]
fn sarif_has_a_rule_for_each_check_and_a_result_for_each_finding() {
    check(&sarif::document(&report()), &expect_file!["golden/sarif.json"]);
}

#[test]
fn annotations_are_workflow_commands() {
    check(&annotations::commands(&report()), &expect_file!["golden/annotations.txt"]);
}

#[test]
fn json_and_yaml_are_the_whole_report() {
    let report = report();
    assert_eq!(serde_json::from_str::<Report>(&json(&report).unwrap()).unwrap(), report);
    assert_eq!(serde_saphyr::from_str::<Report>(&yaml(&report).unwrap()).unwrap(), report);
    check(&yaml(&report).unwrap(), &expect_file!["golden/report.yaml"]);
}

#[test]
fn the_exit_status_says_how_the_run_ended() {
    let with = |remove: &[&str]| {
        let mut report = report();
        report.checks.retain(|check| !remove.contains(&check.id.as_str()));
        report
    };
    let all = report();
    assert_eq!(FailOn::Warning.exit_code(&all), ExitCode::Failed);
    assert_eq!(FailOn::Never.exit_code(&all), ExitCode::Ok);
    assert_eq!(FailOn::Error.exit_code(&with(&["V01"])), ExitCode::NotChecked);
    assert_eq!(FailOn::Note.exit_code(&with(&["V01", "V20", "V37", "V38", "V41"])), ExitCode::NothingRun);

    // Accepted findings are not failures, whatever their severity.
    assert_eq!(FailOn::Note.exit_code(&with(&["V01", "V37", "V38", "V41"])), ExitCode::Ok);

    let mut unequipped = with(&["V01", "V20", "V37", "V38"]);
    unequipped.checks[2].results[0].unequipped = true;
    assert_eq!(FailOn::Note.exit_code(&unequipped), ExitCode::Ok);

    let mut note = all;
    note.checks.truncate(1);
    note.checks[0].findings.remove(0);
    assert_eq!(FailOn::Note.exit_code(&note), ExitCode::Failed);
    assert_eq!(FailOn::Warning.exit_code(&note), ExitCode::Ok);
}

#[test]
fn paths_are_those_of_the_repository() {
    let here = std::env::current_dir().unwrap();
    for (file, expected) in [
        ("a/b.yaml", "a/b.yaml"),
        ("./a.yaml", "a.yaml"),
        (here.join("a.yaml").to_str().unwrap(), "a.yaml"),
        ("/elsewhere/a.yaml", "/elsewhere/a.yaml"),
    ] {
        assert_eq!(github::relative(file), expected);
    }
}

#[test]
fn unreachable_and_unserved_resources_are_reported_once() {
    let mut report = report();
    let webhooks = vec!["injector/a.example.com".to_owned(), "injector/b.example.com".to_owned()];
    report.unreached.insert("no TLS server at 127.0.0.1:1".to_owned(), webhooks);
    report.unserved = serde_json::from_value(json!([
        {"verb": "patch", "resource": "v1 configmaps", "status": 415, "message": "unsupported: apply"},
    ]))
    .unwrap();
    let unreached =
        "could not reach injector/a.example.com, injector/b.example.com: no TLS server at 127.0.0.1:1";
    let unserved =
        "the API server behind the webhooks does not serve patch v1 configmaps: 415 unsupported: apply";
    let text = anstream::adapter::strip_str(&text::text(&report, false, ExitCode::Failed, 0)).to_string();
    let markdown = markdown::summary(&report, FailOn::Warning);
    for (text, lines) in [
        (text, [format!("warning: {unreached}\n"), format!("warning: {unserved}\n")]),
        (markdown, [format!("> **warning** {unreached}\n"), format!("> **warning** {unserved}\n")]),
    ] {
        for line in lines {
            assert_eq!(text.matches(&line).count(), 1, "{line}{text}");
        }
    }
}

/// Appends `end` to every string in `value` that may come from a source other than admit.
fn append(value: &mut serde_json::Value, end: &str) {
    use serde_json::Value;
    const KEPT: [&str; 7] = ["severity", "verdict", "id", "title", "why", "source", "relation"];
    match value {
        Value::String(text) => text.push_str(end),
        Value::Array(items) => items.iter_mut().for_each(|item| append(item, end)),
        Value::Object(members) => {
            for (name, member) in members.iter_mut() {
                if !KEPT.contains(&name.as_str()) {
                    append(member, end);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]
    #[test]
    fn every_format_survives_hostile_texts(text in crate::hostile::texts()) {
        let mut report = serde_json::to_value(report()).unwrap();
        append(&mut report, &text);
        let mut report: Report = serde_json::from_value(report).unwrap();
        let webhooks = std::mem::take(&mut report.webhooks).into_iter();
        report.webhooks = webhooks.map(|(name, tried)| (format!("{name}{text}"), tried)).collect();
        assert_eq!(serde_json::from_str::<Report>(&json(&report).unwrap()).unwrap(), report);
        assert_eq!(serde_saphyr::from_str::<Report>(&yaml(&report).unwrap()).unwrap(), report);
        crate::hostile::is_xml(&junit::document(&report, FailOn::Warning).unwrap());
        let sarif: serde_json::Value = serde_json::from_str(&sarif::document(&report)).unwrap();
        assert_eq!(sarif["runs"][0]["results"].as_array().unwrap().len(), 4);
        for shown in [text::text(&report, true, ExitCode::Failed, 0), markdown::summary(&report, FailOn::Warning), json(&report).unwrap()] {
            crate::hostile::is_safe(&shown);
        }
        let commands = annotations::commands(&report);
        crate::hostile::is_safe(&commands);
        assert_eq!(commands.lines().filter(|line| line.starts_with("::")).count(), commands.lines().count());
    }
}

#[test]
fn nothing_in_a_report_steers_a_terminal() {
    let mut report = serde_json::to_value(report()).unwrap();
    append(&mut report, "\u{1b}[2J\n\u{9b}31mfoo\u{202e}");
    let text = report.to_string();
    // The keys of maps are also hostile: webhooks and reasons.
    let text = text
        .replace("a.example.com\":", "a.example.com\\u001b[2J\\n\":")
        .replace("refused\":", "refused\\n\\u009b\":");
    let report: Report = serde_json::from_str(&text).unwrap();
    for (what, text) in [
        ("text", text::text(&report, true, ExitCode::Failed, 0)),
        ("markdown", markdown::summary(&report, FailOn::Warning)),
        ("annotations", annotations::commands(&report)),
    ] {
        // Only the text report has styles of its own; the other formats must not contain escape sequences.
        assert!(
            !text.contains("\u{1b}[2J") && (what == "text" || !text.contains('\u{1b}')),
            "{what}: {text:?}"
        );
        let plain = anstream::adapter::strip_str(&text).to_string();
        assert!(plain.contains("[2J") && plain.contains("31mfoo"), "{what}: {text}");
        let steers = |letter: char| (letter.is_control() && letter != '\n') || letter == '\u{202e}';
        assert!(!plain.contains(steers), "{what}: {plain:?}");
        // Hostile text must not start a line after its own line break.
        assert!(!plain.lines().any(|line| line.trim_start().starts_with(r"\u{9b}31m")), "{what}: {plain}");
    }
}
