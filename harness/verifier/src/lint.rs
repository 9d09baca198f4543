//! Runs the static checks on manifests without calling webhooks.
//!
//! The static checks are the configuration checks that [`super::run`] starts with, and the `L` checks, which read
//! manifests, including configurations that cannot be decoded, and admission policies.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use kubernetes_admission::config::{self, ConfigError};
use kubernetes_admission::event::Phase;
use kubernetes_api_server::ClusterFixture;
use kubernetes_types::json::text;
use serde_json::Value;

use super::check::{Audience, Check, Defect, Observed, Probe, Severity, Skipped, Violation};
use super::manifests::Manifests;
use super::subject::Subject;
use super::substitutes::{Choice, Substitute};
use super::webhook_probe::{ConfigurationSet, Notes};

/// A finding of a static check.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LintFinding {
    /// The check that has the finding.
    pub check: &'static Check,
    /// The position of the object in the input.
    pub position: usize,
    /// The invalid field, such as `webhooks[0].rules[0].scope`; empty for the object as a whole.
    pub field: String,
    /// The webhook as `CONFIGURATION/WEBHOOK`, or only the configuration or object.
    pub webhook: String,
    /// The severity of the finding.
    pub severity: Severity,
    /// The kind of violation. It does not depend on values.
    pub kind: String,
    /// A sentence that describes the violation.
    pub message: String,
    /// The name of the other object, if the finding is about a pair of objects.
    pub other: Option<String>,
    /// The reason why the finding matters.
    pub why: &'static str,
    /// The advice on how to fix the finding.
    pub help: Cow<'static, str>,
}

/// A check that could not be run on a configuration or webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unchecked {
    /// The ID of the check.
    pub check: &'static str,
    /// The position of the configuration; `None` if the check is about all configurations together.
    pub position: Option<usize>,
    /// The webhook's entry, such as `webhooks[0]`, or the rejected field; empty if the check is not about one of them.
    pub field: String,
    /// The webhook as `CONFIGURATION/WEBHOOK`; empty if the check is about all configurations together.
    pub webhook: String,
    /// The reason why the check was not run.
    pub reason: String,
    /// Whether the reason is that the API server rejects the configuration.
    pub is_rejected: bool,
}

/// The result of the static checks on manifests.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Linted {
    /// The number of webhook configurations.
    pub configurations: usize,
    /// The number of admission policies and their bindings.
    pub policies: usize,
    /// The findings in the order of their objects. The findings about an object are sorted by descending severity.
    pub findings: Vec<LintFinding>,
    /// The checks that were not run, with the reasons.
    pub unchecked: Vec<Unchecked>,
    /// The IDs of the checks that do not apply to any of the objects.
    pub not_applicable: BTreeSet<&'static str>,
    /// The names of configurations that the API server rejects.
    ///
    /// The checks examine what can be read of these configurations.
    pub unreadable: Vec<String>,
}

/// Runs static checks on the objects of manifests; skips checks that call webhooks.
///
/// Certificates must be valid at `now`. `horizon` is their minimum remaining validity, by default 30 days, or a third
/// of the lifetime if that is less.
pub fn lint(
    objects: &[Value],
    checks: &[&'static Check],
    now: Timestamp,
    horizon: Option<Duration>,
) -> Linted {
    let manifests = Manifests::new(objects, now, horizon, &|_, _| 0);
    let (of_policies, checks): (Vec<&Check>, Vec<&Check>) =
        checks.iter().copied().partition(|check| check.audience == Audience::Policies);
    let checks = checks.as_slice();
    let mut linted = examined(&manifests, checks);
    let variants = Variants::new(&manifests, &linted, checks, |choice| {
        examined(&Manifests::new(objects, now, horizon, choice), checks)
    });
    // Findings about the substitute for a rejected field, or because of it, are not reported.
    linted.findings.retain(|found| {
        COMPLETE.contains(&found.check.id)
            || (!manifests.is_substitute(found.position, &found.field) && variants.have(found))
    });
    for (position, error) in &manifests.unreadable {
        linted.note_rejected(&manifests, *position, error, checks, &variants);
    }
    let examined_policies = examined(&manifests, &of_policies);
    linted.findings.extend(examined_policies.findings);
    linted.not_applicable.extend(examined_policies.not_applicable);
    linted.note_rejected_policies(&manifests, &of_policies);
    linted.findings.sort_by(|a, b| {
        let key = |found: &LintFinding| (found.position, std::cmp::Reverse(found.severity), found.check.id);
        key(a).cmp(&key(b))
    });
    linted
}

/// Runs static checks on manifests, with the substitutes for rejected fields.
fn examined(manifests: &Manifests<'_>, checks: &[&'static Check]) -> Linted {
    let mut linted = Linted {
        configurations: manifests.configurations.len(),
        policies: manifests.policy_count(),
        findings: Vec::new(),
        unchecked: Vec::new(),
        not_applicable: checks.iter().map(|check| check.id).collect(),
        unreadable: Vec::new(),
    };
    for check in checks {
        match check.probe {
            Probe::Manifests(about, probe) => {
                if !manifests.have(about) {
                    continue;
                }
                linted.not_applicable.remove(check.id);
                let defects = probe(manifests).into_iter();
                linted.findings.extend(defects.map(|defect| found(manifests, check, defect)));
            }
            Probe::Configuration(probe) => linted.note_each(check, manifests, probe),
            Probe::ConfigurationAndObject(probe, examples, _) => {
                linted.note_each(check, manifests, |subject, cluster_fixture| {
                    let mut violations = probe(subject, cluster_fixture)?;
                    let is_error =
                        |severity: Option<Severity>| severity.unwrap_or(check.severity) == Severity::Error;
                    if !violations.iter().any(|violation| is_error(violation.severity)) {
                        let mut examples = examples(subject, cluster_fixture);
                        examples.retain(|example| {
                            violations
                                .iter()
                                .all(|it| (&it.kind, &it.field) != (&example.kind, &example.field))
                        });
                        violations.extend(examples);
                    }
                    Ok(violations)
                });
            }
            Probe::Configurations(probe) => {
                let subjects: Vec<&Subject> = manifests
                    .subjects
                    .iter()
                    .filter(|subject| check.audience.includes(subject.webhook.phase))
                    .collect();
                let cluster_fixture = &manifests.cluster_fixture;
                let configuration_set =
                    ConfigurationSet { subjects: &subjects, cluster_fixture, notes: Notes::default() };
                if !subjects.is_empty() {
                    linted.note(check, manifests, probe(&configuration_set), None);
                }
            }
            Probe::Effects(_)
            | Probe::Webhook(_)
            | Probe::Object(_)
            | Probe::Collection(_)
            | Probe::Intervention(..)
            | Probe::Conversion(_) => {}
        }
    }
    linted
}

/// The checks that examine a rejected configuration as written, without substitutes.
const COMPLETE: [&str; 4] = ["L01", "L02", "L03", "L10"];

impl Linted {
    /// Records that checks of a rejected configuration were not completed: those that depend on a rejected field and do
    /// not have a finding, or all if the configuration cannot be read.
    fn note_rejected(
        &mut self,
        manifests: &Manifests<'_>,
        position: usize,
        error: &ConfigError,
        checks: &[&'static Check],
        variants: &Variants,
    ) {
        let object = manifests.object(position);
        let webhook = text(object, &["metadata", "name"]).to_owned();
        let by = if config::is_v1beta1(object) { "L03" } else { "L01" };
        let is_read = manifests.has_subjects(position);
        let is_run = checks.iter().any(|check| check.id == by);
        let rejected = self.findings.iter().filter(|it| it.position == position && it.check.id == by);
        let rejected: Vec<String> = rejected.map(|it| it.field.clone()).collect();
        let is_named = |fields: &[&str]| {
            let is_about = |field: &str, other: &str| field.starts_with(other) || other.starts_with(field);
            !is_run || fields.iter().any(|field| rejected.iter().any(|other| is_about(field, other)))
        };
        for check in checks.iter().filter(|check| !COMPLETE.contains(&check.id)) {
            let findings = self.findings.iter().filter(|it| it.position == position);
            let known: Vec<&str> =
                findings.filter(|it| it.check.id == check.id).map(|it| entry(&it.field)).collect();
            // A finding about one webhook says nothing about the others.
            let fields = variants.fields(position, check.id);
            let fields: Vec<&str> = fields.filter(|field| !known.contains(&entry(field))).collect();
            if fields.is_empty() && (is_read || !known.is_empty()) {
                continue;
            }
            let see = |fields: &[&str]| if is_named(fields) { format!(": see {by}") } else { String::new() };
            let (field, reason) = match error {
                ConfigError::Unsupported(unsupported) => ("", unsupported.to_string()),
                ConfigError::Field { field, .. } if fields.is_empty() => {
                    (field.as_str(), format!("the API server rejects {field}{}", see(&[field])))
                }
                ConfigError::Field { .. } => {
                    let listed = super::checks::listed(fields.iter().copied());
                    let see = see(&fields);
                    let reason = format!("the API server rejects {listed}, on which the result depends{see}");
                    (fields.first().copied().unwrap_or_default(), reason)
                }
            };
            self.unchecked.push(Unchecked {
                check: check.id,
                position: Some(position),
                field: field.to_owned(),
                webhook: webhook.clone(),
                reason,
                is_rejected: true,
            });
        }
        self.unreadable.push(webhook);
    }

    /// Records that checks of a rejected policy or binding were not completed, unless they have a finding.
    fn note_rejected_policies(&mut self, manifests: &Manifests<'_>, checks: &[&'static Check]) {
        for object in &manifests.policies().objects {
            let Some(reason) = object.unreadable() else { continue };
            let has_finding = |check: &Check| {
                self.findings.iter().any(|it| it.position == object.position && it.check.id == check.id)
            };
            let is_open = |check: &&&'static Check| object.is_examined_by(check.id) && !has_finding(check);
            let unchecked = checks.iter().filter(is_open).map(|check| Unchecked {
                check: check.id,
                position: Some(object.position),
                field: String::new(),
                webhook: object.name().to_owned(),
                reason: reason.clone(),
                is_rejected: object.is_rejected(),
            });
            self.unchecked.extend(unchecked.collect::<Vec<_>>());
        }
    }

    /// Runs `probe` on each webhook in the check's audience and adds its observations.
    fn note_each(
        &mut self,
        check: &'static Check,
        manifests: &Manifests<'_>,
        probe: impl Fn(&Subject, &ClusterFixture) -> Observed,
    ) {
        let webhooks = manifests.subjects.iter().zip(&manifests.positions);
        for (subject, position) in webhooks.filter(|(it, _)| check.audience.includes(it.webhook.phase)) {
            let observed = probe(subject, &manifests.cluster_fixture);
            self.note(check, manifests, observed, Some((subject, *position)));
        }
    }

    fn note(
        &mut self,
        check: &'static Check,
        manifests: &Manifests<'_>,
        observed: Observed,
        about: Option<(&Subject, usize)>,
    ) {
        if !matches!(observed, Err(Skipped::NotApplicable(_))) {
            self.not_applicable.remove(check.id);
        }
        match observed {
            Ok(violations) => {
                for violation in violations {
                    let defect = manifests.located(violation, about);
                    self.findings.push(found(manifests, check, defect));
                }
            }
            Err(Skipped::NotApplicable(_) | Skipped::NotExercised(_)) => {}
            Err(Skipped::NotChecked(reason) | Skipped::Uncontacted(reason) | Skipped::Unequipped(reason)) => {
                let position = about.map(|(_, position)| position);
                let field =
                    about.map(|(subject, _)| format!("webhooks[{}]", subject.index)).unwrap_or_default();
                let webhook = about.map(|(subject, _)| subject.name()).unwrap_or_default();
                let is_rejected = false;
                let check = check.id;
                self.unchecked.push(Unchecked { check, position, field, webhook, reason, is_rejected });
            }
        }
    }
}

/// The maximum number of rejected fields whose values are varied separately.
const MAX_SEPARATE: usize = 8;

/// The number of different combinations of values if all rejected fields are varied together.
///
/// A field has two to four values, so that fields with two and three values are combined in every way.
const COMBINATIONS: usize = 6;

/// The results of checks with other values in the rejected fields.
#[derive(Debug, Default)]
struct Variants {
    /// The rejected fields on which the result of a check depends, by the position of the configuration and the check.
    fields: BTreeMap<(usize, &'static str), BTreeSet<String>>,
    /// The findings with each combination of values.
    findings: Vec<BTreeSet<FindingKey>>,
}

/// The check, position, field, kind, and message of a finding.
type FindingKey = (&'static str, usize, String, String, String);

fn key(found: &LintFinding) -> FindingKey {
    (found.check.id, found.position, found.field.clone(), found.kind.clone(), found.message.clone())
}

impl Variants {
    /// Runs `checks` with `examined` for other values in the fields of `manifests` that have substitutes.
    fn new(
        manifests: &Manifests<'_>,
        first: &Linted,
        checks: &[&'static Check],
        examined: impl Fn(Choice<'_>) -> Linted,
    ) -> Self {
        let mut variants = Self::default();
        let (entries, fields): (Vec<&Substitute>, Vec<&Substitute>) =
            manifests.substitutes.iter().partition(|substitute| substitute.is_entry());
        for Substitute { position, field, .. } in entries {
            let phase = phase(manifests.object(*position));
            for check in checks.iter().filter(|check| check.audience.includes(phase)) {
                variants.fields.entry((*position, check.id)).or_default().insert(field.clone());
            }
        }
        if fields.is_empty() {
            return variants;
        }
        let separate = fields.iter().filter(|_| fields.len() <= MAX_SEPARATE);
        for substitute in separate {
            for value in 1..substitute.values {
                let choice = |position: usize, field: &str| {
                    let is_it = position == substitute.position && field == substitute.field;
                    if is_it { value } else { 0 }
                };
                variants.add(&[substitute], first, &examined(&choice), checks);
            }
        }
        if fields.len() > 1 {
            for value in 1..COMBINATIONS {
                variants.add(&fields, first, &examined(&|_, _| value), checks);
            }
        }
        variants
    }

    /// Adds the results with other values in `fields`.
    ///
    /// A check whose result depends on a field alone is not attributed to a combination of fields.
    fn add(&mut self, fields: &[&Substitute], first: &Linted, other: &Linted, checks: &[&'static Check]) {
        for check in checks.iter().filter(|check| first.result(check) != other.result(check)) {
            for Substitute { position, field, .. } in fields {
                let known = self.fields.entry((*position, check.id)).or_default();
                if fields.len() == 1 || known.is_empty() {
                    known.insert(field.clone());
                }
            }
        }
        self.findings.push(other.findings.iter().map(key).collect());
    }

    /// Returns the rejected fields of the configuration at `position` on which the result of a check depends.
    fn fields(&self, position: usize, check: &'static str) -> impl Iterator<Item = &str> {
        self.fields.get(&(position, check)).into_iter().flatten().map(String::as_str)
    }

    /// Returns whether all values of the rejected fields have the same finding, with the same message.
    ///
    /// Other messages may mention a value that the user did not write.
    fn have(&self, found: &LintFinding) -> bool {
        let key = key(found);
        self.findings.iter().all(|findings| findings.contains(&key))
    }
}

impl Linted {
    /// Returns the findings of a check, and the reasons why it was not completed, in a form that can be compared.
    fn result(&self, check: &Check) -> BTreeSet<(Option<usize>, &str, &str)> {
        let findings = self.findings.iter().filter(|found| found.check.id == check.id);
        let findings =
            findings.map(|found| (Some(found.position), found.field.as_str(), found.message.as_str()));
        let unchecked = self.unchecked.iter().filter(|unchecked| unchecked.check == check.id);
        let unchecked = unchecked
            .map(|unchecked| (unchecked.position, unchecked.field.as_str(), unchecked.reason.as_str()));
        findings.chain(unchecked).collect()
    }
}

/// Returns the entry of `webhooks` that contains `field`, such as `webhooks[0]`, or `field` if no entry contains it.
fn entry(field: &str) -> &str {
    field.split_inclusive(']').next().filter(|entry| entry.starts_with("webhooks[")).unwrap_or(field)
}

/// Returns the phase of the webhooks in a configuration.
fn phase(configuration: &Value) -> Phase {
    let is_mutating = text(configuration, &["kind"]).starts_with("Mutating");
    if is_mutating { Phase::Mutating } else { Phase::Validating }
}

/// Creates the finding of `check` for a defect.
fn found(
    manifests: &Manifests<'_>,
    check: &'static Check,
    Defect { position, violation }: Defect,
) -> LintFinding {
    let Violation { kind, message, severity, field, why, help, other, .. } = violation;
    let webhook = manifests.webhook_at(position, &field);
    LintFinding {
        check,
        position,
        field,
        webhook,
        severity: severity.unwrap_or(check.severity),
        kind,
        message,
        other,
        why: why.unwrap_or(check.why),
        help: help.unwrap_or(check.help.into()),
    }
}
