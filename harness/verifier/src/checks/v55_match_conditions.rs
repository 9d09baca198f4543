//! V55: match conditions are valid, useful, and cheap, and always have a value.

use std::borrow::Cow;
use std::sync::Arc;

use kubernetes_admission::attributes::{Attributes, GroupVersionKind, GroupVersionResource, Operation};
use kubernetes_admission::cluster_state::ClusterState as _;
use kubernetes_admission::conditions::{
    Condition, Evaluated, Evaluation, KnownFields, Outcome, RUNTIME_CEL_COST_BUDGET_MATCH_CONDITIONS,
    constant_error, constant_value,
};
use kubernetes_admission::config::{self, MatchPolicy, Rule, Webhook};
use kubernetes_admission::matching::{self, exact_or_star};
use kubernetes_api_server::{ClusterFixture, ServedSubresource, is_connection};
use kubernetes_types::status::FieldError;

use super::l04_served::operation;
use super::match_conditions::{
    CORRECT_NAME, SELECT_NAMESPACES, missing_key, reads_namespace_object, undefined, unguarded, unknown_field,
};
use crate::check::{
    Audience, CORRECT_AS_THE_MESSAGE_SAYS, Check, Observed, Probe, Repeatability, Severity, Skipped,
    Violation,
};
use crate::object_probe::ObjectProbe;
use crate::operand_types;
use crate::stored::{delete, update};
use crate::subject::{Subject, consequence};
use crate::tried::is_compile_error;
use crate::violation::sentence;

pub(super) const CHECK: Check = Check {
    id: "V55",
    title: "match conditions: matchConditions are valid, exclude some requests but not all, always have a \
            value, and stay within the cost budget",
    severity: Severity::Error,
    why: "A match condition that fails, for example because it reads object.metadata.labels on DELETE, \
          where object is null, rejects the request if failurePolicy is Fail and skips the webhook if it is \
          Ignore. Both happen without a call, so the webhook's own logs do not show it. The same happens if \
          a condition exceeds the cost budget. A condition that is false for everything that the rules \
          match disables the webhook.",
    help: "Guard optional fields with `has()`, and check `object != null` if the rules match DELETE.",
    source: "KEP-3716; apiserver pkg/admission/plugin/webhook/matchconditions/matcher.go; \
             pkg/apis/cel/config.go",
    audience: Audience::All,
    repeatability: Repeatability::Same,
    probe: Probe::ConfigurationAndObject(configuration, unguarded, |object_probe| {
        Box::pin(object(object_probe))
    }),
};

/// The advice for a condition that costs too much.
const CHEAPER: &str =
    "Avoid nested loops and regular expressions over long lists and strings, or check this in the webhook.";

/// A condition is reported if its cost exceeds the budget divided by this number, because objects may grow.
const NEAR: u64 = 2;

fn configuration(subject: &Subject, cluster_fixture: &ClusterFixture) -> Observed {
    let webhook = &subject.webhook;
    if webhook.match_conditions.is_empty() {
        return Err(none());
    }
    let violations = refused(subject);
    if !violations.is_empty() || webhook.rules.is_empty() {
        return Ok(violations);
    }
    let known = known(webhook, cluster_fixture);
    let failing = failing(webhook, &known);
    let mut violations = undefined(webhook, cluster_fixture);
    if failing.is_empty() {
        // Objects show the fields that a condition reads without a test.
        violations.retain(|violation| violation.severity == Some(Severity::Warning));
        violations.extend(constant(webhook, &known));
    } else {
        // A guard against null does not correct a misspelled name.
        violations.extend(failing);
    }
    Ok(violations)
}

/// Reports conditions that fail for every request with an operation of the rules.
fn failing(webhook: &Webhook, known: &[KnownFields]) -> Vec<Violation> {
    let follows = consequence(webhook.failure_policy);
    let mut violations: Vec<Violation> = Vec::new();
    for (index, condition) in webhook.match_conditions.iter().enumerate() {
        for known in known {
            let Some(error) = constant_error(condition, known) else { continue };
            let operation = known.operation();
            let null = if operation == Operation::Delete { "object" } else { "oldObject" };
            let kind = no_value(&condition.name, operation);
            if violations.iter().any(|violation| violation.kind == kind) {
                continue;
            }
            let message = format!(
                "for each {operation}, condition {} fails because {null} is null: {error}; {follows} without a call",
                condition.name
            );
            violations.push(Violation::new(kind, message).at(format!("matchConditions[{index}]")));
        }
    }
    violations
}

/// Returns the kind of a finding about a condition that fails for an operation.
fn no_value(name: &str, operation: Operation) -> String {
    format!("{name} has no value for a {operation}")
}

fn none() -> Skipped {
    Skipped::not_applicable("the webhook has no matchConditions")
}

/// Returns the API server's errors in the match conditions.
fn refused(subject: &Subject) -> Vec<Violation> {
    let own = format!("webhooks[{}].matchConditions", subject.index);
    let errors = config::validate(&subject.configuration).into_iter();
    let of_conditions = errors.filter(|error| error.field.starts_with(&own));
    let entry = format!("webhooks[{}].", subject.index);
    let violation = |error: FieldError| {
        let at = error.field.strip_prefix(&entry).unwrap_or_default().to_owned();
        let field = error.field.split('.').next_back().unwrap_or_default().to_owned();
        let message = format!("the API server rejects the configuration: {error}");
        let advice = operand_types::advice(&error.to_string());
        let help = if error.to_string().contains("undefined field 'object'")
            || error.to_string().contains("undefined field 'oldObject'")
        {
            "Write object or oldObject: they are separate variables, not fields of request."
        } else if field == "expression" {
            "Correct the expression. Its variables are object, oldObject, request, and authorizer."
        } else {
            CORRECT_AS_THE_MESSAGE_SAYS
        };
        let help = advice.map_or_else(|| help.into(), Cow::from);
        Violation::new(format!("rejected {field}"), message).at(at).with_help(help)
    };
    of_conditions.map(violation).collect()
}

/// Reports conditions that have the same value for every request that the rules match.
fn constant(webhook: &Webhook, known: &[KnownFields]) -> Vec<Violation> {
    let conditions = &webhook.match_conditions;
    let is_true =
        |condition: &Condition| known.iter().all(|known| constant_value(condition, known) == Some(true));
    let is_false = |condition: &Condition, known: &KnownFields| {
        constant_value(condition, known) == Some(false) || lacks_subresource(condition, known)
    };
    let is_left_out = |known: &KnownFields| conditions.iter().any(|condition| is_false(condition, known));
    let never = |which: String, at: String| {
        let message = format!("{which} for no request that the rules match: the webhook is never called");
        let help =
            "Correct the condition or the rules so that some request satisfies both, or remove the webhook.";
        Violation::new("never called", message).at(at).with_help(help)
    };
    let all = || "matchConditions".to_owned();
    if known.is_empty() {
        return Vec::new();
    }
    if let Some((index, condition)) = conditions
        .iter()
        .enumerate()
        .find(|(_, condition)| known.iter().all(|known| is_false(condition, known)))
    {
        return vec![never(format!("condition {} is true", condition.name), format!("{}[{index}]", all()))];
    }
    if known.iter().all(is_left_out) {
        return vec![never("the conditions are all true".to_owned(), all())];
    }
    let idle = conditions.iter().enumerate().filter(|(_, condition)| is_true(condition));
    idle.map(|(index, condition)| {
        let message = format!(
            "condition {} is true for every request that the rules match: it excludes nothing",
            condition.name
        );
        let violation = Violation::new(format!("{} is always true", condition.name), message);
        let violation = violation.with_severity(Severity::Note).at(format!("{}[{index}]", all()));
        violation.with_help("Remove the condition, or correct it if it should exclude requests.")
    })
    .collect()
}

/// Returns whether a condition fails because it reads the subresource of requests that have none.
///
/// A condition that reads an object as well may have a value for some of them.
fn lacks_subresource(condition: &Condition, known: &KnownFields) -> bool {
    const FIELD: &str = "request.subResource";
    let guard = format!("has({FIELD})");
    let reads_object = ["object", "oldObject"].iter().any(|variable| condition.mentions(variable));
    if !condition.text.contains(FIELD) || condition.text.contains(&guard) || reads_object {
        return false;
    }
    constant_value(&Condition::new("", &guard), known) == Some(false)
        && constant_value(condition, known).is_none()
}

/// Returns the fields of requests that the rules of `webhook` determine.
fn known(webhook: &Webhook, cluster_fixture: &ClusterFixture) -> Vec<KnownFields> {
    webhook.rules.iter().flat_map(|rule| known_of(rule, webhook.match_policy, cluster_fixture)).collect()
}

/// Returns the fields of requests that a rule determines.
pub(super) fn known_of(
    rule: &Rule,
    policy: MatchPolicy,
    cluster_fixture: &ClusterFixture,
) -> Vec<KnownFields> {
    let operations: Vec<Operation> = OPERATIONS
        .into_iter()
        .filter(|operation| exact_or_star(&rule.operations, operation.as_str()))
        .collect();
    let mut known = Vec::new();
    for entry in &rule.resources {
        let name = entry.split('/').next().unwrap_or(entry);
        let groups = rule.api_groups.iter();
        let versions = groups.flat_map(|group| rule.api_versions.iter().map(move |version| (group, version)));
        for (group, version) in versions {
            let resource = GroupVersionResource::new(group, version, name);
            for (subresource, possible) in subresources((group, version, entry), cluster_fixture) {
                let subresource = subresource.as_deref();
                let (kind, requested) = requested(&resource, subresource, policy, cluster_fixture);
                for operation in operations.iter().filter(|operation| possible.contains(operation)) {
                    known.extend(requested.iter().map(|(resource, own)| {
                        let resource = resource.as_ref();
                        KnownFields::new(*operation, resource, subresource, kind.as_ref(), own.as_ref())
                    }));
                }
            }
        }
    }
    known
}

const OPERATIONS: [Operation; 4] =
    [Operation::Create, Operation::Update, Operation::Delete, Operation::Connect];

/// Returns the subresources that an entry of a rule matches, each with the operations of its requests.
///
/// An entry such as `pods/*` matches every subresource that the server serves. `None` is an unknown subresource: another
/// server may serve other resources, such as those of an aggregated API.
fn subresources(
    (group, version, entry): (&str, &str, &str),
    cluster_fixture: &ClusterFixture,
) -> Vec<(Option<String>, Vec<Operation>)> {
    let (name, subresource) = entry.split_once('/').unwrap_or((entry, ""));
    if subresource != "*" {
        return vec![(Some(subresource.to_owned()), OPERATIONS.to_vec())];
    }
    let mut served = cluster_fixture.resources();
    served.retain(|served| {
        let is_version = version == "*" || served.name.version == version;
        served.name.group == group && served.name.resource == name && is_version
    });
    if served.is_empty() {
        return vec![(None, OPERATIONS.to_vec())];
    }
    let whole = [Operation::Create, Operation::Update, Operation::Delete].to_vec();
    let named = served.iter().flat_map(|served| &served.subresources);
    let named = named.map(|subresource| (Some(subresource.name.clone()), operations(subresource)));
    [(Some(String::new()), whole)].into_iter().chain(named).collect()
}

/// Returns the operations of the requests for a subresource that the server serves.
fn operations(subresource: &ServedSubresource) -> Vec<Operation> {
    if is_connection(&subresource.name) {
        return vec![Operation::Connect];
    }
    subresource.verbs.iter().filter_map(|verb| operation(verb)).collect()
}

/// A requested resource and its kind, if known.
type Requested = (Option<GroupVersionResource>, Option<GroupVersionKind>);

/// Returns the kind that a webhook with a rule for `resource` receives, and the resources that clients may request.
///
/// With the `matchPolicy` `Equivalent`, the resources include other versions. If these are unknown, or if `resource` has a
/// `*`, returns one unknown resource.
fn requested(
    resource: &GroupVersionResource,
    subresource: Option<&str>,
    policy: MatchPolicy,
    cluster_fixture: &ClusterFixture,
) -> (Option<GroupVersionKind>, Vec<Requested>) {
    let GroupVersionResource { group, version, resource: name } = resource;
    let is_served = cluster_fixture.resource(resource).is_some();
    let has_star = [name, group, version].into_iter().any(|part| part == "*");
    if has_star || policy == MatchPolicy::Equivalent && !is_served {
        return (None, vec![(None, None)]);
    }
    // A subresource may have another kind.
    let kind_of = |resource: &GroupVersionResource| {
        let served = cluster_fixture.resource(resource)?;
        (subresource == Some("")).then_some(served.kind)
    };
    let mut requested = Vec::new();
    if policy == MatchPolicy::Equivalent {
        let equivalents = cluster_fixture.equivalent_resources(resource, "");
        requested.extend(equivalents.iter().map(|equivalent| {
            let resource = &*equivalent.resource;
            (Some(resource.clone()), kind_of(resource))
        }));
    }
    let kind = kind_of(resource);
    requested.push((Some(resource.clone()), kind.clone()));
    (kind, requested)
}

/// Evaluates the conditions for the creation, an unchanged update, and the deletion of an object.
async fn object(object_probe: &ObjectProbe<'_>) -> Observed {
    let webhook = &object_probe.subject.webhook;
    if webhook.match_conditions.is_empty() {
        return Err(none());
    }
    let mut requests = vec![object_probe.request.clone()];
    if let Ok(stored) = object_probe.stored(object_probe.object()) {
        requests.push(update(object_probe.request, stored.clone(), stored.clone()));
        requests.push(delete(object_probe.request, stored));
    }
    let cluster_fixture = &object_probe.environment.cluster_fixture;
    let mut tested = false;
    let mut violations: Vec<Violation> = Vec::new();
    for request in requests {
        // Conditions are evaluated if the rules and selectors match the request.
        let mut run = cluster_fixture.evaluation(request.clone());
        let Some(evaluation) = matching::decide(webhook, &mut run).conditions else { continue };
        tested = true;
        let mut found = judge(webhook, &request, &evaluation, cluster_fixture);
        found.retain(|violation| violations.iter().all(|known| known.kind != violation.kind));
        // If a condition fails, the webhook is not called; the outcome shows how the server handles that.
        if !found.is_empty() && matches!(evaluation.outcome, Outcome::OutOfBudget | Outcome::Errors(_)) {
            let outcome = object_probe.outcome(&object_probe.alone(), &request).await;
            found = found.into_iter().map(|violation| violation.with_steps([Arc::clone(&outcome)])).collect();
        }
        violations.extend(found);
    }
    if tested {
        Ok(violations)
    } else {
        Err(Skipped::not_applicable("the webhook's rules and selectors do not match the object"))
    }
}

/// Returns the advice on a condition that fails with `error`, if it differs from the advice of the check.
fn help(
    webhook: &Webhook,
    condition: &Evaluated,
    error: &str,
    cluster_fixture: &ClusterFixture,
) -> Option<String> {
    let key = missing_key(error)?;
    if reads_namespace_object(&condition.expression, key) {
        return Some(SELECT_NAMESPACES.to_owned());
    }
    let unknown = unknown_field(webhook, &condition.expression, key, cluster_fixture)?;
    Some(format!("{} {CORRECT_NAME}", sentence(&unknown)))
}

fn judge(
    webhook: &Webhook,
    request: &Attributes,
    evaluation: &Evaluation,
    cluster_fixture: &ClusterFixture,
) -> Vec<Violation> {
    let what = format!("{} of {}", request.operation, request.resource.group_resource());
    let follows = consequence(webhook.failure_policy);
    let mut violations = Vec::new();
    match &evaluation.outcome {
        Outcome::OutOfBudget => {
            let message = format!(
                "for the {what}, the conditions cost more than the budget of {RUNTIME_CEL_COST_BUDGET_MATCH_CONDITIONS}: {follows} without a \
                 call"
            );
            violations.push(Violation::new("over the budget of all conditions", message).with_help(CHEAPER));
        }
        Outcome::Errors(_) => {
            for condition in &evaluation.conditions {
                // L01 reports conditions that do not compile.
                if let Err(error) = &condition.value
                    && !is_compile_error(&error.to_string())
                {
                    let kind = no_value(&condition.name, request.operation);
                    let message = format!(
                        "for the {what}, condition {} fails: {error}; {follows} without a call",
                        condition.name
                    );
                    let violation = Violation::new(kind, message);
                    violations.push(match help(webhook, condition, &error.to_string(), cluster_fixture) {
                        Some(help) => violation.with_help(help),
                        None => violation,
                    });
                }
            }
        }
        Outcome::True | Outcome::False { .. } => {
            let near = |what: String, cost: u64, budget: u64| {
                let message = format!(
                    "{what} cost {cost} of {budget}: a larger object may exceed the budget, and then \
                     {follows} without a call"
                );
                Violation::new("near the budget", message).with_severity(Severity::Warning).with_help(CHEAPER)
            };
            let costly = |cost: u64, budget: u64| cost > budget / NEAR;
            let mut each = evaluation.conditions.iter();
            if let Some(one) = each.find(|condition| costly(condition.cost, kubernetes_cel::COST_LIMIT)) {
                let whole = format!("for the {what}, condition {}", one.name);
                violations.push(near(whole, one.cost, kubernetes_cel::COST_LIMIT));
            } else if costly(evaluation.cost(), RUNTIME_CEL_COST_BUDGET_MATCH_CONDITIONS) {
                violations.push(near(
                    format!("for the {what}, all conditions together"),
                    evaluation.cost(),
                    RUNTIME_CEL_COST_BUDGET_MATCH_CONDITIONS,
                ));
            }
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Checks the kinds of the findings about a condition of a webhook for all operations on `resources`.
    #[track_caller]
    fn check(resources: &str, expression: &str, expected: &[&str]) {
        let rule =
            json!({"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": [resources]});
        let configuration: Value = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "c"},
            "webhooks": [{
                "name": "w.example.com", "clientConfig": {"url": "https://localhost/"}, "sideEffects": "None",
                "admissionReviewVersions": ["v1"], "failurePolicy": "Fail", "rules": [rule],
                "matchConditions": [{"name": "c", "expression": expression}],
            }],
        });
        let subject = Subject::from_configurations(&[configuration]).unwrap().remove(0);
        let found = configuration_of(&subject);
        assert_eq!(found, expected, "{resources}: {expression}");
    }

    fn configuration_of(subject: &Subject) -> Vec<String> {
        let found = configuration(subject, &ClusterFixture::new([])).unwrap();
        found.into_iter().map(|violation| violation.kind).collect()
    }

    #[test]
    fn misspelled_field_is_found_in_a_condition_that_fails_for_a_null_object() {
        let null = "c has no value for a DELETE";
        let metadata = "reads the unknown field metdata";
        check("pods", "object.metdata.name == 'x'", &[metadata, null]);
        check("*", "object.metdata.name == 'x'", &[metadata, null]);
        check("pods", "object.metadata.nmae == 'x'", &["reads the unknown field nmae", null]);
        check("pods", "object.metadata.name == 'x'", &[null]);
    }

    #[test]
    fn misspelled_subresource_is_never_called() {
        check("pods/*", "request.subResource == 'stauts'", &["never called"]);
        let guarded = "has(request.subResource) && request.subResource";
        check("pods/*", &format!("{guarded} == 'stauts'"), &["never called"]);
        check("pods/*", &format!("!({guarded} == 'stauts')"), &["c is always true"]);
        check("pods/*", &format!("{guarded} == 'status'"), &[]);
        check("pods/*", "request.subResource == 'status'", &[]);
        check("pods/*", "request.subResource in ['status', 'exec']", &[]);
        check("pods/*", "!has(request.subResource) && object.spec.hostNetwork", &[]);
        check("*/*", "request.subResource == 'stauts'", &[]);
        check("others/*", "request.subResource == 'stauts'", &[]);
    }

    #[test]
    fn condition_is_not_evaluated_for_operations_that_a_subresource_does_not_have() {
        check("pods/*", "request.subResource != 'resize' || oldObject.spec != object.spec", &[]);
        check("pods/*", "request.subResource != 'eviction' || object.kind == 'Eviction'", &[]);
    }
}
