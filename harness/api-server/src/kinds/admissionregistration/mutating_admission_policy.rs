//! Implements `MutatingAdmissionPolicy` objects.

use kubernetes_admission::policy_expressions::{PolicyExpressions, Purpose};
use serde_json::Value;

use crate::kinds::admissionregistration;
use crate::kinds::admissionregistration::expressions::{Stored, report};
use crate::kinds::admissionregistration::policies::policy_cells;
use crate::kinds::admissionregistration::{expressions, matching, policies, validating_admission_policy};
use crate::kinds::common::cells::Context;
use crate::kinds::common::change::Change;
use crate::kinds::common::fields::{Errors, Path, get, list, set, text};
use crate::kinds::kind::Kind;

/// The behavior of `MutatingAdmissionPolicy` objects.
pub(crate) const KIND: Kind = Kind {
    group: "admissionregistration.k8s.io",
    resource: "mutatingadmissionpolicies",
    kind: "MutatingAdmissionPolicy",
    has_core_finalizers: false,
    requires_resource_version: true,
    set_defaults: Some(admissionregistration::defaults::policy),
    validate,
    cells: Some(cells),
    ..Kind::COUNTED
};

const REINVOCATION_POLICIES: [&str; 2] = ["IfNeeded", "Never"];

const PATCH_TYPES: [&str; 2] = ["ApplyConfiguration", "JSONPatch"];

/// Validates a policy. An update does not validate match conditions that cannot have become invalid.
///
/// Source: kubernetes pkg/apis/admissionregistration/validation/validation.go,
/// `validateMutatingAdmissionPolicySpec`.
/// Rule: POL-G.
pub(crate) fn validate(errors: &mut Errors, object: &Value, change: Option<Change<'_>>) {
    let (spec, path) = (get(object, "spec"), Path::new("spec"));
    let old = change.map_or(&Value::Null, |change| get(change.old, "spec"));
    policies::definition(errors, &path, spec);
    let constraints = get(spec, "matchConstraints");
    matching::mutating_operations(errors, &path.child("matchConstraints"), constraints);
    let params = set(spec, "paramKind").is_some();
    if !change.is_some_and(validating_admission_policy::keeps_conditions) {
        let stored = Stored::new(list(old, "matchConditions"), "expression");
        let conditions = list(spec, "matchConditions");
        expressions::match_conditions(errors, &path.child("matchConditions"), conditions, params, &stored);
    }
    let mut compiler = PolicyExpressions::new(params);
    expressions::variables(errors, &path, spec, &mut compiler, &Stored::default());
    let mutations = path.child("mutations");
    if list(spec, "mutations").is_empty() {
        errors.required(&mutations, "mutations must contain at least one item");
    }
    // Upstream compares even the expressions of JSON patches with the stored apply configurations.
    let stored =
        list(old, "mutations").iter().map(|mutation| text(get(mutation, "applyConfiguration"), "expression"));
    let stored: Stored<'_> = stored.collect();
    for (index, item) in list(spec, "mutations").iter().enumerate() {
        mutation(errors, &mutations.index(index), item, &mut compiler, &stored);
    }
    let policy = text(spec, "reinvocationPolicy");
    errors.required_one_of(&path.child("reinvocationPolicy"), policy, &REINVOCATION_POLICIES);
    if change.is_none() {
        policies::static_suffix(errors, object);
    }
}

/// Source: kubernetes pkg/apis/admissionregistration/validation/validation.go, `validateMutation`.
fn mutation(
    errors: &mut Errors,
    path: &Path<'_>,
    mutation: &Value,
    compiler: &mut PolicyExpressions,
    stored: &Stored<'_>,
) {
    let patch_type = text(mutation, "patchType");
    let (field, other, purpose) = match patch_type {
        "JSONPatch" => ("jsonPatch", "applyConfiguration", Purpose::JsonPatch),
        "ApplyConfiguration" => ("applyConfiguration", "jsonPatch", Purpose::ApplyConfiguration),
        _ => return errors.required_one_of(&path.child("patchType"), patch_type, &PATCH_TYPES),
    };
    match set(mutation, field) {
        None => {
            let why = format!("must be specified when patchType is {patch_type}");
            errors.required(&path.child(field), &why);
        }
        Some(change) => {
            let (path, written) = (path.child(field), text(change, "expression"));
            let (path, expression) = (path.child("expression"), written.trim());
            if expression.is_empty() {
                errors.required(&path, "");
            } else {
                let result = compiler.compile(expression, purpose, stored.environment(written));
                report(errors, &path, expression, result);
            }
        }
    }
    if set(mutation, other).is_some() {
        let why = format!("must not be specified when patchType is {patch_type}");
        errors.invalid_text(&path.child(other), &format!("{{{other}}}"), why);
    }
}

pub(crate) fn cells(object: &Value, context: &Context<'_>) -> Vec<Value> {
    policy_cells(object, context, "mutations")
}
