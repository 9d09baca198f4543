//! Validates the pod failure policy and the success policy of Jobs.

use std::collections::HashSet;

use kubernetes_types::quoting::{encode, quote};
use kubernetes_types::status::FieldError;
use serde_json::{Value, json};

use crate::kinds::common::fields::{Errors, Path, get, int, list, set, text, word};
use crate::kinds::common::formats;

/// Validates `managedBy` of a Job.
///
/// Source: kubernetes pkg/apis/batch/validation/validation.go, `validateJobSpec`.
/// Rule: VLO-37.
pub(crate) fn manager(errors: &mut Errors, path: &Path<'_>, spec: &Value) {
    const MAX_MANAGED_BY_LENGTH: usize = 63;
    let Some(manager) = word(spec, "managedBy") else { return };
    let path = path.child("managedBy");
    formats::domain_prefixed_path(errors, &path, manager);
    if manager.len() > MAX_MANAGED_BY_LENGTH {
        errors.too_long(&path, MAX_MANAGED_BY_LENGTH);
    }
}

/// Validates the pod failure policy of a Job.
///
/// Source: kubernetes pkg/apis/batch/validation/validation.go, `validatePodFailurePolicy`.
/// Rule: VLO-37.
pub(crate) fn failure(errors: &mut Errors, path: &Path<'_>, spec: &Value) {
    const MAX_POD_FAILURE_POLICY_RULES: usize = 20;
    let Some(policy) = set(spec, "podFailurePolicy") else { return };
    let path = path.child("podFailurePolicy");
    let path = path.child("rules");
    let rules = list(policy, "rules");
    if rules.len() > MAX_POD_FAILURE_POLICY_RULES {
        errors.too_many(&path, rules.len(), MAX_POD_FAILURE_POLICY_RULES);
    }
    let template = get(get(spec, "template"), "spec");
    let containers = list(template, "containers").iter().chain(list(template, "initContainers"));
    let names: HashSet<&str> = containers.map(|container| text(container, "name")).collect();
    for (index, rule) in rules.iter().enumerate() {
        let path = path.index(index);
        let (action, action_path) = (text(rule, "action"), path.child("action"));
        match action {
            "" => {
                let why = "valid values: [\"Count\" \"FailIndex\" \"FailJob\" \"Ignore\"]";
                errors.required(&action_path, why);
            }
            "FailIndex" if set(spec, "backoffLimitPerIndex").is_none() => {
                let why = "requires the backoffLimitPerIndex to be set";
                errors.invalid_text(&action_path, action, why);
            }
            _ => {
                let actions = ["Count", "FailIndex", "FailJob", "Ignore"];
                errors.one_of(&action_path, Some(action), &actions);
            }
        }
        let (codes, conditions) = (set(rule, "onExitCodes"), list(rule, "onPodConditions"));
        if let Some(codes) = codes {
            exit_codes(errors, &path.child("onExitCodes"), codes, &names);
        }
        pod_conditions(errors, &path.child("onPodConditions"), conditions);
        match (codes.is_some(), conditions.is_empty()) {
            (true, false) => {
                let why = "specifying both OnExitCodes and OnPodConditions is not supported";
                errors.invalid_unshown(&path, why);
            }
            (false, true) => {
                let why = "specifying one of OnExitCodes and OnPodConditions is required";
                errors.invalid_unshown(&path, why);
            }
            _ => {}
        }
    }
}

fn pod_conditions(errors: &mut Errors, path: &Path<'_>, conditions: &[Value]) {
    const MAX_POD_FAILURE_POLICY_ON_POD_CONDITIONS_PATTERNS: usize = 20;
    if conditions.len() > MAX_POD_FAILURE_POLICY_ON_POD_CONDITIONS_PATTERNS {
        errors.too_many(path, conditions.len(), MAX_POD_FAILURE_POLICY_ON_POD_CONDITIONS_PATTERNS);
    }
    for (index, condition) in conditions.iter().enumerate() {
        let path = path.index(index);
        formats::qualified_name(errors, &path.child("type"), text(condition, "type"));
        let (status, status_path) = (text(condition, "status"), path.child("status"));
        if status.is_empty() {
            errors.required(&status_path, "valid values: [\"False\" \"True\" \"Unknown\"]");
        } else {
            errors.one_of(&status_path, Some(status), &["False", "True", "Unknown"]);
        }
    }
}

fn exit_codes(errors: &mut Errors, path: &Path<'_>, codes: &Value, names: &HashSet<&str>) {
    const MAX_POD_FAILURE_POLICY_ON_EXIT_CODES_VALUES: usize = 255;
    let (operator, operator_path) = (text(codes, "operator"), path.child("operator"));
    if operator.is_empty() {
        errors.required(&operator_path, "valid values: [\"In\" \"NotIn\"]");
    } else {
        errors.one_of(&operator_path, Some(operator), &["In", "NotIn"]);
    }
    if let Some(name) = word(codes, "containerName").filter(|name| !names.contains(name)) {
        let why = "must be one of the container or initContainer names in the pod template";
        errors.invalid_text(&path.child("containerName"), name, why);
    }
    let path = path.child("values");
    let values: Vec<i64> = list(codes, "values").iter().map(|value| value.as_i64().unwrap_or(0)).collect();
    if values.is_empty() {
        errors.invalid(&path, encode(get(codes, "values")), "at least one value is required");
    } else if values.len() > MAX_POD_FAILURE_POLICY_ON_EXIT_CODES_VALUES {
        errors.too_many(&path, values.len(), MAX_POD_FAILURE_POLICY_ON_EXIT_CODES_VALUES);
    }
    let mut seen = HashSet::new();
    for (index, value) in values.iter().enumerate() {
        let path = path.index(index);
        if operator == "In" && *value == 0 {
            errors.invalid(&path, value, "must not be 0 for the In operator");
        }
        if !seen.insert(value) {
            errors.push(FieldError::duplicate(path.to_string(), value));
        }
    }
    if !values.is_sorted() {
        errors.invalid(&path, encode(&json!(values)), "must be ordered");
    }
}

/// Validates the success policy of a Job.
///
/// Source: kubernetes pkg/apis/batch/validation/validation.go, `validateSuccessPolicy`.
/// Rule: VLO-37.
pub(crate) fn success(errors: &mut Errors, path: &Path<'_>, spec: &Value) {
    const MAX_SUCCESS_POLICY_RULE: usize = 20;
    const MAX_JOB_SUCCESS_POLICY_SUCCEEDED_INDEXES_LIMIT: usize = 64 * 1024;
    let Some(policy) = set(spec, "successPolicy") else { return };
    let (path, rules) = (path.child("successPolicy"), list(policy, "rules"));
    if text(spec, "completionMode") != "Indexed" {
        errors.invalid_structure(&path, "batch.SuccessPolicy", policy, "requires indexed completion mode");
        return;
    }
    let path = path.child("rules");
    if rules.is_empty() {
        let why = "at least one rules must be specified when the successPolicy is specified";
        errors.required(&path, why);
    }
    if rules.len() > MAX_SUCCESS_POLICY_RULE {
        errors.too_many(&path, rules.len(), MAX_SUCCESS_POLICY_RULE);
    }
    let completions = int(spec, "completions").unwrap_or(0);
    for (index, rule) in rules.iter().enumerate() {
        let path = path.index(index);
        let (indexes, count) = (word(rule, "succeededIndexes"), int(rule, "succeededCount"));
        if indexes.is_none() && count.is_none() {
            let why = "at least one of succeededCount or succeededIndexes must be specified";
            errors.required(&path, why);
        }
        let mut total = 0;
        if let Some(indexes) = indexes {
            let path = path.child("succeededIndexes");
            if indexes.len() > MAX_JOB_SUCCESS_POLICY_SUCCEEDED_INDEXES_LIMIT {
                errors.too_long(&path, MAX_JOB_SUCCESS_POLICY_SUCCEEDED_INDEXES_LIMIT);
            }
            match number_of_indexes(indexes, completions) {
                Ok(number) => total = number,
                Err(why) => {
                    errors.invalid_text(&path, indexes, format!("error parsing succeededIndexes: {why}"));
                }
            }
        }
        let Some(count) = count else { continue };
        let path = path.child("succeededCount");
        errors.not_negative(&path, Some(count));
        if count > completions {
            let why =
                format!("must be less than or equal to {completions} (the number of specified completions)");
            errors.invalid(&path, count, why);
        }
        if indexes.is_some() && count > total {
            let why = format!(
                "must be less than or equal to {total} (the number of indexes in the specified succeededIndexes field)"
            );
            errors.invalid(&path, count, why);
        }
    }
}

/// Parses intervals such as `1,3-5`. Returns the first and the last index of each interval, or an error.
///
/// Source: kubernetes pkg/apis/batch/validation/validation.go, `parseIndexInterval`.
pub(crate) fn intervals(text: &str, completions: i64) -> impl Iterator<Item = Result<(i64, i64), String>> {
    let index = move |part: &str| {
        let number: i64 = part
            .parse()
            .map_err(|_error| format!("cannot convert string to integer for index: {}", quote(part)))?;
        if number < completions { Ok(number) } else { Err(format!("too large index: {}", quote(part))) }
    };
    text.split(',').filter(move |_| !text.is_empty()).map(move |interval| {
        let mut parts = interval.split('-');
        let (first, second) = (parts.next().unwrap_or_default(), parts.next());
        if parts.next().is_some() {
            return Err(format!(
                "the fragment {} violates the requirement that an index interval can have at most two parts separated \
                 by '-'",
                quote(interval)
            ));
        }
        let first = index(first)?;
        match second.map(index).transpose()? {
            Some(end) if first >= end => Err(disorder(first, end)),
            Some(end) => Ok((first, end)),
            None => Ok((first, first)),
        }
    })
}

fn disorder(previous: i64, current: i64) -> String {
    format!("non-increasing order, previous: {previous}, current: {current}")
}

/// Returns the number of indexes in a list of intervals such as `1,3-5`.
///
/// Source: kubernetes pkg/apis/batch/validation/validation.go, `validateIndexesFormat`.
pub(crate) fn number_of_indexes(text: &str, completions: i64) -> Result<i64, String> {
    let mut total = 0_i64;
    let mut last = None;
    for interval in intervals(text, completions) {
        let (first, end) = interval?;
        if let Some(last) = last.filter(|last| *last >= first) {
            return Err(disorder(last, first));
        }
        total = total.saturating_add(end - first + 1);
        last = Some(end);
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_are_counted() {
        assert_eq!(number_of_indexes("", 5), Ok(0));
        assert_eq!(number_of_indexes("0,2-4", 5), Ok(4));
        assert!(number_of_indexes("0,0", 5).is_err());
        assert!(number_of_indexes("3-1", 5).is_err());
        assert!(number_of_indexes("5", 5).is_err());
        assert!(number_of_indexes("1-2-3", 5).is_err());
        assert!(number_of_indexes("a", 5).is_err());
    }
}
