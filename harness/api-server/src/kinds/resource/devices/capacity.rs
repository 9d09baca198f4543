//! Validates device capacities and their request policies.

use std::collections::HashSet;

use kubernetes_types::quantity;
use kubernetes_types::quantity::Quantity;
use kubernetes_types::quoting::quote;
use kubernetes_types::status::FieldError;
use serde_json::Value;

use crate::kinds::common::fields::{Errors, NEGATIVE, Path, get, list, set};

/// Validates the request policy of a device capacity.
///
/// Source: kubernetes pkg/apis/resource/validation/validation.go, `validateMultiAllocatableDeviceCapacity` and
/// `validateSingleAllocatableDeviceCapacity`.
/// Rule: VLO-46.
pub(crate) fn check(errors: &mut Errors, path: &Path<'_>, capacity: &Value, is_shared: bool) {
    let path = path.child("requestPolicy");
    let Some(policy) = set(capacity, "requestPolicy") else { return };
    if !is_shared {
        errors.forbidden(&path, "allowMultipleAllocations must be true");
        return;
    }
    let (values, range) = (list(policy, "validValues"), set(policy, "validRange"));
    // Quantities with too many digits are not supported.
    let Some(most) = quantity::from_value(get(capacity, "value")) else { return };
    let usual = set(policy, "default");
    let (field, range) = match (values, range) {
        ([], None) => return,
        ([_, ..], Some(_)) => {
            let why = "exactly one policy can be specified, cannot specify \"validValues\" and \"validRange\" at the same time";
            errors.forbidden(&path, why);
            return;
        }
        ([_, ..], None) => ("validValues", None),
        ([], range) => ("validRange", range),
    };
    let Some(usual) = usual else {
        errors.required(&path.child("default"), &format!("required when {field} is defined"));
        return;
    };
    let Some(usual) = quantity::from_value(usual) else { return };
    let path = path.child(field);
    if let Some(range) = range {
        self::range(errors, &path, range, &usual, &most);
    } else {
        let values: Option<Vec<Quantity>> = values.iter().map(quantity::from_value).collect();
        self::values(errors, &path, &values.unwrap_or_default(), &usual, &most);
    }
}

fn wrong(errors: &mut Errors, path: &Path<'_>, found: &Quantity, why: impl std::fmt::Display) {
    errors.invalid_text(path, &found.to_string(), why);
}

/// Validates `validValues` of a request policy.
///
/// Source: kubernetes pkg/apis/resource/validation/validation.go, `validateRequestPolicyValidValues`.
fn values(errors: &mut Errors, path: &Path<'_>, values: &[Quantity], usual: &Quantity, most: &Quantity) {
    const CAPACITY_REQUEST_POLICY_DISCRETE_MAX_OPTIONS: usize = 10;
    for (index, pair) in values.windows(2).enumerate() {
        if let [first, second] = pair
            && first > second
        {
            wrong(errors, &path.index(index + 1), second, "values must be sorted in ascending order");
        }
    }
    let mut has_usual = false;
    if values.len() > CAPACITY_REQUEST_POLICY_DISCRETE_MAX_OPTIONS {
        errors.too_many(path, values.len(), CAPACITY_REQUEST_POLICY_DISCRETE_MAX_OPTIONS);
    } else {
        for (index, value) in values.iter().enumerate() {
            if value > most {
                let why = format!("option is larger than capacity value: {most}");
                wrong(errors, &path.index(index), value, why);
            }
            has_usual |= value == usual;
        }
        let mut seen = HashSet::new();
        for (index, value) in values.iter().enumerate() {
            if !seen.insert(value.value()) {
                let shown = quote(&value.value().to_string());
                errors.push(FieldError::duplicate(path.index(index).to_string(), shown));
            }
        }
    }
    if !has_usual {
        wrong(errors, path, usual, "default value is not valid according to the requestPolicy");
    }
}

/// Validates `validRange` of a request policy. Rounds fractions up.
///
/// The feature gate `DRAFractionalCapacityRange` is off while a rollback to the previous release is possible.
///
/// Source: kubernetes pkg/apis/resource/validation/validation.go, `validateRequestPolicyRange`.
fn range(errors: &mut Errors, path: &Path<'_>, range: &Value, usual: &Quantity, most: &Quantity) {
    let bound = |field: &str| set(range, field).and_then(quantity::from_value);
    let (min, max, step) = (bound("min"), bound("max"), bound("step"));
    let Some(min) = min else {
        errors.required(&path.child("min"), "required when validRange is defined");
        return;
    };
    if min > *most {
        wrong(errors, &path.child("min"), &min, format!("min is larger than capacity value: {most}"));
    }
    if *usual < min {
        wrong(errors, &path.child("default"), usual, format!("default is less than min: {min}"));
    }
    if let Some(max) = &max {
        if min > *max {
            wrong(errors, &path.child("max"), &min, format!("min is larger than max: {max}"));
        }
        if max > most {
            wrong(errors, &path.child("max"), max, format!("max is larger than capacity value: {most}"));
        }
        if usual > max {
            wrong(errors, &path.child("default"), usual, format!("default is more than max: {max}"));
        }
    }
    let all = [("default", Some(usual)), ("min", Some(&min)), ("max", max.as_ref()), ("step", step.as_ref())];
    let amounts = || all.iter().filter_map(|(field, amount)| Some((*field, (*amount)?)));
    let Some(step) = &step else { return };
    let step_path = path.child("step");
    if *step <= Quantity::ZERO {
        wrong(errors, &step_path, step, "must be greater than zero");
        return;
    }
    if let Ok(sum) = min.plus(step)
        && sum > *most
    {
        let why = format!("one step {sum} is larger than capacity value: {most}");
        wrong(errors, &step_path, step, why);
    }
    let mut is_safe = true;
    let largest = Quantity::from(i64::MAX);
    for (field, amount) in amounts() {
        if *amount < Quantity::ZERO {
            wrong(errors, &path.child(field), amount, NEGATIVE);
            is_safe = false;
        } else if *amount > largest {
            wrong(errors, &path.child(field), amount, format!("must not be larger than {}", i64::MAX));
            is_safe = false;
        }
    }
    if !is_safe {
        return;
    }
    for amount in [Some(usual), max.as_ref()].into_iter().flatten() {
        let rest = amount.value().wrapping_sub(min.value()).checked_rem(step.value());
        if rest.is_some_and(|rest| rest != 0) {
            let why = format!("value is not a multiple of a given step ({step}) from ({min})");
            wrong(errors, &step_path, amount, why);
        }
    }
}
