//! `admit cel --policy`: evaluates admission policies for one request.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use harness::attributes::{Attributes, GroupVersionKind};
use harness::json::text;
use harness::policies::{mutate_by, validate_by};
use harness::policy::{
    self, AnnotationOutcome, ExpressionPart, MutationEffect, ParamRef, PolicyRecord, PolicyRun, Verdict,
};
use harness::server::ClusterFixture;
use harness::verify::operand_types;
use output::{OneLine, lines};
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::input::Input;
use super::report::cost;
use super::{Cel, one};
use crate::documents::{self, Document};
use crate::policy_outcome::applied;
use crate::{ExitCode, Failure, screen};

/// An evaluated expression of a policy.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Evaluated {
    policy: String,
    /// The part of the policy that contains the expression, such as `validation 0`.
    field: String,
    expression: String,
    /// The value in short form. The report contains scalars as JSON, and other values as text.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "scalar_or_text")]
    value: Option<String>,
    cost: u64,
    /// The error of the evaluation.
    #[serde(skip_serializing_if = "Option::is_none")]
    run_error: Option<String>,
    /// The effect of the expression on the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<String>,
}

impl Cel {
    /// Evaluates each policy for the original request, as if it were the only policy.
    pub(super) fn evaluate_policies(&self, policies: &[Document], input: Input) -> Result<ExitCode, Failure> {
        let (request, cluster_fixture) = input.into_request();
        let param_ref = self.param_ref(&cluster_fixture, &request)?;
        let mut all = Vec::new();
        let mut unmatched = Vec::new();
        for policy in policies {
            let stored = accepted(policy, &cluster_fixture)?;
            let mut run = cluster_fixture.evaluation(request.clone());
            let wrong = |error: policy::PolicyError| policy.place.failure(error);
            let record = if text(&stored, &["kind"]) == "MutatingAdmissionPolicy" {
                let parsed = Arc::new(policy::mutating_policy(&stored).map_err(wrong)?);
                mutate_by(&parsed, param_ref.clone(), &mut run)
            } else {
                let parsed = Arc::new(policy::validating_policy(&stored).map_err(wrong)?);
                validate_by(&parsed, param_ref.clone(), &mut run)
            };
            match record {
                Some(record) => all.extend(evaluated(record)?),
                None => unmatched.push(text(&stored, &["metadata", "name"]).to_owned()),
            }
        }
        if unmatched.len() == policies.len() {
            let noun = if policies.len() == 1 { "policy" } else { "policies" };
            return Err(Failure::nothing_run(format!(
                "the matchConstraints of the {noun} do not match the request"
            )));
        }
        for name in unmatched {
            screen::status!(
                "note: the matchConstraints of the policy {} do not match the request",
                output::one_line(&name)
            );
        }
        let failed = all.iter().any(|it| it.run_error.is_some());
        self.output.print(&all, Evaluated::text)?;
        Ok(if failed { ExitCode::Failed } else { ExitCode::Ok })
    }

    /// Stores the param and returns a reference to it.
    fn param_ref(
        &self,
        cluster_fixture: &ClusterFixture,
        request: &Attributes,
    ) -> Result<Option<ParamRef>, Failure> {
        let Some(param) = &self.param else { return Ok(None) };
        let Document { place, object } = one(param)?;
        let own = if request.namespace.is_empty() { &self.namespace } else { &request.namespace };
        if !cluster_fixture.add(&object, own) {
            let kind = GroupVersionKind::from_object(&object);
            let why = format!(
                "the server does not serve {} {}: pass its CustomResourceDefinition with --with FILE",
                kind.api_version(),
                kind.kind
            );
            return Err(place.failure(why));
        }
        Ok(Some(ParamRef {
            name: text(&object, &["metadata", "name"]).to_owned(),
            namespace: text(&object, &["metadata", "namespace"]).to_owned(),
            selector: None,
            denies_if_not_found: true,
        }))
    }
}

/// Reads the policies in a file, which can also contain their bindings.
pub(super) fn read(path: &PathBuf) -> Result<Vec<Document>, Failure> {
    let is_binding =
        |document: &Document| text(&document.object, &["kind"]).ends_with("AdmissionPolicyBinding");
    let mut documents = documents::read(std::slice::from_ref(path))?;
    documents.retain(|document| !is_binding(document));
    if documents.is_empty() {
        return Err(Failure::usage(format!("{}: it does not contain an admission policy", path.display())));
    }
    Ok(documents)
}

/// Returns the policy with its defaults.
fn accepted(policy: &Document, cluster_fixture: &ClusterFixture) -> Result<Value, Failure> {
    let Document { place, object } = policy;
    let kinds = ["ValidatingAdmissionPolicy", "MutatingAdmissionPolicy"];
    if !kinds.contains(&text(object, &["kind"])) {
        return Err(place.failure("expected a ValidatingAdmissionPolicy or a MutatingAdmissionPolicy"));
    }
    let failure = |message: &str| place.failure(message);
    let created = cluster_fixture.create(object.clone(), "", harness::chain::administrator());
    let mut request = created.map_err(|status| failure(&status.message))?;
    cluster_fixture.prepare(&mut request);
    let invalid = cluster_fixture.invalid_fields(&request).map_err(|status| failure(&status.message))?;
    match invalid.first() {
        Some(cause) => {
            let advice = operand_types::advice(&cause.message);
            let help = advice.map(|advice| format!("\nhelp: {advice}")).unwrap_or_default();
            Err(failure(&format!("{}: {}{help}", cause.field, cause.message)))
        }
        None => Ok(request.object.unwrap_or_default()),
    }
}

/// Returns the evaluated expressions in the order of their evaluation.
fn evaluated(record: PolicyRecord) -> Result<Vec<Evaluated>, Failure> {
    let policy = record.policy.to_string();
    let binding = record.bindings.into_iter().next();
    let error = record.error.or_else(|| binding.as_ref()?.error.clone());
    if let Some(error) = error {
        return Err(Failure::usage(format!("the policy cannot be applied: {error}")));
    }
    let run = binding.and_then(|binding| binding.runs.into_iter().next());
    let run = run.ok_or_else(|| Failure::nothing_run("the policy was not evaluated"))?;
    let conditions = run.conditions.iter().flat_map(|evaluation| &evaluation.conditions);
    let mut all: Vec<Evaluated> = conditions
        .map(|condition| Evaluated {
            policy: policy.clone(),
            field: format!("match condition {}", condition.name),
            expression: condition.expression.trim().to_owned(),
            value: condition.value.as_ref().ok().map(ToString::to_string),
            cost: condition.cost,
            run_error: condition.value.as_ref().err().map(ToString::to_string),
            result: None,
        })
        .collect();
    all.extend(run.expressions.iter().map(|expression| Evaluated {
        policy: policy.clone(),
        field: field(&expression.part),
        expression: expression.expression.trim().to_owned(),
        value: expression.value.as_ref().ok().cloned(),
        cost: expression.cost,
        run_error:
            expression.value.as_ref().err().cloned().or_else(|| mutation_error(&run, &expression.part)),
        result: result(&run, &expression.part),
    }));
    Ok(all)
}

/// Serializes a value in short form: as JSON if it is a scalar, otherwise as text.
#[expect(clippy::ref_option, reason = "serde passes a reference to the field")]
fn scalar_or_text<S: Serializer>(value: &Option<String>, serializer: S) -> Result<S::Ok, S::Error> {
    let Some(text) = value else { return serializer.serialize_none() };
    serde_json::from_str(text).unwrap_or_else(|_| Value::from(text.as_str())).serialize(serializer)
}

fn field(part: &ExpressionPart) -> String {
    match part {
        ExpressionPart::Variable(name) => format!("variable {name}"),
        ExpressionPart::Validation(index) => format!("validation {index}"),
        ExpressionPart::MessageExpression(index) => format!("messageExpression of validation {index}"),
        ExpressionPart::AuditAnnotation(key) => format!("audit annotation {key}"),
        ExpressionPart::Mutation(index) => format!("mutation {index}"),
        _ => String::new(),
    }
}

/// Returns the reason why a change of the object failed.
fn mutation_error(run: &PolicyRun, part: &ExpressionPart) -> Option<String> {
    let ExpressionPart::Mutation(index) = part else { return None };
    run.mutations.get(*index)?.outcome.as_ref().err().cloned()
}

/// Describes the effect of an expression on the request.
fn result(run: &PolicyRun, part: &ExpressionPart) -> Option<String> {
    match part {
        ExpressionPart::Validation(index) => {
            let decision = run.decisions.get(*index)?;
            match decision.verdict {
                Verdict::Denied => Some(format!("denied: {} ({})", decision.message, decision.reason)),
                Verdict::Admitted | Verdict::Failed | Verdict::Ignored => None,
            }
        }
        ExpressionPart::AuditAnnotation(key) => {
            let annotation = run.annotations.iter().find(|annotation| annotation.key == *key)?;
            match &annotation.outcome {
                AnnotationOutcome::Published(value) => Some(format!("published: {value}")),
                AnnotationOutcome::Excluded => Some("not published".to_owned()),
                AnnotationOutcome::Failed(_) => None,
            }
        }
        ExpressionPart::Mutation(index) => {
            let effect = run.mutations.get(*index)?.outcome.as_ref().ok()?;
            Some(match effect {
                MutationEffect::TestFailed(error) => format!("{}: {error}", applied(false)),
                MutationEffect::Changed => applied(true).to_owned(),
                MutationEffect::Unchanged => applied(false).to_owned(),
            })
        }
        ExpressionPart::Variable(_) | ExpressionPart::MessageExpression(_) | _ => None,
    }
}

impl Evaluated {
    fn text(&self) -> String {
        let mut text = String::new();
        let _ = writeln!(text, "{}, {}", OneLine(&self.policy), OneLine(&self.field));
        let _ = writeln!(text, "{}", lines(&self.expression));
        let mut line = |name: &str, value: &str| {
            let _ = writeln!(text, "  {name:<6} {}", lines(value));
        };
        if let Some(value) = &self.value {
            line("value", value);
        }
        if let Some(error) = &self.run_error {
            line("error", error);
        }
        line("cost", &cost(self.cost));
        if let Some(result) = &self.result {
            line("result", result);
        }
        text
    }
}
