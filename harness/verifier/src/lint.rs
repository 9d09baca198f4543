//! Runs the static checks on manifests without calling webhooks.
//!
//! The static checks are the configuration checks that [`super::run`] starts with, and the `L` checks, which read
//! manifests, including configurations that cannot be decoded.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kubernetes_admission::config::{self, ConfigError};
use kubernetes_api_server::ClusterFixture;
use kubernetes_types::json::text;
use serde_json::Value;

use super::check::{Check, Observed, Probe, Severity, Skipped, Violation};
use super::subject::Subject;
use super::webhook_probe::{ConfigurationSet, Notes};

/// The objects in manifests, and the webhooks of their configurations.
#[derive(Debug)]
pub struct Manifests<'a> {
    /// All objects, in the order of the files.
    pub(super) objects: &'a [Value],
    /// The positions of the configurations in `objects`.
    pub(super) configurations: Vec<usize>,
    /// The webhooks of the readable configurations, in dispatch order.
    pub(super) subjects: Vec<Subject>,
    /// The positions in `objects` of the configurations of `subjects`, in the same order.
    positions: Vec<usize>,
    /// The positions and errors of configurations that cannot be decoded.
    unreadable: Vec<(usize, ConfigError)>,
    /// The namespaces and resources that the other objects define.
    pub(super) cluster_fixture: ClusterFixture,
    /// The time at which certificates must be valid.
    pub(super) now: Timestamp,
    /// The minimum remaining validity of certificates.
    ///
    /// The default is 30 days, or a third of the lifetime if that is less.
    pub(super) horizon: Option<Duration>,
}

/// A violation in an object of the manifests. The field of the violation is a path in the object.
#[derive(Debug)]
pub struct Defect {
    /// The position of the object in the manifests.
    pub(super) position: usize,
    /// The violation, whose field is a path in the object.
    pub(super) violation: Violation,
}

/// A finding of a static check in manifests.
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
    /// The kind of violation, which does not depend on values.
    pub kind: String,
    /// A sentence that describes the violation.
    pub message: String,
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
    /// The findings in the order of the objects; for each object, sorted by descending severity.
    pub findings: Vec<LintFinding>,
    /// The checks that were not run, with the reasons.
    pub unchecked: Vec<Unchecked>,
    /// The names of configurations that cannot be decoded. Only the `L` checks examined these configurations.
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
                linted.findings.extend(defects.map(|defect| manifests.found(check, defect)));
            }
            Probe::Configuration(probe) | Probe::ConfigurationAndObject(probe, _) => {
                let audience = manifests.subjects.iter().zip(&manifests.positions);
                for (subject, position) in
                    audience.filter(|(subject, _)| check.audience.includes(subject.webhook.phase))
                {
                    let observed = probe(subject, &manifests.cluster_fixture);
                    linted.note(check, &manifests, observed, Some((subject, *position)));
                }
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
    for (position, error) in &manifests.unreadable {
        let webhook = text(manifests.object(*position), &["metadata", "name"]).to_owned();
        linted.unreadable.push(webhook.clone());
        // A configuration that the API server rejects is already a finding.
        if let ConfigError::Unsupported(unsupported) = error {
            let reason = unsupported.to_string();
            linted.unchecked.push(Unchecked {
                check: "all",
                position: Some(*position),
                field: String::new(),
                webhook,
                reason,
            });
        }
    }
    linted.findings.sort_by(|a, b| {
        let key = |found: &LintFinding| (found.position, std::cmp::Reverse(found.severity), found.check.id);
        key(a).cmp(&key(b))
    });
    linted
}

impl Linted {
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
                    self.findings.push(manifests.found(check, defect));
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

impl<'a> Manifests<'a> {
    fn new(objects: &'a [Value], now: Timestamp, horizon: Option<Duration>) -> Self {
        let configurations: Vec<usize> = (0..objects.len())
            .filter(|position| objects.get(*position).is_some_and(is_configuration))
            .collect();
        let (mut readable, mut unreadable) = (Vec::new(), Vec::new());
        for position in &configurations {
            let Some(object) = objects.get(*position) else { continue };
            match config::webhooks(object) {
                Ok(_) => readable.push((*position, Arc::new(object.clone()))),
                Err(error) => unreadable.push((*position, error)),
            }
        }
        // Each of them was decoded above.
        let shared = readable.iter().map(|(_, object)| Arc::clone(object));
        let subjects = Subject::of_shared(shared).unwrap_or_default();
        let position = |subject: &Subject| {
            let mut readable = readable.iter();
            let own = readable.find(|(_, object)| Arc::ptr_eq(object, &subject.configuration));
            own.map(|(position, _)| *position).unwrap_or_default()
        };
        let positions = subjects.iter().map(position).collect();
        let around = objects.iter().filter(|object| !is_configuration(object));
        let cluster_fixture = ClusterFixture::new(around);
        Self { objects, configurations, subjects, positions, unreadable, cluster_fixture, now, horizon }
    }

    pub(super) fn object(&self, position: usize) -> &'a Value {
        self.objects.get(position).unwrap_or(&Value::Null)
    }

    /// Returns the configurations, each with its position.
    pub(super) fn configurations(&self) -> impl Iterator<Item = (usize, &'a Value)> {
        self.configurations.iter().map(|position| (*position, self.object(*position)))
    }

    /// Returns the webhooks, each with the position of its configuration.
    pub(super) fn webhooks(&self) -> impl Iterator<Item = (&Subject, usize)> {
        self.subjects.iter().zip(self.positions.iter().copied())
    }

    /// Returns whether the webhooks of the configuration at `position` can be decoded.
    pub(super) fn is_readable(&self, position: usize) -> bool {
        !self.unreadable.iter().any(|(unreadable, _)| *unreadable == position)
    }

    /// Converts a violation to a [`Defect`] in the configuration of the webhook that it names, or else of `looked_at`.
    pub(super) fn located(&self, mut violation: Violation, looked_at: Option<(&Subject, usize)>) -> Defect {
        let about = violation.about.clone();
        let said = about.and_then(|id| self.webhooks().find(|(it, _)| Arc::ptr_eq(&it.webhook.id, &id)));
        let Some((subject, position)) = said.or(looked_at).or_else(|| self.webhooks().next()) else {
            return Defect { position: 0, violation };
        };
        let entry = format!("webhooks[{}]", subject.index);
        let field = std::mem::take(&mut violation.field);
        violation.field = if field.is_empty() { entry } else { format!("{entry}.{field}") };
        Defect { position, violation }
    }

    fn found(&self, check: &'static Check, Defect { position, violation }: Defect) -> LintFinding {
        let Violation { kind, message, severity, field, .. } = violation;
        let webhook = self.webhook_at(position, &field);
        LintFinding {
            check,
            position,
            field,
            webhook,
            severity: severity.unwrap_or(check.severity),
            kind,
            message,
        }
    }

    /// Returns `CONFIGURATION/WEBHOOK` for the webhook that contains `field`, or the name of the object.
    fn webhook_at(&self, position: usize, field: &str) -> String {
        let index = field.strip_prefix("webhooks[").and_then(|rest| rest.split_once(']'));
        let index = index.and_then(|(index, _)| index.parse::<usize>().ok());
        if let Some(index) = index
            && let Some((subject, _)) = self.webhooks().find(|(it, at)| *at == position && it.index == index)
        {
            return subject.name();
        }
        let object = self.object(position);
        let name = text(object, &["metadata", "name"]);
        let entry = index.and_then(|index| object.get("webhooks")?.get(index)?.get("name")?.as_str());
        entry.map_or_else(|| name.to_owned(), |entry| format!("{name}/{entry}"))
    }
}

/// Returns whether `object` is a webhook configuration of any version.
fn is_configuration(object: &Value) -> bool {
    let group = text(object, &["apiVersion"]).split_once('/').map_or("", |(group, _)| group);
    let kind = text(object, &["kind"]);
    group == "admissionregistration.k8s.io"
        && ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"].contains(&kind)
}
