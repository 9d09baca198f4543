//! Validates limit ranges and resource quotas.

use std::collections::{BTreeSet, HashSet};

use kubernetes_types::quantity;
use kubernetes_types::quantity::Quantity;
use kubernetes_types::quoting::encode;
use serde_json::Value;

use crate::kinds::common::change::Change;
use crate::kinds::common::fields::{Errors, IMMUTABLE, Path, entries, get, list, map, set, text, texts};
use crate::kinds::common::{formats, resources};

/// Validates a `LimitRange`.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `ValidateLimitRange`.
/// Rule: VLO-32.
pub(crate) fn limit_range(errors: &mut Errors, object: &Value, _: Option<Change<'_>>) {
    let path = Path::new("spec");
    let path = path.child("limits");
    let mut kinds = HashSet::new();
    for (index, limit) in list(get(object, "spec"), "limits").iter().enumerate() {
        let path = path.index(index);
        let (kind, kind_path) = (text(limit, "type"), path.child("type"));
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

/// The resource names without a domain that a quota can limit.
///
/// Source: kubernetes pkg/apis/core/helper/helpers.go, `standardQuotaResources`.
const STANDARD_QUOTA_RESOURCES: [&str; 19] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.storage",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "persistentvolumeclaims",
    "configmaps",
    "services.nodeports",
    "services.loadbalancers",
];

fn is_of_quota(name: &str) -> bool {
    STANDARD_QUOTA_RESOURCES.contains(&name)
        || name.starts_with("hugepages-")
        || name.starts_with("requests.hugepages-")
}

fn amounts(errors: &mut Errors, path: &Path<'_>, owner: &Value, field: &str) {
    let path = path.child(field);
    for (name, value) in entries(owner, field) {
        let path = path.key(name);
        resources::name(errors, &path, name);
        if !name.contains('/') && !is_of_quota(name) {
            errors.invalid_text(&path, name, "must be a standard resource for quota");
        }
        if let Some(value) = quantity::from_value(value) {
            resources::amount(errors, &path, name, &value);
        }
    }
}

/// Validates a `ResourceQuota`.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `ValidateResourceQuota` and
/// `ValidateResourceQuotaUpdate`.
/// Rule: VLO-32.
pub(crate) fn quota(errors: &mut Errors, object: &Value, change: Option<Change<'_>>) {
    let (path, spec) = (Path::new("spec"), get(object, "spec"));
    amounts(errors, &path, spec, "hard");
    let scopes: Vec<&str> = texts(spec, "scopes").collect();
    let (scopes_path, shown) = (path.child("scopes"), encode(get(spec, "scopes")));
    for scope in &scopes {
        if !is_scope(scope) {
            errors.invalid(&scopes_path, &shown, "unsupported scope");
        }
        for _ in entries(spec, "hard").filter(|(name, _)| !fits(scope, name)) {
            errors.invalid(&scopes_path, &shown, "unsupported scope applied to resource");
        }
    }
    conflicts(errors, &scopes_path, &scopes, &shown);
    if let Some(selector) = set(spec, "scopeSelector") {
        scope_selector(errors, &path, spec, selector, &shown);
    }
    if let Some(change) = change {
        let of = |object| texts(get(object, "spec"), "scopes").collect::<BTreeSet<&str>>();
        if of(change.old) != of(object) {
            errors.invalid(&scopes_path, &shown, IMMUTABLE);
        }
    }
}

/// Validates the status of a `ResourceQuota`.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `ValidateResourceQuotaStatusUpdate`.
/// Rule: VLO-32.
pub(crate) fn quota_status(errors: &mut Errors, object: &Value, _: Change<'_>) {
    for field in ["hard", "used"] {
        amounts(errors, &Path::new("status"), get(object, "status"), field);
    }
}

const CROSS_NAMESPACE_POD_AFFINITY: &str = "CrossNamespacePodAffinity";

fn is_scope(scope: &str) -> bool {
    let known = [
        "Terminating",
        "NotTerminating",
        "BestEffort",
        "NotBestEffort",
        "PriorityClass",
        "VolumeAttributesClass",
        CROSS_NAMESPACE_POD_AFFINITY,
    ];
    known.contains(&scope)
}

/// Returns whether objects in a scope can use a resource.
///
/// Source: kubernetes pkg/apis/core/helper/helpers.go, `IsResourceQuotaScopeValidForResource`.
fn fits(scope: &str, resource: &str) -> bool {
    const COMPUTE: [&str; 6] =
        ["cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"];
    !is_of_quota(resource)
        || match scope {
            "Terminating"
            | "NotTerminating"
            | "NotBestEffort"
            | "PriorityClass"
            | CROSS_NAMESPACE_POD_AFFINITY => resource == "pods" || COMPUTE.contains(&resource),
            "BestEffort" => resource == "pods",
            "VolumeAttributesClass" => ["persistentvolumeclaims", "requests.storage"].contains(&resource),
            _ => true,
        }
}

fn conflicts(errors: &mut Errors, path: &Path<'_>, scopes: &[&str], shown: &str) {
    for pair in [["BestEffort", "NotBestEffort"], ["Terminating", "NotTerminating"]] {
        if pair.iter().all(|scope| scopes.contains(scope)) {
            errors.invalid(path, shown, "conflicting scopes");
        }
    }
}

/// Validates the scope selector of a quota.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validateScopedResourceSelectorRequirement`.
fn scope_selector(errors: &mut Errors, path: &Path<'_>, spec: &Value, selector: &Value, shown: &str) {
    let selector_path = path.child("scopeSelector");
    let path = selector_path.child("matchExpressions");
    let mut scopes = Vec::new();
    for requirement in list(selector, "matchExpressions") {
        let (scope, operator) = (text(requirement, "scopeName"), text(requirement, "operator"));
        if !is_scope(scope) {
            errors.invalid_text(&path.child("scopeName"), scope, "unsupported scope");
        }
        for _ in entries(spec, "hard").filter(|(name, _)| !fits(scope, name)) {
            let why = "unsupported scope applied to resource";
            errors.invalid_structure(&path, "core.ScopeSelector", selector, why);
        }
        let only_exists =
            ["BestEffort", "NotBestEffort", "Terminating", "NotTerminating", CROSS_NAMESPACE_POD_AFFINITY];
        if only_exists.contains(&scope) && operator != "Exists" {
            let why = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, \
                       ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, \
                       ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity";
            errors.invalid_text(&path.child("operator"), operator, why);
        }
        let values = list(requirement, "values");
        match operator {
            "In" | "NotIn" if values.is_empty() => {
                let why = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";
                errors.required(&path.child("values"), why);
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let why = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";
                errors.invalid(&path.child("values"), encode(&values.into()), why);
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => errors.invalid_text(&path.child("operator"), other, "not a valid selector operator"),
        }
        scopes.push(scope);
    }
    conflicts(errors, &path, &scopes, shown);
}
