//! Implements `LimitRange` objects.

use std::collections::{BTreeSet, HashSet};

use kubernetes_types::quantity::Quantity;
use kubernetes_types::{json, quantity};
use serde_json::Value;

use crate::apimachinery::metadata;
use crate::kinds::common::change::Change;
use crate::kinds::common::defaults::{each, ensure, fill, has, resource_list, text};
use crate::kinds::common::fields::{Errors, Path, entries, get, list, map, set};
use crate::kinds::common::{fields, formats, resources};
use crate::kinds::kind::Kind;

/// The behavior of `LimitRange` objects.
pub(crate) const KIND: Kind = Kind {
    group: "",
    resource: "limitranges",
    kind: "LimitRange",
    set_defaults: Some(set_defaults),
    prepare_create: set_name,
    is_created_by_update: true,
    validate,
    has_default_columns: true,
    ..Kind::PLAIN
};

fn set_name(object: &mut Value) {
    if metadata::text(object, "name").is_empty() {
        metadata::set(object, "name", uuid::Uuid::new_v4().to_string().into());
    }
}

/// Sets the defaults of a `LimitRange`.
///
/// For containers, `default` defaults to `max`, and `defaultRequest` to `default` or, if that is not set, to `min`.
///
/// Source: kubernetes pkg/apis/core/v1/defaults.go, `SetDefaults_LimitRangeItem`.
pub(crate) fn set_defaults(object: &mut Value) {
    ensure(object, "metadata");
    let Some(spec) = ensure(object, "spec") else { return };
    if !has(spec, "limits") {
        json::set(spec, &["limits"], Value::Null);
    }
    each(spec, "limits", |item| {
        for field in ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"] {
            resource_list(item, field);
        }
        if text(item, "type") == "Container" {
            fill_from(item, "default", "max");
            fill_from(item, "defaultRequest", "default");
            fill_from(item, "defaultRequest", "min");
        }
    });
}

/// Adds the entries of `item[from]` to `item[to]`, but keeps the entries that `item[to]` already has.
fn fill_from(item: &mut Value, to: &str, from: &str) {
    let Some(source) = item.get(from).and_then(Value::as_object).filter(|list| !list.is_empty()).cloned()
    else {
        return;
    };
    if let Some(list) = ensure(item, to) {
        for (name, quantity) in source {
            fill(list, &name, quantity);
        }
    }
}

/// Validates a `LimitRange`.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `ValidateLimitRange`.
/// Rule: VLO-32.
pub(crate) fn validate(errors: &mut Errors, object: &Value, _: Option<Change<'_>>) {
    let path = Path::new("spec");
    let path = path.child("limits");
    let mut kinds = HashSet::new();
    for (index, limit) in list(get(object, "spec"), "limits").iter().enumerate() {
        let path = path.index(index);
        let (kind, kind_path) = (fields::text(limit, "type"), path.child("type"));
        let before = errors.len();
        formats::qualified_name(errors, &kind_path, kind);
        let is_known = kind.contains('/') || ["Pod", "Container", "PersistentVolumeClaim"].contains(&kind);
        if errors.len() == before && !is_known {
            errors.invalid_text(&kind_path, kind, "must be a standard limit type or fully qualified");
        }
        if !kinds.insert(kind) {
            errors.duplicate(&kind_path, kind);
        }
        limits(errors, &path, limit, kind);
    }
}

fn limits(errors: &mut Errors, path: &Path<'_>, limit: &Value, kind: &str) {
    let is_pod = kind == "Pod";
    let mut names = BTreeSet::new();
    let mut check = |errors: &mut Errors, field: &str| {
        let path = path.child(field);
        for (name, _) in entries(limit, field) {
            let path = path.key(name);
            if is_pod || kind == "Container" {
                resources::container_resource_name(errors, &path, name);
            } else {
                resources::name(errors, &path, name);
            }
            names.insert(name.to_owned());
        }
    };
    check(errors, "max");
    check(errors, "min");
    for field in ["default", "defaultRequest"] {
        if !is_pod {
            check(errors, field);
        } else if map(limit, field).is_some_and(|amounts| !amounts.is_empty()) {
            errors.forbidden(&path.child(field), "may not be specified when `type` is 'Pod'");
        }
    }
    let has_storage = ["min", "max"].iter().any(|field| set(get(limit, field), "storage").is_some());
    if kind == "PersistentVolumeClaim" && !has_storage {
        let why = "either minimum or maximum storage value is required, but neither was provided";
        errors.required(&path.child("limits"), why);
    }
    check(errors, "maxLimitRequestRatio");
    for name in names {
        Amounts::new(limit, &name, is_pod).compare(errors, path, &name);
    }
}

/// The quantities of one resource in a limit.
struct Amounts {
    min: Option<Quantity>,
    max: Option<Quantity>,
    default: Option<Quantity>,
    request: Option<Quantity>,
    ratio: Option<Quantity>,
}

impl Amounts {
    fn new(limit: &Value, name: &str, is_pod: bool) -> Self {
        let amount = |field| set(get(limit, field), name).and_then(quantity::from_value);
        let of_container = |field| if is_pod { None } else { amount(field) };
        Self {
            min: amount("min"),
            max: amount("max"),
            default: of_container("default"),
            request: of_container("defaultRequest"),
            ratio: amount("maxLimitRequestRatio"),
        }
    }

    fn compare(&self, errors: &mut Errors, path: &Path<'_>, name: &str) {
        let Self { min, max, default, request, ratio } = self;
        let mut wrong = |field: &str, shown: &Quantity, why: String| {
            let path = path.child(field);
            errors.invalid_text(&path.key(name), &shown.to_string(), why);
        };
        if let Some((min, max)) = greater(min.as_ref(), max.as_ref()) {
            wrong("min", min, format!("min value {min} is greater than max value {max}"));
        }
        if let Some((min, request)) = greater(min.as_ref(), request.as_ref()) {
            let why = format!("min value {min} is greater than default request value {request}");
            wrong("defaultRequest", request, why);
        }
        if let Some((request, max)) = greater(request.as_ref(), max.as_ref()) {
            let why = format!("default request value {request} is greater than max value {max}");
            wrong("defaultRequest", request, why);
        }
        if let Some((request, default)) = greater(request.as_ref(), default.as_ref()) {
            let why =
                format!("default request value {request} is greater than default limit value {default}");
            wrong("defaultRequest", request, why);
        }
        if let Some((min, default)) = greater(min.as_ref(), default.as_ref()) {
            wrong("default", min, format!("min value {min} is greater than default value {default}"));
        }
        if let Some((default, max)) = greater(default.as_ref(), max.as_ref()) {
            wrong("default", max, format!("default value {default} is greater than max value {max}"));
        }
        if let Some(ratio) = ratio {
            if ratio.milli_value() < 1000 {
                wrong("maxLimitRequestRatio", ratio, format!("ratio {ratio} is less than 1"));
            }
            if let (Some(min), Some(max)) = (min, max) {
                let most = quotient(max.milli_value(), min.milli_value());
                if quotient(ratio.milli_value(), 1000) > most {
                    let why = format!("ratio {ratio} is greater than max/min = {}", shown(most));
                    wrong("maxLimitRequestRatio", ratio, why);
                }
            }
        }
        let overcommits = resources::is_native(name) && !resources::is_huge_page(name);
        if let (Some(default), Some(request), false) = (default, request, overcommits)
            && default != request
        {
            let why =
                format!("default value {default} must equal to defaultRequest value {request} in {name}");
            wrong("defaultRequest", request, why);
        }
    }
}

/// Returns both quantities if the first is greater than the second, otherwise `None`.
fn greater<'a>(
    one: Option<&'a Quantity>,
    other: Option<&'a Quantity>,
) -> Option<(&'a Quantity, &'a Quantity)> {
    let both = (one?, other?);
    (both.0 > both.1).then_some(both)
}

/// Returns the ratio of two quantities with kube-apiserver's rounding.
#[expect(clippy::cast_precision_loss, reason = "kube-apiserver also loses precision")]
fn quotient(one: i64, other: i64) -> f64 {
    one as f64 / other as f64
}

/// Formats a number as Go's verb `%f` does.
fn shown(number: f64) -> String {
    if number.is_infinite() {
        if number > 0.0 { "+Inf".to_owned() } else { "-Inf".to_owned() }
    } else {
        format!("{number:.6}")
    }
}
