//! Access reviews: `SubjectAccessReview` and similar kinds.

use kubernetes_admission::attributes::UserInfo;
use kubernetes_admission::authorizer::{
    AccessRequest, AccessTarget, Authorizer, Decision, PolicyRule, ResourceTarget,
};
use kubernetes_types::json::set;
use kubernetes_types::status::{FieldError, MAX_ERRORS, Status};
use serde_json::{Map, Value, json};

use crate::kinds::rbac::requirements;
use crate::kinds::rbac::requirements::UnknownOperator;
use crate::kinds::rbac::{list, text};
use crate::registry::selectors;

const GROUP: &str = "authorization.k8s.io";
const ONE_OF: &str = "exactly one of nonResourceAttributes or resourceAttributes must be specified";

/// The metadata fields in the order in which the Go type declares them.
///
/// Source: apimachinery pkg/apis/meta/v1/types.go, `ObjectMeta`.
const METADATA: [&str; 14] = [
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
];

/// Rejects an invalid review; `resource` is the plural resource name of the review.
///
/// Source: kubernetes pkg/apis/authorization/validation/validation.go; `pkg/registry/authorization/*/rest.go`.
/// Rule: RBAC-13, RBAC-14.
///
/// # Errors
/// Returns 400 for a rules review without a namespace, or 422 for invalid fields of any other review.
pub(crate) fn check(resource: &str, review: &Value) -> Result<(), Box<Status>> {
    let none = Value::Null;
    let spec = review.get("spec").unwrap_or(&none);
    if resource == "selfsubjectrulesreviews" {
        if text(spec, "namespace").is_empty() {
            return Err(Box::new(Status::bad_request("no namespace on request")));
        }
        return Ok(());
    }
    let errors = errors(resource, review, spec);
    if errors.is_empty() { Ok(()) } else { Err(Box::new(Status::invalid(GROUP, "", "", &errors))) }
}

fn errors(resource: &str, review: &Value, spec: &Value) -> Vec<FieldError> {
    let of_resource = spec.get("resourceAttributes").filter(|attributes| attributes.is_object());
    let of_path = spec.get("nonResourceAttributes").filter(|attributes| attributes.is_object());
    let path_attributes = of_path.map_or_else(
        || "null".to_owned(),
        |attributes| {
            let text = |field| Value::from(text(attributes, field));
            format!("{{\"Path\":{},\"Verb\":{}}}", text("path"), text("verb"))
        },
    );
    let is_self = resource == "selfsubjectaccessreviews";
    let is_local = resource == "localsubjectaccessreviews";
    let mut errors = Vec::new();
    if of_resource.is_some() == of_path.is_some() {
        errors.push(FieldError::invalid("spec", &path_attributes, ONE_OF));
    }
    if !is_self && text(spec, "user").is_empty() && list(spec, "groups").is_empty() {
        errors.push(FieldError::invalid(
            "spec.user",
            "\"\"",
            "at least one of user or group must be specified",
        ));
    }
    if let Some(attributes) = of_resource {
        for (field, is_of_labels) in [("fieldSelector", false), ("labelSelector", true)] {
            if let Some(selector) = attributes.get(field).filter(|selector| selector.is_object()) {
                let path = format!("spec.resourceAttributes.{field}");
                errors.extend(selector_errors(selector, &path, is_of_labels));
            }
        }
    }
    let allowed = if is_local { &["namespace"][..] } else { &[] };
    let metadata = review.get("metadata").and_then(Value::as_object);
    if let Some(metadata) = metadata.filter(|it| it.keys().any(|field| is_said(it, field, allowed))) {
        let why = if is_local { "must be empty except for namespace" } else { "must be empty" };
        errors.push(FieldError::invalid("metadata", in_order(metadata), why));
    }
    if is_local {
        let namespace = metadata.and_then(|metadata| metadata.get("namespace")?.as_str()).unwrap_or_default();
        if let Some(wrong) = of_resource.map(|it| text(it, "namespace")).filter(|it| *it != namespace) {
            let path = "spec.resourceAttributes.namespace";
            errors.push(FieldError::invalid(path, Value::from(wrong), "must match metadata.namespace"));
        }
        if of_path.is_some() {
            let why = "disallowed on this kind of request";
            errors.push(FieldError::invalid("spec.nonResourceAttributes", &path_attributes, why));
        }
    }
    errors
}

fn is_said(metadata: &Map<String, Value>, field: &str, allowed: &[&str]) -> bool {
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    };
    field != "managedFields" && !allowed.contains(&field) && !metadata.get(field).is_none_or(is_empty)
}

fn in_order(metadata: &Map<String, Value>) -> String {
    let said = METADATA.iter().filter(|field| is_said(metadata, field, &[]));
    let said: Vec<String> =
        said.filter_map(|field| Some(format!("{}:{}", Value::from(*field), metadata.get(*field)?))).collect();
    format!("{{{}}}", said.join(","))
}

fn selector_errors(selector: &Value, path: &str, is_of_labels: bool) -> Vec<FieldError> {
    let (raw, requirements) = (text(selector, "rawSelector"), list(selector, "requirements"));
    let mut errors = Vec::new();
    if !raw.is_empty() && !requirements.is_empty() {
        let why = "may not specified at the same time as requirements";
        errors.push(FieldError::invalid(format!("{path}.rawSelector"), Value::from(raw), why));
    }
    if raw.is_empty() && requirements.is_empty() {
        let why = format!("when {path} is specified, requirements or rawSelector is required");
        errors.push(FieldError::required(format!("{path}.requirements"), &why));
    }
    for (index, requirement) in requirements.iter().enumerate() {
        if errors.len() > MAX_ERRORS {
            break;
        }
        let path = format!("{path}.requirements[{index}]");
        errors.extend(if is_of_labels {
            requirements::of_labels(requirement, &path, UnknownOperator::Allowed)
        } else {
            requirements::of_fields(requirement, &path)
        });
    }
    errors
}

/// Returns the response to a valid review created by `user`.
///
/// Source: `pkg/registry/authorization/*/rest.go` and pkg/registry/authorization/util/helpers.go.
/// Rule: RBAC-11, RBAC-12.
///
/// # Errors
/// Returns 501 for a label selector that admit does not support.
pub(crate) fn answer(
    resource: &str,
    mut review: Value,
    user: &UserInfo,
    authorizer: &dyn Authorizer,
) -> Result<Value, Box<Status>> {
    let spec = review.get("spec").cloned().unwrap_or_default();
    if resource == "selfsubjectrulesreviews" {
        return Ok(rules(&review, &spec, user, authorizer));
    }
    let named;
    let user = if resource == "selfsubjectaccessreviews" {
        user
    } else {
        named = user_of(&spec);
        &named
    };
    let mut errors = Vec::new();
    let decision = if let Some(attributes) = spec.get("resourceAttributes").filter(|it| it.is_object()) {
        errors = ignored(attributes)?;
        let selector =
            |field: &str| attributes.get(field).map_or("", |selector| text(selector, "rawSelector"));
        let version = text(attributes, "version");
        let target = ResourceTarget {
            group: text(attributes, "group"),
            version: if version.is_empty() { "*" } else { version },
            resource: text(attributes, "resource"),
            subresource: text(attributes, "subresource"),
            namespace: text(attributes, "namespace"),
            name: text(attributes, "name"),
            field_selector: selector("fieldSelector"),
            label_selector: selector("labelSelector"),
        };
        let target = AccessTarget::Resource(target);
        authorizer.authorize(&AccessRequest { user, verb: text(attributes, "verb"), target })
    } else {
        let none = Value::Null;
        let attributes = spec.get("nonResourceAttributes").unwrap_or(&none);
        let target = AccessTarget::Path(text(attributes, "path"));
        authorizer.authorize(&AccessRequest { user, verb: text(attributes, "verb"), target })
    };
    let mut status = json!({"allowed": decision.is_allowed()});
    if decision.decision == Decision::Deny {
        set(&mut status, &["denied"], true);
    }
    if !decision.reason.is_empty() {
        set(&mut status, &["reason"], decision.reason);
    }
    let errors: Vec<String> = decision.error.into_iter().chain(errors).collect();
    if !errors.is_empty() {
        set(&mut status, &["evaluationError"], errors.join("; "));
    }
    if let Some(members) = review.as_object_mut() {
        members.insert("status".to_owned(), status);
    }
    Ok(review)
}

fn user_of(spec: &Value) -> UserInfo {
    let texts = |list: &[Value]| list.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    let extra = spec.get("extra").and_then(Value::as_object).into_iter().flatten();
    UserInfo {
        username: text(spec, "user").to_owned(),
        uid: text(spec, "uid").to_owned(),
        groups: texts(list(spec, "groups")),
        extra: extra
            .map(|(key, values)| (key.clone(), texts(values.as_array().map_or(&[][..], Vec::as_slice))))
            .collect(),
    }
}

/// Returns an error for each selector that is wholly or partially ignored because it cannot be parsed.
///
/// Source: kubernetes pkg/registry/authorization/util/helpers.go, `BuildEvaluationError`.
fn ignored(attributes: &Value) -> Result<Vec<String>, Box<Status>> {
    let mut errors = Vec::new();
    for (field, is_of_labels) in [("fieldSelector", false), ("labelSelector", true)] {
        let Some(selector) = attributes.get(field).filter(|selector| selector.is_object()) else { continue };
        let raw = text(selector, "rawSelector");
        let (mut wrong, mut right) = (0, 0);
        if !raw.is_empty() && !is_readable(raw, is_of_labels)? {
            wrong += 1;
        }
        for requirement in list(selector, "requirements") {
            let operator = text(requirement, "operator");
            let is_known = if is_of_labels {
                ["In", "NotIn", "Exists", "DoesNotExist"].contains(&operator)
            } else {
                ["In", "NotIn"].contains(&operator) && list(requirement, "values").len() == 1
            };
            if is_known { right += 1 } else { wrong += 1 }
        }
        if wrong > 0 {
            let how = if right > 0 { "partially ignored" } else { "ignored" };
            errors.push(format!("spec.resourceAttributes.{field} {how} due to parse error"));
        }
    }
    Ok(errors)
}

fn is_readable(raw: &str, is_of_labels: bool) -> Result<bool, Box<Status>> {
    if !is_of_labels {
        return Ok(raw.split(',').filter(|term| !term.is_empty()).all(|term| term.contains('=')));
    }
    match selectors::label_selector(raw) {
        Ok(_) => Ok(true),
        Err(status) if status.code == 501 => Err(status),
        Err(_) => Ok(false),
    }
}

/// Returns the response to a rules review. The response contains only the status of the review.
///
/// Rule: RBAC-14.
fn rules(review: &Value, spec: &Value, user: &UserInfo, authorizer: &dyn Authorizer) -> Value {
    let found = authorizer.rules_for(user, text(spec, "namespace"));
    let shown = |rule: &PolicyRule, fields: &[(&str, &Vec<String>)]| {
        let present = fields.iter().filter(|(_, list)| !list.is_empty());
        let mut members: Map<String, Value> =
            present.map(|(field, list)| ((*field).to_owned(), json!(list))).collect();
        members.insert("verbs".to_owned(), json!(rule.verbs));
        Value::Object(members)
    };
    let of_resources = found.rules.iter().filter(|rule| !rule.resources.is_empty()).map(|rule| {
        let names = ("resourceNames", &rule.resource_names);
        shown(rule, &[("apiGroups", &rule.api_groups), ("resources", &rule.resources), names])
    });
    let of_paths = found.rules.iter().filter(|rule| !rule.non_resource_urls.is_empty());
    let of_paths = of_paths.map(|rule| shown(rule, &[("nonResourceURLs", &rule.non_resource_urls)]));
    let mut status = json!({
        "resourceRules": of_resources.collect::<Vec<_>>(),
        "nonResourceRules": of_paths.collect::<Vec<_>>(),
        "incomplete": false,
    });
    if !found.error.is_empty() {
        set(&mut status, &["evaluationError"], found.error);
    }
    json!({
        "kind": review.get("kind"),
        "apiVersion": review.get("apiVersion"),
        "metadata": {},
        "spec": {},
        "status": status,
    })
}
