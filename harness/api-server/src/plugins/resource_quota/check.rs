//! Compares a request with quotas.

use std::sync::Arc;

use kubernetes_admission::attributes::{Attributes, Operation};
use kubernetes_types::json::{at, text};
use kubernetes_types::names;
use kubernetes_types::status::{Status, Unsupported};
use serde_json::{Map, Value, json};

use super::evaluator::Evaluator;
use super::resource_lists::{add, mask, pretty_print, subtract_with_non_negative_result};
use crate::kinds::core::pod::pod_resources::{self, ResourceList};
use crate::plugins::forbidden;

/// Returns the quotas whose usage the request changes, with the new usage in their status.
///
/// # Errors
/// Returns the response for the client if a quota does not admit the request.
///
/// Source: apiserver pkg/admission/plugin/resourcequota/controller.go, `CheckRequest`.
/// Rule: QTA-03, QTA-04.
pub(super) fn check_request(
    quotas: &[Arc<Value>],
    attributes: &Attributes,
    evaluator: &Evaluator,
) -> Result<Vec<Value>, Box<Status>> {
    let Some(object) = &attributes.object else { return Ok(Vec::new()) };
    let mut interesting = Vec::new();
    for quota in quotas {
        if let Some(hard) = interest(quota, attributes, object, evaluator)? {
            interesting.push((quota, hard));
        }
    }
    let usage = evaluator.usage(object);
    let negative: Vec<&str> =
        usage.iter().filter(|(_, amount)| amount.sign() < 0).map(|(name, _)| name.as_str()).collect();
    if !negative.is_empty() {
        let why = format!("quota usage is negative for resource(s): {}", negative.join(","));
        return Err(forbidden(attributes, &why));
    }
    let old = attributes.old_object.as_ref().filter(|_| attributes.operation == Operation::Update);
    let mut charged = Vec::new();
    for (quota, hard) in interesting {
        let delta = match old {
            Some(old) if matches(quota, &hard, old, evaluator) => {
                subtract_with_non_negative_result(&usage, &evaluator.usage(old))
            }
            _ => usage.clone(),
        };
        let requested = mask(&delta, |name| {
            hard.contains_key(name) && delta.get(name).is_some_and(|amount| !amount.is_zero())
        });
        if requested.is_empty() {
            continue;
        }
        charged.push(charge(quota, attributes, &hard, &requested)?);
    }
    Ok(charged)
}

/// Returns the limits of a quota that applies to the request; `None` if the quota does not apply.
fn interest(
    quota: &Value,
    attributes: &Attributes,
    object: &Value,
    evaluator: &Evaluator,
) -> Result<Option<ResourceList>, Box<Status>> {
    let hard = pod_resources::list(quota.get("status"), "hard");
    let name = text(quota, &["metadata", "name"]);
    if let Some(what) = unsupported(quota, &hard, name, evaluator) {
        return Err(Box::new(Status::unsupported(&Unsupported { what })));
    }
    if !matches(quota, &hard, object, evaluator) {
        return Ok(None);
    }
    let restricted: Vec<&str> = restricted(&hard, evaluator);
    if let Some(missing) = evaluator.missing_resources(&restricted, object) {
        return Err(forbidden(attributes, &format!("failed quota: {name}: must specify {missing}")));
    }
    let used = pod_resources::list(quota.get("status"), "used");
    if restricted.iter().any(|resource| !used.contains_key(*resource)) {
        let why = format!("status unknown for quota: {name}, resources: {}", restricted.join(","));
        return Err(forbidden(attributes, &why));
    }
    Ok(Some(hard))
}

/// Returns what admit does not support about a quota for the objects of the evaluator.
fn unsupported(quota: &Value, hard: &ResourceList, name: &str, evaluator: &Evaluator) -> Option<String> {
    if let Some(limited) = hard.keys().find(|limited| evaluator.depends_on_device_classes(limited)) {
        return Some(format!("ResourceQuota {name:?} for a ResourceClaim, whose status limits {limited}"));
    }
    // kube-apiserver cannot parse such a selector.
    let scope = evaluator.selected_scope()?;
    let mut requirements = selectors(quota).filter(|requirement| text(requirement, &["scopeName"]) == scope);
    let invalid = requirements.find_map(|requirement| {
        let is_invalid = |value: &&str| !names::label_value(value).is_empty();
        strings(&requirement, "values").find(is_invalid).map(str::to_owned)
    })?;
    Some(format!("ResourceQuota {name:?}, whose scope selector has the value {invalid:?}"))
}

/// Returns the limits that apply to the objects of the evaluator, in alphabetical order.
fn restricted<'a>(hard: &'a ResourceList, evaluator: &Evaluator) -> Vec<&'a str> {
    hard.keys().map(String::as_str).filter(|limited| evaluator.matches_resource(limited)).collect()
}

/// Returns whether a quota applies to an object: one of its limits does, and the object is in all of its scopes.
///
/// Source: apiserver pkg/quota/v1/generic/evaluator.go, `Matches`.
/// Rule: QTA-05.
fn matches(quota: &Value, hard: &ResourceList, object: &Value, evaluator: &Evaluator) -> bool {
    !restricted(hard, evaluator).is_empty()
        && selectors(quota).all(|selector| evaluator.matches_scope(&selector, object))
}

/// Returns the scopes of a quota as requirements of a scope selector.
fn selectors(quota: &Value) -> impl Iterator<Item = Value> {
    let spec = at(quota, &["spec"]);
    let scopes = strings(spec, "scopes").map(|scope| json!({"scopeName": scope, "operator": "Exists"}));
    let expressions = at(spec, &["scopeSelector", "matchExpressions"]).as_array();
    scopes.chain(expressions.into_iter().flatten().cloned())
}

fn strings<'a>(object: &'a Value, field: &str) -> impl Iterator<Item = &'a str> {
    object.get(field).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

/// Returns the quota with `requested` added to its usage.
fn charge(
    quota: &Value,
    attributes: &Attributes,
    hard: &ResourceList,
    requested: &ResourceList,
) -> Result<Value, Box<Status>> {
    let used = pod_resources::list(quota.get("status"), "used");
    let usage = add(&used, requested);
    let exceeds = |name: &str| {
        requested.contains_key(name)
            && matches!((usage.get(name), hard.get(name)), (Some(new), Some(limit)) if new > limit)
    };
    if attributes.subresource != "status" && requested.keys().any(|name| exceeds(name)) {
        let why = format!(
            "exceeded quota: {}, requested: {}, used: {}, limited: {}",
            text(quota, &["metadata", "name"]),
            pretty_print(&mask(requested, exceeds)),
            pretty_print(&mask(&used, exceeds)),
            pretty_print(&mask(hard, exceeds)),
        );
        return Err(forbidden(attributes, &why));
    }
    let usage: Map<String, Value> =
        usage.into_iter().map(|(name, amount)| (name, amount.to_string().into())).collect();
    let mut quota = quota.clone();
    if let Some(status) = quota.get_mut("status").and_then(Value::as_object_mut) {
        status.insert("used".to_owned(), usage.into());
    }
    Ok(quota)
}
