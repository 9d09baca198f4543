//! Validates resource requests and limits.

use std::collections::{BTreeSet, HashSet};

use kubernetes_types::quantity::Quantity;
use kubernetes_types::quoting::quote;
use kubernetes_types::status::FieldError;
use kubernetes_types::{names, quantity};
use serde_json::Value;

use crate::kinds::common::fields::{Errors, NEGATIVE, Path, entries, list, map, text};
use crate::kinds::common::formats;

/// The resources with fractional quantities.
const FRACTIONAL_RESOURCES: [&str; 11] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "storage",
    "requests.storage",
];

/// The resources with integer quantities.
const INTEGER_RESOURCES: [&str; 9] = [
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];

/// Returns whether `name` is a resource name without a domain.
///
/// Source: kubernetes pkg/apis/core/helper/helpers.go, `IsStandardResourceName`.
fn is_standard(name: &str) -> bool {
    FRACTIONAL_RESOURCES.contains(&name)
        || INTEGER_RESOURCES.contains(&name)
        || is_huge_page(name)
        || name.starts_with("requests.hugepages-")
}

/// The object whose resource list is validated.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    Container,
    Pod,
}

pub(crate) fn is_huge_page(name: &str) -> bool {
    name.starts_with("hugepages-")
}

/// Returns whether a resource is native to Kubernetes.
///
/// Source: kubernetes pkg/apis/core/helper/helpers.go, `IsNativeResource`.
pub(crate) fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// Returns whether a resource name is the name of an extended resource.
///
/// Source: kubernetes pkg/apis/core/helper/helpers.go, `IsExtendedResourceName`.
pub(crate) fn is_extended(name: &str) -> bool {
    !is_native(name)
        && !name.starts_with("requests.")
        && names::label_key(&format!("requests.{name}")).is_empty()
}

/// Returns whether a resource counts objects or devices and therefore has integer quantities.
///
/// Source: kubernetes pkg/apis/core/helper/helpers.go, `IsIntegerResourceName`.
pub(crate) fn is_counted(name: &str) -> bool {
    INTEGER_RESOURCES.contains(&name) || is_extended(name)
}

/// Validates a resource name. Returns whether the name is valid.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validateResourceName`.
pub(crate) fn name(errors: &mut Errors, path: &Path<'_>, name: &str) -> bool {
    let before = errors.len();
    formats::qualified_name(errors, path, name);
    if errors.len() == before && !name.contains('/') && !is_standard(name) {
        errors.invalid_text(path, name, "must be a standard resource type or fully qualified");
    }
    errors.len() == before
}

/// Validates the name of a container resource.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `ValidateContainerResourceName`.
pub(crate) fn container_resource_name(errors: &mut Errors, path: &Path<'_>, resource: &str) {
    name_for(errors, path, resource, Owner::Container);
}

/// Validates the name of a resource of a container or a Pod.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `ValidateContainerResourceName` and
/// `validatePodResourceName`.
fn name_for(errors: &mut Errors, path: &Path<'_>, resource: &str, owner: Owner) {
    let is_sound = name(errors, path, resource);
    match owner {
        Owner::Container if !resource.contains('/') => {
            if !["cpu", "memory", "ephemeral-storage"].contains(&resource) && !is_huge_page(resource) {
                errors.invalid_text(path, resource, "must be a standard resource for containers");
            }
        }
        Owner::Container => {
            if !is_native(resource) && !is_extended(resource) {
                errors.invalid_text(path, resource, "doesn't follow extended resource name standard");
            }
        }
        Owner::Pod => {
            let is_known = ["cpu", "memory"].contains(&resource) || is_huge_page(resource);
            if is_sound && !is_known {
                errors.unsupported(path, resource, &["cpu", "hugepages-", "memory"]);
            }
        }
    }
}

/// Validates the quantity of a resource.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `ValidateResourceQuantityValue`.
pub(crate) fn amount(errors: &mut Errors, path: &Path<'_>, resource: &str, value: &Quantity) {
    if *value < Quantity::ZERO {
        errors.invalid_text(path, &value.to_string(), NEGATIVE);
    }
    if is_counted(resource) && value.milli_value() % 1000 != 0 {
        errors.invalid_text(path, &value.to_string(), "must be an integer");
    }
}

fn huge_pages(errors: &mut Errors, path: &Path<'_>, resource: &str, value: &Quantity) {
    let page = resource.strip_prefix("hugepages-").and_then(|size| Quantity::parse(size).ok());
    let is_divisible = page.is_some_and(|page| {
        page > Quantity::ZERO && page.milli_value() % 1000 == 0 && value.value() % page.value() == 0
    });
    if !is_divisible {
        let why = format!("{value} is not positive integer multiple of {resource}");
        errors.invalid_text(path, &value.to_string(), why);
    }
}

/// Validates the `resources` of a container or a Pod.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validateResourceRequirements`.
/// Rule: VLO-08.
pub(crate) fn requirements(
    errors: &mut Errors,
    path: &Path<'_>,
    resources: &Value,
    owner: Owner,
    claims: &BTreeSet<&str>,
) {
    let (limits, requests) = (path.child("limits"), path.child("requests"));
    let (mut has_compute, mut has_huge_pages) = (false, false);
    let mut note = |resource: &str| {
        has_compute |= ["cpu", "memory"].contains(&resource);
        has_huge_pages |= is_huge_page(resource);
    };
    for (resource, value) in entries(resources, "limits") {
        let Some(value) = quantity::from_value(value) else { continue };
        let path = limits.key(resource);
        name_for(errors, &path, resource, owner);
        amount(errors, &path, resource, &value);
        if is_huge_page(resource) {
            huge_pages(errors, &path, resource, &value);
        }
        note(resource);
    }
    for (resource, value) in entries(resources, "requests") {
        let Some(value) = quantity::from_value(value) else { continue };
        let path = requests.key(resource);
        name_for(errors, &path, resource, owner);
        amount(errors, &path, resource, &value);
        let overcommits = is_native(resource) && !is_huge_page(resource);
        let limit =
            map(resources, "limits").and_then(|limits| limits.get(resource)).and_then(quantity::from_value);
        match limit {
            Some(limit) if !overcommits && value != limit => {
                let why = format!("must be equal to {resource} limit of {limit}");
                errors.invalid_text(&requests, &value.to_string(), why);
            }
            Some(limit) if value > limit => {
                let why = format!("must be less than or equal to {resource} limit of {limit}");
                errors.invalid_text(&requests, &value.to_string(), why);
            }
            None if !overcommits => {
                errors.required(&limits, "Limit must be set for non overcommitable resources");
            }
            _ => {}
        }
        if is_huge_page(resource) {
            huge_pages(errors, &path, resource, &value);
        }
        note(resource);
    }
    if !has_compute && has_huge_pages {
        errors.forbidden(path, "HugePages require cpu or memory");
    }
    claim_names(errors, &path.child("claims"), list(resources, "claims"), claims);
}

/// Validates the claims in the resources of a container.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validateResourceClaimNames`.
fn claim_names(errors: &mut Errors, path: &Path<'_>, claims: &[Value], known: &BTreeSet<&str>) {
    // Detects duplicates: of a name, or of a name with a request.
    let mut seen: HashSet<String> = HashSet::new();
    let mut with_requests: HashSet<&str> = HashSet::new();
    for (index, claim) in claims.iter().enumerate() {
        let path = path.index(index);
        let (name, request) = (text(claim, "name"), text(claim, "request"));
        if name.is_empty() {
            errors.required(&path, "");
            continue;
        }
        if seen.contains(name) {
            errors.duplicate(&path, name);
        } else {
            let mut key = name.to_owned();
            if !request.is_empty() {
                formats::dns_label(errors, &path.child("request"), request);
                key = format!("{name}/{request}");
            }
            if seen.contains(&key) || (request.is_empty() && with_requests.contains(name)) {
                errors.duplicate(&path, &key);
            }
            if !request.is_empty() {
                with_requests.insert(name);
            }
            seen.insert(key);
        }
        if !known.contains(name) {
            let names = if known.is_empty() {
                " which is empty".to_owned()
            } else {
                format!(": {}", known.iter().copied().collect::<Vec<_>>().join(", "))
            };
            let mut error = FieldError::not_found(path.to_string(), quote(name));
            error.detail =
                format!("{}: must be one of the names in pod.spec.resourceClaims{names}", error.detail);
            errors.push(error);
        }
    }
}
