//! `--baseline`: findings that are known and accepted, each for a reason.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use harness::verify::checks;
use harness::verify::report::{CheckReport, Finding, Location, Report, StaleEntry, TOGETHER};
use serde::{Deserialize, Serialize};
use serde_saphyr::{Location as At, Spanned};

use crate::{Failure, documents};

/// The version of the file.
const VERSION: u32 = 1;

const HEAD: &str = "\
# Findings of admit verify that are accepted, each for a reason: `admit verify --baseline FILE` fails only for others.
# `admit verify --write-baseline FILE` writes this file again, and keeps the reasons.
";

/// Which findings are accepted: what one check finds of one kind about one webhook.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Known {
    check: String,
    kind: String,
    webhook: String,
}

/// The accepted findings.
#[derive(Debug, Default)]
pub(super) struct Baseline {
    entries: BTreeMap<Known, Accepted>,
}

/// Why a finding is accepted, and where that is written.
#[derive(Debug)]
struct Accepted {
    reason: String,
    place: Location,
}

/// Whether every entry has to have its reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reasons {
    /// It has: findings are accepted by it.
    Required,
    /// It may still be missing: the file is written again.
    Optional,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenBaseline {
    version: Spanned<u32>,
    findings: Vec<WrittenEntry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenEntry {
    check: Spanned<String>,
    kind: Spanned<String>,
    webhooks: Spanned<Vec<Spanned<String>>>,
    reason: Spanned<String>,
}

/// The same to be written.
#[derive(Debug, Serialize)]
struct Written<'a> {
    version: u32,
    findings: Vec<Entry<'a>>,
}

/// An entry to be written.
#[derive(Debug, Serialize)]
struct Entry<'a> {
    check: &'a str,
    kind: &'a str,
    webhooks: Vec<&'a str>,
    reason: &'a str,
}

impl Baseline {
    /// Reads the file.
    ///
    /// # Errors
    /// A usage failure that names file, line and field of the first thing that is wrong.
    pub(super) fn read(path: &Path, reasons: Reasons) -> Result<Self, Failure> {
        let file = path.display().to_string();
        let bytes =
            output::read(path).map_err(|error| Failure::usage(format!("--baseline {file}: {error}")))?;
        Self::parse(&documents::text(bytes, &file)?, &file, reasons)
    }

    fn parse(text: &str, file: &str, reasons: Reasons) -> Result<Self, Failure> {
        let wrong = |at: At, message: &str| Failure::usage(format!("{file}:{}: {message}", at.line()));
        let written: WrittenBaseline = serde_saphyr::from_str(text).map_err(|error| {
            let message = error.without_snippet().to_string();
            let message = message.split(" at line ").next().unwrap_or_default();
            wrong(error.location().unwrap_or(At::UNKNOWN), message)
        })?;
        if written.version.value != VERSION {
            let message = format!("version is {}, expected {VERSION}", written.version.value);
            return Err(wrong(written.version.referenced, &message));
        }
        let mut entries = BTreeMap::new();
        for (index, WrittenEntry { check, kind, webhooks, reason }) in
            written.findings.into_iter().enumerate()
        {
            let field = |name: &str, message: &str| format!("findings[{index}].{name}: {message}");
            let Some(known) = checks::find(&check.value) else {
                let message = format!("there is no check `{}`: see `admit verify --list`", check.value);
                return Err(wrong(check.referenced, &field("check", &message)));
            };
            let is_empty = |text: &str| text.trim().is_empty();
            if is_empty(&kind.value) {
                return Err(wrong(
                    kind.referenced,
                    &field("kind", "say which kind of finding: the report has it"),
                ));
            }
            if reasons == Reasons::Required && is_empty(&reason.value) {
                return Err(wrong(reason.referenced, &field("reason", "say why the finding is accepted")));
            }
            if webhooks.value.is_empty() {
                return Err(wrong(webhooks.referenced, &field("webhooks", "name at least one webhook")));
            }
            for webhook in webhooks.value {
                let at = webhook.referenced;
                if webhook.value != TOGETHER && !webhook.value.contains('/') {
                    let message =
                        format!("`{}`: expected CONFIGURATION/WEBHOOK or `{TOGETHER}`", webhook.value);
                    return Err(wrong(at, &field("webhooks", &message)));
                }
                let place = Location { file: file.to_owned(), line: check.referenced.line() };
                let accepted = Accepted { reason: reason.value.trim().to_owned(), place };
                let key =
                    Known { check: known.id.to_owned(), kind: kind.value.clone(), webhook: webhook.value };
                let described = format!("{} \"{}\" of {}", key.check, key.kind, key.webhook);
                if let Some(other) = entries.insert(key, accepted) {
                    let message = format!("{described} stands in line {}, too", other.place.line);
                    return Err(wrong(at, &field("webhooks", &message)));
                }
            }
        }
        Ok(Self { entries })
    }

    /// Marks the findings that are accepted, and lists the entries of which nothing is found any more.
    ///
    /// A finding is accepted if it is for each of its webhooks: a further webhook that shows it is news.
    pub(super) fn apply(&self, report: &mut Report) {
        for check in &mut report.checks {
            for finding in &mut check.findings {
                let known = |webhook: &String| self.entries.get(&Known::of(&check.id, finding, webhook));
                let reasons: Option<BTreeSet<&str>> =
                    finding.webhooks.keys().map(|webhook| Some(known(webhook)?.reason.as_str())).collect();
                finding.accepted = reasons.map(|reasons| reasons.into_iter().collect::<Vec<_>>().join("; "));
            }
        }
        report.stale = self
            .entries
            .iter()
            .filter(|(known, _)| is_stale(known, report))
            .map(|(known, accepted)| StaleEntry {
                check: known.check.clone(),
                kind: known.kind.clone(),
                webhook: known.webhook.clone(),
                place: accepted.place.clone(),
            })
            .collect();
    }

    /// Accepts all findings: those that were written down just now.
    pub(super) fn accept_all(report: &mut Report) {
        for finding in report.checks.iter_mut().flat_map(|check| &mut check.findings) {
            finding.accepted = Some("written to the baseline".to_owned());
        }
    }

    /// A baseline that accepts all findings of `report`: for the reasons of this one, or else for `reason`. What it accepts
    /// and `report` says nothing about, such as checks that were not made, stays.
    pub(super) fn rewritten(&self, report: &Report, reason: &str) -> Result<String, Failure> {
        let found = report.findings().flat_map(|(check, finding)| {
            finding.webhooks.keys().map(|webhook| Known::of(&check.id, finding, webhook))
        });
        let mut accepted: BTreeMap<Known, &str> = found.map(|known| (known, reason)).collect();
        for (known, Accepted { reason, .. }) in &self.entries {
            if !reason.is_empty() && (accepted.contains_key(known) || !is_stale(known, report)) {
                accepted.insert(known.clone(), reason);
            }
        }
        // One entry for all webhooks that share a reason.
        let mut entries: BTreeMap<(&str, &str, &str), Vec<&str>> = BTreeMap::new();
        for (known, reason) in &accepted {
            entries.entry((&known.check, &known.kind, reason)).or_default().push(&known.webhook);
        }
        let entries = entries.into_iter();
        let findings =
            entries.map(|((check, kind, reason), webhooks)| Entry { check, kind, webhooks, reason });
        let written = Written { version: VERSION, findings: findings.collect() };
        let text = serde_saphyr::to_string(&written).map_err(Failure::environment)?;
        Ok(format!("{HEAD}{text}"))
    }
}

impl Known {
    fn of(check: &str, finding: &Finding, webhook: &str) -> Self {
        Self { check: check.to_owned(), kind: finding.kind.clone(), webhook: webhook.to_owned() }
    }
}

/// Whether this run would have found it, and has not. A part of a corpus, and a check that was not made, say nothing.
fn is_stale(known: &Known, report: &Report) -> bool {
    let was_made = |check: &&CheckReport| check.id == known.check && check.skipped.is_none();
    let Some(check) = report.checks.iter().find(was_made) else { return false };
    let result = check.results.iter().find(|result| result.webhook == known.webhook);
    let is_known = result.is_none_or(|result| result.verdict != harness::verify::report::Tally::NotChecked);
    let is_found = check.findings_of(&known.webhook).any(|finding| finding.kind == known.kind);
    report.shard.is_none() && is_known && !is_found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(text: &str) -> Result<Baseline, String> {
        Baseline::parse(text, "b.yaml", Reasons::Required).map_err(|failure| failure.to_string())
    }

    /// V01 finds `grows` of a and b; V22 was not checked for a, and V57 was skipped.
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
        for (webhooks, expected) in
            [("c/a", None), ("c/a, c/b", Some("known")), ("c/b, c/a, c/z", Some("known"))]
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
    fn what_is_written_accepts_everything_and_keeps_the_reasons() {
        let before = parse(&file(&[entry("V01", "grows", "c/b", "known")])).unwrap();
        let text = before.rewritten(&report(), "new").unwrap();
        let mut report = report();
        let after = parse(&text).unwrap();
        after.apply(&mut report);
        assert_eq!(report.checks[0].findings[0].accepted.as_deref(), Some("known; new"));
        // What the run says nothing about stays, and what is not found any more goes.
        let entries = [
            entry("V22", "uid", "c/a", "kept"),
            entry("V57", "defaults", "c/a", "kept"),
            entry("V01", "shrinks", "c/a", "gone"),
        ];
        let text = parse(&file(&entries)).unwrap().rewritten(&report, "new").unwrap();
        assert_eq!((text.matches("kept").count(), text.matches("gone").count()), (2, 0), "{text}");
        // Without a reason nothing is accepted until somebody has written one.
        let text = Baseline::default().rewritten(&report, "").unwrap();
        assert!(parse(&text).unwrap_err().contains("findings[0].reason: say why"), "{text}");
        assert!(Baseline::parse(&text, "b.yaml", Reasons::Optional).is_ok());
    }

    #[test]
    fn what_is_wrong_is_named_with_line_and_field() {
        let good = entry("V01", "grows", "c/a", "r");
        for (text, expected) in [
            ("version: 2\nfindings: []\n".to_owned(), "b.yaml:1: version is 2, expected 1"),
            ("findings: []\n".to_owned(), "b.yaml:1: missing field `version`"),
            (file(&[good.replace("kind:", "sort:")]), "b.yaml:4: unknown field `sort`"),
            (file(&[entry("V99", "k", "c/a", "r")]), "b.yaml:3: findings[0].check: there is no check `V99`"),
            (file(&[good.clone(), entry("V01", "''", "c/a", "r")]), "b.yaml:8: findings[1].kind: say which"),
            (file(&[entry("V01", "k", "c/a", "''")]), "b.yaml:6: findings[0].reason: say why"),
            (file(&[entry("V01", "k", "a", "r")]), "b.yaml:5: findings[0].webhooks: `a`: expected"),
            (file(&[entry("V01", "k", "", "r")]), "b.yaml:5: findings[0].webhooks: name at least one"),
            (
                file(&[good.clone(), good]),
                "b.yaml:9: findings[1].webhooks: V01 \"grows\" of c/a stands in line 3, too",
            ),
        ] {
            let message = parse(&text).unwrap_err();
            assert!(message.contains(expected), "{message}\n{text}");
        }
    }
}
