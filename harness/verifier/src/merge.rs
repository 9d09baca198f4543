//! Merges the reports of shards.

use std::collections::{BTreeMap, BTreeSet};

use super::causes;
use super::check::Probe;
use super::checks;
use super::consequences;
use super::interaction::Interactions;
use super::report::{CheckReport, CheckResult, Finding, MAX_EXAMPLES, Report, Tally, Tried, VERSION};

/// The reason why reports cannot be merged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MergeError {
    /// There are no reports to merge.
    #[error("there is no report")]
    Nothing,
    /// A report has the format of a different version of admit.
    #[error("a report has version {0}, expected {VERSION}: merge with the admit that wrote it")]
    Version(u32),
    /// The reports are about different checks.
    #[error("the reports are from different runs: their checks or skipped checks differ")]
    Checks,
    /// The reports are from runs with different numbers of shards.
    #[error("the reports are from different runs: {0} and {1}")]
    Division(String, String),
    /// Two reports are about the same shard; contains the shard.
    #[error("two reports have shard {0}")]
    Twice(String),
    /// The reports of some shards are missing; contains the shards.
    #[error("the report of shard {} is missing: run that shard first", .0.join(", "))]
    Missing(Vec<String>),
}

/// Merges the reports of all shards, or of runs on several complete corpora.
///
/// A finding keeps the smallest of its objects. Results that do not depend on the corpus, such as results about a
/// certificate, are in every report and are counted once.
///
/// # Errors
/// Returns a [`MergeError`] if the reports are not from the same run, or if a report is missing.
pub fn merge(reports: Vec<Report>) -> Result<Report, MergeError> {
    belong_together(&reports)?;
    let mut reports = reports;
    // The result must not depend on the order of the files.
    reports.sort_by_key(|report| report.shard);
    let mut reports = reports.into_iter();
    let mut whole = reports.next().ok_or(MergeError::Nothing)?;
    whole.shard = None;
    whole.stale = Vec::new();
    whole.remarks = Vec::new();
    let mut interactions = Interactions::default();
    interactions.extend(std::mem::take(&mut whole.interactions));
    for report in reports {
        interactions.extend(report.interactions);
        whole.interrupted |= report.interrupted;
        whole.objects += report.objects;
        whole.calls += report.calls;
        add(&mut whole.left_out, report.left_out, u64::saturating_add);
        whole.locations.extend(report.locations);
        whole.servers.extend(report.servers);
        whole.addresses.extend(report.addresses);
        whole.caveats.extend(report.caveats);
        whole.options.extend(report.options);
        for (name, other) in report.webhooks {
            let tried = whole.webhooks.entry(name).or_insert_with(|| Tried {
                mutating: other.mutating,
                operations: other.operations.clone(),
                rule_errors: other.rule_errors.clone(),
                selects: other.selects.clone(),
                ..Tried::default()
            });
            tried.called += other.called;
            tried.answered = match (tried.answered, other.answered) {
                (Some(a), Some(b)) => Some(a + b),
                (None, known) if tried.called == other.called => known,
                (Some(_), None) | (None, _) => None,
            };
            tried.patched += other.patched;
            add(&mut tried.failures, other.failures, u64::saturating_add);
            add(&mut tried.rejected, other.rejected, u64::saturating_add);
            for (reason, object) in other.failed_objects {
                tried.failed_objects.entry(reason).or_insert(object);
            }
            tried.objects += other.objects;
            add(&mut tried.denied, other.denied, u64::saturating_add);
            add(&mut tried.mismatches, other.mismatches, u64::saturating_add);
            if tried.called > 0 {
                tried.mismatches.clear();
            }
        }
        // A finding of one shard about several webhooks may be about one webhook in another.
        for (check, other) in whole.checks.iter_mut().zip(report.checks) {
            merge_check(check, other);
        }
        whole.unserved.extend(report.unserved);
        for (reason, webhooks) in report.unreached {
            whole.unreached.entry(reason).or_default().extend(webhooks);
        }
    }
    whole.interactions = interactions.into_list();
    whole.unserved.sort();
    whole.unserved.dedup();
    for webhooks in whole.unreached.values_mut() {
        webhooks.sort();
        webhooks.dedup();
    }
    for check in &mut whole.checks {
        check.findings = causes::grouped(std::mem::take(&mut check.findings), &whole.servers);
    }
    consequences::fold(&mut whole.checks);
    Ok(whole)
}

fn belong_together(reports: &[Report]) -> Result<(), MergeError> {
    let Some(first) = reports.first() else { return Err(MergeError::Nothing) };
    let asked = |report: &Report| -> Vec<(String, Option<String>)> {
        report.checks.iter().map(|check| (check.id.clone(), check.skipped.clone())).collect()
    };
    let count = |report: &Report| report.shard.map(|shard| shard.count);
    let division = |report: &Report| match count(report) {
        None => "the whole corpus".to_owned(),
        Some(count) => format!("{count} shards"),
    };
    let mut shards = BTreeSet::new();
    for report in reports {
        if report.version != VERSION {
            return Err(MergeError::Version(report.version));
        }
        if asked(report) != asked(first) {
            return Err(MergeError::Checks);
        }
        if count(report) != count(first) {
            return Err(MergeError::Division(division(first), division(report)));
        }
        if let Some(shard) = report.shard
            && !shards.insert(shard.index)
        {
            return Err(MergeError::Twice(shard.to_string()));
        }
    }
    let all = 1..=count(first).unwrap_or(0);
    let missing: Vec<String> = all
        .clone()
        .filter(|index| !shards.contains(index))
        .map(|index| format!("{index}/{}", all.end()))
        .collect();
    if missing.is_empty() { Ok(()) } else { Err(MergeError::Missing(missing)) }
}

fn merge_check(check: &mut CheckReport, other: CheckReport) {
    let probe = checks::find(&check.id).map(|check| check.probe);
    // Every shard runs these checks in the same way.
    let total = match probe {
        Some(
            Probe::Configuration(_)
            | Probe::Configurations(_)
            | Probe::Effects(_)
            | Probe::Webhook(_)
            | Probe::Intervention(..)
            | Probe::Conversion(_)
            | Probe::Manifests(..),
        ) => u64::max,
        Some(Probe::Object(_) | Probe::Collection(_) | Probe::ConfigurationAndObject(..)) | None => {
            u64::saturating_add
        }
    };
    check.findings = causes::single(std::mem::take(&mut check.findings));
    for other in causes::single(other.findings) {
        let same = |finding: &&mut Finding| {
            finding.kind == other.kind && finding.webhooks.keys().eq(other.webhooks.keys())
        };
        match check.findings.iter_mut().find(same) {
            Some(finding) => merge_finding(finding, other, total),
            None => check.findings.push(other),
        }
    }
    for other in other.results {
        let found = check.findings_of(&other.webhook).count();
        match check.results.iter_mut().find(|result| result.webhook == other.webhook) {
            Some(result) => merge_result(result, other, found, total),
            None => check.results.push(other),
        }
    }
}

fn merge_result(result: &mut CheckResult, other: CheckResult, found: usize, total: fn(u64, u64) -> u64) {
    let was_equipped = |result: &CheckResult| result.verdict == Tally::NotChecked && !result.unequipped;
    let other_verdict = other.verdict;
    let is_equipped = was_equipped(result) || was_equipped(&other);
    result.held = total(result.held, other.held);
    add(&mut result.not_checked, other.not_checked, total);
    for (reason, object) in other.not_checked_objects {
        result.not_checked_objects.entry(reason).or_insert(object);
    }
    add(&mut result.not_applicable, other.not_applicable, total);
    add(&mut result.not_exercised, other.not_exercised, total);
    for note in other.notes {
        if !result.notes.contains(&note) {
            result.notes.push(note);
        }
    }
    // A finding may be listed as a consequence of a finding of another check.
    let has_found = result.verdict == Tally::Found || other_verdict == Tally::Found;
    result.verdict = result.tally(has_found || found > 0);
    result.unequipped = result.verdict == Tally::NotChecked && !is_equipped;
}

/// Merges `other` into `finding`, which has the same webhook and kind; `total` combines the counts.
fn merge_finding(finding: &mut Finding, mut other: Finding, total: fn(u64, u64) -> u64) {
    // Every shard has the findings that depend only on the configuration.
    let total = if finding.object.is_some() { total } else { u64::max };
    add(&mut finding.webhooks, std::mem::take(&mut other.webhooks), total);
    finding.examples.append(&mut other.examples);
    finding.examples.truncate(MAX_EXAMPLES);
    finding.absorb(other);
}

fn add(counts: &mut BTreeMap<String, u64>, others: BTreeMap<String, u64>, total: fn(u64, u64) -> u64) {
    for (reason, count) in others {
        let entry = counts.entry(reason).or_default();
        *entry = total(*entry, count);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::report::Shard;
    use super::*;

    fn report(shard: Option<(u32, u32)>, check: &str, held: u64, findings: &[(&str, &Value)]) -> Report {
        let findings: Vec<Value> = findings
            .iter()
            .map(|(kind, object)| {
                json!({"kind": kind, "severity": "error", "message": kind, "webhooks": {"c/w": 1}, "examples": ["Pod a"],
                    "object": object, "differences": [], "steps": []})
            })
            .collect();
        let verdict = if findings.is_empty() { "passed" } else { "found" };
        let report = json!({
            "version": VERSION, "objects": 3, "calls": 5, "leftOut": {"no kind": 1},
            "shard": shard.map(|(index, count)| Shard { index, count }),
            "checks": [{"id": check, "title": "t", "severity": "error", "why": "w", "source": "s", "results": [
                {"webhook": "c/w", "verdict": verdict, "held": held, "notChecked": {}, "notApplicable": {}},
            ], "findings": findings}],
        });
        serde_json::from_value(report).unwrap()
    }

    #[test]
    fn objects_are_added_and_a_finding_keeps_its_smallest_object() {
        let (large, small) = (json!({"a": {"b": 1}}), json!({"a": 1}));
        let reports = [
            report(Some((2, 3)), "V01", 2, &[("x", &small), ("y", &small)]),
            report(Some((3, 3)), "V01", 3, &[]),
            report(Some((1, 3)), "V01", 1, &[("x", &large)]),
        ];
        let whole = merge(reports.to_vec()).unwrap();
        assert_eq!((whole.objects, whole.calls, whole.left_out["no kind"], whole.shard), (9, 15, 3, None));
        let check = &whole.checks[0];
        assert_eq!((check.results[0].verdict, check.results[0].held), (Tally::Found, 6));
        let findings: Vec<(&str, u64, usize)> =
            check.findings.iter().map(|it| (it.kind.as_str(), it.count(), it.examples.len())).collect();
        assert_eq!(findings, [("x", 2, 2), ("y", 1, 1)]);
        assert_eq!(check.findings[0].object, Some(small));
        let mut others = reports.to_vec();
        others.reverse();
        assert_eq!(merge(others).unwrap(), whole);
    }

    #[test]
    fn results_common_to_all_shards_count_once() {
        let parts = vec![report(Some((1, 2)), "V45", 1, &[]), report(Some((2, 2)), "V45", 1, &[])];
        assert_eq!(merge(parts).unwrap().checks[0].results[0].held, 1);
    }

    #[test]
    fn missing_shards_are_an_error() {
        let part = |index, count| report(Some((index, count)), "V01", 1, &[]);
        let error = |reports: Vec<Report>| merge(reports).unwrap_err();
        assert_eq!(error(Vec::new()), MergeError::Nothing);
        assert_eq!(error(vec![part(1, 2), part(1, 2)]), MergeError::Twice("1/2".to_owned()));
        let missing = MergeError::Missing(vec!["1/4".to_owned(), "3/4".to_owned()]);
        assert_eq!(error(vec![part(2, 4), part(4, 4)]), missing);
        assert!(matches!(error(vec![part(1, 2), part(2, 3)]), MergeError::Division(..)));
        assert!(matches!(error(vec![part(1, 1), report(None, "V01", 1, &[])]), MergeError::Division(..)));
        assert_eq!(error(vec![part(1, 2), report(Some((2, 2)), "V02", 1, &[])]), MergeError::Checks);
        let mut newer = part(1, 1);
        newer.version = VERSION + 1;
        assert_eq!(error(vec![newer]), MergeError::Version(VERSION + 1));
    }

    #[test]
    fn shards_divide_a_corpus() {
        for position in 0..20 {
            let of = (1..=7).filter(|index| Shard { index: *index, count: 7 }.includes(position)).count();
            assert_eq!(of, 1, "{position}");
        }
    }
}
