//! Tests which findings a baseline accepts and what is written to it.

use harness::verify::report::Report;
use serde_json::json;

use super::*;
use crate::verify::VERIFY;

fn parse(text: &str) -> Result<Baseline, String> {
    Baseline::parse(text, "b.yaml", &VERIFY, Reasons::Required).map_err(|failure| failure.to_string())
}

/// Returns a report in which V01 finds `grows` for a and b, V22 was not checked for a, and V57 was skipped.
fn report() -> Report {
    let result = |webhook: &str, verdict: &str| json!({"webhook": webhook, "verdict": verdict, "held": 0, "notChecked": {}, "notApplicable": {}});
    let check = |id: &str, results: serde_json::Value, findings: serde_json::Value| {
        json!({"id": id, "title": "t", "severity": "error", "why": "w", "source": "s", "results": results,
            "findings": findings})
    };
    let finding = json!({"kind": "grows", "severity": "error", "message": "m", "webhooks": {"c/a": 1, "c/b": 1},
        "examples": [], "differences": [], "steps": []});
    let mut skipped = check("V57", json!([]), json!([]));
    skipped["skipped"] = json!("no");
    let report = json!({"version": 2, "objects": 1, "calls": 1, "leftOut": {}, "checks": [
        check("V01", json!([result("c/a", "found"), result("c/b", "found")]), json!([finding])),
        check("V22", json!([result("c/a", "notChecked"), result("c/b", "passed")]), json!([])),
        skipped,
    ]});
    serde_json::from_value(report).unwrap()
}

fn entry(check: &str, kind: &str, webhooks: &str, reason: &str) -> String {
    format!("- check: {check}\n  kind: {kind}\n  webhooks: [{webhooks}]\n  reason: {reason}\n")
}

fn file(entries: &[String]) -> String {
    format!("version: 1\nfindings:\n{}", entries.concat())
}

#[test]
fn a_finding_is_accepted_if_it_is_for_all_its_webhooks() {
    for (webhooks, expected) in [("c/a", None), ("c/a, c/b", Some("known")), ("c/b, c/a, c/z", Some("known"))]
    {
        let mut report = report();
        let baseline = parse(&file(&[entry("v01", "grows", webhooks, "known")])).unwrap();
        baseline.apply(&mut report);
        assert_eq!(report.checks[0].findings[0].accepted.as_deref(), expected, "{webhooks}");
    }
    let mut two = report();
    let entries = [entry("V01", "grows", "c/a", "x"), entry("V01", "grows", "c/b", "y")];
    parse(&file(&entries)).unwrap().apply(&mut two);
    assert_eq!(two.checks[0].findings[0].accepted.as_deref(), Some("x; y"));
}

#[test]
fn an_entry_is_stale_if_the_run_would_have_found_it() {
    for (check, kind, webhook, expected) in [
        ("V01", "grows", "c/a", false),
        ("V01", "shrinks", "c/a", true),
        ("V01", "grows", "c/gone", true),
        ("V22", "uid", "c/a", false),
        ("V22", "uid", "c/b", true),
        ("V57", "defaults", "c/a", false),
        ("V02", "was not asked for", "c/a", false),
    ] {
        let mut whole = report();
        let baseline = parse(&file(&[entry(check, kind, webhook, "r")])).unwrap();
        baseline.apply(&mut whole);
        assert_eq!(!whole.stale.is_empty(), expected, "{check} {kind} {webhook}");
        let mut part = report();
        part.shard = Some(harness::verify::report::Shard { index: 1, count: 2 });
        baseline.apply(&mut part);
        assert_eq!(part.stale, Vec::new());
    }
}

#[test]
fn an_entry_of_a_check_that_varies_is_stale_only_without_its_webhook() {
    for (check, webhook, expected) in [("V12", "c/a", false), ("V13", "c/a", true), ("V12", "c/gone", true)] {
        let mut report = report();
        let passed =
            json!({"webhook": "c/a", "verdict": "passed", "held": 1, "notChecked": {}, "notApplicable": {}});
        report.checks[0].id = check.to_owned();
        report.checks[0].results = vec![serde_json::from_value(passed).unwrap()];
        report.checks[0].findings.clear();
        let baseline = parse(&file(&[entry(check, "fails under concurrency", webhook, "kept")])).unwrap();
        let text = baseline.rewritten(&mut report, "").unwrap().0;
        baseline.apply(&mut report);
        assert_eq!(
            (!report.stale.is_empty(), !text.contains("kept")),
            (expected, expected),
            "{check} {webhook}"
        );
    }
}

#[test]
fn written_baseline_accepts_everything_and_keeps_the_reasons() {
    let before = parse(&file(&[entry("V01", "grows", "c/b", "known")])).unwrap();
    let text = before.rewritten(&mut report(), "new").unwrap().0;
    let mut report = report();
    let after = parse(&text).unwrap();
    after.apply(&mut report);
    assert_eq!(report.checks[0].findings[0].accepted.as_deref(), Some("known; new"));
    // Entries that the run cannot confirm stay, and entries without a finding are removed.
    let entries = [
        entry("V22", "uid", "c/a", "kept"),
        entry("V57", "defaults", "c/a", "kept"),
        entry("V01", "shrinks", "c/a", "gone"),
    ];
    let text = parse(&file(&entries)).unwrap().rewritten(&mut report, "new").unwrap().0;
    assert_eq!((text.matches("kept").count(), text.matches("gone").count()), (2, 0), "{text}");
    let entries = [entry("V22", "uid", "c/a", "''")];
    let unfilled = Baseline::parse(&file(&entries), "b.yaml", &VERIFY, Reasons::Optional).unwrap();
    let text = unfilled.rewritten(&mut report, "new").unwrap().0;
    assert!(text.contains("check: V22"), "{text}");
    // An entry is not accepted until it has a reason.
    let (text, missing) = Baseline::empty(&VERIFY).rewritten(&mut report, "").unwrap();
    assert!(missing > 0);
    let refused = parse(&text).unwrap_err();
    assert!(refused.contains("why the finding is accepted") || refused.contains("must say why"), "{refused}");
    assert!(Baseline::parse(&text, "b.yaml", &VERIFY, Reasons::Optional).is_ok());
}

#[test]
fn a_finding_is_reported_with_the_reason_that_this_run_writes() {
    let folder = tempfile::tempdir().unwrap();
    for (reason, expected) in [("", "in the baseline without a reason"), ("known", "known")] {
        let text = file(&[entry("V01", "grows", "c/a, c/b", "''")]);
        let known = Baseline::parse(&text, "b.yaml", &VERIFY, Reasons::Optional).unwrap();
        let written = ReportFile::create_shared(&folder.path().join("b.yaml")).unwrap();
        let mut report = report();
        Accepting::All { file: written, known, reason: reason.to_owned() }.apply(&mut report).unwrap();
        assert_eq!(report.checks[0].findings[0].accepted.as_deref(), Some(expected));
    }
}

#[test]
fn changes_of_a_rewritten_baseline_have_their_reasons() {
    let changes = |entries: &[String], fields: &[&str]| {
        let mut report = report();
        report.checks[0].findings[0].fields = fields.iter().map(|field| (*field).to_owned()).collect();
        parse(&file(entries)).unwrap().changes(&mut report)
    };
    let grows = || entry("V01", "grows", "c/a, c/b", "known");
    // The run did not complete V22 for c/a, so that entry is kept.
    let kept = || entry("V22", "uid", "c/a", "known");
    assert_eq!(changes(&[grows(), kept()], &[]), Vec::<String>::new());
    assert_eq!(
        changes(
            &[entry("V01", "grows", "c/a", "known"), entry("V01", "shrinks", "c/a", "known"), kept()],
            &[]
        ),
        [
            "b.yaml: added V01 \"grows\" for c/b: new finding",
            "b.yaml: removed V01 \"shrinks\" for c/a: no longer found",
        ]
    );
    let with_fields = changes(&[entry("V01", "grows", "c/a", "known")], &["data", "spec"]);
    assert_eq!(
        with_fields,
        [
            "b.yaml: added V01 \"grows\" for c/b (data, spec): new finding",
            "b.yaml: removed V01 \"grows\" for c/a (any field): replaced by entries that list fields",
        ]
    );
    assert_eq!(Baseline::empty(&VERIFY).changes(&mut report()), Vec::<String>::new());
    let many: Vec<String> =
        (0..30).map(|number| entry("V01", &format!("kind {number}"), "c/a", "r")).chain([grows()]).collect();
    let many = changes(&many, &[]);
    assert_eq!((many.len(), many.last().unwrap().as_str()), (21, "b.yaml: and 10 more changes"));
}

#[test]
fn an_entry_accepts_only_its_fields() {
    let entry = |fields: &str| {
        format!("- check: V01\n  kind: grows\n{fields}  webhooks: [c/a, c/b]\n  reason: known\n")
    };
    let with_fields = |fields: &[&str]| {
        let mut report = report();
        report.checks[0].findings[0].fields = fields.iter().map(|field| (*field).to_owned()).collect();
        report
    };
    let accepts = |fields: &str, found: &[&str]| {
        let mut report = with_fields(found);
        parse(&file(&[entry(fields)])).unwrap().apply(&mut report);
        let stale: Vec<String> = report.stale.iter().map(stale).collect();
        (report.checks[0].findings[0].accepted.is_some(), stale)
    };
    let both = "  fields: [data, metadata.labels]\n";
    assert_eq!(accepts(both, &["data", "metadata.labels"]), (true, Vec::new()));
    assert_eq!(accepts(both, &["data", "metadata.labels", "spec"]), (false, Vec::new()));
    let mut more = with_fields(&["data", "metadata.labels", "spec"]);
    parse(&file(&[entry(both)])).unwrap().apply(&mut more);
    assert_eq!(more.checks[0].findings[0].message, "m; not in the baseline: spec");
    let (is_accepted, stale) = accepts(both, &["data"]);
    assert!(
        is_accepted && stale.len() == 2 && stale[0].contains(" of c/a for metadata.labels, "),
        "{stale:?}"
    );
    let (is_accepted, stale) = accepts("", &["data"]);
    // An entry without fields accepts every field.
    assert!(
        is_accepted && stale[0].ends_with("list the current fields with --write-baseline FILE"),
        "{stale:?}"
    );
    assert!(
        parse(&file(&[entry("  fields: []\n")])).unwrap_err().contains(".fields: must name at least one")
    );

    let mut found = with_fields(&["data", "metadata.labels"]);
    let text = Baseline::empty(&VERIFY).rewritten(&mut found, "new").unwrap().0;
    let mut again = with_fields(&["data", "metadata.labels"]);
    parse(&text).unwrap().apply(&mut again);
    assert_eq!(again.checks[0].findings[0].accepted.as_deref(), Some("new"), "{text}");
    assert_eq!(text.matches("check:").count(), 1, "{text}");
    // The reason of an entry without fields is kept when fields replace it.
    let before = parse(&file(&[entry("")])).unwrap();
    let text = before.rewritten(&mut again, "new").unwrap().0;
    assert!(text.contains("reason: known") && text.contains("  - data\n") && !text.contains("new"), "{text}");
}

#[test]
fn a_finding_is_accepted_with_its_consequences() {
    let consequence = json!({"check": "V02", "kind": "misses", "severity": "error", "message": "m",
        "webhooks": ["c/a"]});
    let mut report = report();
    report.checks[0].findings[0].consequences = vec![serde_json::from_value(consequence).unwrap()];
    let own = entry("V01", "grows", "c/a, c/b", "known");
    parse(&file(std::slice::from_ref(&own))).unwrap().apply(&mut report);
    assert_eq!(report.checks[0].findings[0].accepted, None);
    // An accepted consequence of a new finding is still there.
    let known = entry("V02", "misses", "c/a", "known");
    parse(&file(std::slice::from_ref(&known))).unwrap().apply(&mut report);
    let finding = &report.checks[0].findings[0];
    assert_eq!((&finding.accepted, finding.consequences[0].accepted.as_deref()), (&None, Some("known")));
    assert_eq!(report.stale, []);
    parse(&file(&[own, entry("V02", "misses", "c/a", "follows")])).unwrap().apply(&mut report);
    assert_eq!(report.checks[0].findings[0].accepted.as_deref(), Some("follows; known"));
}

#[test]
fn all_empty_reasons_are_reported_at_once() {
    let entries =
        [entry("V01", "a", "c/a", "''"), entry("V01", "b", "c/a", "r"), entry("V01", "c", "c/a", "''")];
    let message = parse(&file(&entries)).unwrap_err();
    let expected =
        "b.yaml:6: 2 entries do not say why their findings are accepted: fill in `reason` on lines 6, 14";
    assert!(message.contains(expected), "{message}");
}

#[test]
fn what_is_wrong_is_named_with_line_and_field() {
    let good = entry("V01", "grows", "c/a", "r");
    for (text, expected) in [
        ("version: 2\nfindings: []\n".to_owned(), "b.yaml:1: version is 2, expected 1"),
        ("findings: []\n".to_owned(), "b.yaml:1: missing field `version`"),
        (file(&[good.replace("kind:", "sort:")]), "b.yaml:4: unknown field `sort`"),
        (file(&[entry("V99", "k", "c/a", "r")]), "b.yaml:3: findings[0].check: unknown check `V99`"),
        (
            file(&[good.clone(), entry("V01", "''", "c/a", "r")]),
            "b.yaml:8: findings[1].kind: must be the kind of the finding",
        ),
        (file(&[entry("V01", "k", "c/a", "''")]), "b.yaml:6: findings[0].reason: must say why"),
        (file(&[entry("V01", "k", "a", "r")]), "b.yaml:5: findings[0].webhooks: `a`: expected"),
        (file(&[entry("V01", "k", "", "r")]), "b.yaml:5: findings[0].webhooks: must name at least one"),
        (
            file(&[good.clone(), good]),
            "b.yaml:9: findings[1].webhooks: V01 \"grows\" of c/a is also on line 3",
        ),
    ] {
        let message = parse(&text).unwrap_err();
        assert!(message.contains(expected), "{message}\n{text}");
    }
}

#[test]
fn only_findings_missing_in_the_baseline_are_added() {
    for (entries, expected) in [
        (vec![], ADDED),
        (vec![entry("V01", "grows", "c/a", "known")], ADDED),
        (vec![entry("V01", "grows", "c/a, c/b", "known")], "known"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("b.yaml");
        if !entries.is_empty() {
            std::fs::write(&path, file(&entries)).unwrap();
        }
        let options = BaselineOptions {
            baseline: None,
            write_baseline: Some(path),
            baseline_reason: Some("later".to_owned()),
        };
        let mut report = report();
        options.open(&VERIFY).unwrap().apply(&mut report).unwrap();
        let finding = &report.checks[0].findings[0];
        assert_eq!(finding.accepted.as_deref(), Some(expected), "{entries:?}");
        assert_eq!(finding.added, expected == ADDED, "{entries:?}");
    }
}

#[test]
fn a_baseline_of_the_other_command_is_rejected_with_its_flag() {
    let text = Baseline::empty(&VERIFY).rewritten(&mut report(), "known").unwrap().0;
    assert!(parse(&text).is_ok());
    let other = text.replace("admit verify", "admit lint");
    let expected = "b.yaml: this is a baseline of `admit lint`, for `admit lint --baseline b.yaml`; create one for `admit \
                    verify` with `admit verify --write-baseline FILE`";
    assert_eq!(parse(&other).unwrap_err(), expected);
    // Without the comment, the checks tell.
    let message = parse(&file(&[entry("L10", "twice", "c/a", "known")])).unwrap_err();
    assert!(message.contains("L10 is a check of `admit lint`, not of `admit verify`"), "{message}");
}
