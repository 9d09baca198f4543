//! What is verified, and how.

use std::borrow::Cow;
use std::sync::Arc;

use kubernetes_admission::attributes::Attributes;
use kubernetes_admission::event::Phase;

use super::check::{Check, Observed, Probe};
use super::converter::Converter;
use super::denials::{self, Denials, Said};
use super::environment::Environment;
use super::finding_log::Place;
use super::object_probe::{Memory, ObjectProbe};
use super::progress::Progress;
use super::report::Tried;
use super::subject::Subject;
use super::webhook_probe::{Notes, Settings, WebhookProbe};

/// What is verified, and how.
pub struct Plan {
    /// Where requests are tried.
    pub environment: Environment,
    /// The webhooks, in dispatch order.
    pub subjects: Vec<Subject>,
    /// The conversion webhooks.
    pub converters: Vec<Converter>,
    /// The checks by id; one with a reason is skipped.
    pub checks: Vec<(&'static Check, Option<String>)>,
    /// What the user decides.
    pub settings: Settings,
    /// How many objects the corpus has, if that is known: for the progress alone.
    pub objects: Option<u64>,
    /// How many objects are tried at a time.
    pub jobs: usize,
    /// Is told how far the run has come.
    pub progress: Box<dyn Fn(Progress) + Send + Sync>,
}

impl Plan {
    /// A plan of `checks` with the default settings, which tells nobody how far the run has come.
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
    /// The checks that run, with their positions.
    pub(super) fn active(&self) -> impl Iterator<Item = (usize, &'static Check)> {
        self.checks
            .iter()
            .enumerate()
            .filter(|(_, (_, skipped))| skipped.is_none())
            .map(|(position, (check, _))| (position, *check))
    }

    pub(super) fn tried(&self, subject: &Subject, denials: Denials) -> Tried {
        let asked = self.environment.asked(subject.webhook.phase, &subject.webhook.id);
        Tried {
            mutating: subject.webhook.phase == Phase::Mutating,
            called: asked.called,
            patched: asked.patched,
            objects: denials.objects,
            denied: denials.reasons,
            selects: subject.webhook.object_selector.keys().map(str::to_owned).collect(),
        }
    }

    pub(super) fn audience(&self, check: &'static Check) -> impl Iterator<Item = (usize, &Subject)> {
        self.subjects.iter().enumerate().filter(|(_, subject)| check.audience.includes(subject.webhook.phase))
    }

    /// The webhooks that a check looks at, with what `all` has for each webhook of the plan.
    pub(super) fn audience_with<'a, T>(
        &'a self,
        check: &'static Check,
        all: &'a [T],
    ) -> impl Iterator<Item = (usize, &'a Subject, &'a T)> {
        let all = self.subjects.iter().zip(all).enumerate();
        all.filter(|(_, (subject, _))| check.audience.includes(subject.webhook.phase))
            .map(|(place, (subject, of_it))| (place, subject, of_it))
    }

    /// Where something may have been found: the checks that run, with all webhooks together and with each.
    pub(super) fn places(&self) -> impl Iterator<Item = (Place, &'static Check, Option<&Subject>)> {
        self.active().flat_map(|(position, check)| {
            let subjects = self.subjects.iter().enumerate();
            let alone = subjects.map(move |(place, subject)| ((position, Some(place)), check, Some(subject)));
            std::iter::once(((position, None), check, None)).chain(alone)
        })
    }

    /// A webhook and one request.
    pub(super) fn object_probe<'a>(
        &'a self,
        subject: &'a Subject,
        request: &'a Attributes,
        memory: &'a Memory,
    ) -> ObjectProbe<'a> {
        ObjectProbe { environment: &self.environment, subject, subjects: &self.subjects, request, memory }
    }

    /// What a webhook sees of a request, by its phase.
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

    /// What validating webhooks see of a request: the object that the mutating ones have made; the object as it is if they
    /// refuse it.
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

    /// A webhook alone, with the requests to try.
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
        }
    }

    /// What all probes of objects see of one object.
    pub(super) async fn observe(&self, request: &Attributes, memory: &Memory) -> Vec<(Place, Observed)> {
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
                | Probe::Manifests(_) => {}
            }
        }
        seen
    }

    /// What the probes of objects have heard of each webhook about the creation of the object.
    pub(super) async fn said(&self, request: &Attributes, memory: &Memory) -> Vec<Option<Said>> {
        let mut all = Vec::new();
        for subject in &self.subjects {
            if !denials::was_asked(memory, subject) {
                all.push(None);
                continue;
            }
            let request = &*self.shown(subject, request, memory).await;
            all.push(denials::said(&self.object_probe(subject, request, memory)));
        }
        all
    }

    /// What one probe sees of one object, of all webhooks together without `subject`; none if it does not look at objects.
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
        let request = &*self.shown(subject, request, memory).await;
        let object_probe = self.object_probe(subject, request, memory);
        let (Probe::Object(probe) | Probe::Collection(probe) | Probe::ConfigurationAndObject(_, probe)) =
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
