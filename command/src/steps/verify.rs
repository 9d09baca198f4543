//! What the checks of `admit verify` say about a webhook of the scenario.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::sync::Arc;

use cucumber::then;
use gherkin::Step;
use harness::attributes::UserInfo;
use harness::client::ServiceResolver;
use harness::config::ServiceReference;
use harness::server::{ClusterFixture, ServiceName};
use harness::verify::report::{CheckResult, Finding, Report, Tally};
use harness::verify::{Check, Environment, Plan, Subject, checks, corpus};
use serde_json::{Value, json};

use super::failure::{Outcome, StepFailure};
use super::names::Names;
use super::parameter::Admission;
use super::world::World;

/// How many objects are tried at a time.
const JOBS: usize = 8;
/// The check of idempotence.
const IDEMPOTENT: &str = "V01";

/// Knows the services of `--service`.
struct Services(Vec<(ServiceName, (String, u16))>);

impl ServiceResolver for Services {
    fn resolve(&self, service: &ServiceReference) -> Result<(String, u16), String> {
        let is_it = |name: &ServiceName| name.namespace == service.namespace && name.name == service.name;
        let known = self.0.iter().find(|(name, _)| is_it(name));
        known.map(|(_, address)| address.clone()).ok_or_else(|| {
            format!(
                "no address is given for the service: add --service {}/{}=HOST:PORT",
                service.namespace, service.name
            )
        })
    }
}

/// What a check says of a webhook.
struct About {
    result: CheckResult,
    findings: Vec<Finding>,
}

impl World {
    /// Asks a check about one webhook of the scenario, with the built-in objects of one kind, or of all.
    async fn verify(
        &mut self,
        step: &Step,
        check: &'static Check,
        short: &str,
        kind: Option<&str>,
    ) -> Outcome<About> {
        self.install().await?;
        let name = Names::webhook(short);
        let subjects: Vec<Subject> = Subject::of(&self.declared()?)?
            .into_iter()
            .filter(|subject| subject.webhook.id.name == name)
            .collect();
        let Some(subject) = subjects.first().map(Subject::name) else {
            return Err(StepFailure::new(format!(
                "no webhook of the scenario is called \"{short}\" ({name})"
            )));
        };
        let services = &self.target()?.services;
        let services =
            Services(services.iter().map(|(name, address)| (name.clone(), address.clone())).collect());
        let namespace = corpus::namespace(&subjects);
        let user = UserInfo { username: "admit-verify".to_owned(), ..UserInfo::default() };
        let cluster_fixture = ClusterFixture::new(self.definitions.iter().chain([&namespace]));
        let environment = Environment::new(Arc::new(services), cluster_fixture, user);
        let objects: Vec<Value> = corpus::built_in(&subjects, &self.definitions, &environment)
            .filter(|object| kind.is_none_or(|kind| object["kind"] == kind))
            .collect();
        let plan = Plan { jobs: JOBS, ..Plan::new(environment, subjects, [check]) };
        // All scenarios share one task.
        let run = harness::verify::run(plan, objects.into_iter().map(Ok::<_, Infallible>));
        let report = tokio::spawn(run).await?.unwrap_or_else(|never| match never {});
        let about = about(report, &subject).ok_or_else(|| {
            let kind = kind.unwrap_or("any kind");
            StepFailure::new(format!("{} is not about \"{short}\", or no rule matches {kind}", check.id))
        })?;
        self.tell(step, format!("{} for \"{short}\": {}", check.id, said(&about)));
        Ok(about)
    }

    /// The scenario's configurations as they are installed.
    fn declared(&self) -> Outcome<Vec<Value>> {
        let mut configurations = self.installation.own.clone();
        for own in &mut configurations {
            for entry in own.get_mut("webhooks").and_then(Value::as_array_mut).into_iter().flatten() {
                self.confine(entry);
            }
        }
        for admission in [Admission::Mutating, Admission::Validating] {
            let kind = match admission {
                Admission::Mutating => "MutatingWebhookConfiguration",
                Admission::Validating => "ValidatingWebhookConfiguration",
            };
            configurations.push(json!({
                "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
                "metadata": {"name": "scenario"}, "webhooks": self.entries(admission)?,
            }));
        }
        Ok(configurations)
    }
}

/// What the only check of a report says of a webhook, or of all together where it is about that.
fn about(mut report: Report, webhook: &str) -> Option<About> {
    let mut check = report.checks.pop()?;
    let own = check.results.iter().position(|result| result.webhook == webhook);
    let position = own.or_else(|| (check.results.len() == 1).then_some(0))?;
    let result = check.results.swap_remove(position);
    check.findings.retain(|finding| finding.webhooks.contains_key(&result.webhook));
    Some(About { result, findings: check.findings })
}

/// What was seen, without what differs from run to run.
fn said(about: &About) -> String {
    let result = &about.result;
    match result.verdict {
        Tally::Passed => format!("held {} times", result.held),
        Tally::Found => {
            let kinds: Vec<&str> = about.findings.iter().map(|finding| finding.kind.as_str()).collect();
            format!("found {}", kinds.join("; "))
        }
        Tally::NotChecked => format!("not checked: {}", reasons(result)),
        Tally::NotApplicable => format!("not applicable: {}", reasons(result)),
    }
}

fn reasons(result: &CheckResult) -> String {
    let all = result.not_checked.keys().chain(result.not_applicable.keys());
    all.cloned().collect::<Vec<_>>().join("; ")
}

/// Every finding, with the smallest object that shows it and what differs.
fn findings(about: &About) -> String {
    let mut text = String::new();
    for finding in &about.findings {
        let _ = write!(text, "\n{}", finding.message);
        for difference in &finding.differences {
            let _ = write!(text, "\n  {}", difference.path);
            for (sign, value) in [('-', &difference.expected), ('+', &difference.found)] {
                if let Some(value) = value {
                    let _ = write!(text, "\n    {sign} {value}");
                }
            }
        }
        if let Some(object) = &finding.object {
            let _ = write!(text, "\nthe smallest object that shows it:\n{}", super::document::show(object));
        }
    }
    text
}

/// It looked, and found nothing: not to have looked is a failure too.
fn nothing(about: &About) -> Outcome {
    match about.result.verdict {
        Tally::Passed => Ok(()),
        Tally::Found => Err(StepFailure::new(format!("expected no finding{}", findings(about)))),
        Tally::NotChecked | Tally::NotApplicable => Err(StepFailure::new(said(about))),
    }
}

/// It found something that says `expected`.
fn something(about: &About, expected: &str) -> Outcome {
    let says = |text: &str| text.contains(expected);
    if about.findings.iter().any(|finding| says(&finding.kind) || says(&finding.message)) {
        return Ok(());
    }
    let found = if about.findings.is_empty() { format!("\n{}", said(about)) } else { findings(about) };
    Err(StepFailure::new(format!("expected a finding that says \"{expected}\"{found}")))
}

fn known(id: &str) -> Outcome<&'static Check> {
    checks::find(id).ok_or_else(|| {
        StepFailure::new(format!("there is no check `{id}`: `admit verify --list` prints those there are"))
    })
}

#[then(expr = "{string} is idempotent for every {word} in the corpus")]
async fn is_idempotent_for(world: &mut World, step: &Step, short: String, kind: String) -> Outcome {
    let kind = world.resource_called(&kind).await?.kind;
    nothing(&world.verify(step, known(IDEMPOTENT)?, &short, Some(&kind)).await?)
}

#[then(expr = "{string} is not idempotent")]
async fn is_not_idempotent(world: &mut World, step: &Step, short: String) -> Outcome {
    something(&world.verify(step, known(IDEMPOTENT)?, &short, None).await?, "")
}

#[then(expr = "the check {word} finds nothing for {string}")]
async fn finds_nothing(world: &mut World, step: &Step, id: String, short: String) -> Outcome {
    nothing(&world.verify(step, known(&id)?, &short, None).await?)
}

#[then(expr = "the check {word} finds {string} for {string}")]
async fn finds(world: &mut World, step: &Step, id: String, expected: String, short: String) -> Outcome {
    something(&world.verify(step, known(&id)?, &short, None).await?, &expected)
}
