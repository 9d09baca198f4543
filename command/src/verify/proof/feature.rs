//! Creates the feature of a proof: the requests of a finding as steps of `admit run`, with their outcomes.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use harness::config::{self, FailurePolicy, ReinvocationPolicy};
use harness::event::{Phase, Round};
use harness::json::{at, set, text};
use harness::server::ClusterFixture;
use harness::verify::Subject;
use harness::verify::report::{CheckReport, Finding};
use harness::verify::sample_request::{End, SampleCall, SampleRequest, SampleWebhook, WebhookRef};
use output::OneLine;
use serde_json::{Value, json};

use super::claims::{self, Claim};
use super::{id, own_configuration, plain, yaml};
use super::{pattern, sending};
use crate::steps::contains;

/// The name of the file with the feature.
pub(super) const FILE: &str = "proof.feature";
/// The minimum length in bytes at which an object is written to a separate file.
const LONG: usize = 16 * 1024;
/// The tags of a feature that requires exclusive use of a server that was started for the run.
pub(super) const OUTSIDE: &str = "@in-process @envtest @serial";
/// The name of the file with custom resource definitions.
const DEFINITIONS: &str = "definitions.yaml";

/// An address that refuses connections, because port 1 is normally unused.
const NOBODY: &str = "https://127.0.0.1:1/";

/// A feature and the manifests that its steps refer to.
#[derive(Debug)]
pub(super) struct ProofFeature {
    pub(super) text: String,
    /// The contents of the manifests, by file name.
    pub(super) manifests: BTreeMap<String, String>,
}

/// The webhooks and objects that surround the requests.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting<'a> {
    pub(super) subjects: &'a [Subject],
    /// The namespaces and custom resource definitions that exist in addition to the objects of the requests.
    pub(super) around: &'a [Value],
}

/// A request and the steps that assert its result.
struct Scenario<'a> {
    shown: &'a SampleRequest,
    then: Vec<Then>,
}

/// A `Then` step, and the object in its doc string.
type Then = (String, Option<Value>);

/// Creates the feature of a finding.
///
/// # Errors
/// Returns the reason why there is no feature, as the end of a sentence.
pub(super) fn feature(
    check: &CheckReport,
    finding: &Finding,
    setting: Setting<'_>,
) -> Result<ProofFeature, String> {
    let scenarios = scenarios(&check.id, finding, setting)?;
    let mut manifests = BTreeMap::new();
    let mut body = String::new();
    for (number, scenario) in (1..).zip(&scenarios) {
        let request = &scenario.shown.request;
        let met: Vec<&str> = scenario.shown.webhooks.iter().map(|webhook| short(&webhook.webhook)).collect();
        let (operation, mut resource) = (request.operation, request.resource.resource.clone());
        if !request.subresource.is_empty() {
            resource = format!("{resource}/{}", request.subresource);
        }
        let _ = write!(body, "\n\n  Scenario: {number}. {operation} {resource}: {}", met.join(", then "));
        for step in steps(number, scenario, setting, &mut manifests)? {
            body.push_str(&step);
        }
    }
    let mut text = format!("# {}\n# README.md says how to run this.\n", OneLine(&finding.message));
    if scenarios.iter().any(|scenario| sending::is_outside(scenario.shown)) {
        text.push_str("# Webhooks are called for objects outside of the scenario's namespace.\n");
        let _ = writeln!(text, "{OUTSIDE}");
    } else if manifests.contains_key(DEFINITIONS) {
        text.push_str("# CustomResourceDefinitions are cluster-scoped, so other scenarios wait.\n@serial\n");
    }
    let _ = write!(text, "Feature: {} {}", check.id, OneLine(&check.title));
    text.push_str(&body);
    text.push('\n');
    Ok(ProofFeature { text, manifests })
}

/// Returns the requests that show the finding, each with its assertions.
fn scenarios<'a>(
    check: &str,
    finding: &'a Finding,
    setting: Setting<'_>,
) -> Result<Vec<Scenario<'a>>, String> {
    let requests = &finding.requests;
    let claim = claims::claim(check, &finding.kind);
    if let Claim::None(reason) = claim {
        return Err(reason.to_owned());
    }
    let Some(shown) = requests.last() else {
        return Err("no request that an API server makes shows it".to_owned());
    };
    if requests.iter().any(|shown| shown.end == End::Unknown) {
        return Err("admit does not support the outcome of its requests".to_owned());
    }
    if requests.iter().any(|shown| shown.end != End::Admitted) {
        return Ok(requests.iter().map(|shown| Scenario { shown, then: ending(shown, setting) }).collect());
    }
    let then = match claim {
        Claim::Change => changes(shown)?,
        Claim::Drift => {
            let stored = shown.request.old_object.as_ref().unwrap_or(&Value::Null);
            let part = lost(stored, shown)?;
            if part.pointer("/metadata/name").is_some() {
                return Err(sending::RENAMED.to_owned());
            }
            if shown.request.kind.kind == "Pod" && part.get("spec").is_some() {
                return Err("kube-apiserver rejects changes of a Pod's spec by any user".to_owned());
            }
            let mut then = changes(shown)?;
            then.push(("the object does not contain:".to_owned(), Some(part)));
            then
        }
        Claim::LostField => {
            let sent = shown.request.object.as_ref().unwrap_or(&Value::Null);
            vec![("the object does not contain:".to_owned(), Some(lost(sent, shown)?))]
        }
        Claim::LostAddition => {
            let added = added(shown).ok_or("it does not involve another webhook")?;
            vec![("the object does not contain:".to_owned(), Some(added))]
        }
        Claim::Difference => return differing(requests),
        Claim::Dropped => {
            let mut then = changes(shown)?;
            then.push(("the object does not contain:".to_owned(), Some(dropped(shown)?)));
            then
        }
        Claim::Ending | Claim::None(_) => {
            return Err("the API server accepts the response of the webhook".to_owned());
        }
    };
    Ok(vec![Scenario { shown, then }])
}

/// Returns steps that assert whether the request is admitted or rejected, and why.
fn ending(shown: &SampleRequest, setting: Setting<'_>) -> Vec<Then> {
    let step = |text: String| (text, None);
    let refused = |code: i32| step(format!("the request is rejected with {code}"));
    match &shown.end {
        End::Admitted | End::Unknown => vec![step("the request is admitted".to_owned())],
        End::Refused { code } => vec![refused(*code)],
        End::Denied { webhook, code, message } => {
            let mut says = format!("admission webhook \"{}\" denied the request", short(webhook));
            if *message == format!("{says} without explanation") {
                says.clone_from(message);
            }
            vec![refused(*code), step(format!("the message contains '{says}'"))]
        }
        End::Failed { webhook } | End::NoConditions { webhook, .. } if fails_open(webhook, setting) => {
            let mut then = vec![step("the request is admitted".to_owned())];
            // The audit log does not record match conditions without a value.
            if matches!(shown.end, End::Failed { .. }) {
                then.push(step(format!("the audit log records that \"{}\" failed open", short(webhook))));
            }
            then
        }
        End::Failed { webhook } => {
            vec![step(format!("the message contains 'failed calling webhook \"{}\"'", short(webhook)))]
        }
        End::NoConditions { reason, .. } => {
            // Expressions contain quotes, which would have to be escaped in the step.
            let plain = reason.split(['\'', '\\', '\n']).max_by_key(|part| part.len()).unwrap_or_default();
            vec![step(format!("the message contains '{}'", plain.trim()))]
        }
    }
}

fn fails_open(webhook: &WebhookRef, setting: Setting<'_>) -> bool {
    let subject = setting.subjects.iter().find(|subject| webhook.is(subject));
    subject.is_some_and(|subject| subject.webhook.failure_policy == FailurePolicy::Ignore)
}

/// Returns steps that assert which webhooks changed the object in the sample request.
fn changes(shown: &SampleRequest) -> Result<Vec<Then>, String> {
    let is_other =
        |call: &&SampleCall| shown.webhooks.iter().any(|it| it.is_other && it.webhook == call.webhook);
    let changing: Vec<Then> = shown
        .calls
        .iter()
        .filter(|call| call.changed && !is_other(call))
        .map(|call| {
            let round = match call.round {
                Round::First => "first",
                Round::Second => "second",
            };
            let name = short(&call.webhook);
            (format!("the audit log records that \"{name}\" changed the object in the {round} round"), None)
        })
        .collect();
    if changing.is_empty() {
        return Err("the API server does not see a change of the object".to_owned());
    }
    Ok(changing)
}

/// Returns the part of `object` that the resulting object lacks.
fn lost(object: &Value, shown: &SampleRequest) -> Result<Value, String> {
    let found = shown.object.as_ref().unwrap_or(&Value::Null);
    pattern::missing(object, found)
        .ok_or_else(|| "the result contains everything that the object had before".to_owned())
}

/// Returns the part of the resulting object that the webhooks added.
fn dropped(shown: &SampleRequest) -> Result<Value, String> {
    let [before, after] =
        [&shown.request.object, &shown.object].map(|it| it.as_ref().unwrap_or(&Value::Null));
    pattern::missing(after, before).ok_or_else(|| "the webhook adds nothing that could be dropped".to_owned())
}

/// Returns the part of the object that the other webhook added. admit simulated this webhook.
fn added(shown: &SampleRequest) -> Option<Value> {
    let other = shown.webhooks.iter().find(|webhook| webhook.is_other)?;
    let call = shown.calls.iter().find(|call| call.webhook == other.webhook)?;
    let operation = call.patch.last()?;
    Some(pattern::at(operation.get("path")?.as_str()?, operation.get("value")?))
}

/// Returns scenarios that assert that one object contains a part that the other does not.
fn differing(requests: &[SampleRequest]) -> Result<Vec<Scenario<'_>>, String> {
    let objects: Vec<(&SampleRequest, &Value)> =
        requests.iter().filter_map(|shown| Some((shown, shown.object.as_ref()?))).collect();
    let [(_, one), (_, other), ..] = objects.as_slice() else {
        return Err("there are no two objects to compare".to_owned());
    };
    let part = pattern::missing(one, other).or_else(|| pattern::missing(other, one));
    let part = part.ok_or("the objects differ only in the order of lists")?;
    let scenarios = objects.iter().map(|(shown, object)| {
        let verb = if contains(&part, object) { "contains" } else { "does not contain" };
        Scenario { shown, then: vec![(format!("the object {verb}:"), Some(part.clone()))] }
    });
    Ok(scenarios.collect())
}

/// Returns the steps of a scenario. Also adds the manifests for these steps to `manifests`.
fn steps(
    number: usize,
    scenario: &Scenario<'_>,
    setting: Setting<'_>,
    manifests: &mut BTreeMap<String, String>,
) -> Result<Vec<String>, String> {
    let SampleRequest { request, webhooks, .. } = scenario.shown;
    if let Some(reason) = sending::obstacle(request) {
        return Err(reason);
    }
    let mut steps = Steps::default();
    if sending::is_namespace(request) {
        steps.given("webhooks are also called for Namespace objects", None);
    } else if scenario.shown.is_about_namespace && !request.namespace.is_empty() {
        steps.given(&format!("webhooks are also called in the namespace \"{}\"", request.namespace), None);
    }
    for (key, value) in labels_of(scenario.shown, setting.around) {
        steps.given(&format!("the namespace has the label \"{key}={value}\""), None);
    }
    let definitions: Vec<String> =
        setting.around.iter().filter(|it| defines(it, &request.resource.group)).map(yaml).collect();
    if !definitions.is_empty() {
        manifests.insert(DEFINITIONS.to_owned(), definitions.join("---\n"));
        steps.given(&format!("the objects in the file \"{DEFINITIONS}\" exist"), None);
    }
    let other = webhooks.iter().position(|webhook| webhook.is_other);
    for (position, webhook) in webhooks.iter().enumerate() {
        if webhook.is_other {
            let name = short(&webhook.webhook);
            let version = request.kind.api_version();
            steps.given(
                &format!("a mutating webhook \"{name}\" for {} in {version}", request.resource.resource),
                None,
            );
            let call = scenario.shown.calls.iter().find(|call| call.webhook == webhook.webhook);
            let patch = call
                .map(|call| Value::from(call.patch.clone()))
                .filter(|patch| *patch != Value::Array(Vec::new()));
            if patch.is_some() {
                steps.given(&format!("\"{name}\" patches the object:"), patch);
            }
            continue;
        }
        let place = if webhooks.len() == 1 {
            None
        } else {
            Some((position, other.is_some_and(|other| other < position)))
        };
        let (name, manifest) = manifest(webhook, place, setting)?;
        steps.given(&format!("the objects in the file \"{name}\" exist"), None);
        manifests.insert(name, manifest);
    }
    if request.subresource.is_empty() {
        sending::of_object(&mut steps, number, scenario.shown, manifests);
    } else {
        sending::of_subresource(&mut steps, request, &ClusterFixture::new(setting.around))?;
    }
    for (position, (step, part)) in scenario.then.iter().enumerate() {
        steps.add(if position == 0 { "Then" } else { "And" }, step, part.clone());
    }
    Ok(steps.0)
}

/// Adds an object that is too long for a doc string to `manifests`, and returns the file name.
///
/// Returns `None` if the object is short enough.
pub(super) fn long(object: &Value, name: String, manifests: &mut BTreeMap<String, String>) -> Option<String> {
    let text = yaml(object);
    if text.len() < LONG {
        return None;
    }
    manifests.insert(name.clone(), text);
    Some(name)
}

/// The lines of a scenario's steps.
#[derive(Default)]
pub(super) struct Steps(Vec<String>);

impl Steps {
    pub(super) fn given(&mut self, step: &str, object: Option<Value>) {
        let keyword = if self.0.is_empty() { "Given" } else { "And" };
        self.add(keyword, step, object);
    }

    pub(super) fn add(&mut self, keyword: &str, step: &str, object: Option<Value>) {
        let mut text = format!("\n    {keyword} {step}");
        if let Some(object) = object {
            text.push_str("\n      \"\"\"yaml");
            for line in yaml(&object).trim_end().replace("\"\"\"", "\\\"\\\"\\\"").lines() {
                let _ = write!(text, "\n      {line}");
            }
            text.push_str("\n      \"\"\"");
        }
        self.0.push(text);
    }
}

/// Returns the name and the content of a manifest with the configuration of `webhook` only.
///
/// If there are other webhooks, `place` contains the webhook's position in the call order, and whether it is called
/// after the webhook that the feature defines. Configurations are called in alphabetical order, and the name of the
/// feature's configuration begins with `admit-`.
fn manifest(
    webhook: &SampleWebhook,
    place: Option<(usize, bool)>,
    setting: Setting<'_>,
) -> Result<(String, String), String> {
    let subject = setting.subjects.iter().find(|subject| webhook.webhook.is(subject));
    let subject = subject.ok_or("it is about a webhook that is not in the configurations")?;
    let mut configuration = own_configuration(subject);
    if let Some(upgraded) = config::upgraded(&configuration) {
        if !config::validate(&upgraded).is_empty() {
            return Err("API servers reject its configuration, which uses v1beta1".to_owned());
        }
        configuration = upgraded;
    }
    if webhook.is_down
        && let Some(webhook) = configuration.pointer_mut("/webhooks/0")
    {
        set(webhook, &["clientConfig"], json!({ "url": NOBODY }));
    }
    let mut file: String = id(subject).chars().map(plain).collect();
    if subject.has_namesake {
        file.push_str(match subject.webhook.phase {
            Phase::Mutating => "-mutating",
            Phase::Validating => "-validating",
        });
    }
    if webhook.is_down {
        file.push_str("-down");
    }
    if let Some((position, is_after)) = place {
        let prefix = format!("{}{position}", if is_after { "z" } else { "0" });
        let name = format!("{prefix}-{}", subject.webhook.id.configuration);
        set(&mut configuration, &["metadata", "name"], name);
        file = format!("{prefix}-{file}");
    }
    if webhook.reinvocation_policy != subject.webhook.reinvocation_policy {
        let policy = match webhook.reinvocation_policy {
            ReinvocationPolicy::Never => "Never",
            ReinvocationPolicy::IfNeeded => "IfNeeded",
        };
        if let Some(webhook) = configuration.pointer_mut("/webhooks/0") {
            set(webhook, &["reinvocationPolicy"], policy);
        }
        file = format!("{file}-{policy}");
    }
    Ok((format!("{file}.yaml"), yaml(&configuration)))
}

/// Returns the labels of the request's namespace if the namespace of the scenario can replace it.
///
/// The label that the server sets is omitted.
fn labels_of<'a>(shown: &'a SampleRequest, around: &'a [Value]) -> impl Iterator<Item = (&'a str, &'a str)> {
    let is_another = !shown.is_about_namespace && !sending::is_namespace(&shown.request);
    let namespace = Some(&shown.request.namespace).filter(|_| is_another);
    let known = around.iter().find(move |it| {
        text(it, &["kind"]) == "Namespace"
            && namespace.is_some_and(|namespace| text(it, &["metadata", "name"]) == namespace)
    });
    let labels =
        known.and_then(|namespace| at(namespace, &["metadata", "labels"]).as_object()).into_iter().flatten();
    let labels = labels.filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)));
    labels.filter(|(key, _)| *key != "kubernetes.io/metadata.name")
}

fn defines(object: &Value, group: &str) -> bool {
    text(object, &["kind"]) == "CustomResourceDefinition" && text(object, &["spec", "group"]) == group
}

/// Returns the webhook's name without its configuration, as steps use it.
fn short(webhook: &WebhookRef) -> &str {
    &webhook.id.name
}
