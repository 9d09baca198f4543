//! Defines steps that run checks of `admit verify` on the webhooks of a scenario.

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

use super::failure::{HELP, NOTE, Outcome, StepFailure};
use super::names::Names;
use super::parameter::Admission;
use super::world::World;

/// The number of objects to check in parallel.
const JOBS: usize = 8;
/// The ID of the idempotence check.
const IDEMPOTENCE: &str = "V01";

/// A resolver for the Services of `--service`.
struct Services(Vec<(ServiceName, (String, u16))>);

impl ServiceResolver for Services {
    fn resolve(&self, service: &ServiceReference) -> Result<(String, u16), String> {
        let is_it = |name: &ServiceName| name.namespace == service.namespace && name.name == service.name;
        let known = self.0.iter().find(|(name, _)| is_it(name));
        known.map(|(_, address)| address.clone()).ok_or_else(|| {
            format!(
                "missing address of the Service: pass --service {}/{}=HOST:PORT",
                service.namespace, service.name
            )
        })
    }
}

/// The result of a check for one webhook, and its findings.
struct WebhookResult {
    result: CheckResult,
    findings: Vec<Finding>,
    /// The reason why no object was sent to the webhook.
    uncalled: Option<String>,
}

impl World {
    /// Runs a check on a webhook of the scenario, with all built-in objects of a kind, or with representative objects.
    ///
    /// `admit verify` without options examines the same representative objects.
    async fn verify(
        &mut self,
        step: &Step,
        check: &'static Check,
        short: &str,
        kind: Option<&str>,
    ) -> Outcome<WebhookResult> {
        self.install().await?;
        let name = Names::webhook(short);
        let subjects: Vec<Subject> = Subject::from_configurations(&self.installed_configurations())?
            .into_iter()
            .filter(|subject| subject.webhook.id.name == name)
            .collect();
        let Some(subject) = subjects.first().map(Subject::name) else {
            return Err(StepFailure::new(format!("unknown webhook \"{short}\" ({name})")));
        };
        let services = &self.target()?.services;
        let services =
            Services(services.iter().map(|(name, address)| (name.clone(), address.clone())).collect());
        let namespaces = corpus::namespaces(&subjects);
        let user = UserInfo { username: "admit-verify".to_owned(), ..UserInfo::default() };
        let cluster_fixture = ClusterFixture::new(self.definitions.iter().chain(&namespaces));
        let environment = Environment::new(Arc::new(services), cluster_fixture, user);
        let extent = if kind.is_some() { corpus::Extent::Whole } else { corpus::Extent::Representative };
        let objects: Vec<Value> = corpus::built_in(&subjects, &self.definitions, &environment, extent)
            .filter(|object| kind.is_none_or(|kind| object["kind"] == kind))
            .collect();
        let plan = Plan { jobs: JOBS, ..Plan::new(environment, subjects, [check]) };
        // All scenarios share one task.
        let run = harness::verify::run(plan, objects.into_iter().map(Ok::<_, Infallible>));
        let report = tokio::spawn(run).await?.unwrap_or_else(|never| match never {});
        let outcome = result_for(report, &subject).ok_or_else(|| {
            let kind = kind.unwrap_or("any kind");
            StepFailure::new(format!("{} does not apply to \"{short}\", or no rule matches {kind}", check.id))
        })?;
        self.tell(step, format!("{} for \"{short}\": {}", check.id, summary(&outcome)));
        Ok(outcome)
    }

    /// Returns the scenario's webhook configurations as they are installed.
    fn installed_configurations(&self) -> Vec<Value> {
        let mut configurations = self.installation.own.clone();
        for own in &mut configurations {
            for entry in own.get_mut("webhooks").and_then(Value::as_array_mut).into_iter().flatten() {
                self.apply_changes(entry);
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
                "metadata": {"name": "scenario"}, "webhooks": self.entries(admission),
            }));
        }
        configurations
    }
}

/// Returns the check's result for `webhook`, or the only result if the check examines all webhooks together.
fn result_for(mut report: Report, webhook: &str) -> Option<WebhookResult> {
    let mut check = report.checks.pop()?;
    let own = check.results.iter().position(|result| result.webhook == webhook);
    let position = own.or_else(|| (check.results.len() == 1).then_some(0))?;
    let result = check.results.swap_remove(position);
    check.findings.retain(|finding| finding.webhooks.contains_key(&result.webhook));
    let tried = report.webhooks.get(webhook);
    let uncalled = tried.and_then(|tried| {
        let mismatches = tried.mismatches.iter().max_by_key(|(_, count)| **count).map(|(reason, _)| reason);
        tried.rule_errors.first().or(mismatches).cloned()
    });
    Some(WebhookResult { result, findings: check.findings, uncalled })
}

/// Formats a result without details that differ between runs.
fn summary(outcome: &WebhookResult) -> String {
    let result = &outcome.result;
    match result.verdict {
        Tally::Passed => format!("passed {}", times(result.held)),
        Tally::Found => {
            let kinds: Vec<&str> = outcome.findings.iter().map(|finding| finding.kind.as_str()).collect();
            format!("found {}", kinds.join("; "))
        }
        Tally::NotChecked => format!("not checked: {}", reasons(result)),
        Tally::NotExercised => format!("not exercised: {}", reasons(result)),
        Tally::NotApplicable => format!("not applicable: {}", reasons(result)),
    }
}

fn times(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

fn reasons(result: &CheckResult) -> String {
    let all = result.not_checked.keys().chain(result.not_exercised.keys());
    let all = all.chain(result.not_applicable.keys());
    all.cloned().collect::<Vec<_>>().join("; ")
}

/// Formats every finding with its differences and the smallest object that reproduces it.
fn findings(outcome: &WebhookResult) -> String {
    let mut text = String::new();
    for finding in &outcome.findings {
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
            let _ = write!(text, "\nsmallest object that reproduces it:\n{}", super::document::show(object));
        }
    }
    text
}

/// Returns an error unless the check completed without findings, and the objects exercised it.
fn expect_pass(outcome: &WebhookResult) -> Outcome {
    match outcome.result.verdict {
        Tally::Passed => Ok(()),
        Tally::Found => Err(StepFailure::new(format!("expected no finding{}", findings(outcome)))),
        Tally::NotChecked | Tally::NotExercised | Tally::NotApplicable => {
            let mut message = summary(outcome);
            let see = message.rsplit_once(": see V").map(|(_, number)| format!("V{number}"));
            if let Some(uncalled) = &outcome.uncalled {
                let _ = write!(message, "\n{NOTE}the webhook is not called: {uncalled}");
            }
            if let Some(check) = see.filter(|id| checks::find(id).is_some()) {
                let _ = write!(message, "\n{HELP}`admit verify --explain {check}` explains what to correct");
            }
            if message.contains("--api-server-out") {
                message.push_str(
                    "\nhelp: use `admit verify --api-server-out FILE`; `admit run` does not record what a webhook writes",
                );
            }
            Err(StepFailure::new(message))
        }
    }
}

/// Returns an error unless a finding contains `expected`.
fn expect_finding(outcome: &WebhookResult, expected: &str) -> Outcome {
    let says = |text: &str| text.contains(expected);
    let is_said = |finding: &Finding| {
        let consequences = finding.consequences.iter();
        says(&finding.kind)
            || says(&finding.message)
            || consequences.into_iter().any(|it| says(&it.kind) || says(&it.message))
    };
    if outcome.findings.iter().any(is_said) {
        return Ok(());
    }
    let found =
        if outcome.findings.is_empty() { format!("\n{}", summary(outcome)) } else { findings(outcome) };
    Err(StepFailure::new(format!("expected a finding that contains \"{expected}\"{found}")))
}

fn find_check(id: &str) -> Outcome<&'static Check> {
    checks::find(id).ok_or_else(|| {
        StepFailure::new(format!("unknown check `{id}`: `admit verify --list` lists all checks"))
    })
}

#[then(expr = "{string} is idempotent")]
async fn is_idempotent(world: &mut World, step: &Step, short: String) -> Outcome {
    expect_pass(&world.verify(step, find_check(IDEMPOTENCE)?, &short, None).await?)
}

#[then(expr = "{string} is idempotent for every {word} in the corpus")]
async fn is_idempotent_for(world: &mut World, step: &Step, short: String, kind: String) -> Outcome {
    let kind = world.resource_named(&kind).await?.kind;
    expect_pass(&world.verify(step, find_check(IDEMPOTENCE)?, &short, Some(&kind)).await?)
}

#[then(expr = "{string} is not idempotent")]
async fn is_not_idempotent(world: &mut World, step: &Step, short: String) -> Outcome {
    expect_finding(&world.verify(step, find_check(IDEMPOTENCE)?, &short, None).await?, "")
}

#[then(expr = "the check {word} passes for {string}")]
async fn passes(world: &mut World, step: &Step, id: String, short: String) -> Outcome {
    expect_pass(&world.verify(step, find_check(&id)?, &short, None).await?)
}

#[then(expr = "the check {word} reports {string} for {string}")]
async fn reports(world: &mut World, step: &Step, id: String, expected: String, short: String) -> Outcome {
    expect_finding(&world.verify(step, find_check(&id)?, &short, None).await?, &expected)
}
