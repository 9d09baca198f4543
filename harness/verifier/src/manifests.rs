//! Provides the objects in manifests to the static checks.

use std::cell::OnceCell;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kubernetes_admission::config::{self, ConfigError};
use kubernetes_api_server::ClusterFixture;
use kubernetes_types::json::text;
use serde_json::Value;

use super::policies::{Policies, is_policy_object};
use super::subject::Subject;
use super::substitutes::{Choice, Substitute, substituted};
use super::validity::is_within;
use super::violation::{Defect, Violation};

/// The objects that a probe of manifests is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum About {
    /// Webhook configurations.
    Configurations,
    /// Webhook configurations, admission policies, and their bindings.
    ConfigurationsAndPolicies,
    /// Admission policies and their bindings.
    Policies,
    /// `MutatingAdmissionPolicy` objects.
    MutatingPolicies,
    /// `Namespace` objects, which selectors of configurations and policies can select.
    Namespaces,
}

/// The objects in manifests, and the webhooks of their configurations.
#[derive(Debug)]
pub struct Manifests<'a> {
    /// All objects, in file order.
    pub(super) objects: &'a [Value],
    /// The positions of the configurations in `objects`.
    pub(super) configurations: Vec<usize>,
    /// The webhooks of the configurations, in dispatch order, with substitutes for rejected fields.
    pub(super) subjects: Vec<Subject>,
    /// The positions in `objects` of the configurations of `subjects`, in the same order.
    pub(super) positions: Vec<usize>,
    /// The positions and errors of configurations that cannot be decoded.
    pub(super) unreadable: Vec<(usize, ConfigError)>,
    /// The rejected fields that have a substitute in `subjects`.
    pub(super) substitutes: Vec<Substitute>,
    /// The namespaces and resources that the other objects define.
    pub(super) cluster_fixture: ClusterFixture,
    /// The admission policies, read when a check needs them.
    policies: OnceCell<Policies>,
    /// The time at which certificates must be valid.
    pub(super) now: Timestamp,
    /// The minimum remaining validity of certificates.
    ///
    /// The default is 30 days, or a third of the lifetime if that is less.
    pub(super) horizon: Option<Duration>,
}

impl<'a> Manifests<'a> {
    /// Reads the configurations among `objects`; `choice` selects the values that replace rejected fields.
    pub(super) fn new(
        objects: &'a [Value],
        now: Timestamp,
        horizon: Option<Duration>,
        choice: Choice<'_>,
    ) -> Self {
        let configurations: Vec<usize> = (0..objects.len())
            .filter(|position| objects.get(*position).is_some_and(is_configuration))
            .collect();
        let (mut readable, mut unreadable, mut substitutes) = (Vec::new(), Vec::new(), Vec::new());
        for position in &configurations {
            let Some(object) = objects.get(*position) else { continue };
            match config::webhooks(object) {
                Ok(_) => readable.push((*position, Arc::new(object.clone()))),
                Err(error) => {
                    unreadable.push((*position, error));
                    if let Some((object, fields)) = substituted(object, *position, choice) {
                        readable.push((*position, Arc::new(object)));
                        substitutes.extend(fields);
                    }
                }
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
        Self {
            objects,
            configurations,
            subjects,
            positions,
            unreadable,
            substitutes,
            cluster_fixture,
            policies: OnceCell::new(),
            now,
            horizon,
        }
    }

    /// Returns the admission policies and their bindings.
    pub(super) fn policies(&self) -> &Policies {
        self.policies.get_or_init(|| Policies::new(self.objects, &self.cluster_fixture))
    }

    /// Returns the number of admission policies and their bindings.
    pub(super) fn policy_count(&self) -> usize {
        self.objects.iter().filter(|object| is_policy_object(object)).count()
    }

    /// Returns whether the manifests have objects that a probe is about.
    pub(super) fn have(&self, about: About) -> bool {
        let has_kind = |kind: &str| self.objects.iter().any(|object| text(object, &["kind"]) == kind);
        match about {
            About::Configurations => !self.configurations.is_empty(),
            About::ConfigurationsAndPolicies => !self.configurations.is_empty() || self.policy_count() > 0,
            About::Policies => self.policy_count() > 0,
            About::MutatingPolicies => has_kind("MutatingAdmissionPolicy"),
            About::Namespaces => has_kind("Namespace"),
        }
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

    /// Returns whether `subjects` contains the webhooks of the configuration at `position`.
    pub(super) fn has_subjects(&self, position: usize) -> bool {
        self.positions.contains(&position)
    }

    /// Returns whether `field` of the configuration at `position`, or the entry that contains it, has a substitute.
    pub(super) fn is_substitute(&self, position: usize, field: &str) -> bool {
        self.substitutes.iter().any(|known| known.position == position && is_within(field, &known.field))
    }

    /// Locates a violation in the configuration of the webhook that it names or, if it names none, in that of
    /// `looked_at`.
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

    /// Returns `CONFIGURATION/WEBHOOK` for the webhook that contains `field`, or the name of the object.
    pub(super) fn webhook_at(&self, position: usize, field: &str) -> String {
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
        let entry = entry.filter(|entry| !entry.is_empty()).map(str::to_owned);
        match entry.or_else(|| index.map(|index| format!("webhooks[{index}]"))) {
            Some(entry) if name.is_empty() => entry,
            Some(entry) => format!("{name}/{entry}"),
            None => name.to_owned(),
        }
    }
}

/// Returns whether `object` is a webhook configuration of any version.
fn is_configuration(object: &Value) -> bool {
    let group = text(object, &["apiVersion"]).split_once('/').map_or("", |(group, _)| group);
    let kind = text(object, &["kind"]);
    group == "admissionregistration.k8s.io"
        && ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"].contains(&kind)
}
