//! Applies the mutations of a policy to examples, once for L16 and L17.

use std::sync::Arc;

use kubernetes_admission::attributes::{Attributes, GroupVersionKind};
use kubernetes_admission::config::{FailurePolicy, ReinvocationPolicy};
use kubernetes_admission::policy::{ExpressionPart, MutatingPolicy, MutationEffect, PatchType, PolicyRun};
use kubernetes_api_server::ClusterFixture;
use kubernetes_types::schema::{Form, Kind, MESSAGES, Shape};

use super::match_conditions::CORRECT_NAME;
use super::policy_examples::{example_requests, mutated, without_params};
use crate::check::Severity;
use crate::policies::{MutationTrial, Parsed, PolicyObject};
use crate::similar_name::{similar_field, suggestion};
use crate::violation::Violation;

/// The parts of kube-apiserver's error messages that a finding is about.
mod errors {
    pub(super) const ATOMIC: &str = "may not mutate atomic arrays, maps or structs";
    pub(super) const UNDECLARED: &str = "field not declared in schema";
    pub(super) const MISSING_PATH: &str = "doc is missing path";
    /// Between the expected type and the value, as in `.spec.hostNetwork: expected boolean, got &{yes}`.
    pub(super) const OTHER_TYPE: &str = ", got &";
    pub(super) const OPERATION: &str = "Unexpected kind: ";
    pub(super) const TYPE_NAME: &str = "type mismatch: unexpected type name";
}

/// The advice for an object whose type name does not match its path.
const CORRECT_TYPE_NAME: &str = "Correct the type name: it is `Object` and the path of the field, such as \
                                 Object.metadata or Object.spec.containers.";

/// The advice for a JSON patch with an unknown operation.
const CORRECT_OPERATION: &str = "Set `op` to add, remove, replace, move, copy, or test.";

/// The advice for an operation of a JSON patch whose parent is missing.
const ADD_PARENT: &str =
    "Add the parent first if the object does not have it, or use patchType ApplyConfiguration.";

/// Returns the result of applying a mutating policy to the examples, for L16 and L17; `None` for other objects.
///
/// The mutations are applied once for both checks.
pub(super) fn trial<'a>(
    object: &'a PolicyObject,
    cluster_fixture: &ClusterFixture,
) -> Option<&'a MutationTrial> {
    let Some(Parsed::Mutating(written)) = &object.parsed else { return None };
    Some(object.mutation_trial.get_or_init(|| {
        let policy = without_params(object, written);
        let mut trial = MutationTrial::default();
        let selector = &policy.definition.match_constraints.object_selector;
        for request in example_requests(selector, cluster_fixture) {
            let Some((record, request)) = mutated(&policy, request, cluster_fixture) else { continue };
            let failing = failing(written, (&record, &request), &trial.failing);
            trial.failing.extend(failing);
            if trial.changing_again.is_none() {
                trial.changing_again = changed_again(&policy, (&record, request), cluster_fixture);
            }
        }
        trial
    }))
}

/// Reports the mutations that could not be applied to `request`, with the result `record`.
///
/// `known` contains the mutations that have been reported already.
fn failing(
    policy: &MutatingPolicy,
    (record, request): (&PolicyRun, &Attributes),
    known: &[Violation],
) -> Vec<Violation> {
    let follows = follows(policy.definition.failure_policy);
    // The path of an operation may depend on the params.
    let has_params = policy.definition.param_kind.is_some();
    let mut violations: Vec<Violation> = Vec::new();
    for (index, (mutation, applied)) in policy.mutations.iter().zip(&record.mutations).enumerate() {
        let part = match mutation.patch_type {
            PatchType::ApplyConfiguration => "applyConfiguration",
            PatchType::JsonPatch => "jsonPatch",
        };
        let field = format!("spec.mutations[{index}].{part}.expression");
        let Err(error) = &applied.outcome else { continue };
        if !has_value(record, index) || known.iter().any(|known| known.field == field) {
            continue;
        }
        // The error has a line for each wrong type name.
        let error =
            &if error.contains(errors::TYPE_NAME) { error.replace('\n', "; ") } else { error.clone() };
        let similar = suggestion(similar_to_undeclared(&request.kind, error));
        let message = format!(
            "on {} of {}: {error}{similar}; {follows}",
            request.operation,
            request.resource.group_resource()
        );
        let violation = if error.contains(errors::ATOMIC) {
            Violation::new("atomic field", message)
        } else if error.contains(errors::UNDECLARED) {
            Violation::new("unknown field", message).with_help(CORRECT_NAME)
        } else if error.contains(errors::TYPE_NAME) {
            Violation::new("wrong type name", message).with_help(CORRECT_TYPE_NAME)
        } else if error.contains(errors::OTHER_TYPE) {
            Violation::new("wrong type", message).with_help("Set a value of the type that the field has.")
        } else if error.contains(errors::OPERATION) {
            Violation::new("unknown operation", message).with_help(CORRECT_OPERATION)
        } else if error.contains(errors::MISSING_PATH) && !has_params {
            missing_parent(error, request, follows)
                .unwrap_or_else(|| Violation::new("missing parent", message))
                .with_help(ADD_PARENT)
        } else {
            continue;
        };
        violations.push(violation.at(field));
    }
    violations
}

/// Returns what happens if a mutation cannot be applied.
fn follows(failure_policy: FailurePolicy) -> &'static str {
    match failure_policy {
        FailurePolicy::Fail => "the request is rejected",
        FailurePolicy::Ignore => "the mutation is skipped",
    }
}

/// Returns the field that is most similar to the undeclared field in kube-apiserver's error about an object of `kind`.
fn similar_to_undeclared(kind: &GroupVersionKind, error: &str) -> Option<&'static str> {
    let (before, _) = error.split_once(&format!(": {}", errors::UNDECLARED))?;
    similar_field(kind, before.rsplit([' ', '\n']).next()?)
}

/// Returns the finding about a JSON patch for a path whose parent `request` does not have.
///
/// Returns `None` if the kind does not have the parent.
fn missing_parent(error: &str, request: &Attributes, follows: &str) -> Option<Violation> {
    let (_, path) = error.split_once(errors::MISSING_PATH)?;
    let path = path.split('"').nth(1)?;
    let object = request.object.as_ref()?;
    let ends = path.match_indices('/').map(|(end, _)| end).skip(1);
    let parents: Vec<&str> = ends.filter_map(|end| path.get(..end)).collect();
    // A later mutation may have added the parent.
    let missing = parents.iter().find(|parent| object.pointer(parent).is_none());
    let parent = missing.or(parents.last())?;
    if !has_field(&request.kind, parent) {
        return None;
    }
    let (_, name) = parent.rsplit_once('/')?;
    let message = format!(
        "the mutation fails for objects without {name}: on {} of {}, {error}; {follows}",
        request.operation,
        request.resource.group_resource()
    );
    Some(Violation::new("missing parent", message).with_severity(Severity::Warning))
}

/// Returns whether objects of `kind` can have a value at a JSON pointer.
fn has_field(kind: &GroupVersionKind, pointer: &str) -> bool {
    let Some(id) = MESSAGES.of_kind(kind) else { return true };
    let mut message = MESSAGES.get(id);
    let mut names = pointer.split('/').skip(1);
    while let Some(name) = names.next() {
        let Some(field) = message.member(name) else { return name == "apiVersion" || name == "kind" };
        let (Shape::Plain | Shape::Optional | Shape::List, Kind::Message(id)) = (field.shape, field.kind)
        else {
            return true;
        };
        if field.shape == Shape::List {
            // The next part is the index of an item.
            names.next();
        }
        message = MESSAGES.get(id);
        if message.form == Form::Value || message.members().is_empty() {
            return true;
        }
    }
    true
}

/// Returns whether the expression of a mutation has a value. L15 reports expressions that fail.
fn has_value(record: &PolicyRun, index: usize) -> bool {
    let part = ExpressionPart::Mutation(index);
    record.expressions.iter().any(|evaluated| evaluated.part == part && evaluated.value.is_ok())
}

/// Reports a mutation that changes `request`, to which the policy has been applied with the result `first`.
fn changed_again(
    policy: &Arc<MutatingPolicy>,
    (first, request): (&PolicyRun, Attributes),
    cluster_fixture: &ClusterFixture,
) -> Option<Violation> {
    if policy.reinvocation_policy != ReinvocationPolicy::IfNeeded
        || first.mutations.iter().any(|mutation| mutation.outcome.is_err())
    {
        return None;
    }
    let (operation, resource) = (request.operation, request.resource.group_resource());
    let (second, _) = mutated(policy, request, cluster_fixture)?;
    let failed = second
        .mutations
        .iter()
        .enumerate()
        .find_map(|(index, mutation)| Some((index, mutation.outcome.as_ref().err()?)));
    if let Some((index, error)) = failed {
        let follows = follows(policy.definition.failure_policy);
        let message = format!(
            "the mutation fails when it is applied to its own result, for example on {operation} of {resource}: {error}; \
             with reinvocationPolicy IfNeeded, it is applied twice, and {follows}"
        );
        let violation = Violation::new("fails on its own result", message).with_help(
            "Add a match condition that skips objects that already have the change, set only what the object does not have, or \
             use reinvocationPolicy Never.",
        );
        return Some(violation.at(format!("spec.mutations[{index}]")));
    }
    let index =
        second.mutations.iter().position(|mutation| mutation.outcome == Ok(MutationEffect::Changed))?;
    let message = format!(
        "the mutation changes its own result, for example on {operation} of {resource}: with reinvocationPolicy \
         IfNeeded, it is applied twice"
    );
    Some(Violation::new("not idempotent", message).at(format!("spec.mutations[{index}]")))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::policies::Policies;

    fn policy(expression: &str) -> Value {
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicy", "metadata": {"name": "p"},
            "spec": {
                "matchConstraints": {"resourceRules": [{"operations": ["CREATE"], "apiGroups": [""],
                    "apiVersions": ["v1"], "resources": ["pods"]}]},
                "reinvocationPolicy": "IfNeeded",
                "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}],
            },
        })
    }

    #[test]
    fn undeclared_field_has_a_similar_one() {
        let kind = GroupVersionKind::new("apps", "v1", "Deployment");
        let error = |path: &str| {
            format!("failed to convert patch object to typed object: {path}: field not declared in schema")
        };
        for (path, expected) in [
            (".spec.template.spec.priorityClasName", Some("priorityClassName")),
            (".spec.template.spec.containers[name=\"a\"].imagePulPolicy", Some("imagePullPolicy")),
            (".spec.other.replica", None),
            (".spec.somethingElse", None),
        ] {
            assert_eq!(similar_to_undeclared(&kind, &error(path)), expected, "{path}");
        }
    }

    #[test]
    fn missing_parent_is_an_error_only_if_the_kind_does_not_have_it() {
        let cluster_fixture = ClusterFixture::new([]);
        for (path, severity, part) in [
            (
                "/metadata/labels/a",
                Some(Severity::Warning),
                "for objects without labels: on CREATE of pods, ",
            ),
            ("/spec/nodeSelector/a", Some(Severity::Warning), "for objects without nodeSelector: "),
            (
                "/spec/containers/0/securityContext/capabilities/add",
                Some(Severity::Warning),
                "for objects without securityContext: ",
            ),
            ("/metadata/lables/a", None, "doc is missing path"),
            ("/spec/containers/0/security/privileged", None, "doc is missing path"),
        ] {
            let expression = format!(r#"[JSONPatch{{op: "add", path: "{path}", value: "b"}}]"#);
            let policies = Policies::new(&[policy(&expression)], &cluster_fixture);
            let [object] = policies.objects.as_slice() else { panic!("one object") };
            let trial = trial(object, &cluster_fixture).unwrap();
            let [found] = trial.failing.as_slice() else { panic!("{path}: {trial:?}") };
            assert_eq!(found.severity, severity, "{path}");
            assert!(found.message.contains(part), "{path}: {}", found.message);
        }
    }

    #[test]
    fn mutations_are_applied_once_for_both_checks() {
        let cluster_fixture = ClusterFixture::new([]);
        let appends =
            r#"[JSONPatch{op: "add", path: "/spec/containers/-", value: object.spec.containers[0]}]"#;
        let labels = r#"[JSONPatch{op: "add", path: "/metadata/labels/a", value: "b"}]"#;
        for (expression, expected) in [(appends, (0, true)), (labels, (1, false))] {
            let policies = Policies::new(&[policy(expression)], &cluster_fixture);
            let [object] = policies.objects.as_slice() else { panic!("one object") };
            let first = trial(object, &cluster_fixture).unwrap();
            assert_eq!((first.failing.len(), first.changing_again.is_some()), expected, "{first:?}");
            let again = trial(object, &cluster_fixture).unwrap();
            assert!(std::ptr::eq(first, again));
        }
    }
}
