//! Implements `ValidatingAdmissionPolicy` objects.

use std::collections::HashSet;

use kubernetes_admission::policy_expressions::{PolicyExpressions, Purpose};
use serde_json::Value;

use crate::apimachinery::metadata;
use crate::kinds::admissionregistration;
use crate::kinds::admissionregistration::expressions::{Stored, report};
use crate::kinds::admissionregistration::policies::policy_cells;
use crate::kinds::admissionregistration::{expressions, policies};
use crate::kinds::common::cells::Context;
use crate::kinds::common::change::Change;
use crate::kinds::common::fields::{Errors, Path, get, list, set, text, word};
use crate::kinds::common::internal::Form;
use crate::kinds::common::{conditions, formats, json_path};
use crate::kinds::kind::{Kind, StatusKeeps};

/// The behavior of `ValidatingAdmissionPolicy` objects.
pub(crate) const KIND: Kind = Kind {
    group: "admissionregistration.k8s.io",
    resource: "validatingadmissionpolicies",
    kind: "ValidatingAdmissionPolicy",
    has_core_finalizers: false,
    requires_resource_version: true,
    status_keeps: StatusKeeps::Metadata,
    set_defaults: Some(admissionregistration::defaults::policy),
    validate,
    validate_subresources: &[("status", validate_status)],
    cells: Some(cells),
    ..Kind::COUNTED
};

const REASONS: [&str; 3] = ["Forbidden", "Invalid", "RequestEntityTooLarge"];

/// The expressions of the policy that an update replaces.
#[derive(Default)]
struct StoredPolicy<'a> {
    conditions: Stored<'a>,
    validations: Stored<'a>,
    messages: Stored<'a>,
    annotations: Stored<'a>,
}

impl<'a> StoredPolicy<'a> {
    /// Source: kubernetes pkg/apis/admissionregistration/validation/validation.go,
    /// `findValidatingPolicyPreexistingExpressions`.
    fn new(old: &'a Value) -> Self {
        let spec = get(old, "spec");
        let of = |list_field, field| Stored::new(list(spec, list_field), field);
        Self {
            conditions: of("matchConditions", "expression"),
            validations: of("validations", "expression"),
            messages: of("validations", "messageExpression"),
            annotations: of("auditAnnotations", "valueExpression"),
        }
    }
}

/// Validates a policy. An update does not validate match conditions that cannot have become invalid.
///
/// Source: kubernetes pkg/apis/admissionregistration/validation/validation.go,
/// `validateValidatingAdmissionPolicySpec`.
/// Rule: POL-C, POL-F.
pub(crate) fn validate(errors: &mut Errors, object: &Value, change: Option<Change<'_>>) {
    let (spec, path) = (get(object, "spec"), Path::new("spec"));
    let stored = change.map_or_else(StoredPolicy::default, |change| StoredPolicy::new(change.old));
    policies::definition(errors, &path, spec);
    let params = set(spec, "paramKind").is_some();
    if !change.is_some_and(keeps_conditions) {
        let conditions = list(spec, "matchConditions");
        expressions::match_conditions(
            errors,
            &path.child("matchConditions"),
            conditions,
            params,
            &stored.conditions,
        );
    }
    let mut compiler = if list(spec, "variables").is_empty() {
        PolicyExpressions::without_variables(params)
    } else {
        PolicyExpressions::new(params)
    };
    expressions::variables(errors, &path, spec, &mut compiler, &stored.validations);
    let (validations, annotations) = (path.child("validations"), path.child("auditAnnotations"));
    if list(spec, "validations").is_empty() && list(spec, "auditAnnotations").is_empty() {
        let why = "validations or auditAnnotations must contain at least one item";
        errors.required(&validations, why);
        errors.required(&annotations, why);
    } else {
        for (index, item) in list(spec, "validations").iter().enumerate() {
            validation(errors, &validations.index(index), item, &mut compiler, &stored);
        }
        let name = metadata::text(object, "name");
        audit_annotations(errors, &annotations, (name, spec), &mut compiler, &stored);
    }
    if change.is_none() {
        policies::static_suffix(errors, object);
    }
}

/// Returns whether an update changes neither the match conditions nor the `paramKind`.
///
/// Source: kubernetes pkg/apis/admissionregistration/validation/validation.go,
/// `ignoreValidatingAdmissionPolicyMatchConditions`.
/// Rule: POL-J.
pub(crate) fn keeps_conditions(change: Change<'_>) -> bool {
    change.is_same(&["spec", "paramKind"]) && change.is_same(&["spec", "matchConditions"])
}

/// Source: kubernetes pkg/apis/admissionregistration/validation/validation.go, `validateValidation`.
fn validation(
    errors: &mut Errors,
    path: &Path<'_>,
    validation: &Value,
    compiler: &mut PolicyExpressions,
    stored: &StoredPolicy<'_>,
) {
    let expression = text(validation, "expression");
    if expression.trim().is_empty() {
        errors.required(&path.child("expression"), "expression is not specified");
    } else {
        let environment = stored.validations.environment(expression);
        let result = compiler.compile(expression, Purpose::Condition, environment);
        report(errors, &path.child("expression"), expression, result);
    }
    let expression = text(validation, "messageExpression");
    if !expression.is_empty() {
        let path = path.child("messageExpression");
        if expression.trim().is_empty() {
            errors.invalid_text(&path, expression, "must be non-empty if specified");
        } else {
            let environment = stored.messages.environment(expression);
            report(errors, &path, expression, compiler.compile(expression, Purpose::Message, environment));
        }
    }
    let (message_path, message) = (path.child("message"), text(validation, "message"));
    if !message.is_empty() && message.trim().is_empty() {
        errors.invalid_text(&message_path, message, "must be non-empty if specified");
    } else if message.trim().contains(['\n', '\r']) {
        errors.invalid_text(&message_path, message, "must not contain line breaks");
    }
    errors.one_of(&path.child("reason"), word(validation, "reason"), &REASONS);
}

/// Source: kubernetes pkg/apis/admissionregistration/validation/validation.go, `validateAuditAnnotation`.
fn audit_annotations(
    errors: &mut Errors,
    path: &Path<'_>,
    (name, spec): (&str, &Value),
    compiler: &mut PolicyExpressions,
    stored: &StoredPolicy<'_>,
) {
    const MAX_AUDIT_ANNOTATIONS: usize = 20;
    const MAX_VALUE_EXPRESSION_LENGTH: usize = 5 * 1024;
    let annotations = list(spec, "auditAnnotations");
    if annotations.len() > MAX_AUDIT_ANNOTATIONS {
        let all = get(spec, "auditAnnotations");
        let shown = errors.shown(Form::List, "admissionregistration.AuditAnnotation", all);
        errors.invalid(
            path,
            shown,
            format_args!("must not have more than {MAX_AUDIT_ANNOTATIONS} auditAnnotations"),
        );
    }
    let mut seen = HashSet::new();
    for (index, annotation) in annotations.iter().enumerate() {
        let path = path.index(index);
        let (key_path, key) = (path.child("key"), text(annotation, "key"));
        if name.is_empty() {
            errors.invalid_text(&key_path, key, "requires metadata.name be non-empty");
        } else {
            formats::qualified_name(errors, &key_path, &format!("{name}/{key}"));
        }
        let (path, written) = (path.child("valueExpression"), text(annotation, "valueExpression"));
        let expression = written.trim();
        if expression.is_empty() {
            errors.required(&path, "valueExpression is not specified");
        } else if expression.len() > MAX_VALUE_EXPRESSION_LENGTH {
            let why = format!("must not exceed {MAX_VALUE_EXPRESSION_LENGTH} bytes in length");
            errors.required(&path, &why);
        } else {
            let environment = stored.annotations.environment(written);
            report(errors, &path, written, compiler.compile(expression, Purpose::Annotation, environment));
        }
        if !seen.insert(key) {
            errors.duplicate(&key_path, key);
        }
    }
}

/// Validates the status of a policy.
///
/// Source: kubernetes pkg/apis/admissionregistration/validation/validation.go,
/// `validateValidatingAdmissionPolicyStatus`.
/// Rule: POL-I.
pub(crate) fn validate_status(errors: &mut Errors, object: &Value, _: Change<'_>) {
    let (status, path) = (get(object, "status"), Path::new("status"));
    let type_checking = path.child("typeChecking");
    let warnings = type_checking.child("expressionWarnings");
    for (index, warning) in list(get(status, "typeChecking"), "expressionWarnings").iter().enumerate() {
        let path = warnings.index(index);
        if text(warning, "warning").is_empty() {
            errors.required(&path.child("warning"), "");
        }
        let field = text(warning, "fieldRef").trim();
        if field.is_empty() {
            errors.required(&path.child("fieldRef"), "");
        } else if !json_path::is_json_path(field) {
            errors.cannot_validate("the message for a fieldRef that is not a JSONPath");
        }
    }
    conditions::of_status(errors, object);
}

pub(crate) fn cells(object: &Value, context: &Context<'_>) -> Vec<Value> {
    policy_cells(object, context, "validations")
}
