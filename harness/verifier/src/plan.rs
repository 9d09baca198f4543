//! Defines the configuration of a verification run.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kubernetes_admission::attributes::Attributes;
use kubernetes_admission::event::Phase;

use super::check::{Check, Observed, Probe};
use super::checks;
use super::converter::Converter;
use super::denials::{self, CreationVerdict, Denials};
use super::environment::Environment;
use super::finding_log::PlanPosition;
use super::interaction::Interaction;
use super::object_probe::{Memory, ObjectProbe};
use super::pair_trial;
use super::progress::Progress;
use super::report::Tried;
use super::subject::Subject;
use super::turn::Turn;
use super::webhook_probe::{Notes, Settings, WebhookProbe};

/// The configuration of a verification run: the webhooks, the checks, and their settings.
pub struct Plan {
    /// The environment of the requests.
    pub environment: Environment,
    /// The webhooks, in dispatch order.
    pub subjects: Vec<Subject>,
    /// The conversion webhooks.
    pub converters: Vec<Converter>,
    /// The checks sorted by ID, each with the reason if it is skipped.
    pub checks: Vec<(&'static Check, Option<String>)>,
    /// The settings of the checks.
    pub settings: Settings,
    /// The number of objects in the corpus, if known; used only to report the progress.
    pub objects: Option<u64>,
    /// The number of objects to check concurrently.
    pub jobs: usize,
    /// A callback that receives the progress of the run.
    pub progress: Box<dyn Fn(Progress) + Send + Sync>,
}

/// The observations of all probes about an object.
pub(super) struct ObjectResults {
    pub(super) seen: Vec<(PlanPosition, Observed)>,
    /// The verdict of each webhook on the creation of the object, if known.
    pub(super) said: Vec<Option<CreationVerdict>>,
    pub(super) interactions: Vec<Interaction>,
    pub(super) request: Attributes,
    /// The request that validating webhooks receive.
    pub(super) mutated: Attributes,
}

impl Plan {
    /// Creates a plan of `checks` with default settings and without progress reports.
    pub fn new(
        environment: Environment,
        subjects: Vec<Subject>,
        checks: impl IntoIterator<Item = &'static Check>,
    ) -> Self {
        Self {
            environment,
            subjects,
            converters: Vec::new(),
            checks: checks.into_iter().map(|check| (check, None)).collect(),
            settings: Settings::default(),
            objects: None,
            jobs: 4,
            progress: Box::new(|_| {}),
        }
    }
}

impl Plan {
    /// Returns the checks that run, each with its position.
    pub(super) fn active(&self) -> impl Iterator<Item = (usize, &'static Check)> {
        self.checks
            .iter()
            .enumerate()
            .filter(|(_, (_, skipped))| skipped.is_none())
            .map(|(position, (check, _))| (position, *check))
    }

    pub(super) fn tried(
        &self,
        subject: &Subject,
        denials: Denials,
        mismatches: BTreeMap<String, u64>,
    ) -> Tried {
        let selected: BTreeSet<&str> = subject.webhook.object_selector.keys().collect();
        let asked = self.environment.asked(subject.webhook.phase, &subject.webhook.id);
        Tried {
            mutating: subject.webhook.phase == Phase::Mutating,
            operations: subject.webhook.rules.iter().flat_map(|rule| rule.operations.clone()).collect(),
            called: asked.called,
            answered: Some(asked.answered),
            patched: asked.patched,
            failures: asked.failures,
            rejected: asked.rejected,
            failed_objects: asked.failed_objects,
            objects: denials.objects,
            denied: denials.reasons,
            mismatches: if asked.called == 0 {
                checks::with_unknown_fields(mismatches, &subject.webhook, &self.environment.cluster_fixture)
            } else {
                BTreeMap::new()
            },
            rule_errors: checks::never_matching(&subject.webhook, &self.environment.cluster_fixture),
            selects: selected.into_iter().map(str::to_owned).collect(),
        }
    }

    pub(super) fn audience(&self, check: &'static Check) -> impl Iterator<Item = (usize, &Subject)> {
        self.subjects.iter().enumerate().filter(|(_, subject)| check.audience.includes(subject.webhook.phase))
    }

    /// Returns the webhooks that a check examines, each with its position and its entry in `all`.
    pub(super) fn audience_with<'a, T>(
        &'a self,
        check: &'static Check,
        all: &'a [T],
    ) -> impl Iterator<Item = (usize, &'a Subject, &'a T)> {
        let all = self.subjects.iter().zip(all).enumerate();
        all.filter(|(_, (subject, _))| check.audience.includes(subject.webhook.phase))
            .map(|(place, (subject, of_it))| (place, subject, of_it))
    }

    /// Runs all probes about the object of a request.
    pub(super) async fn results(&self, request: Attributes, turn: &Arc<Turn>) -> ObjectResults {
        let memory = Memory::with_turn(turn);
        let seen = self.observe(&request, &memory).await;
        let said = self.said(&request, &memory).await;
        let interactions = match self.subjects.first() {
            // V06 has called the webhooks of each pair in both orders.
            Some(first) if self.active().any(|(_, check)| check.id == checks::ORDER) => {
                pair_trial::of_object(&self.object_probe(first, &request, &memory)).await
            }
            _ => Vec::new(),
        };
        let mutated = self.mutated(&request, &Memory::with_turn(turn)).await;
        ObjectResults { seen, said, interactions, request, mutated }
    }

    /// Returns the positions of all checks that run.
    ///
    /// Each check has a position for all webhooks together and one for each webhook.
    pub(super) fn places(&self) -> impl Iterator<Item = (PlanPosition, &'static Check, Option<&Subject>)> {
        self.active().flat_map(|(position, check)| {
            let subjects = self.subjects.iter().enumerate();
            let alone = subjects.map(move |(place, subject)| ((position, Some(place)), check, Some(subject)));
            std::iter::once(((position, None), check, None)).chain(alone)
        })
    }

    /// Creates the context for a probe of a webhook with a request.
    pub(super) fn object_probe<'a>(
        &'a self,
        subject: &'a Subject,
        request: &'a Attributes,
        memory: &'a Memory,
    ) -> ObjectProbe<'a> {
        ObjectProbe { environment: &self.environment, subject, subjects: &self.subjects, request, memory }
    }

    /// Returns the request as the webhook receives it in its phase.
    pub(super) async fn shown<'a>(
        &self,
        subject: &Subject,
        request: &'a Attributes,
        memory: &Memory,
    ) -> Cow<'a, Attributes> {
        match subject.webhook.phase {
            Phase::Mutating => Cow::Borrowed(request),
            Phase::Validating => Cow::Owned(self.mutated(request, memory).await),
        }
    }

    /// Returns the request after the mutating webhooks, or the unchanged request if they deny it.
    pub(super) async fn mutated(&self, request: &Attributes, memory: &Memory) -> Attributes {
        let mutating: Vec<&Subject> =
            self.subjects.iter().filter(|subject| subject.webhook.phase == Phase::Mutating).collect();
        let is_validated = mutating.len() < self.subjects.len();
        let Some(first) = mutating.first().filter(|_| is_validated) else { return request.clone() };
        let object_probe = self.object_probe(first, request, memory);
        let webhook_set = ObjectProbe::in_order(mutating.iter().map(|subject| Arc::clone(&subject.called)));
        let outcome = object_probe.outcome(&webhook_set, request).await;
        match (&outcome.refusal, &outcome.object) {
            (None, Some(object)) => object_probe.with_object(object.clone()),
            _ => request.clone(),
        }
    }

    /// Creates the context for a probe of a webhook with the requests to send.
    pub(super) fn webhook_probe<'a>(
        &'a self,
        subject: &'a Subject,
        samples: &'a [Attributes],
    ) -> WebhookProbe<'a> {
        let (environment, settings) = (&self.environment, &self.settings);
        WebhookProbe {
            environment,
            subject,
            subjects: &self.subjects,
            samples,
            settings,
            notes: Notes::default(),
            unjudged: Notes::default(),
        }
    }

    /// Runs all object probes for an object and returns their results.
    pub(super) async fn observe(
        &self,
        request: &Attributes,
        memory: &Memory,
    ) -> Vec<(PlanPosition, Observed)> {
        let mut seen = Vec::new();
        for (position, check) in self.active() {
            match check.probe {
                Probe::Object(_) | Probe::ConfigurationAndObject(..) => {
                    for (place, subject) in self.audience(check) {
                        let observed = self.probe(check, Some(subject), request, memory).await;
                        seen.extend(observed.map(|observed| ((position, Some(place)), observed)));
                    }
                }
                Probe::Collection(_) => {
                    let observed = self.probe(check, None, request, memory).await;
                    seen.extend(observed.map(|observed| ((position, None), observed)));
                }
                Probe::Configuration(_)
                | Probe::Configurations(_)
                | Probe::Effects(_)
                | Probe::Webhook(_)
                | Probe::Intervention(..)
                | Probe::Conversion(_)
                | Probe::Manifests(..) => {}
            }
        }
        seen
    }

    /// Returns the cached verdict of each webhook on the creation of the object.
    pub(super) async fn said(&self, request: &Attributes, memory: &Memory) -> Vec<Option<CreationVerdict>> {
        let mut all = Vec::new();
        for subject in &self.subjects {
            if !denials::was_asked(memory, subject) {
                all.push(None);
                continue;
            }
            let request = &*self.shown(subject, request, memory).await;
            all.push(denials::creation_verdict(&self.object_probe(subject, request, memory)));
        }
        all
    }

    /// Returns the result of a probe for an object and a webhook, or for all webhooks together if `subject` is `None`.
    ///
    /// Returns `None` if the check does not examine objects.
    pub(super) async fn probe(
        &self,
        check: &'static Check,
        subject: Option<&Subject>,
        request: &Attributes,
        memory: &Memory,
    ) -> Option<Observed> {
        let subject = match subject {
            Some(subject) => subject,
            None => self.audience(check).next()?.1,
        };
        let mut request = self.shown(subject, request, memory).await;
        let cluster_fixture = &self.environment.cluster_fixture;
        if checks::ANY_OPERATION.contains(&check.id)
            && let Some(other) = subject.instead_of_creation(&request, cluster_fixture)
        {
            request = Cow::Owned(other);
        }
        let object_probe = self.object_probe(subject, &request, memory);
        let (Probe::Object(probe) | Probe::Collection(probe) | Probe::ConfigurationAndObject(_, _, probe)) =
            check.probe
        else {
            return None;
        };
        Some(probe(&object_probe).await)
    }
}

impl std::fmt::Debug for Plan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Plan").field("checks", &self.checks).field("jobs", &self.jobs).finish_non_exhaustive()
    }
}
