//! Compares every format of the same findings with golden files.
//!
//! `UPDATE_EXPECT=1 cargo test -p admit --lib lint::output` writes the golden files.

use expect_test::{ExpectFile, expect_file};
use harness::verify::report::Location;

use super::*;
use crate::machine_readable::LINT_VERSION;

/// Returns a report in which strings contain characters that are special in at least one format.
fn report() -> Report {
    let finding = |check, severity, line, field: &str, message: &str| Finding {
        check,
        severity,
        file: "./charts/my injector.yaml".to_owned(),
        line,
        webhook: "injector/a.example.com".to_owned(),
        field: field.to_owned(),
        kind: "kind".to_owned(),
        message: message.to_owned(),
        other: None,
        why: "It is rejected.",
        help: "Correct it.".into(),
        page: "https://kubernetes.io/docs/",
        source: Some(format!("  - line {line}\r")),
        accepted: None,
        added: false,
    };
    Report {
        version: LINT_VERSION,
        configurations: 2,
        findings: vec![
            finding("L01", Severity::Error, 7, "webhooks[0].name", "adds | once *more*,\n100% of `x`"),
            finding("L04", Severity::Warning, 31, "webhooks[0].rules[0].resources[1]", "no \u{1b}[2J pod"),
            Finding { file: "STDIN".to_owned(), ..finding("L05", Severity::Note, 1, "", "wide") },
            Finding {
                accepted: Some("injector#12 | next\nrelease".to_owned()),
                ..finding("L04", Severity::Error, 32, "webhooks[0].rules[0].resources[2]", "no `gadget`")
            },
        ],
        not_checked: vec![
            NotChecked {
                check: "L04",
                webhook: "injector/b.example.com".to_owned(),
                file: Some("b.yaml".to_owned()),
                line: Some(3),
                reason: "no definition of *widgets*".to_owned(),
                is_rejected: false,
            },
            NotChecked {
                check: "V52",
                webhook: String::new(),
                file: None,
                line: None,
                reason: "labels".to_owned(),
                is_rejected: false,
            },
        ],
        not_applicable: std::collections::BTreeSet::new(),
        skipped: vec![Skipped { check: "V57", reason: "we know | the defaults".to_owned() }],
        stale: vec![StaleEntry {
            check: "L05".to_owned(),
            kind: "all *groups*".to_owned(),
            webhook: "injector/b.example.com".to_owned(),
            field: String::new(),
            lacks_fields: false,
            place: Location { file: "base line.yaml".to_owned(), line: 9 },
        }],
        hidden_notes: 0,
        names: vec!["injector".to_owned(), "other".to_owned()],
        unit: "configuration",
        checks: ["L01", "L04", "L05", "V52"].map(|id| crate::check_help::linted(id).unwrap()).to_vec(),
        unreadable: Vec::new(),
    }
}

#[track_caller]
fn check(format: Format, fail_on: FailOn, expected: &ExpectFile) {
    let found = document(&report(), format, fail_on).unwrap();
    let found = anstream::adapter::strip_str(&found).to_string();
    // The version of admit changes more often than its reports.
    expected.assert_eq(&found.replace(env!("CARGO_PKG_VERSION"), "VERSION"));
}

#[test]
fn text_begins_with_the_verdicts() {
    check(Format::Text, FailOn::Error, &expect_file!["golden/text.txt"]);
}

#[test]
fn equal_findings_are_printed_once_with_all_their_locations() {
    let mut report = report();
    report.findings.retain(|finding| finding.check == "L05");
    let same = |line, webhook: &str, field: &str| Finding {
        check: "L05",
        severity: Severity::Note,
        file: "b.yaml".to_owned(),
        line,
        webhook: webhook.to_owned(),
        field: field.to_owned(),
        kind: "kind".to_owned(),
        message: "wide".to_owned(),
        other: None,
        why: "It is rejected.",
        help: "Correct it.".into(),
        page: "https://kubernetes.io/docs/",
        source: None,
        accepted: None,
        added: false,
    };
    report.findings.push(same(4, "injector/b.example.com", "webhooks[1].rules"));
    report.findings.push(same(4, "injector/c.example.com", "webhooks[2].rules"));
    report.findings.push(Finding { severity: Severity::Error, ..same(9, "other", "") });
    let text = anstream::adapter::strip_str(&text::text(&report, false)).to_string();
    let expected = "\nerror[L05]: wide\n --> b.yaml:9\n  = configuration: other\n";
    assert_eq!(text.matches(expected).count(), 1, "{text}");
    let expected = "\nnote[L05]: wide\n --> STDIN:1\n --> b.yaml:4\n  |\n1 |   - line 1\n  |\n  \
                    = webhooks: injector/a.example.com, injector/b.example.com, injector/c.example.com\n  \
                    = fields: webhooks[1].rules, webhooks[2].rules\n";
    assert_eq!(text.matches(expected).count(), 1, "{text}");
    assert!(text.contains("\n4 findings (1 error, 3 notes) in 2 configurations\n"), "{text}");
    let json = document(&report, Format::Json, FailOn::Error).unwrap();
    assert_eq!(json.matches("\"message\": \"wide\"").count(), 4);
}

#[test]
fn check_with_several_reasons_is_counted_once() {
    let mut report = report();
    report.not_checked.extend([9, 19].map(|line| NotChecked {
        check: "L04",
        webhook: "injector/c.example.com".to_owned(),
        file: Some("b.yaml".to_owned()),
        line: Some(line),
        reason: "the API server rejects webhooks[2].rules".to_owned(),
        is_rejected: true,
    }));
    let text = anstream::adapter::strip_str(&text::text(&report, false)).to_string();
    let lines: Vec<&str> = text.lines().filter(|line| line.contains("not completed")).collect();
    let expected = [
        "1 check not completed: L04: injector/c.example.com: the API server rejects webhooks[2].rules",
        "1 check not completed: V52 (-v says why)",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn markdown_shows_what_files_say_as_text() {
    check(Format::Markdown, FailOn::Error, &expect_file!["golden/summary.md"]);
}

#[test]
fn json_is_the_whole_report() {
    check(Format::Json, FailOn::Error, &expect_file!["golden/report.json"]);
}

#[test]
fn junit_has_a_suite_for_each_check() {
    check(Format::Junit, FailOn::Warning, &expect_file!["golden/junit.xml"]);
}

#[test]
fn sarif_has_the_line_of_each_field() {
    check(Format::Sarif, FailOn::Error, &expect_file!["golden/sarif.json"]);
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]
    #[test]
    fn every_format_survives_hostile_texts(hostile in crate::hostile::texts()) {
        let mut report = report();
        for finding in &mut report.findings {
            for text in [&mut finding.file, &mut finding.webhook, &mut finding.field, &mut finding.message] {
                text.push_str(&hostile);
            }
            finding.source = Some(hostile.clone());
            if let Some(reason) = &mut finding.accepted {
                reason.push_str(&hostile);
            }
        }
        for unchecked in &mut report.not_checked {
            unchecked.webhook.push_str(&hostile);
            unchecked.reason.push_str(&hostile);
        }
        report.skipped[0].reason.push_str(&hostile);
        report.stale[0].webhook.push_str(&hostile);
        report.names.push(hostile.clone());
        let written = |format: Format| document(&report, format, FailOn::Note).unwrap();
        let found: serde_json::Value = serde_json::from_str(&written(Format::Json)).unwrap();
        assert_eq!(found["findings"][0]["message"], report.findings[0].message);
        let found: serde_json::Value = serde_json::from_str(&written(Format::Sarif)).unwrap();
        assert_eq!(found["runs"][0]["results"].as_array().unwrap().len(), report.findings.len());
        crate::hostile::is_xml(&written(Format::Junit));
        for shown in [text::text(&report, true), written(Format::Markdown), written(Format::Json)] {
            crate::hostile::is_safe(&shown);
        }
    }
}

#[test]
fn verbose_text_lists_every_check() {
    let text = anstream::adapter::strip_str(&text::text(&report(), true)).to_string();
    expect_file!["golden/verbose.txt"].assert_eq(&text);
}
