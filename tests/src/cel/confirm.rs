//! Checks that a real kube-apiserver gives the same answers as Kubernetes' own packages.
//!
//! Each expression of a sample becomes the match condition of a webhook. The server rejects the configuration with the
//! compile error, or accepts it. To evaluate accepted conditions that use only `object.spec`, a client writes an object
//! for which an unreachable webhook is called. The write is rejected if the condition is true, succeeds if it is false,
//! and returns the error if the condition fails. For a value that is not boolean, the condition is `EXPRESSION ==
//! VALUE`.

use std::fs;

use http::Method;
use serde_json::{Value, json};

use super::answer::{Answer, Question};
use super::oracle::{Oracle, OracleError, folder};
use super::value_literal::literal;
use crate::case::Kind;
use crate::names::Names;
use crate::random::Random;
use crate::server::{Server, configurations};
use crate::server_error::ServerError;
use crate::transport::{Message, SendError};

/// The compatibility version of a 1.37 server for new expressions.
///
/// It is the previous version, so that the server can be rolled back.
///
/// Source: apiserver `pkg/cel/environment/base.go`, `DefaultCompatibilityVersion`.
const COMPATIBLE: &str = "1.36";
/// The maximum nesting depth of an expression to compare. The parser allows 250 levels.
const DEEP: usize = 200;
const GROUP: &str = "cel.example.com";
const OBJECTS: &str = "/apis/cel.example.com/v1/namespaces/default/things?dryRun=All";

/// The results of comparing expressions with a kube-apiserver.
#[derive(Clone, Debug, Default)]
pub struct Confirmed {
    /// The number of expressions that the server compiled.
    pub compiled: u64,
    /// The number of expressions that were also evaluated.
    pub evaluated: u64,
    /// The differences from the server.
    pub differences: Vec<String>,
}

/// An error that prevents the confirmation.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfirmError {
    /// The server does not start, or rejects a required request.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The server does not answer a request.
    #[error(transparent)]
    Send(#[from] SendError),
    /// Kubernetes' packages cannot be run.
    #[error(transparent)]
    Oracle(#[from] OracleError),
    /// The expressions cannot be read.
    #[error("tests/cel/expressions.jsonl: {0}")]
    Expressions(#[from] std::io::Error),
    /// The contexts or an expression are not valid JSON.
    #[error("tests/cel: {0}")]
    Json(#[from] serde_json::Error),
}

/// A condition that the server evaluates, and the expected result.
struct Evaluation {
    expression: String,
    expected: Expected,
}

enum Expected {
    True,
    False,
    Error(String),
}

/// Compares the answers to `count` expressions with a kube-apiserver from `KUBEBUILDER_ASSETS`. `seed` selects them.
///
/// # Errors
/// Returns an error if the server is unavailable. Differences are not errors.
pub async fn confirm(seed: u64, count: usize) -> Result<Confirmed, ConfirmError> {
    let sample = sample(seed, count)?;
    let answers = Oracle::start(COMPATIBLE)?.ask(&sample)?;
    let server = Server::apiserver().await?;
    let names = Names::random();
    let mut confirmed = Confirmed::default();
    let mut evaluations = Vec::new();
    for answer in &answers {
        // The server closes the connection for an expression that makes Kubernetes' packages panic, and rejects a
        // blank expression before compiling it.
        if answer.failure.is_some() || answer.expr.trim().is_empty() {
            continue;
        }
        confirmed.compiled += 1;
        match refusal(&server, &names, &answer.expr).await? {
            refused if refused == answer.compile_error => evaluations.extend(evaluation(answer)),
            refused => confirmed.differs(&answer.expr, answer.compile_error.as_deref(), refused.as_deref()),
        }
    }
    evaluate(&server, &names, evaluations, &mut confirmed).await?;
    Ok(confirmed)
}

/// Returns `count` random expressions from the file, without duplicates.
fn sample(seed: u64, count: usize) -> Result<Vec<Question>, ConfirmError> {
    let text = fs::read_to_string(folder().join("expressions.jsonl"))?;
    let mut lines: Vec<&str> = text.lines().collect();
    let mut random = Random::new(seed, 0);
    let mut sample = Vec::new();
    while sample.len() < count && !lines.is_empty() {
        let line = lines.swap_remove(random.below(lines.len()));
        let answer: Answer = serde_json::from_str(line)?;
        sample.push(Question::from_answer(&answer));
    }
    Ok(sample)
}

/// Returns the error with which the server rejects a condition; `None` if the server accepts it.
///
/// The error does not contain the text that precedes every error.
async fn refusal(server: &Server, names: &Names, expression: &str) -> Result<Option<String>, SendError> {
    let path = format!("{}?dryRun=All", configurations(Kind::Validating));
    let object = configuration(names, "compile", expression);
    let answer = server.ask(Message::new(Method::POST, path, Some(object))).await?;
    if answer.is_success() {
        return Ok(None);
    }
    let cause = answer.body["details"]["causes"][0]["message"].as_str().unwrap_or_default();
    let error = ["compilation failed: ", "must evaluate to bool but got ", "program instantiation failed: "]
        .iter()
        .find_map(|start| cause.rsplit_once(&format!(": {start}")).map(|(_, rest)| format!("{start}{rest}")));
    Ok(Some(error.unwrap_or_else(|| answer.recorded().to_string())))
}

/// Returns a configuration with an unreachable webhook for objects with the label `condition: SHORT`.
fn configuration(names: &Names, short: &str, expression: &str) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": names.configuration(short)},
        "webhooks": [{
            "name": names.webhook(short),
            "clientConfig": {"url": "https://127.0.0.1:1/"},
            "rules": [{
                "operations": ["CREATE"], "apiGroups": [GROUP], "apiVersions": ["v1"], "resources": ["things"],
            }],
            "objectSelector": {"matchLabels": {"condition": short}},
            "matchConditions": [{"name": "condition", "expression": expression}],
            "failurePolicy": "Fail", "sideEffects": "None", "admissionReviewVersions": ["v1"],
        }],
    })
}

/// Returns the condition to evaluate for an answer, if the server can evaluate it.
fn evaluation(answer: &Answer) -> Option<Evaluation> {
    let rest = answer.expr.replace("object.spec", "");
    let others = ["object", "oldObject", "request", "namespaceObject", "authorizer"];
    if answer.context.is_some() || others.iter().any(|variable| rest.contains(variable)) {
        return None;
    }
    let is_boolean = answer.r#type.as_deref()? == "bool";
    // The comparison itself must not exceed the nesting limit.
    if !is_boolean && answer.expr.matches(['(', '[', '{']).count() > DEEP {
        return None;
    }
    // The text may end with a comment, which a newline ends.
    let compared = |value: &str| format!("dyn({}\n) == {value}", answer.expr);
    let (expression, expected) = match (&answer.run_error, &answer.value) {
        (Some(error), _) if is_boolean => (answer.expr.clone(), Expected::Error(error.clone())),
        (Some(error), _) => (compared("1"), Expected::Error(error.clone())),
        (None, Some(value)) if is_boolean => {
            let expected = if value["bool"] == json!(true) { Expected::True } else { Expected::False };
            (answer.expr.clone(), expected)
        }
        (None, value) => (compared(&literal(value.as_ref()?)?), Expected::True),
    };
    Some(Evaluation { expression, expected })
}

/// Creates a webhook for each condition, and an object for each webhook, and compares the results.
async fn evaluate(
    server: &Server,
    names: &Names,
    evaluations: Vec<Evaluation>,
    confirmed: &mut Confirmed,
) -> Result<(), ConfirmError> {
    let contexts: Value = serde_json::from_str(&fs::read_to_string(folder().join("contexts.json"))?)?;
    let spec = &contexts["update"]["object"]["spec"];
    server.make("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition()).await?;
    server.wait_for("/apis/cel.example.com/v1/things").await?;
    for (number, evaluation) in evaluations.iter().enumerate() {
        let object = configuration(names, &format!("e{number}"), &evaluation.expression);
        if let Err(error) = server.make(&configurations(Kind::Validating), object).await {
            confirmed.differs(&evaluation.expression, None, Some(&error.to_string()));
        }
    }
    server.settle(names, &[Kind::Validating], 0).await?;
    for (number, evaluation) in evaluations.iter().enumerate() {
        let object = json!({
            "apiVersion": "cel.example.com/v1", "kind": "Thing", "spec": spec,
            "metadata": {"name": "thing", "labels": {"condition": format!("e{number}")}},
        });
        let answer = server.ask(Message::new(Method::POST, OBJECTS, Some(object))).await?;
        let message = answer.body["message"].as_str().unwrap_or_default();
        let agrees = match &evaluation.expected {
            Expected::True => message.contains("failed calling webhook"),
            Expected::False => answer.is_success(),
            Expected::Error(error) => message.contains(&format!("resulted in error: {error}")),
        };
        confirmed.evaluated += 1;
        if !agrees {
            let expected = match &evaluation.expected {
                Expected::True => "true",
                Expected::False => "false",
                Expected::Error(error) => error,
            };
            confirmed.differs(&evaluation.expression, Some(expected), Some(message));
        }
    }
    Ok(())
}

/// Returns a custom resource definition that accepts any spec.
fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.cel.example.com"},
        "spec": {
            "group": GROUP, "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                }},
            }],
        },
    })
}

impl Confirmed {
    fn differs(&mut self, expression: &str, expected: Option<&str>, actual: Option<&str>) {
        let (expected, actual) = (expected.unwrap_or("accepted"), actual.unwrap_or("accepted"));
        self.differences.push(format!("{expression}\n    expected {expected}\n    actual   {actual}"));
    }
}

impl std::fmt::Display for Confirmed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for difference in &self.differences {
            writeln!(f, "{difference}")?;
        }
        let Self { compiled, evaluated, differences } = self;
        write!(f, "{compiled} compiled, {evaluated} of them evaluated, {} differ", differences.len())
    }
}
