//! L15: the expressions of policies have a value for every request, and not the same value for all.

use std::sync::Arc;

use kubernetes_admission::admission_run::AdmissionRun;
use kubernetes_admission::attributes::{Attributes, Operation};
use kubernetes_admission::conditions::{
    Condition, EvaluationError, KnownFields, Outcome, constant_error_of, constant_value,
};
use kubernetes_admission::config::FailurePolicy;
use kubernetes_admission::policies::{mutate_by, validate_by};
use kubernetes_admission::policy::{
    Definition, Expression, ExpressionPart, MutatingPolicy, PolicyRecord, PolicyRun, ValidatingPolicy,
    ValidationAction, Verdict,
};
use kubernetes_api_server::ClusterFixture;
use kubernetes_cel::Program;
use kubernetes_types::json::{at, text};
use serde_json::Value;

use super::expression_types::MatchedTypes;
use super::match_conditions::{CORRECT_NAME, MissingField, missing_key, reads_null};
use super::policy_examples::{example_requests, in_every_namespace, single_run};
use super::v55_match_conditions::known_of;
use crate::check::{Audience, Check, Defect, Probe, Repeatability, Severity, Violation};
use crate::manifests::{About, Manifests};
use crate::policies::{Parsed, Policies, PolicyObject};

pub(super) const CHECK: Check = Check {
    id: "L15",
    title: "policy expressions: policy expressions evaluate without an error for every request that the policy \
            matches, and match conditions and validations are not constant",
    severity: Severity::Warning,
    why: "An expression fails if it reads a field that the object does not have, or if an operator or function has no \
          overload for the types of its operands. With failurePolicy Fail, the request is rejected with an error about \
          the expression, even if the object is valid. A match condition that is never true disables the policy, and \
          a validation that is always true denies nothing.",
    help: "Guard optional fields with `has()` or optional syntax, and check `object != null` if the rules match DELETE.",
    source: "KEP-3488; apiserver pkg/admission/plugin/policy/validating/validator.go; apiserver \
             pkg/admission/plugin/cel/condition.go",
    audience: Audience::Policies,
    repeatability: Repeatability::Same,
    probe: Probe::Manifests(About::Policies, run),
};

fn run(manifests: &Manifests<'_>) -> Vec<Defect> {
    let (policies, cluster_fixture) = (manifests.policies(), &manifests.cluster_fixture);
    policies.examine(|object| {
        let Some(definition) = object.definition() else { return Vec::new() };
        let expressions = expressions(object);
        let follows = consequence(object, policies);
        let mut violations = constant(object, &expressions, definition, cluster_fixture, follows);
        violations.extend(undefined(object, definition, cluster_fixture, follows));
        let fails = definition.failure_policy == FailurePolicy::Fail;
        // Without the params, expressions may fail that always have a value.
        if fails && definition.param_kind.is_none() {
            let known: Vec<String> = violations.iter().map(|violation| violation.field.clone()).collect();
            let failing = failing(object, &expressions, cluster_fixture, follows);
            violations.extend(failing.into_iter().filter(|violation| !known.contains(&violation.field)));
        }
        violations
    })
}

/// Returns what happens to a request if an expression fails and the failure policy is `Fail`.
///
/// Source: apiserver pkg/admission/plugin/policy/validating/dispatcher.go, `Dispatch`.
fn consequence(policy: &PolicyObject, policies: &Policies) -> &'static str {
    let actions = policies.bindings_of(policy).filter_map(|binding| match &binding.parsed {
        Some(Parsed::ValidatingBinding(binding)) => Some(&binding.validation_actions),
        _ => None,
    });
    let mut actions = actions.peekable();
    if actions.peek().is_some() && actions.all(|all| !all.contains(&ValidationAction::Deny)) {
        "the error is reported as a violation"
    } else {
        REJECTED
    }
}

/// The effect if a validation of a binding with the action Deny fails, or if an audit annotation fails with any action.
const REJECTED: &str = "the request is rejected";

/// What happens if a message expression fails.
///
/// Source: apiserver pkg/admission/plugin/policy/validating/validator.go, `Validate`.
const OTHER_MESSAGE: &str =
    "the client sees the validation's `message` instead, or its expression if `message` is not set";

/// Returns a violation about a message expression, whose failure does not change the decision.
fn about_message(violation: Violation) -> Violation {
    let why = "If a messageExpression fails, the request is still denied, but the client does not see the intended message.";
    Violation { severity: Some(Severity::Warning), why: Some(why), ..violation }
}

/// Reports fields that no object of the matched kinds has.
fn undefined(
    object: &PolicyObject,
    definition: &Definition,
    cluster_fixture: &ClusterFixture,
    follows: &str,
) -> Vec<Violation> {
    let rules = definition.match_constraints.resource_rules.iter().map(|rule| &rule.rule);
    let Some(mut types) = MatchedTypes::new(rules, cluster_fixture) else { return Vec::new() };
    let (follows, of_annotations) = match definition.failure_policy {
        FailurePolicy::Fail => (follows, REJECTED),
        FailurePolicy::Ignore => ("the error is ignored", "the error is ignored"),
    };
    let spec = at(&object.object, &["spec"]);
    let mut violations = Vec::new();
    for (list, parts) in [
        ("variables", &["expression"][..]),
        ("matchConditions", &["expression"]),
        ("validations", &["expression"]),
        ("validations", &["messageExpression"]),
        ("auditAnnotations", &["valueExpression"]),
        ("mutations", &["applyConfiguration", "expression"]),
        ("mutations", &["jsonPatch", "expression"]),
    ] {
        for (index, entry) in spec.get(list).and_then(Value::as_array).into_iter().flatten().enumerate() {
            let written = text(entry, parts);
            let is_message = parts == ["messageExpression"];
            let follows = if list == "auditAnnotations" { of_annotations } else { follows };
            let found =
                types.violations(written, if is_message { OTHER_MESSAGE } else { follows }).into_iter();
            violations.extend(found.map(|found| {
                let found = if is_message { about_message(found) } else { found };
                let is_ignored = definition.failure_policy == FailurePolicy::Ignore;
                let severity = if is_ignored { Some(Severity::Warning) } else { found.severity };
                Violation { severity, ..found }.at(format!("spec.{list}[{index}].{}", parts.join(".")))
            }));
            if list == "variables" {
                types.declare_variable(text(entry, &["name"]), written);
            }
        }
    }
    violations
}

/// An expression of a policy.
struct PolicyExpression<'a> {
    field: String,
    text: &'a str,
    is_condition: bool,
    /// The expression as a condition. It does not compile if it uses `variables` or `params`.
    condition: Condition,
    /// The program, which may use `variables` and `params`.
    program: Option<&'a Program>,
}

impl PolicyExpression<'_> {
    /// Returns the value if it is the same for all requests with the known fields.
    fn value(&self, known: &KnownFields) -> Option<bool> {
        // Only match conditions see a null `namespaceObject`.
        constant_value(&self.condition, known).filter(|_| !self.text.contains("namespaceObject"))
    }

    /// Returns whether the expression or a variable that it uses may read the field `key`.
    fn may_read(&self, key: &str) -> bool {
        self.text.contains(key) || self.text.contains("variables.")
    }

    fn is_literal(&self) -> bool {
        ["true", "false"].contains(&self.text.trim())
    }
}

/// Returns the match conditions and the validations of a policy.
fn expressions(object: &PolicyObject) -> Vec<PolicyExpression<'_>> {
    let spec = at(&object.object, &["spec"]);
    let conditions = object.definition().map(|definition| &definition.composition.match_conditions);
    let conditions = conditions.into_iter().flatten().map(|it| &it.expression).collect();
    let validations: Vec<&Expression> = match &object.parsed {
        Some(Parsed::Validating(policy)) => policy.validations.iter().map(|it| &it.expression).collect(),
        _ => Vec::new(),
    };
    let mut all = Vec::new();
    for (list, compiled) in [("matchConditions", conditions), ("validations", validations)] {
        for (index, entry) in spec.get(list).and_then(Value::as_array).into_iter().flatten().enumerate() {
            let written = text(entry, &["expression"]);
            all.push(PolicyExpression {
                field: format!("spec.{list}[{index}].expression"),
                text: written,
                is_condition: list == "matchConditions",
                condition: Condition::new("", written),
                program: compiled.get(index).and_then(|it| it.program.as_ref().ok()),
            });
        }
    }
    all
}

/// Reports expressions whose value or error is the same for all requests that the rules match.
fn constant(
    object: &PolicyObject,
    expressions: &[PolicyExpression<'_>],
    definition: &Definition,
    cluster_fixture: &ClusterFixture,
    follows: &str,
) -> Vec<Violation> {
    let constraints = &definition.match_constraints;
    let rules = constraints.resource_rules.iter().map(|rule| &rule.rule);
    let known = rules.flat_map(|rule| known_of(rule, constraints.match_policy, cluster_fixture));
    // kube-apiserver does not apply mutating policies to deletions.
    let is_mutating = matches!(object.parsed, Some(Parsed::Mutating(_)));
    let known: Vec<KnownFields> =
        known.filter(|known| !(is_mutating && known.operation() == Operation::Delete)).collect();
    if known.is_empty() {
        return Vec::new();
    }
    let conditions = || expressions.iter().filter(|expression| expression.is_condition);
    let is_excluded =
        |known: &KnownFields| conditions().any(|condition| condition.value(known) == Some(false));
    if known.iter().all(is_excluded) {
        let never = conditions().find(|it| known.iter().all(|known| it.value(known) == Some(false)));
        let field = never.map_or_else(|| "spec.matchConditions".to_owned(), |it| it.field.clone());
        let message =
            "the match conditions are true for no request that the rules match: the policy has no effect";
        let violation = Violation::new("never applied", message).at(field);
        return vec![violation.with_help("Correct the match conditions or the rules.")];
    }
    let included: Vec<&KnownFields> = known.iter().filter(|known| !is_excluded(known)).collect();
    let mut violations = failing_always(expressions, definition, &included, follows);
    let not_literal = || expressions.iter().filter(|expression| !expression.is_literal());
    for expression in not_literal().filter(|expression| !expression.is_condition) {
        if included.iter().all(|known| expression.value(known) == Some(false)) {
            let message = "the validation is false for every request that the rules match";
            let violation = Violation::new("always false", message).with_severity(Severity::Note);
            let help = "Correct the expression, unless the policy is meant to reject all of them.";
            violations.push(violation.at(&expression.field).with_help(help));
        }
    }
    for expression in not_literal() {
        if !included.iter().all(|known| expression.value(known) == Some(true)) {
            continue;
        }
        let (what, effect) =
            if expression.is_condition { ("match condition", "excludes") } else { ("validation", "denies") };
        let message =
            format!("the {what} is true for every request that the rules match: it {effect} nothing");
        let violation = Violation::new("always true", message).with_severity(Severity::Note);
        violations.push(violation.at(&expression.field).with_help("Correct the expression, or remove it."));
    }
    violations
}

/// Reports expressions that fail for every request with an operation, because `object` or `oldObject` is null.
fn failing_always(
    expressions: &[PolicyExpression<'_>],
    definition: &Definition,
    included: &[&KnownFields],
    follows: &str,
) -> Vec<Violation> {
    let is_open = |expression: &PolicyExpression<'_>| {
        expression.is_condition && expression.condition.expression.is_err()
    };
    // These may exclude the requests for which an expression fails.
    let has_exclusions = !definition.match_constraints.exclude_resource_rules.is_empty();
    if definition.failure_policy == FailurePolicy::Ignore || has_exclusions || expressions.iter().any(is_open)
    {
        return Vec::new();
    }
    let variables = definition.composition.variables.iter();
    let variables: Vec<(&str, &Program)> = variables
        .filter_map(|variable| Some((&*variable.name, variable.expression.program.as_ref().ok()?)))
        .collect();
    let mut violations = Vec::new();
    for expression in expressions {
        let failing = included.iter().find_map(|known| {
            let error = constant_error_of(expression.program?, &variables, known)?;
            Some((known.operation(), error))
        });
        let Some((operation, error)) = failing else { continue };
        let null = if operation == Operation::Delete { "object" } else { "oldObject" };
        let message =
            format!("for each {operation}, the expression fails because {null} is null: {error}; {follows}");
        let violation = Violation::new(format!("fails for {operation}"), message);
        violations.push(violation.at(&expression.field));
    }
    violations
}

/// Reports expressions that fail for an example object because it does not have an optional field.
fn failing(
    object: &PolicyObject,
    expressions: &[PolicyExpression<'_>],
    cluster_fixture: &ClusterFixture,
    follows: &str,
) -> Vec<Violation> {
    let Some(evaluated) = evaluated(object, cluster_fixture) else { return Vec::new() };
    let denies = |record: &PolicyRun, index: usize| {
        record.decisions.get(index).is_some_and(|decision| decision.verdict == Verdict::Denied)
    };
    let denies_all = |index: usize| evaluated.iter().all(|(_, record)| denies(record, index));
    let validations = expressions.iter().filter(|expression| !expression.is_condition).enumerate();
    let validations: Vec<(usize, &PolicyExpression<'_>, bool)> =
        validations.map(|(index, validation)| (index, validation, denies_all(index))).collect();
    let mut violations: Vec<Violation> = Vec::new();
    for (request, record) in &evaluated {
        for error in errors(record, object, expressions) {
            // A denial by a validation of the missing field takes precedence. A validation of other fields that denies
            // all examples, such as one of image digests, says nothing about the missing field.
            let is_message = error.field.ends_with(".messageExpression");
            let is_guarded = !is_message
                && validations.iter().any(|(index, validation, denies_all)| {
                    denies(record, *index) && (!denies_all || validation.may_read(&error.key))
                });
            if is_guarded || violations.iter().any(|known| known.field == error.field) {
                continue;
            }
            let follows = match error.field.as_str() {
                _ if is_message => OTHER_MESSAGE,
                field if field.starts_with("spec.auditAnnotations") => REJECTED,
                _ => follows,
            };
            let null = reads_null(request, error.text, &error.key, follows);
            let null = null.map(|violation| violation.at(&error.field));
            let violation = null.or_else(|| error.violation(request, follows));
            violations.extend(violation.map(|it| if is_message { about_message(it) } else { it }));
        }
    }
    violations
}

/// Evaluates a policy for the examples that it matches; returns `None` for a binding.
fn evaluated(
    object: &PolicyObject,
    cluster_fixture: &ClusterFixture,
) -> Option<Vec<(Attributes, PolicyRun)>> {
    let selector = &object.definition()?.match_constraints.object_selector;
    let runs = |evaluate: &dyn Fn(&mut AdmissionRun<'_>) -> Option<PolicyRecord>| {
        let run = |request: Attributes| {
            let record = evaluate(&mut cluster_fixture.evaluation(request.clone()))?;
            Some((request, single_run(record)?))
        };
        example_requests(selector, cluster_fixture).filter_map(run).collect()
    };
    match object.parsed.as_ref()? {
        Parsed::Validating(policy) => {
            let definition = in_every_namespace(object, &policy.definition);
            let policy = Arc::new(ValidatingPolicy { definition, ..(**policy).clone() });
            Some(runs(&|run| validate_by(&policy, None, run)))
        }
        Parsed::Mutating(policy) => {
            let definition = in_every_namespace(object, &policy.definition);
            let policy = Arc::new(MutatingPolicy { definition, ..(**policy).clone() });
            Some(runs(&|run| mutate_by(&policy, None, run)))
        }
        Parsed::ValidatingBinding(_) | Parsed::MutatingBinding(_) => None,
    }
}

/// An expression that fails because an object does not have a field.
struct NoSuchKey<'a> {
    field: String,
    text: &'a str,
    key: String,
}

/// Returns the expressions that failed in an evaluation because of a missing field.
fn errors<'a>(
    record: &PolicyRun,
    object: &'a PolicyObject,
    expressions: &'a [PolicyExpression<'a>],
) -> Vec<NoSuchKey<'a>> {
    let key = |error: &str| missing_key(error).map(str::to_owned);
    let mut found = Vec::new();
    if let Some(evaluation) = &record.conditions
        && matches!(evaluation.outcome, Outcome::Errors(_))
    {
        let conditions = expressions.iter().filter(|expression| expression.is_condition);
        for (expression, evaluated) in conditions.zip(&evaluation.conditions) {
            let error = evaluated.value.as_ref().err().map(EvaluationError::to_string);
            let Some(key) = error.as_deref().and_then(key) else { continue };
            found.push((expression.field.clone(), expression.text, key));
        }
    }
    for evaluated in &record.expressions {
        let (Some(key), Some((field, text))) =
            (evaluated.value.as_ref().err().and_then(|error| key(error)), located(&evaluated.part, object))
        else {
            continue;
        };
        found.push((field, text, key));
    }
    // An error of a variable may not affect the expression that uses it.
    let failed = found.iter().any(|(field, ..)| !field.starts_with("spec.variables"));
    let is_variable = |field: &str| field.starts_with("spec.variables");
    let keys: Vec<String> =
        found.iter().filter(|(field, ..)| is_variable(field)).map(|(.., key)| key.clone()).collect();
    found.retain(|(field, _, key)| failed && (is_variable(field) || !keys.contains(key)));
    found.into_iter().map(|(field, text, key)| NoSuchKey { field, text, key }).collect()
}

/// Returns the field and the text of a part of a policy.
fn located<'a>(part: &ExpressionPart, object: &'a PolicyObject) -> Option<(String, &'a str)> {
    let list = |name: &str| at(&object.object, &["spec"]).get(name).and_then(Value::as_array);
    match part {
        ExpressionPart::Variable(name) => {
            let index = list("variables")?.iter().rposition(|variable| variable["name"] == **name)?;
            let text = text(list("variables")?.get(index)?, &["expression"]);
            Some((format!("spec.variables[{index}].expression"), text))
        }
        ExpressionPart::Validation(index) => {
            let text = text(list("validations")?.get(*index)?, &["expression"]);
            Some((format!("spec.validations[{index}].expression"), text))
        }
        ExpressionPart::Mutation(index) => {
            let mutation = list("mutations")?.get(*index)?;
            let (name, part) = ["applyConfiguration", "jsonPatch"]
                .into_iter()
                .find_map(|name| Some((name, mutation.get(name)?)))?;
            Some((format!("spec.mutations[{index}].{name}.expression"), text(part, &["expression"])))
        }
        ExpressionPart::MessageExpression(index) => {
            let text = text(list("validations")?.get(*index)?, &["messageExpression"]);
            Some((format!("spec.validations[{index}].messageExpression"), text))
        }
        ExpressionPart::AuditAnnotation(key) => {
            let index = list("auditAnnotations")?.iter().position(|annotation| annotation["key"] == **key)?;
            let text = text(list("auditAnnotations")?.get(index)?, &["valueExpression"]);
            Some((format!("spec.auditAnnotations[{index}].valueExpression"), text))
        }
        _ => None,
    }
}

impl NoSuchKey<'_> {
    fn violation(&self, request: &Attributes, follows: &str) -> Option<Violation> {
        let Self { field, text, key } = self;
        let (without, help) = match MissingField::new(text, key)? {
            MissingField::Unknown(unknown) => {
                let message =
                    format!("{unknown}: the expression fails with `no such key: {key}`, and {follows}");
                let violation = Violation::new("reads an unknown field", message).at(field);
                return Some(violation.with_severity(Severity::Error).with_help(CORRECT_NAME));
            }
            MissingField::Optional { without, help } => (without, help),
        };
        let message = format!(
            "the expression fails for {without}: on {} of {}, it returns `no such key: {key}`, and {follows}",
            request.operation,
            request.resource.group_resource()
        );
        let violation = Violation::new("has no value without an optional field", message);
        Some(violation.at(field).with_help(help))
    }
}
