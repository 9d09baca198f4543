//! Runs the static checks on manifests without calling webhooks.
//!
//! The static checks are the configuration checks that [`super::run`] starts with, and the `L` checks, which read
//! manifests, including configurations that cannot be decoded.

use std::time::Duration;

use jiff::Timestamp;
use kubernetes_admission::config::{self, ConfigError};
use kubernetes_api_server::ClusterFixture;
use kubernetes_types::json::text;
use serde_json::Value;

use super::check::{Check, Observed, Probe, Severity, Skipped, Violation};
use super::manifests::{Defect, Manifests};
use super::subject::Subject;
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
    /// The reason why the finding matters.
    pub why: &'static str,
    /// The advice on how to fix the finding.
    pub help: &'static str,
}

/// A check that could not be run on a configuration or webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unchecked {
    /// The ID of the check.
    pub check: &'static str,
    /// The position of the configuration; `None` if the check is about all configurations together.
    pub position: Option<usize>,
    /// The webhook's entry, such as `webhooks[0]`; empty if the check is not about a single webhook.
    pub field: String,
    /// The webhook as `CONFIGURATION/WEBHOOK`; empty if the check is about all configurations together.
    pub webhook: String,
    /// The reason why the check was not run.
    pub reason: String,
}

/// The result of the static checks on manifests.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Linted {
    /// The number of configurations.
    pub configurations: usize,
    /// The findings in the order of their objects. The findings about an object are sorted by descending severity.
    pub findings: Vec<LintFinding>,
    /// The checks that were not run, with the reasons.
    pub unchecked: Vec<Unchecked>,
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
    let manifests = Manifests::new(objects, now, horizon);
    let mut linted = Linted {
        configurations: manifests.configurations.len(),
        findings: Vec::new(),
        unchecked: Vec::new(),
        unreadable: Vec::new(),
    };
    for check in checks {
        match check.probe {
            Probe::Manifests(probe) => {
                let defects = probe(&manifests).into_iter();
                linted.findings.extend(defects.map(|defect| found(&manifests, check, defect)));
            }
            Probe::Configuration(probe) => linted.note_each(check, &manifests, probe),
            Probe::ConfigurationAndObject(probe, examples, _) => {
                linted.note_each(check, &manifests, |subject, cluster_fixture| {
                    let violations = probe(subject, cluster_fixture)?;
                    Ok(if violations.is_empty() { examples(subject, cluster_fixture) } else { violations })
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
                let observed = if subjects.is_empty() { Ok(Vec::new()) } else { probe(&configuration_set) };
                linted.note(check, &manifests, observed, None);
            }
            Probe::Effects(_)
            | Probe::Webhook(_)
            | Probe::Object(_)
            | Probe::Collection(_)
            | Probe::Intervention(..)
            | Probe::Conversion(_) => {}
        }
    }
    // Findings about the substitute for a rejected field are not reported.
    linted.findings.retain(|found| {
        COMPLETE.contains(&found.check.id) || !manifests.is_substitute(found.position, &found.field)
    });
    for (position, error) in &manifests.unreadable {
        linted.note_rejected(&manifests, *position, error, checks);
    }
    linted.findings.sort_by(|a, b| {
        let key = |found: &LintFinding| (found.position, std::cmp::Reverse(found.severity), found.check.id);
        key(a).cmp(&key(b))
    });
    linted
}

/// The checks that examine a rejected configuration as written, without substitutes.
const COMPLETE: [&str; 4] = ["L01", "L02", "L03", "L10"];

impl Linted {
    /// Records that checks without a finding in a rejected configuration were not completed.
    fn note_rejected(
        &mut self,
        manifests: &Manifests<'_>,
        position: usize,
        error: &ConfigError,
        checks: &[&'static Check],
    ) {
        let object = manifests.object(position);
        let webhook = text(object, &["metadata", "name"]).to_owned();
        let reason = match error {
            ConfigError::Unsupported(unsupported) => unsupported.to_string(),
            _ if config::is_v1beta1(object) => "the API server rejects the configuration: see L03".to_owned(),
            ConfigError::Field { .. } => "the API server rejects the configuration: see L01".to_owned(),
        };
        for check in checks.iter().filter(|check| !COMPLETE.contains(&check.id)) {
            let is_known = self.findings.iter().any(|it| it.position == position && it.check.id == check.id);
            if !is_known {
                self.unchecked.push(Unchecked {
                    check: check.id,
                    position: Some(position),
                    field: String::new(),
                    webhook: webhook.clone(),
                    reason: reason.clone(),
                });
            }
        }
        self.unreadable.push(webhook);
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
        match observed {
            Ok(violations) => {
                for violation in violations {
                    let defect = manifests.located(violation, about);
                    self.findings.push(found(manifests, check, defect));
                }
            }
            Err(Skipped::NotApplicable(_)) => {}
            Err(Skipped::NotChecked(reason) | Skipped::Uncontacted(reason) | Skipped::Unequipped(reason)) => {
                let position = about.map(|(_, position)| position);
                let field =
                    about.map(|(subject, _)| format!("webhooks[{}]", subject.index)).unwrap_or_default();
                let webhook = about.map(|(subject, _)| subject.name()).unwrap_or_default();
                self.unchecked.push(Unchecked { check: check.id, position, field, webhook, reason });
            }
        }
    }
}

/// Creates the finding of `check` for a defect.
fn found(
    manifests: &Manifests<'_>,
    check: &'static Check,
    Defect { position, violation }: Defect,
) -> LintFinding {
    let Violation { kind, message, severity, field, why, help, .. } = violation;
    let webhook = manifests.webhook_at(position, &field);
    LintFinding {
        check,
        position,
        field,
        webhook,
        severity: severity.unwrap_or(check.severity),
        kind,
        message,
        why: why.unwrap_or(check.why),
        help: help.unwrap_or(check.help),
    }
}
