//! Counts the observations of probes in bounded memory, regardless of the size of the corpus.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kubernetes_admission::config::WebhookId;
use serde_json::Value;

use super::call_recorder::Exchange;
use super::causes;
use super::check::{Check, Observed, Repeatability, Skipped, Violation};
use super::environment::Outcome;
use super::reasons::{MAX_KEPT, count, counted};
use super::report::{
    CheckReport, CheckResult, Finding, MAX_EXAMPLES, Report, Request, Step, TOGETHER, Tally, VERSION,
};
use super::sample_request::SampleRequest;
use super::shape;
use super::webhook_probe::WebhookProbe;

/// The maximum number of fields to keep for a finding.
const MAX_FIELDS: usize = 100;

/// The reason for skipping a check of a webhook whose responses to different requests cannot be compared.
pub(super) const NOT_DETERMINISTIC: &str = "the same request gets different responses: see V11";

/// The positions of a check and a webhook in the plan; the webhook is `None` for all webhooks together.
pub(super) type PlanPosition = (usize, Option<usize>);

/// The observations of all probes, by check and webhook.
#[derive(Debug, Default)]
pub(super) struct FindingLog {
    tallies: BTreeMap<PlanPosition, Entry>,
    pub(super) objects: u64,
    left_out: BTreeMap<String, u64>,
}

#[derive(Debug, Default)]
struct Entry {
    held: u64,
    /// The number of objects that could not be checked although all required options were set.
    unanswered: u64,
    /// The number of [`Skipped::Uncontacted`] results, by reason. They count as passed if the webhooks called the
    /// watched API server, and as not checked otherwise.
    uncontacted: BTreeMap<String, u64>,
    not_checked: BTreeMap<String, u64>,
    /// The first object that could not be checked, by reason.
    not_checked_objects: BTreeMap<String, String>,
    not_applicable: BTreeMap<String, u64>,
    not_exercised: BTreeMap<String, u64>,
    found: Vec<ViolationGroup>,
    notes: Vec<String>,
}

/// The violations of one kind for a check and a webhook.
#[derive(Debug)]
pub(crate) struct ViolationGroup {
    /// The violation of the first object or, after minimization, of the smallest object.
    pub(super) violation: Violation,
    /// The first object as given or, after minimization, the smallest object.
    pub(super) object: Option<Value>,
    /// Whether the webhook gives different responses to the same request. In this case, comparisons are invalid.
    pub(super) is_not_deterministic: bool,
    /// The fields with the violation, from all objects.
    fields: BTreeSet<String>,
    count: u64,
    examples: Vec<String>,
}

impl FindingLog {
    /// Records the observation of a probe. `object` has not been minimized.
    pub(super) fn note(&mut self, place: PlanPosition, object: Option<&Value>, observed: Observed) {
        let entry = self.tallies.entry(place).or_default();
        match observed {
            Err(Skipped::NotApplicable(reason)) => count(&mut entry.not_applicable, reason),
            Err(Skipped::NotExercised(reason)) => count(&mut entry.not_exercised, reason),
            Err(Skipped::NotChecked(reason)) => {
                entry.unanswered += 1;
                let reason = counted(&entry.not_checked, reason);
                if let Some(object) = object {
                    let name = || shape::kind_and_name(object);
                    entry.not_checked_objects.entry(reason.clone()).or_insert_with(name);
                }
                count(&mut entry.not_checked, reason);
            }
            Err(Skipped::Uncontacted(reason)) => count(&mut entry.uncontacted, reason),
            Err(Skipped::Unequipped(reason)) => count(&mut entry.not_checked, reason),
            Ok(violations) if violations.is_empty() => entry.held += 1,
            Ok(violations) => {
                for violation in violations {
                    entry.note(violation, object);
                }
            }
        }
    }

    /// Records the observation of a probe of one webhook, with its notes and the requests that it could not judge.
    pub(super) fn note_webhook(
        &mut self,
        place: PlanPosition,
        webhook_probe: WebhookProbe<'_>,
        observed: Observed,
    ) {
        self.remark(place, webhook_probe.notes.into_inner());
        // Without a result about the other requests, the reason for that is the better one.
        if matches!(observed, Ok(_) | Err(Skipped::Uncontacted(_))) {
            for reason in webhook_probe.unjudged.into_inner() {
                self.note(place, None, Err(Skipped::NotChecked(reason)));
            }
        }
        self.note(place, None, observed);
    }

    /// Records the notes of a probe, such as measurements.
    pub(super) fn remark(&mut self, place: PlanPosition, notes: Vec<String>) {
        self.tallies.entry(place).or_default().notes.extend(notes);
    }

    /// Determines the results that depend on whether the webhooks called the watched API server.
    ///
    /// Must be called at the end of the run.
    pub(super) fn conclude(&mut self, was_contacted: bool) {
        for entry in self.tallies.values_mut() {
            for (reason, times) in std::mem::take(&mut entry.uncontacted) {
                if was_contacted {
                    entry.held += times;
                } else {
                    entry.unanswered += times;
                    *entry.not_checked.entry(reason).or_default() += times;
                }
            }
        }
    }

    /// Removes findings that are invalid because the webhook gives different responses to the same request.
    pub(super) fn take_back(&mut self) {
        for entry in self.tallies.values_mut() {
            for found in entry.found.extract_if(.., |found| found.is_not_deterministic) {
                entry.unanswered += found.count;
                *entry.not_checked.entry(NOT_DETERMINISTIC.to_owned()).or_default() += found.count;
            }
        }
    }

    /// Returns whether an observation was recorded for the check at the position `check`.
    pub(super) fn has_seen(&self, check: usize) -> bool {
        self.tallies.range((check, None)..(check + 1, None)).next().is_some()
    }

    /// Records that `objects` objects were omitted because of `reason`.
    pub(super) fn leave_out(&mut self, reason: &str, objects: u64) {
        for _ in 0..objects {
            count(&mut self.left_out, reason.to_owned());
        }
    }

    /// Returns the violations by check and webhook, so that they can be minimized.
    pub(super) fn found(&mut self) -> BTreeMap<PlanPosition, &mut [ViolationGroup]> {
        self.tallies.iter_mut().map(|(place, entry)| (*place, entry.found.as_mut_slice())).collect()
    }

    /// Creates the report on `checks`. Each skipped check has a reason.
    pub(super) fn report(
        mut self,
        checks: &[(&'static Check, Option<String>)],
        webhooks: &[String],
        servers: BTreeMap<String, String>,
        calls: u64,
    ) -> Report {
        let mut reports = Vec::with_capacity(checks.len());
        for (position, (check, skipped)) in checks.iter().enumerate() {
            let webhooks = webhooks.iter().enumerate().map(|(place, name)| (Some(place), name.as_str()));
            let mut results = Vec::new();
            let mut findings = Vec::new();
            for (place, webhook) in std::iter::once((None, TOGETHER)).chain(webhooks) {
                let Some(entry) = self.tallies.remove(&(position, place)) else { continue };
                let (result, found) = entry.result(webhook, check);
                results.push(result);
                findings.extend(found);
            }
            reports.push(CheckReport {
                id: check.id.to_owned(),
                title: check.title.to_owned(),
                severity: check.severity,
                why: check.why.to_owned(),
                help: check.help.to_owned(),
                source: check.source.to_owned(),
                page: String::new(),
                skipped: skipped.clone(),
                results,
                findings: causes::grouped(findings, &servers),
            });
        }
        Report {
            version: VERSION,
            objects: self.objects,
            calls,
            left_out: self.left_out,
            shard: None,
            interrupted: false,
            locations: BTreeMap::new(),
            servers,
            addresses: BTreeMap::new(),
            caveats: BTreeMap::new(),
            stale: Vec::new(),
            webhooks: BTreeMap::new(),
            interactions: Vec::new(),
            unserved: Vec::new(),
            unreached: BTreeMap::new(),
            options: BTreeSet::new(),
            remarks: Vec::new(),
            checks: reports,
        }
    }
}

impl Entry {
    fn note(&mut self, violation: Violation, object: Option<&Value>) {
        let name = object.map(shape::kind_and_name);
        if let Some(found) = self.found.iter_mut().find(|found| found.violation.kind == violation.kind) {
            found.add_fields(&violation.fields);
            // The object with the most fields shows the most.
            if violation.shows_all_fields && violation.fields.len() > found.violation.fields.len() {
                found.violation = violation;
                found.object = object.cloned();
            }
            return found.again(name);
        }
        let fields = violation.fields.clone();
        if self.found.len() < MAX_KEPT {
            let object = object.cloned();
            self.found.push(ViolationGroup {
                violation,
                object,
                is_not_deterministic: false,
                fields: BTreeSet::new(),
                count: 0,
                examples: Vec::new(),
            });
        }
        if let Some(last) = self.found.last_mut() {
            last.add_fields(&fields);
            last.again(name);
        }
    }

    fn result(self, webhook: &str, check: &Check) -> (CheckResult, Vec<Finding>) {
        let has_findings = !self.found.is_empty();
        let findings = self.found.into_iter().map(|found| found.finding(webhook, check)).collect();
        let mut result = CheckResult {
            webhook: webhook.to_owned(),
            verdict: Tally::NotApplicable,
            held: self.held,
            unequipped: false,
            not_checked: self.not_checked,
            not_checked_objects: self.not_checked_objects,
            not_applicable: self.not_applicable,
            not_exercised: self.not_exercised,
            notes: self.notes,
        };
        result.verdict = result.tally(has_findings);
        result.unequipped = result.verdict == Tally::NotChecked && self.unanswered == 0;
        (result, findings)
    }
}

impl ViolationGroup {
    /// Adds the fields in which the violation was found; keeps at most [`MAX_FIELDS`] fields.
    fn add_fields(&mut self, fields: &BTreeSet<String>) {
        for field in fields {
            if self.fields.len() < MAX_FIELDS {
                self.fields.insert(field.clone());
            }
        }
    }

    /// Counts another object with the violation; keeps the names of the first [`MAX_EXAMPLES`] objects.
    fn again(&mut self, name: Option<String>) {
        self.count += 1;
        if self.examples.len() < MAX_EXAMPLES {
            self.examples.extend(name);
        }
    }

    fn finding(self, webhook: &str, check: &Check) -> Finding {
        let Violation {
            kind,
            message,
            sent,
            differences,
            fields: _,
            shows_all_fields: _,
            steps,
            large,
            exchanges,
            requests,
            severity,
            why,
            help,
            field: _,
            about: _,
            other: _,
        } = self.violation;
        let direct = exchanges.iter().map(|exchange| step(exchange, None));
        let made = steps.iter().chain(&large).filter_map(|outcome| SampleRequest::from_outcome(outcome));
        Finding {
            kind,
            severity: severity.unwrap_or(check.severity),
            message,
            webhooks: BTreeMap::from([(webhook.to_owned(), self.count)]),
            examples: self.examples,
            object: sent.or(self.object),
            differences,
            fields: match check.repeatability {
                Repeatability::Same => self.fields,
                Repeatability::Varies => BTreeSet::new(),
            },
            request: None,
            why: why.map(str::to_owned),
            help: help.map(Cow::into_owned),
            consequences: Vec::new(),
            requests: made.chain(requests).collect(),
            steps: steps.iter().flat_map(steps_of).chain(direct).collect(),
            masked: false,
            accepted: None,
            added: false,
            proof: None,
        }
    }
}

/// Returns the exchanges of a request as report steps.
fn steps_of(outcome: &Arc<Outcome>) -> Vec<Step> {
    let exchanges = outcome.exchanges.iter().map(|exchange| {
        let called = outcome.calls().find(|called| called.review == exchange.review);
        step(exchange, called.map(|called| &called.webhook))
    });
    exchanges.collect()
}

/// Converts an exchange to a report step. `called` is the webhook; `None` if the exchange bypassed the dispatcher.
fn step(exchange: &Exchange, called: Option<&Arc<WebhookId>>) -> Step {
    let direct = exchange.direct.as_ref();
    let webhook = direct.map(|direct| &direct.webhook).or(called);
    let webhook = webhook.map(|id| format!("{}/{}", id.configuration, id.name)).unwrap_or_default();
    let (status, reply) = match &exchange.reply {
        Ok(reply) => (Some(reply.status), readable(&reply.body)),
        Err(error) => (None, error.to_string().into()),
    };
    Step {
        webhook,
        is_other: exchange.is_other_webhook,
        direct: direct.map(|direct| Request {
            method: direct.method.to_string(),
            content_type: direct.content_type.to_owned(),
        }),
        review: readable(&exchange.review),
        status,
        reply,
    }
}

fn readable(body: &[u8]) -> Value {
    serde_json::from_slice(body).unwrap_or_else(|_| String::from_utf8_lossy(body).into_owned().into())
}

#[cfg(test)]
mod tests {
    use super::super::comparison::Difference;
    use super::*;

    fn report(finding_log: FindingLog) -> Report {
        let check = super::super::checks::ALL[0];
        finding_log.report(&[(check, None)], &["c/w".to_owned()], BTreeMap::new(), 0)
    }

    #[test]
    fn check_without_observations_does_not_pass() {
        let mut finding_log = FindingLog::default();
        finding_log.note((0, Some(0)), None, Err(Skipped::not_checked("nobody is there")));
        finding_log.note((0, Some(0)), None, Err(Skipped::not_applicable("no rule")));
        assert_eq!(report(finding_log).checks[0].results[0].verdict, Tally::NotChecked);

        let mut finding_log = FindingLog::default();
        finding_log.note((0, Some(0)), None, Err(Skipped::not_applicable("no rule")));
        assert_eq!(report(finding_log).checks[0].results[0].verdict, Tally::NotApplicable);
    }

    #[test]
    fn first_object_that_could_not_be_checked_is_kept_by_reason() {
        let mut finding_log = FindingLog::default();
        for name in ["one", "two"] {
            let object = serde_json::json!({"kind": "Pod", "metadata": {"namespace": "a", "name": name}});
            finding_log.note((0, Some(0)), Some(&object), Err(Skipped::not_checked("EOF")));
        }
        finding_log.note((0, Some(0)), None, Err(Skipped::not_checked("no object")));
        let objects = &report(finding_log).checks[0].results[0].not_checked_objects;
        assert_eq!(*objects, BTreeMap::from([("EOF".to_owned(), "Pod a/one".to_owned())]));
    }

    #[test]
    fn later_contact_counts_for_earlier_results() {
        for (was_contacted, expected) in [(false, Tally::NotChecked), (true, Tally::Passed)] {
            let mut finding_log = FindingLog::default();
            finding_log.note(
                (0, Some(0)),
                None,
                Err(Skipped::Uncontacted("is it started with it?".to_owned())),
            );
            finding_log.conclude(was_contacted);
            let result = &report(finding_log).checks[0].results[0];
            assert_eq!((result.verdict, result.unequipped), (expected, false));
            assert_eq!(result.not_checked.is_empty(), was_contacted);
        }
    }

    #[test]
    fn violations_of_one_kind_are_one_finding() {
        let mut finding_log = FindingLog::default();
        for name in ["a", "b"] {
            let object = serde_json::json!({"kind": "Pod", "metadata": {"name": name, "namespace": "n"}});
            finding_log.note((0, Some(0)), Some(&object), Ok(vec![Violation::new("kind", name)]));
        }
        finding_log.note((0, Some(0)), None, Ok(Vec::new()));
        let check = &report(finding_log).checks[0];
        let result = &check.results[0];
        assert_eq!((result.verdict, result.held, check.findings.len()), (Tally::Found, 1, 1));
        let finding = &check.findings[0];
        assert_eq!((finding.count(), finding.message.as_str()), (2, "a"));
        assert_eq!(finding.examples, ["Pod n/a", "Pod n/b"]);
    }

    #[test]
    fn finding_has_the_fields_of_all_objects() {
        let lost = |path: &str| Difference { path: path.to_owned(), expected: Some(1.into()), found: None };
        let mut finding_log = FindingLog::default();
        for paths in [&["data.a"][..], &["data.b", "spec.containers[app].image"], &["data.b"]] {
            let lost = paths.iter().map(|path| lost(path)).collect();
            let violation =
                Violation::new("removes", paths.join(", ")).with_differences(lost).showing_all_fields();
            finding_log.note((0, Some(0)), None, Ok(vec![violation]));
        }
        let check = &report(finding_log).checks[0];
        let finding = &check.findings[0];
        assert_eq!((check.findings.len(), finding.count()), (1, 3));
        assert_eq!(finding.message, "data.b, spec.containers[app].image");
        let expected = ["data.a", "data.b", "spec.containers.image"].map(str::to_owned);
        assert_eq!(finding.fields, BTreeSet::from(expected));
    }

    #[test]
    fn reasons_and_findings_are_bounded() {
        let mut finding_log = FindingLog::default();
        for number in 0..1000 {
            finding_log.note((0, Some(0)), None, Err(Skipped::not_checked(number.to_string())));
            finding_log.note((0, Some(0)), None, Ok(vec![Violation::new(number.to_string(), "")]));
        }
        let check = &report(finding_log).checks[0];
        assert_eq!(check.results[0].not_checked.len(), MAX_KEPT + 1);
        assert_eq!(check.findings.len(), MAX_KEPT);
        assert_eq!(check.findings.iter().map(Finding::count).sum::<u64>(), 1000);
    }
}
