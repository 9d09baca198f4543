//! Validates scheduling constraints: tolerations, affinity, and topology spread.

use std::collections::{HashMap, HashSet};

use kubernetes_types::names;
use serde_json::Value;

use crate::kinds::common::fields::{Errors, NOT_POSITIVE, Path, get, int, list, set, text, texts, word};
use crate::kinds::common::{formats, selectors};

const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// Validates tolerations.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `ValidateTolerations`.
/// Rule: VLO-12.
pub(crate) fn tolerations(errors: &mut Errors, path: &Path<'_>, tolerations: &[Value]) {
    for (index, toleration) in tolerations.iter().enumerate() {
        let path = path.index(index);
        let of = |field| text(toleration, field);
        let (key, operator, effect) = (of("key"), of("operator"), of("effect"));
        if key.is_empty() {
            if operator != "Exists" {
                let why = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
                errors.invalid_text(&path.child("operator"), operator, why);
            }
        } else {
            formats::qualified_name(errors, &path.child("key"), key);
        }
        if set(toleration, "tolerationSeconds").is_some() && effect != "NoExecute" {
            let why = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            errors.invalid_text(&path.child("effect"), effect, why);
        }
        let value = of("value");
        let of_operator = path.child("operator");
        match operator {
            "Equal" | "" => {
                let wrong = names::label_value(value);
                if !wrong.is_empty() {
                    errors.invalid_text(&of_operator, value, wrong.join(";"));
                }
            }
            "Exists" if !value.is_empty() => {
                let why = "value must be empty when `operator` is 'Exists'";
                errors.invalid_text(&of_operator, value, why);
            }
            "Exists" => {}
            "Lt" | "Gt" => errors.unsupported(&of_operator, operator, &["Equal", "Exists", "Lt", "Gt"]),
            other => errors.unsupported(&of_operator, other, &["Equal", "Exists"]),
        }
        if !effect.is_empty() {
            errors.one_of(&path.child("effect"), Some(effect), &EFFECTS);
        }
    }
}

/// Validates the affinity of a Pod.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validateAffinity`.
/// Rule: VLO-12.
pub(crate) fn affinity(errors: &mut Errors, path: &Path<'_>, affinity: &Value) {
    const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
    const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
    if let Some(nodes) = set(affinity, "nodeAffinity") {
        let path = path.child("nodeAffinity");
        if let Some(selector) = set(nodes, REQUIRED) {
            node_selector(errors, &path.child(REQUIRED), selector);
        }
        let path = path.child(PREFERRED);
        for (index, term) in list(nodes, PREFERRED).iter().enumerate() {
            let path = path.index(index);
            weight(errors, &path, term);
            node_term(errors, &path.child("preference"), get(term, "preference"), Values::Any);
        }
    }
    for field in ["podAffinity", "podAntiAffinity"] {
        let Some(pods) = set(affinity, field) else { continue };
        let path = path.child(field);
        let required = path.child(REQUIRED);
        for (index, term) in list(pods, REQUIRED).iter().enumerate() {
            pod_term(errors, &required.index(index), term);
        }
        let preferred = path.child(PREFERRED);
        for (index, weighted) in list(pods, PREFERRED).iter().enumerate() {
            let path = preferred.index(index);
            weight(errors, &path, weighted);
            pod_term(errors, &path.child("podAffinityTerm"), get(weighted, "podAffinityTerm"));
        }
    }
}

fn weight(errors: &mut Errors, path: &Path<'_>, term: &Value) {
    let weight = int(term, "weight").unwrap_or(0);
    if !(1..=100).contains(&weight) {
        errors.invalid(&path.child("weight"), weight, "must be in the range 1-100");
    }
}

/// The label values that a node selector may contain.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Values {
    Valid,
    Any,
}

/// Validates a node selector.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `ValidateNodeSelector`.
pub(crate) fn node_selector(errors: &mut Errors, path: &Path<'_>, selector: &Value) {
    let path = path.child("nodeSelectorTerms");
    let terms = list(selector, "nodeSelectorTerms");
    if terms.is_empty() {
        errors.required(&path, "must have at least one node selector term");
    }
    for (index, term) in terms.iter().enumerate() {
        node_term(errors, &path.index(index), term, Values::Valid);
    }
}

/// Validates a term of a node selector.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `ValidateNodeSelectorTerm`.
fn node_term(errors: &mut Errors, path: &Path<'_>, term: &Value, allowed: Values) {
    let expressions = path.child("matchExpressions");
    for (index, expression) in list(term, "matchExpressions").iter().enumerate() {
        let path = expressions.index(index);
        let values = path.child("values");
        let count = list(expression, "values").len();
        match text(expression, "operator") {
            "In" | "NotIn" if count == 0 => {
                errors.required(&values, "must be specified when `operator` is 'In' or 'NotIn'");
            }
            "Exists" | "DoesNotExist" if count > 0 => {
                let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                errors.forbidden(&values, why);
            }
            "Gt" | "Lt" if count != 1 => {
                errors.required(&values, "must be specified single value when `operator` is 'Lt' or 'Gt'");
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
            other => errors.invalid_text(&path.child("operator"), other, "not a valid selector operator"),
        }
        formats::qualified_name(errors, &path.child("key"), text(expression, "key"));
        if allowed == Values::Valid {
            for (index, value) in texts(expression, "values").enumerate() {
                errors.all_invalid(&values.index(index), value, names::label_value(value));
            }
        }
    }
    let fields = path.child("matchFields");
    for (index, field) in list(term, "matchFields").iter().enumerate() {
        let path = fields.index(index);
        let values = path.child("values");
        match text(field, "operator") {
            "In" | "NotIn" if list(field, "values").len() != 1 => {
                let why = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
                errors.required(&values, why);
            }
            "In" | "NotIn" => {}
            other => errors.invalid_text(&path.child("operator"), other, "not a valid selector operator"),
        }
        let key = text(field, "key");
        if key == "metadata.name" {
            for (index, value) in texts(field, "values").enumerate() {
                formats::dns_subdomain(errors, &values.index(index), value);
            }
        } else {
            errors.invalid_text(&path.child("key"), key, "not a valid field selector key");
        }
    }
}

/// Validates a term of a Pod affinity.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validatePodAffinityTerm`.
fn pod_term(errors: &mut Errors, path: &Path<'_>, term: &Value) {
    for field in ["labelSelector", "namespaceSelector"] {
        selectors::label_selector(errors, &path.child(field), get(term, field));
    }
    for namespace in texts(term, "namespaces") {
        formats::dns_label(errors, &path.child("namespace"), namespace);
    }
    label_keys(errors, path, term);
    let key = text(term, "topologyKey");
    if key.is_empty() {
        errors.required(&path.child("topologyKey"), "can not be empty");
    }
    formats::qualified_name(errors, &path.child("topologyKey"), key);
}

/// Validates `matchLabelKeys` and `mismatchLabelKeys` next to a label selector.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `ValidateMatchLabelKeysAndMismatchLabelKeys`.
fn label_keys(errors: &mut Errors, path: &Path<'_>, owner: &Value) {
    let selector = set(owner, "labelSelector");
    for field in ["matchLabelKeys", "mismatchLabelKeys"] {
        let path = path.child(field);
        if list(owner, field).is_empty() {
            continue;
        }
        if selector.is_none() {
            errors.forbidden(&path, "must not be specified when labelSelector is not set");
            continue;
        }
        for (index, key) in texts(owner, field).enumerate() {
            formats::qualified_name(errors, &path.index(index), key);
        }
    }
    let positions: HashMap<&str, usize> =
        texts(owner, "matchLabelKeys").enumerate().map(|(index, key)| (key, index)).collect();
    if let Some(selector) = selector {
        let labels = get(selector, "matchLabels").as_object();
        let mut seen: HashSet<&str> = labels.into_iter().flatten().map(|(key, _)| key.as_str()).collect();
        for expression in list(selector, "matchExpressions") {
            let key = text(expression, "key");
            if let Some(index) = positions.get(key)
                && seen.contains(key)
            {
                let why = "exists in both matchLabelKeys and labelSelector";
                errors.invalid_text(&path.index(*index), key, why);
            }
            seen.insert(key);
        }
    }
    let mismatched: HashSet<&str> = texts(owner, "mismatchLabelKeys").collect();
    let path = path.child("matchLabelKeys");
    for (index, key) in texts(owner, "matchLabelKeys").enumerate() {
        if mismatched.contains(key) {
            let why = "exists in both matchLabelKeys and mismatchLabelKeys";
            errors.invalid_text(&path.index(index), key, why);
        }
    }
}

/// Validates topology spread constraints.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validateTopologySpreadConstraints`.
/// Rule: VLO-12.
pub(crate) fn spread(errors: &mut Errors, path: &Path<'_>, spec: &Value) {
    let constraints = list(spec, "topologySpreadConstraints");
    let pair = |constraint| (text(constraint, "topologyKey"), text(constraint, "whenUnsatisfiable"));
    let mut left: HashMap<(&str, &str), usize> = HashMap::new();
    for constraint in constraints {
        *left.entry(pair(constraint)).or_default() += 1;
    }
    for (index, constraint) in constraints.iter().enumerate() {
        let path = path.index(index);
        let (key, action) = pair(constraint);
        let skew = int(constraint, "maxSkew").unwrap_or(0);
        if skew <= 0 {
            errors.invalid(&path.child("maxSkew"), skew, NOT_POSITIVE);
        }
        if key.is_empty() {
            errors.required(&path.child("topologyKey"), "can not be empty");
        }
        let supported = ["DoNotSchedule", "ScheduleAnyway"];
        errors.one_of(&path.child("whenUnsatisfiable"), Some(action), &supported);
        // Reported at each occurrence except for the last.
        if let Some(count) = left.get_mut(&(key, action)) {
            *count -= 1;
            if *count > 0 {
                errors.duplicate(
                    &path.child("{topologyKey, whenUnsatisfiable}"),
                    &format!("{{{key}, {action}}}"),
                );
            }
        }
        if let Some(domains) = int(constraint, "minDomains") {
            let path = path.child("minDomains");
            if domains <= 0 {
                errors.invalid(&path, domains, NOT_POSITIVE);
            }
            if action != "DoNotSchedule" {
                let why = format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}");
                errors.invalid(&path, domains, why);
            }
        }
        for field in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            errors.one_of(&path.child(field), word(constraint, field), &["Honor", "Ignore"]);
        }
        label_keys(errors, &path, constraint);
        selectors::label_selector(errors, &path.child("labelSelector"), get(constraint, "labelSelector"));
    }
}
