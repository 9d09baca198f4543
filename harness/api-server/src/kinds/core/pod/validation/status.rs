//! Validates updates of `pods/status`.

use std::collections::HashSet;
use std::net::IpAddr;

use kubernetes_types::json::{at, text as text_at};
use kubernetes_types::status::FieldError;
use kubernetes_types::{names, quantity};
use serde_json::{Value, json};

use crate::kinds::common::change::Change;
use crate::kinds::common::fields::{Errors, IMMUTABLE, Path, entries, get, int, list, set, text};
use crate::kinds::common::{addresses, formats};
use crate::kinds::core::pod::validation::security::id_in_range;
use crate::kinds::core::pod::validation::update::of_annotations;

/// The fields with container statuses, each with the field of the containers that they describe.
const STATUSES: [(&str, &str); 3] = [
    ("containerStatuses", "containers"),
    ("initContainerStatuses", "initContainers"),
    ("ephemeralContainerStatuses", "ephemeralContainers"),
];

/// The maximum length of a message about the health of a resource.
///
/// Source: api core/v1/types.go, `ResourceHealthMessageMaxLength`.
const RESOURCE_HEALTH_MESSAGE_MAX_LENGTH: usize = 1024;

const MAX_IMAGE_REF_LEN: usize = 256;

/// Validates an update of `pods/status`.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `ValidatePodStatusUpdate`.
/// Rule: VLO-18.
pub(crate) fn of_status(errors: &mut Errors, pod: &Value, change: Change<'_>) {
    of_annotations(errors, pod, change.old);
    let path = Path::new("status");
    let (status, old) = (get(pod, "status"), get(change.old, "status"));
    let spec = get(change.old, "spec");
    conditions(errors, &path.child("conditions"), status);
    nominated_node(errors, &path.child("nominatedNodeName"), status, change.old);
    if let Some(observed) = int(status, "observedGeneration").filter(|observed| *observed < 0) {
        errors.invalid(&path.child("observedGeneration"), observed, "must be a non-negative integer");
    }
    if !change.is_same(&["status", "qosClass"]) {
        errors.invalid_text(&path.child("qosClass"), text(status, "qosClass"), IMMUTABLE);
    }
    for (field, containers) in STATUSES {
        transitions(errors, &path.child(field), (list(status, field), list(old, field)), spec, containers);
    }
    claims(errors, &path.child("resourceClaimStatuses"), status, spec);
    if let Some(extended) = set(status, "extendedResourceClaimStatus") {
        extended_claim(errors, &path.child("extendedResourceClaimStatus"), extended, spec);
    }
    pod_addresses(errors, &path.child("podIPs"), status, old);
    host_addresses(errors, &path.child("hostIPs"), status, old);
    for (field, _) in STATUSES {
        users(errors, &path.child(field), list(status, field), text(get(spec, "os"), "name"));
    }
    for (field, containers) in STATUSES {
        let containers = (containers != "ephemeralContainers").then(|| list(spec, containers));
        allocated(errors, &path.child(field), status, list(status, field), containers);
    }
    for (field, _) in STATUSES {
        image_volumes(errors, &path.child(field), list(status, field));
    }
}

/// Validates the conditions of a Pod.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validatePodConditions`.
fn conditions(errors: &mut Errors, path: &Path<'_>, status: &Value) {
    for (index, condition) in list(status, "conditions").iter().enumerate() {
        let path = path.index(index);
        if let Some(observed) = int(condition, "observedGeneration").filter(|observed| *observed < 0) {
            errors.invalid(&path.child("observedGeneration"), observed, "must be a non-negative integer");
        }
        let name = text(condition, "type");
        if !["PodScheduled", "Ready", "Initialized"].contains(&name) {
            formats::qualified_name(errors, &path.child("Type"), name);
        }
    }
}

fn nominated_node(errors: &mut Errors, path: &Path<'_>, status: &Value, old: &Value) {
    let name = text(status, "nominatedNodeName");
    if name.is_empty() || name == text(get(old, "status"), "nominatedNodeName") {
        return;
    }
    errors.all_invalid(path, name, names::dns1123_subdomain(name));
    if !text(get(old, "spec"), "nodeName").is_empty() {
        errors.forbidden(path, "may not be set on pods that are already bound to a node");
    }
}

/// Checks that containers that do not restart stay terminated.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `ValidateContainerStateTransition`,
/// `ValidateInitContainerStateTransition`, and `ValidateEphemeralContainerStateTransition`.
fn transitions(
    errors: &mut Errors,
    path: &Path<'_>,
    (new, old): (&[Value], &[Value]),
    spec: &Value,
    containers: &str,
) {
    let is_ephemeral = containers == "ephemeralContainers";
    if !is_ephemeral && restarts_all(spec) {
        return;
    }
    for (index, before) in old.iter().enumerate() {
        let Some(terminated) = set(get(before, "state"), "terminated") else { continue };
        let name = text(before, "name");
        let runs_again = |status: &&Value| {
            text(status, "name") == name && set(get(status, "state"), "terminated").is_none()
        };
        let exit_code = int(terminated, "exitCode").unwrap_or(0);
        let container = list(spec, containers).iter().find(|container| text(container, "name") == name);
        let may_restart =
            !is_ephemeral && container.is_some_and(|container| restarts(container, spec, exit_code));
        if new.iter().any(|status| runs_again(&status)) && !may_restart {
            errors.forbidden(
                &path.index(index).child("state"),
                "may not be transitioned to non-terminated state",
            );
        }
    }
}

/// Returns whether a rule of any container restarts all containers.
///
/// Source: kubernetes pkg/api/v1/pod/util.go, `AllContainersCouldRestart`.
fn restarts_all(spec: &Value) -> bool {
    ["initContainers", "containers"]
        .iter()
        .flat_map(|field| list(spec, field))
        .flat_map(|container| list(container, "restartPolicyRules"))
        .any(|rule| text(rule, "action") == "RestartAllContainers")
}

/// Returns whether a container restarts after it exits with `exit_code`.
///
/// Source: kubernetes pkg/api/v1/pod/util.go, `ContainerShouldRestart` and `FindMatchingContainerRestartRule`.
fn restarts(container: &Value, spec: &Value, exit_code: i64) -> bool {
    let by_policy = |policy: &str| match policy {
        "OnFailure" => Some(exit_code != 0),
        "Never" => Some(false),
        "Always" => Some(true),
        _ => None,
    };
    let matches = |rule: &&Value| {
        let codes = get(rule, "exitCodes");
        let is_listed = list(codes, "values").iter().any(|code| code.as_i64() == Some(exit_code));
        match text(codes, "operator") {
            "In" => is_listed,
            "NotIn" => !is_listed,
            _ => false,
        }
    };
    let of_container = set(container, "restartPolicy").and_then(|policy| {
        let rule = list(container, "restartPolicyRules").iter().find(matches);
        if rule.is_some_and(|rule| text(rule, "action") == "Restart") {
            return Some(true);
        }
        by_policy(policy.as_str().unwrap_or_default())
    });
    of_container.or_else(|| by_policy(text(spec, "restartPolicy"))).unwrap_or(true)
}

/// Validates the statuses of resource claims.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validatePodResourceClaimStatuses`.
fn claims(errors: &mut Errors, path: &Path<'_>, status: &Value, spec: &Value) {
    let mut seen = HashSet::new();
    for (index, claim) in list(status, "resourceClaimStatuses").iter().enumerate() {
        let path = path.index(index);
        let name = text(claim, "name");
        if !list(spec, "resourceClaims").iter().any(|claim| text(claim, "name") == name) {
            let why = "must match the name of an entry in `spec.resourceClaims`";
            errors.invalid_text(&path.child("name"), name, why);
        }
        if !seen.insert(name) {
            errors.duplicate(&path.child("name"), name);
        }
        if let Some(name) = set(claim, "resourceClaimName").and_then(Value::as_str) {
            errors.all_invalid(&path.child("resourceClaimName"), name, names::dns1123_subdomain(name));
        }
    }
}

/// Validates the status of the claim for extended resources.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validatePodExtendedResourceClaimStatus`.
fn extended_claim(errors: &mut Errors, path: &Path<'_>, status: &Value, spec: &Value) {
    let of_mappings = path.child("requestMappings");
    let mappings = list(status, "requestMappings");
    if mappings.is_empty() {
        errors.required(&of_mappings, "at least one request mapping is required");
    }
    let mut seen = HashSet::new();
    for (index, mapping) in mappings.iter().enumerate() {
        let item = of_mappings.index(index);
        let key = ["containerName", "resourceName", "requestName"].map(|field| text(mapping, field));
        let [name, resource, request] = key;
        // If two containers have the same name, the last one counts.
        let mut containers =
            list(spec, "containers").iter().rev().chain(list(spec, "initContainers").iter().rev());
        match containers.find(|container| text(container, "name") == name) {
            None => {
                let why =
                    "must match the name of an entry in spec.initContainers.name or spec.containers.name";
                errors.invalid_text(&item.child("containerName"), name, why);
            }
            Some(container) if set(at(container, &["resources", "requests"]), resource).is_none() => {
                let why = "must match the extended resource name of an entry in \
                           spec.initContainers.resources.requests or spec.containers.resources.requests";
                errors.invalid_text(&item.child("resourceName"), resource, why);
            }
            Some(_) => {}
        }
        formats::dns_label(errors, &path.child("requestName"), request);
        if !seen.insert(key) {
            for (field, text) in ["containerName", "resourceName", "requestName"].into_iter().zip(key) {
                errors.duplicate(&item.child(field), text);
            }
        }
    }
    let path = path.child("resourceClaimName");
    match text(status, "resourceClaimName") {
        "" => errors.required(&path, ""),
        name => errors.all_invalid(&path, name, names::dns1123_subdomain(name)),
    }
}

/// Validates the addresses of a Pod.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validatePodIPs`.
fn pod_addresses(errors: &mut Errors, path: &Path<'_>, status: &Value, old: &Value) {
    let ips = new_addresses(errors, path, status, old, "podIPs");
    families(errors, path, &ips);
    let first = ips.first().copied().unwrap_or_default();
    let single = text(status, "podIP");
    if single.is_empty() != ips.is_empty() {
        let why = "podIP and podIPs must either both be set or both be unset";
        errors.invalid(path, shown(&ips), why);
    } else if !ips.is_empty() && single != first {
        errors.invalid_text(&path.index(0).child("ip"), first, "must be equal to `podIP`");
    }
}

/// Validates the addresses of the host.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validateHostIPs`.
fn host_addresses(errors: &mut Errors, path: &Path<'_>, status: &Value, old: &Value) {
    let Some(first) = list(status, "hostIPs").first().map(|address| text(address, "ip")) else { return };
    if text(status, "hostIP") != first {
        errors.invalid_text(&path.index(0).child("ip"), first, "must be equal to `hostIP`");
    }
    let ips = new_addresses(errors, path, status, old, "hostIPs");
    families(errors, path, &ips);
}

/// Validates the addresses that the old status does not contain. Returns all addresses.
fn new_addresses<'a>(
    errors: &mut Errors,
    path: &Path<'_>,
    status: &'a Value,
    old: &Value,
    field: &str,
) -> Vec<&'a str> {
    let before: Vec<&str> = list(old, field).iter().map(|address| text(address, "ip")).collect();
    let ips: Vec<&str> = list(status, field).iter().map(|address| text(address, "ip")).collect();
    for (index, ip) in ips.iter().enumerate().filter(|(_, ip)| !before.contains(ip)) {
        addresses::ip(errors, &path.index(index), ip);
    }
    ips
}

/// Checks that there is at most one address of each IP family.
fn families(errors: &mut Errors, path: &Path<'_>, ips: &[&str]) {
    if ips.len() < 2 {
        return;
    }
    let parsed: Vec<Option<IpAddr>> = ips.iter().map(|ip| ip.parse().ok()).collect();
    let invalid = parsed.iter().zip(ips).enumerate().find(|(_, (parsed, _))| parsed.is_none());
    if let Some((index, (_, ip))) = invalid {
        let why = format!("failed to check for dual stack with error:invalid IP[{index}]: {ip}");
        errors.push(FieldError::internal(path.to_string(), why));
    }
    let is = |wanted: fn(&IpAddr) -> bool| parsed.iter().flatten().any(wanted);
    let is_dual = invalid.is_none() && is(IpAddr::is_ipv4) && is(IpAddr::is_ipv6);
    if !is_dual || ips.len() > 2 {
        errors.invalid(path, shown(ips), "may specify no more than one IP for each IP family");
    }
}

fn shown(ips: &[&str]) -> Value {
    if ips.is_empty() { Value::Null } else { ips.iter().map(|ip| json!({"IP": ip})).collect() }
}

/// Validates the users in container statuses.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validateContainerStatusUsers`.
fn users(errors: &mut Errors, path: &Path<'_>, statuses: &[Value], os: &str) {
    for (index, status) in statuses.iter().enumerate() {
        let Some(user) = set(get(status, "user"), "linux") else { continue };
        let path = path.index(index);
        let path = path.child("user");
        let path = path.child("linux");
        match os {
            "windows" => errors.forbidden(&path, "cannot be set for a windows pod"),
            "" | "linux" => {
                let id = |field: &str| int(user, field).unwrap_or(0);
                let most = i64::from(u32::MAX);
                if !(0..=most).contains(&id("uid")) {
                    errors.invalid(&path.child("uid"), id("uid"), formats::between(0, most));
                }
                id_in_range(errors, &path.child("gid"), id("gid"));
                let path = path.child("supplementalGroups");
                for (index, group) in list(user, "supplementalGroups").iter().enumerate() {
                    id_in_range(errors, &path.index(index), group.as_i64().unwrap_or(0));
                }
            }
            _ => {}
        }
    }
}

/// Validates the status of the resources that are allocated to containers.
///
/// `containers` is `None` for ephemeral containers, because they do not have such a status.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validateContainerStatusAllocatedResourcesStatus` and
/// `validateContainerStatusNoAllocatedResourcesStatus`.
fn allocated(
    errors: &mut Errors,
    path: &Path<'_>,
    pod_status: &Value,
    statuses: &[Value],
    containers: Option<&[Value]>,
) {
    for (index, status) in statuses.iter().enumerate() {
        let path = path.index(index);
        let path = path.child("allocatedResourcesStatus");
        let resources = list(status, "allocatedResourcesStatus");
        let Some(containers) = containers else {
            if !resources.is_empty() {
                errors.forbidden(&path, "must not be specified in container status");
            }
            continue;
        };
        let name = text(status, "name");
        let container = containers.iter().find(|container| text(container, "name") == name);
        for (index, resource) in resources.iter().enumerate() {
            let path = path.index(index);
            let name = text(resource, "name");
            if let Some(container) = container
                && let Some(why) = mismatch(name, container, pod_status)
            {
                errors.invalid_text(&path.child("name"), name, why);
            }
            health(errors, &path.child("resources"), list(resource, "resources"));
        }
    }
}

/// Returns the reason why a container does not have the resource `name`; `None` if it has the resource.
fn mismatch(name: &str, container: &Value, pod_status: &Value) -> Option<&'static str> {
    let Some(claim) = name.strip_prefix("claim:") else {
        let mut requests = entries(get(container, "resources"), "requests");
        return (!requests.any(|(request, _)| request == name))
            .then_some("must match one of the container's resource requests");
    };
    let is_own = list(get(container, "resources"), "claims").iter().any(|own| match text(own, "request") {
        "" => text(own, "name") == claim,
        request => {
            claim.strip_prefix(text(own, "name")).and_then(|rest| rest.strip_prefix('/')) == Some(request)
        }
    });
    (!is_own && !is_extended(claim, container, pod_status)).then_some(
        "must match one of the container's resource claims as 'claim:<claimName>/<requestName>' when \
         container.resources.claims[*].request is set or 'claim:<claimName>' when it is empty",
    )
}

/// Returns whether a claim provides an extended resource of a container.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `matchesExtendedResourceClaimStatus`.
fn is_extended(claim: &str, container: &Value, pod_status: &Value) -> bool {
    let extended = get(pod_status, "extendedResourceClaimStatus");
    let Some((name, request)) = claim.split_once('/') else { return false };
    let is_valid = !name.is_empty() && !request.is_empty() && name == text(extended, "resourceClaimName");
    is_valid
        && list(extended, "requestMappings").iter().any(|mapping| {
            let amount = at(container, &["resources", "requests", text(mapping, "resourceName")]);
            text(mapping, "containerName") == text(container, "name")
                && text(mapping, "requestName") == request
                && quantity::from_value(amount).is_some_and(|amount| !amount.is_zero())
        })
}

fn health(errors: &mut Errors, path: &Path<'_>, resources: &[Value]) {
    let mut seen = HashSet::new();
    for (index, resource) in resources.iter().enumerate() {
        let path = path.index(index);
        let supported = ["Healthy", "Unhealthy", "Unknown"];
        if !supported.contains(&text(resource, "health")) {
            errors.unsupported(&path.child("health"), text(resource, "health"), &supported);
        }
        match set(resource, "message").and_then(Value::as_str) {
            Some("") => errors.required(&path.child("message"), "must be non-empty if specified"),
            Some(message) if message.len() > RESOURCE_HEALTH_MESSAGE_MAX_LENGTH => {
                errors.too_long(&path.child("message"), RESOURCE_HEALTH_MESSAGE_MAX_LENGTH);
            }
            Some(_) | None => {}
        }
        if !seen.insert(text(resource, "resourceID")) {
            errors.duplicate(&path.child("resourceID"), text(resource, "resourceID"));
        }
    }
}

/// Validates the statuses of image volumes.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validateImageVolumeStatus`.
fn image_volumes(errors: &mut Errors, path: &Path<'_>, statuses: &[Value]) {
    for (index, status) in statuses.iter().enumerate() {
        let path = path.index(index);
        let path = path.child("volumeMounts");
        for (index, mount) in list(status, "volumeMounts").iter().enumerate() {
            let volume = get(mount, "volumeStatus");
            if set(volume, "image").is_none() {
                continue;
            }
            let path = path.index(index);
            let path = path.child("volumeStatus");
            let path = path.child("imageVolumeStatus");
            let path = path.child("imageRef");
            match text_at(volume, &["image", "imageRef"]) {
                "" => errors.required(&path, "imageRef must not be empty"),
                image if image.len() > MAX_IMAGE_REF_LEN => errors.too_long(&path, MAX_IMAGE_REF_LEN),
                _ => {}
            }
        }
    }
}
