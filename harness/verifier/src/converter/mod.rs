//! A conversion webhook under verification, and the context of its probes.

mod answer;
mod loss;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use kubernetes_admission::config::{ConfigError, Webhook};
use kubernetes_types::json::{at, set, text};
use serde_json::{Value, json};

pub(super) use self::answer::Answer;
pub(super) use self::loss::lost;
use super::call_recorder::Exchange;
use super::corpus::{self, Made, NearMiss};
use super::environment::Environment;
use super::shrink::Shrinking;
use super::subject::Subject;
pub(super) use super::violation::ConversionObservations;
use super::violation::{Observed, Skipped, Violation};

/// The conversion timeout of kube-apiserver.
///
/// Source: client-go `rest/config.go`.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The maximum number of objects to convert in each version.
const OBJECTS: usize = 16;
/// The maximum number of versions between which objects are converted.
const VERSIONS: usize = 6;
/// The maximum number of smaller objects to try for a finding.
const OFFERS: usize = 100;
/// The reason for skipping a check of a webhook whose responses cannot be compared.
const NOT_DETERMINISTIC: &str = "the same objects convert to different results: see V63";

/// A conversion webhook under verification.
#[derive(Clone, Debug)]
pub struct Converter {
    /// The webhook to call, named `DEFINITION/conversion`.
    pub subject: Subject,
    group: String,
    kind: String,
    namespaced: bool,
    review_version: &'static str,
    versions: Vec<Version>,
}

/// A served version of the definition, with its generated objects.
#[derive(Clone, Debug)]
struct Version {
    shape: corpus::Version,
    made: Made,
    near_misses: Vec<NearMiss>,
}

impl Converter {
    /// Returns a configuration for the conversion webhook of `definition`, or `None` if it does not have one.
    pub fn configuration(definition: &Value) -> Option<Value> {
        if text(definition, &["kind"]) != "CustomResourceDefinition"
            || text(definition, &["spec", "conversion", "strategy"]) != "Webhook"
        {
            return None;
        }
        let client_config = at(definition, &["spec", "conversion", "webhook", "clientConfig"]);
        let webhook = json!({
            "name": "conversion", "clientConfig": client_config, "rules": [], "sideEffects": "None",
            "admissionReviewVersions": ["v1"], "timeoutSeconds": TIMEOUT.as_secs(),
        });
        Some(json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": text(definition, &["metadata", "name"])}, "webhooks": [webhook],
        }))
    }

    /// Creates the converter of `definition`. `configuration` specifies how to call the webhook.
    ///
    /// Returns `None` if admit does not support any of the listed review versions.
    ///
    /// # Errors
    /// Returns an error that names the first field of the configuration that cannot be read.
    pub fn new(definition: &Value, configuration: &Value) -> Result<Option<Self>, ConfigError> {
        let listed = at(definition, &["spec", "conversion", "webhook", "conversionReviewVersions"]);
        let listed = listed.as_array().into_iter().flatten().filter_map(Value::as_str);
        let review_version = listed.into_iter().find_map(|version| match version {
            "v1" => Some("v1"),
            "v1beta1" => Some("v1beta1"),
            _ => None,
        });
        let subject = Subject::from_configurations(std::slice::from_ref(configuration))?.into_iter().next();
        let (Some(review_version), Some(subject)) = (review_version, subject) else { return Ok(None) };
        let versions = corpus::versions(definition).into_iter().take(VERSIONS);
        let versions = versions.map(|version| {
            let made = version.made();
            let near_misses = version.near_misses(&made.valid);
            Version { shape: version, made, near_misses }
        });
        Ok(Some(Self {
            subject,
            group: text(definition, &["spec", "group"]).to_owned(),
            kind: text(definition, &["spec", "names", "kind"]).to_owned(),
            namespaced: text(definition, &["spec", "scope"]) != "Cluster",
            review_version,
            versions: versions.collect(),
        }))
    }

    /// Sets the timeout. The default is 30 s, as in kube-apiserver.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.subject.called = Arc::new(Webhook { timeout, ..(*self.subject.called).clone() });
        self
    }

    /// Returns whether `object` is a custom resource of the definition.
    pub(super) fn is_of(&self, object: &Value) -> bool {
        let group = text(object, &["apiVersion"]).split_once('/').map(|(group, _)| group);
        group == Some(self.group.as_str()) && text(object, &["kind"]) == self.kind
    }

    /// Returns an `apiVersion` that the definition does not contain.
    pub(super) fn unknown(&self) -> String {
        format!("{}/v99", self.group)
    }

    fn version(&self, api_version: &str) -> Option<&corpus::Version> {
        self.versions.iter().map(|version| &version.shape).find(|version| version.api_version == api_version)
    }

    /// Returns the `apiVersion` of each version of the definition other than `api_version`.
    fn others(&self, api_version: &str) -> impl Iterator<Item = &str> {
        let versions = self.versions.iter().map(|version| version.shape.api_version.as_str());
        versions.filter(move |other| *other != api_version)
    }

    /// Returns the number of generated objects that are not sent because they are invalid, by reason.
    pub(super) fn left_out(&self) -> impl Iterator<Item = (&str, u64)> {
        let left_out = self.versions.iter().flat_map(|version| &version.made.left_out);
        left_out.map(|(reason, count)| (reason.as_str(), *count))
    }

    /// Returns the object as the API server decodes it, or `None` if the API server would not store it.
    fn valid(&self, object: Value) -> Option<Value> {
        let (object, errors) = self.version(text(&object, &["apiVersion"]))?.judged(object).ok()?;
        errors.is_empty().then_some(object)
    }

    /// Returns the object without the fields that the schema of its version does not describe.
    pub(super) fn pruned(&self, object: Value) -> Value {
        match self.version(text(&object, &["apiVersion"])) {
            Some(version) => version.pruned(object),
            None => object,
        }
    }

    fn completed(&self, mut object: Value, index: usize, namespace: &str) -> Value {
        let name = match text(&object, &["metadata", "name"]) {
            "" => format!("admit-verify-{index}"),
            name => name.to_owned(),
        };
        set(&mut object, &["metadata", "name"], name);
        if self.namespaced {
            if text(&object, &["metadata", "namespace"]).is_empty() {
                set(&mut object, &["metadata", "namespace"], namespace);
            }
        } else if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("namespace");
        }
        set(&mut object, &["metadata", "uid"], format!("6f3d1d2e-0000-4000-8000-{index:012}"));
        set(&mut object, &["metadata", "creationTimestamp"], "2026-01-01T00:00:00Z");
        set(&mut object, &["metadata", "generation"], 1);
        set(&mut object, &["metadata", "finalizers"], json!(["example.com/admit-verify"]));
        object
    }
}

/// An object to convert, and the version to convert it to.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) object: Value,
    /// Whether the user provided the object. If not, admit generated it from the schema.
    pub(super) is_given: bool,
    /// The `apiVersion` to convert the object to.
    pub(super) to: String,
}

/// The context of a probe of a conversion webhook.
#[derive(Debug)]
pub struct ConverterProbe<'a> {
    pub(super) environment: &'a Environment,
    pub(super) converter: &'a Converter,
    /// The objects of the definition that the user provided.
    pub(super) given: &'a [Value],
}

/// A function that tests the conversion of one object.
pub(super) type CaseProbeFn = for<'b> fn(&'b ConverterProbe<'b>, &'b Case) -> BoxFuture<'b, Observed>;

impl ConverterProbe<'_> {
    /// Returns the objects of each version that the API server would store, paired with the other versions.
    pub(super) fn pairs(&self) -> Vec<Vec<Case>> {
        let converter = self.converter;
        let mut pairs = Vec::new();
        for version in &converter.versions {
            let api_version = &version.shape.api_version;
            let given = self.given.iter().filter(|object| text(object, &["apiVersion"]) == api_version);
            let given = given.map(|object| (object.clone(), true));
            let made = version.made.valid.iter().map(|object| (object.clone(), false));
            let mut objects: Vec<(Value, bool)> = Vec::new();
            for (index, (object, is_given)) in given.chain(made).enumerate() {
                let object = converter.completed(object, index, &self.environment.namespace);
                if let Some(object) = converter.valid(object)
                    && objects.len() < OBJECTS
                {
                    objects.push((object, is_given));
                }
            }
            for other in converter.others(api_version) {
                if !objects.is_empty() {
                    let case = |(object, is_given): &(Value, bool)| Case {
                        object: object.clone(),
                        is_given: *is_given,
                        to: other.to_owned(),
                    };
                    pairs.push(objects.iter().map(case).collect());
                }
            }
        }
        pairs
    }

    /// Returns objects of each version that the API server no longer stores, each with the violated constraint.
    ///
    /// Each object is paired with another version.
    pub(super) fn near_misses(&self) -> Vec<(&str, Case)> {
        let converter = self.converter;
        let mut cases = Vec::new();
        for version in &converter.versions {
            let Some(other) = converter.others(&version.shape.api_version).next() else { continue };
            for (index, NearMiss { what, object }) in version.near_misses.iter().enumerate() {
                let object = converter.completed(object.clone(), index, &self.environment.namespace);
                // As read from storage.
                if let Ok((object, errors)) = version.shape.judged(object)
                    && !errors.is_empty()
                {
                    cases.push((what.as_str(), Case { object, is_given: false, to: other.to_owned() }));
                }
            }
        }
        cases
    }

    /// Returns the reason why there are no objects to convert.
    pub(super) fn nothing(&self) -> Skipped {
        if self.converter.versions.len() < 2 {
            Skipped::not_applicable("the definition serves only one version")
        } else {
            Skipped::not_checked(
                "no object generated from the schemas is valid: pass your own objects with \
                                   -f",
            )
        }
    }

    /// Converts `objects` to the version `to`.
    pub(super) async fn convert(&self, objects: &[Value], to: &str) -> (Exchange, Answer) {
        let uid = format!("6f3d1d2e-1111-4000-8000-{:012}", self.environment.calls());
        let review = json!({
            "kind": "ConversionReview",
            "apiVersion": format!("apiextensions.k8s.io/{}", self.converter.review_version),
            "request": {"uid": uid, "desiredAPIVersion": to, "objects": objects},
            "response": {"uid": "", "convertedObjects": null, "result": {"metadata": {}}},
        });
        let body = Bytes::from(review.to_string());
        let exchange = self.environment.post(&self.converter.subject.called, body).await;
        let answer = answer::read(&exchange, self.converter.review_version, &uid, objects, to);
        (exchange, answer)
    }

    /// Converts an object to the version `to`.
    ///
    /// # Errors
    /// Returns [`Skipped`] if the conversion fails.
    pub(super) async fn converted(&self, object: &Value, to: &str) -> Result<(Exchange, Value), Skipped> {
        let (exchange, answer) = self.convert(std::slice::from_ref(object), to).await;
        match answer {
            Answer::Converted(objects) => match objects.into_iter().next() {
                Some(object) => Ok((exchange, object)),
                None => Err(Skipped::not_checked("the response has no converted object: see V62")),
            },
            Answer::Failed(message) => {
                Err(Skipped::not_checked(format!("an object could not be converted ({message}): see V62")))
            }
            Answer::Invalid(fault) => Err(Skipped::not_checked(format!("{}: see V62", fault.message))),
        }
    }

    /// Checks that the webhook always converts the same object to the same result.
    ///
    /// # Errors
    /// Returns [`Skipped`] if a conversion fails, or if the results of repeated conversions differ.
    pub(super) async fn check_deterministic(&self, object: &Value, to: &str) -> Result<(), Skipped> {
        let (_, first) = self.converted(object, to).await?;
        for _ in 0..2 {
            if self.converted(object, to).await?.1 != first {
                return Err(Skipped::not_checked(NOT_DETERMINISTIC));
            }
        }
        Ok(())
    }

    /// Runs `looks` on each object and target version, and minimizes the object of the first finding of each kind.
    pub(super) async fn each(&self, looks: CaseProbeFn) -> ConversionObservations {
        let mut seen: ConversionObservations = Vec::new();
        let mut kinds: Vec<String> = Vec::new();
        for case in self.pairs().into_iter().flatten() {
            let observed = looks(self, &case).await;
            let Ok(violations) = observed else {
                seen.push((None, observed));
                continue;
            };
            if violations.is_empty() {
                seen.push((None, Ok(Vec::new())));
            }
            for violation in violations {
                if kinds.contains(&violation.kind) {
                    seen.push((Some(case.object.clone()), Ok(vec![violation])));
                } else {
                    kinds.push(violation.kind.clone());
                    let (object, violation) = self.smallest(looks, case.clone(), violation).await;
                    seen.push((Some(object), Ok(vec![violation])));
                }
            }
        }
        if seen.is_empty() {
            seen.push((None, Err(self.nothing())));
        }
        seen
    }

    async fn smallest(&self, looks: CaseProbeFn, case: Case, found: Violation) -> (Value, Violation) {
        let mut smallest = found;
        let mut shrinking = Shrinking::new(case.object.clone(), OFFERS);
        // Restored defaults are not progress.
        let is_valid = |object: &Value| {
            object.pointer("/metadata/uid").is_some()
                && self.converter.valid(object.clone()).is_some_and(|valid| valid == *object)
        };
        while let Some(smaller) = shrinking.next(is_valid) {
            let case = Case { object: smaller.clone(), ..case.clone() };
            let Ok(violations) = looks(self, &case).await else { continue };
            if let Some(again) = violations.into_iter().find(|found| found.kind == smallest.kind) {
                smallest = again;
                shrinking.keep();
            }
        }
        (shrinking.into_object(), smallest)
    }
}
