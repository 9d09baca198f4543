//! Runs the checks in stages.
//!
//! The stages are configurations, side effects, the corpus, single webhooks, minimization of findings, conversions, and
//! disruptions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::future::BoxFuture;
use futures::stream::{self, StreamExt as _};
use kubernetes_admission::attributes::Attributes;
use kubernetes_admission::event::Phase;
use serde_json::Value;

use super::check::{Audience, Check, Disruption, Observed, Probe, Skipped};
use super::checks;
use super::consequences;
use super::converter::{Converter, ConverterProbe};
use super::denials::Denials;
use super::exercised;
use super::finding_log::{FindingLog, PlanPosition};
use super::interaction::Interactions;
use super::plan::{ObjectResults, Plan};
use super::progress::{Progress, Stage};
use super::reasons;
use super::recorder::Recorder;
use super::report::Report;
use super::request_context;
use super::samples::{self, Samples};
use super::smallest::minimize;
use super::subject::Subject;
use super::subresource_probes;
use super::tried;
use super::turn::Turns;
use super::violation::ConversionObservations;
use super::webhook_probe::{ConfigurationSet, Notes, WebhookProbe};

/// The number of objects at the start of the corpus to select the samples for the first checks from.
const FIRST_OBJECTS: usize = 5_000;
/// A probe of a single webhook.
type WebhookProbeFn = for<'a> fn(&'a WebhookProbe<'a>) -> BoxFuture<'a, Observed>;

/// The number of custom resources to keep for conversion webhooks.
const CUSTOM_OBJECTS: usize = 16;

/// Runs the checks of `plan` on the objects of `corpus`. The corpus is read lazily.
///
/// # Errors
/// Returns the first error of `corpus`.
pub async fn run<E: Send>(
    plan: Plan,
    corpus: impl Iterator<Item = Result<Value, E>> + Send,
) -> Result<Report, E> {
    run_until(plan, corpus, std::future::pending()).await
}

/// Runs the checks as [`run`] does, but ends early when `stop` is ready.
///
/// In that case, the report contains the findings so far and is marked as [interrupted](Report::interrupted).
///
/// # Errors
/// Returns the first error of `corpus`.
pub async fn run_until<E: Send>(
    plan: Plan,
    corpus: impl Iterator<Item = Result<Value, E>> + Send,
    stop: impl Future<Output = ()> + Send,
) -> Result<Report, E> {
    let plan = Arc::new(plan);
    let samples = plan.subjects.iter().map(|_| Samples::default()).collect();
    let denials = plan.subjects.iter().map(|_| Denials::default()).collect();
    let mismatches = plan.subjects.iter().map(|_| BTreeMap::new()).collect();
    let finding_log = FindingLog::default();
    let interactions = Interactions::default();
    let mut run =
        Run { plan: &plan, finding_log, samples, denials, mismatches, interactions, custom: Vec::new() };
    let interrupted = tokio::select! {
        done = run.stages(corpus) => {
            done?;
            false
        }
        () = stop => true,
    };
    if interrupted {
        run.interrupted();
    } else {
        run.silent();
    }
    run.finding_log.conclude(plan.settings.recorder.as_ref().is_some_and(Recorder::was_contacted));
    let called = || plan.subjects.iter().chain(plan.converters.iter().map(|converter| &converter.subject));
    let webhooks: Vec<String> = called().map(Subject::name).collect();
    let servers = called().map(|subject| (subject.name(), subject.server())).collect();
    let mut report = run.finding_log.report(&plan.checks, &webhooks, servers, plan.environment.calls());
    report.interrupted = interrupted;
    report.interactions = run.interactions.into_list();
    request_context::describe(&mut report, &plan);
    consequences::fold(&mut report.checks);
    let caveats = plan.subjects.iter().filter_map(|subject| Some((subject.name(), subject.caveat()?)));
    report.caveats = caveats.collect();
    let sends_objects =
        plan.active().any(|(_, check)| matches!(check.probe, Probe::Object(_) | Probe::Collection(_)));
    let counts = run.denials.into_iter().zip(run.mismatches);
    let tried =
        plan.subjects.iter().zip(counts).map(|(subject, (denials, mismatches))| {
            (subject.name(), plan.tried(subject, denials, mismatches))
        });
    report.webhooks =
        tried.filter(|(_, tried)| sends_objects || tried.invalid_responses().is_some()).collect();
    if sends_objects {
        exercised::mark(&mut report);
    }
    Ok(report)
}

struct Run<'a> {
    plan: &'a Arc<Plan>,
    finding_log: FindingLog,
    /// The sample requests, with one entry for each webhook.
    samples: Vec<Samples>,
    /// The denials, with one entry for each webhook.
    denials: Vec<Denials>,
    /// The number of objects for which a webhook was not called, by reason, with one entry for each webhook.
    mismatches: Vec<BTreeMap<String, u64>>,
    interactions: Interactions,
    /// The first objects of the corpus that the conversion webhooks convert.
    custom: Vec<Value>,
}

impl Run<'_> {
    /// Runs all stages in order.
    async fn stages<E: Send>(
        &mut self,
        corpus: impl Iterator<Item = Result<Value, E>> + Send,
    ) -> Result<(), E> {
        self.configurations();
        let (begin, corpus) = self.begin(corpus);
        let first = self.first(&begin);
        self.effects(&first).await;
        self.objects(begin.into_iter().chain(corpus)).await?;
        let samples = self.requests(&self.samples);
        self.webhooks(&samples).await;
        self.subresources(&samples).await;
        self.shrink().await;
        self.conversions().await;
        self.interventions(&samples).await;
        Ok(())
    }

    /// Marks the checks that have not run yet as not checked.
    fn interrupted(&mut self) {
        for (position, check) in self.plan.active() {
            if self.finding_log.has_seen(position) {
                continue;
            }
            for (subject, _) in self.plan.audience(check) {
                let reason = "the run was interrupted before".to_owned();
                self.finding_log.note((position, Some(subject)), None, Err(Skipped::NotChecked(reason)));
            }
        }
    }

    fn configurations(&mut self) {
        self.tell(Stage::Configurations, 0, None);
        for (position, check) in self.plan.active() {
            match check.probe {
                Probe::Configuration(probe) | Probe::ConfigurationAndObject(probe, ..) => {
                    // A check of the configuration with objects counts per object; a check of the
                    // configuration alone counts once in each shard.
                    let is_counted = matches!(check.probe, Probe::Configuration(_));
                    for (subject, found) in self.plan.audience(check) {
                        let observed = probe(found, &self.plan.environment.cluster_fixture);
                        if is_counted || observed.as_ref().is_ok_and(|violations| !violations.is_empty()) {
                            self.finding_log.note((position, Some(subject)), None, observed);
                        }
                    }
                }
                Probe::Configurations(probe) => {
                    let subjects: Vec<&Subject> =
                        self.plan.audience(check).map(|(_, subject)| subject).collect();
                    if !subjects.is_empty() {
                        let cluster_fixture = &self.plan.environment.cluster_fixture;
                        let configuration_set = ConfigurationSet {
                            subjects: &subjects,
                            cluster_fixture,
                            notes: Notes::default(),
                        };
                        let observed = probe(&configuration_set);
                        self.finding_log.remark((position, None), configuration_set.notes.into_inner());
                        self.finding_log.note((position, None), None, observed);
                    }
                }
                Probe::Effects(_)
                | Probe::Webhook(_)
                | Probe::Object(_)
                | Probe::Collection(_)
                | Probe::Intervention(..)
                | Probe::Conversion(_)
                | Probe::Manifests(..) => {}
            }
        }
    }

    async fn objects<E: Send>(
        &mut self,
        corpus: impl Iterator<Item = Result<Value, E>> + Send,
    ) -> Result<(), E> {
        let plan = self.plan;
        let turns = Turns::new(plan.jobs);
        let probes = (0..).zip(corpus).map(|(position, object)| {
            let turn = turns.at(position);
            (object, turn)
        });
        let probes = probes.map(|(object, turn)| async move {
            let object = object?;
            let request = match plan.environment.create(object.clone()) {
                Ok(request) => request,
                Err(status) => return Ok((object, Err(status.message))),
            };
            // Runs in its own task to use several processors.
            let task = {
                let plan = Arc::clone(plan);
                tokio::spawn(async move { plan.results(request, &turn).await })
            };
            match task.await {
                Ok(tried) => Ok((object, Ok(tried))),
                Err(error) => std::panic::resume_unwind(error.into_panic()),
            }
        });
        // Keeps the order of the corpus, so that the same corpus gives the same report.
        let mut probes = stream::iter(probes).buffered(plan.jobs.max(1));
        while let Some(object_probe) = probes.next().await {
            let (object, tried) = object_probe?;
            self.finding_log.objects += 1;
            match tried {
                Ok(tried) => self.conclude(&object, tried),
                Err(reason) => self.finding_log.leave_out(&reason, 1),
            }
            turns.conclude(self.finding_log.objects);
            self.tell(Stage::Objects, self.finding_log.objects, plan.objects);
        }
        Ok(())
    }

    /// Records the observations about an object.
    fn conclude(&mut self, object: &Value, tried: ObjectResults) {
        let plan = self.plan;
        self.keep_custom(object);
        for (place, observed) in tried.seen {
            self.finding_log.note(place, Some(object), observed);
        }
        self.interactions.extend(tried.interactions);
        for (denials, said) in self.denials.iter_mut().zip(tried.said) {
            if let Some(said) = said {
                denials.count(said);
            }
        }
        let counts = self.samples.iter_mut().zip(&mut self.mismatches);
        for (subject, (samples, mismatches)) in plan.subjects.iter().zip(counts) {
            let is_validating = subject.webhook.phase == Phase::Validating;
            let shown = if is_validating { &tried.mutated } else { &tried.request };
            let cluster_fixture = &plan.environment.cluster_fixture;
            samples.add(subject, shown, cluster_fixture);
            if plan.environment.asked(subject.webhook.phase, &subject.webhook.id).called == 0
                && let Some(reason) = tried::mismatch(subject, shown, cluster_fixture)
            {
                reasons::count(mismatches, reason);
            }
        }
    }

    fn keep_custom(&mut self, object: &Value) {
        if self.custom.len() < CUSTOM_OBJECTS && self.plan.converters.iter().any(|it| it.is_of(object)) {
            self.custom.push(object.clone());
        }
    }

    /// Checks the conversion webhooks one after the other.
    async fn conversions(&mut self) {
        let plan = self.plan;
        let looks = plan.active().filter(|(_, check)| matches!(check.probe, Probe::Conversion(_))).count();
        let total = (looks * plan.converters.len()) as u64;
        let mut done = 0;
        for (index, converter) in plan.converters.iter().enumerate() {
            if looks > 0 {
                for (reason, count) in converter.left_out() {
                    self.finding_log.leave_out(reason, count);
                }
            }
            for (position, check) in plan.active() {
                let seen = observe(check, &plan.environment, converter, &self.custom).await;
                let Some(seen) = seen else { continue };
                let place = (position, Some(plan.subjects.len() + index));
                for (object, observed) in seen {
                    self.finding_log.note(place, object.as_ref(), observed);
                }
                done += 1;
                self.tell(Stage::Webhooks, done, Some(total));
            }
        }
    }

    /// Splits `corpus` into its first objects, if a check examines them before all others, and the remaining objects.
    fn begin<E, C: Iterator<Item = Result<Value, E>>>(&self, mut corpus: C) -> (Vec<Result<Value, E>>, C) {
        let looks = self.plan.active().any(|(_, check)| matches!(check.probe, Probe::Effects(_)));
        let begin = corpus.by_ref().take(if looks { FIRST_OBJECTS } else { 0 }).collect();
        (begin, corpus)
    }

    /// Returns the requests for `objects` that each webhook matches, before any mutation.
    fn first<E>(&self, objects: &[Result<Value, E>]) -> Vec<Vec<Attributes>> {
        let plan = self.plan;
        let mut samples: Vec<Samples> = plan.subjects.iter().map(|_| Samples::default()).collect();
        for object in objects.iter().flatten() {
            // An object that cannot be created is reported when the corpus is tried.
            let Ok(request) = plan.environment.create(object.clone()) else { continue };
            for (subject, samples) in plan.subjects.iter().zip(&mut samples) {
                samples.add(subject, &request, &plan.environment.cluster_fixture);
            }
        }
        self.requests(&samples)
    }

    async fn effects(&mut self, samples: &[Vec<Attributes>]) {
        let effects = |probe| if let Probe::Effects(probe) = probe { Some(probe) } else { None };
        self.alone(samples, Stage::Effects, effects).await;
    }

    async fn webhooks(&mut self, samples: &[Vec<Attributes>]) {
        let webhooks = |probe| if let Probe::Webhook(probe) = probe { Some(probe) } else { None };
        self.alone(samples, Stage::Webhooks, webhooks).await;
    }

    /// Runs the checks of single responses on requests for subresources.
    async fn subresources(&mut self, samples: &[Vec<Attributes>]) {
        for (place, observed) in subresource_probes::run(self.plan, samples).await {
            self.finding_log.note(place, None, observed);
        }
    }

    /// Runs the probes that `chosen` selects, one webhook at a time.
    async fn alone(
        &mut self,
        samples: &[Vec<Attributes>],
        stage: Stage,
        chosen: fn(Probe) -> Option<WebhookProbeFn>,
    ) {
        let plan = self.plan;
        let looks = plan.active().filter(|(_, check)| chosen(check.probe).is_some());
        let total = looks.map(|(_, check)| plan.audience(check).count() as u64).sum();
        let mut done = 0;
        self.tell(stage, done, Some(total));
        for (position, check) in plan.active() {
            let Some(probe) = chosen(check.probe) else { continue };
            for (subject, found, samples) in plan.audience_with(check, samples) {
                let webhook_probe = plan.webhook_probe(found, samples);
                let observed = probe(&webhook_probe).await;
                self.finding_log.note_webhook((position, Some(subject)), webhook_probe, observed);
                done += 1;
                self.tell(stage, done, Some(total));
            }
        }
    }

    /// Returns the requests to use for single-webhook probes, for each webhook.
    ///
    /// A webhook that is not called for objects of the corpus gets requests for connections and subresources.
    fn requests(&self, samples: &[Samples]) -> Vec<Vec<Attributes>> {
        let requests = self.plan.subjects.iter().zip(samples).map(|(subject, samples)| {
            let requests = samples.requests();
            if !requests.is_empty() {
                return requests;
            }
            let mut requests = checks::subresource_requests(&self.plan.webhook_probe(subject, &[]));
            requests.truncate(samples::MAX_REQUESTS);
            requests
        });
        requests.collect()
    }

    /// Runs the disruptions. Each affects all webhooks at once, because webhooks often share a process.
    async fn interventions(&mut self, samples: &[Vec<Attributes>]) {
        let plan = self.plan;
        for now in Disruption::ALL {
            for (position, check) in plan.active() {
                let Probe::Intervention(occasion, probe) = check.probe else { continue };
                if occasion != now {
                    continue;
                }
                self.tell(Stage::Interventions, 0, None);
                let (places, webhook_probes): (Vec<PlanPosition>, Vec<WebhookProbe<'_>>) = plan
                    .audience_with(check, samples)
                    .map(|(subject, found, samples)| {
                        ((position, Some(subject)), plan.webhook_probe(found, samples))
                    })
                    .unzip();
                let observed = probe(&webhook_probes).await;
                for ((place, webhook_probe), observed) in places.into_iter().zip(webhook_probes).zip(observed)
                {
                    self.finding_log.note_webhook(place, webhook_probe, observed);
                }
            }
        }
    }

    async fn shrink(&mut self) {
        self.tell(Stage::Shrinking, 0, None);
        let plan = self.plan;
        let mut found = self.finding_log.found();
        let mut all = Vec::new();
        let mut nondeterministic = BTreeSet::new();
        for (place, check, subject) in plan.places() {
            for found in found.remove(&place).into_iter().flatten() {
                if checks::shows_nondeterminism(check, &found.violation) {
                    nondeterministic.insert(place.1);
                }
                all.push((place.1, check, subject, found));
            }
        }
        let smaller = all.into_iter().filter_map(|(place, check, subject, found)| {
            let object = found.object.clone()?;
            let varies = nondeterministic.contains(&place);
            Some(minimize(plan, (check, subject), object, found, varies))
        });
        stream::iter(smaller).for_each_concurrent(plan.jobs.max(1), |smaller| smaller).await;
        self.finding_log.take_back();
    }

    /// Records a reason for each check that did not have anything to examine.
    fn silent(&mut self) {
        for (position, check) in self.plan.active() {
            let mut audience = self.plan.audience(check).map(|(subject, _)| subject).peekable();
            if self.finding_log.has_seen(position) && check.audience == Audience::Conversion {
                continue;
            }
            if audience.peek().is_none() {
                let reason = match check.audience {
                    Audience::Validating => "there is no validating webhook",
                    Audience::Mutating | Audience::All | Audience::AllAndPolicies => {
                        "there is no mutating webhook"
                    }
                    Audience::Conversion => "there is no conversion webhook",
                    Audience::Policies => "there is no admission policy",
                };
                self.finding_log.note((position, None), None, Err(Skipped::not_applicable(reason)));
            } else if !self.finding_log.has_seen(position) {
                let nothing = || Err(Skipped::not_applicable("there was no object to try"));
                match check.probe {
                    Probe::Collection(_) | Probe::Configurations(_) => {
                        self.finding_log.note((position, None), None, nothing());
                    }
                    Probe::Object(_)
                    | Probe::ConfigurationAndObject(..)
                    | Probe::Configuration(_)
                    | Probe::Effects(_)
                    | Probe::Webhook(_)
                    | Probe::Intervention(..)
                    | Probe::Conversion(_)
                    | Probe::Manifests(..) => {
                        for subject in audience {
                            self.finding_log.note((position, Some(subject)), None, nothing());
                        }
                    }
                }
            }
        }
    }

    fn tell(&self, stage: Stage, done: u64, total: Option<u64>) {
        (self.plan.progress)(Progress {
            stage,
            done,
            total,
            objects: self.finding_log.objects,
            calls: self.plan.environment.calls(),
        });
    }
}

/// Runs `check` on `converter`, or returns `None` if the check does not examine conversion webhooks.
async fn observe(
    check: &'static Check,
    environment: &super::environment::Environment,
    converter: &Converter,
    given: &[Value],
) -> Option<ConversionObservations> {
    let Probe::Conversion(probe) = check.probe else { return None };
    let given: Vec<Value> = given.iter().filter(|object| converter.is_of(object)).cloned().collect();
    let converter_probe = ConverterProbe { environment, converter, given: &given };
    Some(probe(&converter_probe).await)
}
