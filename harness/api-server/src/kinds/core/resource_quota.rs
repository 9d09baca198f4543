//! Implements `ResourceQuota` objects.

use std::collections::BTreeSet;

use kubernetes_types::json::at;
use kubernetes_types::quantity;
use kubernetes_types::quantity::Quantity;
use kubernetes_types::quoting::encode;
use serde_json::Value;

use crate::kinds::common::cells::{Context, age_of, amount, name, row};
use crate::kinds::common::change::Change;
use crate::kinds::common::defaults::{ensure, resource_list};
use crate::kinds::common::fields::{Errors, IMMUTABLE, Path, entries, get, list, set, text, texts};
use crate::kinds::common::resources;
use crate::kinds::common::warnings::Warnings;
use crate::kinds::kind::Kind;

/// The behavior of `ResourceQuota` objects.
pub(crate) const KIND: Kind = Kind {
    group: "",
    resource: "resourcequotas",
    kind: "ResourceQuota",
    set_defaults: Some(set_defaults),
    returns_deleted_object: true,
    validate,
    validate_subresources: &[("status", validate_status)],
    warn,
    cells: Some(cells),
    ..Kind::PLAIN
};

/// Sets the defaults of a `ResourceQuota`.
///
/// Source: api core/v1/types.go, `ResourceQuota`.
pub(crate) fn set_defaults(object: &mut Value) {
    ensure(object, "metadata");
    if let Some(spec) = ensure(object, "spec") {
        resource_list(spec, "hard");
    }
    if let Some(status) = ensure(object, "status") {
        resource_list(status, "hard");
        resource_list(status, "used");
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

pub(crate) fn amounts(errors: &mut Errors, path: &Path<'_>, owner: &Value, field: &str) {
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
pub(crate) fn validate(errors: &mut Errors, object: &Value, change: Option<Change<'_>>) {
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
pub(crate) fn validate_status(errors: &mut Errors, object: &Value, _: Change<'_>) {
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

/// Warns about requests in a quota that exceed the limits.
///
/// Source: kubernetes pkg/registry/core/resourcequota/strategy.go, `WarningsOnCreate`.
pub(crate) fn warn(warnings: &mut Warnings, object: &Value, old: Option<&Value>) {
    if old.is_some() {
        return;
    }
    let hard = get(get(object, "spec"), "hard");
    for name in ["cpu", "memory", "storage", "ephemeral-storage"] {
        let of = |name: &str| set(hard, name).and_then(quantity::from_value);
        let mut request_name = format!("requests.{name}");
        let mut request: Option<Quantity> = of(&request_name);
        if request.is_none() && ["cpu", "memory"].contains(&name) {
            name.clone_into(&mut request_name);
            request = of(name);
        }
        let limit_name = format!("limits.{name}");
        if let (Some(request), Some(limit)) = (request, of(&limit_name))
            && request > limit
        {
            warnings.push(format!(
                "ResourceQuota {request_name} ({request}) should be less than {limit_name} ({limit})"
            ));
        }
    }
}

pub(crate) fn cells(object: &Value, context: &Context<'_>) -> Vec<Value> {
    let (mut requests, mut limits) = (Vec::new(), Vec::new());
    for (resource, hard) in at(object, &["status", "hard"]).as_object().into_iter().flatten() {
        let used = amount(at(object, &["status", "used", resource]));
        let list = if resource.starts_with("limits.") { &mut limits } else { &mut requests };
        list.push(format!("{resource}: {used}/{}", amount(hard)));
    }
    row![name(object), requests.join(", "), limits.join(", "), age_of(object, context)]
}
