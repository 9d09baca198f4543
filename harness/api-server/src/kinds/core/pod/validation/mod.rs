//! Validates Pods and pod templates.

pub(crate) mod annotations;
pub(crate) mod containers;
pub(crate) mod environment;
pub(crate) mod files;
pub(crate) mod handlers;
pub(crate) mod operating_system;
pub(crate) mod profiles;
pub(crate) mod resize;
pub(crate) mod scheduling;
pub(crate) mod security;
pub(crate) mod status;
pub(crate) mod update;
pub(crate) mod volumes;

use std::collections::{BTreeSet, HashSet};

use kubernetes_types::quantity::Quantity;
use kubernetes_types::quoting::encode;
use kubernetes_types::{names, quantity};
use serde_json::{Value, json};

use crate::kinds::common::fields::{Errors, Path, entries, flag, get, int, list, set, text, texts, word};
use crate::kinds::common::resources::Owner;
use crate::kinds::common::{addresses, formats, resources};
use crate::kinds::core::pod::pod_resources;
use crate::kinds::core::pod::validation::annotations::annotations;
use crate::kinds::core::pod::validation::containers::SharedContext;
use crate::kinds::core::pod::validation::profiles::for_each_container;

/// Validates a new Pod.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `ValidatePodCreate`.
/// Rule: VLO-04.
pub(crate) fn new(errors: &mut Errors, pod: &Value) {
    whole(errors, pod);
    let (path, spec) = (Path::new("spec"), get(pod, "spec"));
    if !list(spec, "ephemeralContainers").is_empty() {
        errors.forbidden(&path.child("ephemeralContainers"), "cannot be set on create");
    }
    if !text(spec, "nodeName").is_empty() && !list(spec, "schedulingGates").is_empty() {
        let why = "cannot be set until all schedulingGates have been cleared";
        errors.forbidden(&path.child("nodeName"), why);
    }
    profiles::match_annotations(errors, &path, pod);
}

/// Validates the fields of a Pod that do not depend on the old Pod.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validatePodMetadataAndSpec`.
pub(crate) fn whole(errors: &mut Errors, pod: &Value) {
    let (path, spec, metadata) = (Path::new("spec"), get(pod, "spec"), get(pod, "metadata"));
    annotations(errors, &Path::new("metadata").child("annotations"), metadata, spec);
    spec_errors(errors, &path, pod, Some(text(metadata, "name")), None);
    if text(spec, "serviceAccountName").is_empty() {
        let volumes = path.child("volumes");
        for (index, volume) in list(spec, "volumes").iter().enumerate() {
            let item = volumes.index(index);
            let projected = item.child("projected");
            let sources = projected.child("sources");
            for (index, source) in list(get(volume, "projected"), "sources").iter().enumerate() {
                if set(source, "serviceAccountToken").is_some() {
                    let why = "must not be specified when serviceAccountName is not set";
                    errors.forbidden(&sources.index(index).child("serviceAccountToken"), why);
                }
            }
        }
    }
    errors.none_negative(&path, spec, &["terminationGracePeriodSeconds"]);
    for field in ["containers", "initContainers"] {
        let path = path.child(field);
        for (index, container) in list(spec, field).iter().enumerate() {
            containers::image(errors, &path.index(index), container);
        }
    }
}

/// Validates a pod template; `claimed` contains the claim templates of a `StatefulSet`.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `ValidatePodTemplateSpec`.
/// Rule: VLO-14.
pub(crate) fn template(errors: &mut Errors, path: &Path<'_>, template: &Value, claimed: Option<&[Value]>) {
    let spec = get(template, "spec");
    template_metadata(errors, path, template);
    let path = path.child("spec");
    spec_errors(errors, &path, template, None, claimed);
    if !list(spec, "ephemeralContainers").is_empty() {
        let why = "ephemeral containers not allowed in pod template";
        errors.forbidden(&path.child("ephemeralContainers"), why);
    }
}

/// Validates the labels and annotations of a template.
fn template_metadata(errors: &mut Errors, path: &Path<'_>, template: &Value) {
    let metadata = get(template, "metadata");
    formats::labels(errors, &path.child("labels"), get(metadata, "labels"));
    let of_annotations = path.child("annotations");
    formats::annotations(errors, &of_annotations, get(metadata, "annotations"));
    annotations(errors, &of_annotations, metadata, get(template, "spec"));
}

/// Validates the `spec` of `owner`: a Pod with the name `pod`, or a template.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `ValidatePodSpec`.
/// Rule: VLO-05.
fn spec_errors(
    errors: &mut Errors,
    path: &Path<'_>,
    owner: &Value,
    pod: Option<&str>,
    claimed: Option<&[Value]>,
) {
    let spec = get(owner, "spec");
    let grace_period = int(spec, "terminationGracePeriodSeconds");
    if grace_period.is_none() {
        errors.required(&path.child("terminationGracePeriodSeconds"), "");
    }
    let more = claimed.unwrap_or_default();
    let replaced: HashSet<&str> = more.iter().map(|volume| text(volume, "name")).collect();
    let own = list(spec, "volumes").iter().filter(|volume| !replaced.contains(text(volume, "name")));
    let all: Vec<&Value> = more.iter().chain(own).collect();
    let volumes = volumes::volumes(errors, &path.child("volumes"), &all, pod.unwrap_or_default());
    let claims: BTreeSet<&str> = list(spec, "resourceClaims")
        .iter()
        .map(|claim| text(claim, "name"))
        .filter(|name| !name.is_empty())
        .collect();
    resource_claims(errors, &path.child("resourceClaims"), spec);
    let system = set(spec, "os").map(|system| text(system, "name"));
    let shared = SharedContext {
        volumes,
        claims,
        grace_period,
        restart_policy: text(spec, "restartPolicy"),
        host_users: get(spec, "hostUsers") != &Value::Bool(false),
    };
    containers::containers(errors, &path.child("containers"), spec, &shared);
    containers::init_containers(errors, &path.child("initContainers"), spec, &shared);
    containers::ephemeral_containers(errors, &path.child("ephemeralContainers"), spec, &shared);
    own_resources(errors, path, owner, &shared);
    containers::host_network(errors, path, spec, pod.is_some());
    let policies = ["Always", "OnFailure", "Never"];
    errors.required_one_of(&path.child("restartPolicy"), shared.restart_policy, &policies);
    let policies = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    errors.required_one_of(&path.child("dnsPolicy"), text(spec, "dnsPolicy"), &policies);
    formats::labels(errors, &path.child("nodeSelector"), get(spec, "nodeSelector"));
    security::of_pod(errors, &path.child("securityContext"), spec);
    if flag(spec, "shareProcessNamespace") && flag(spec, "hostPID") {
        let why = "ShareProcessNamespace and HostPID cannot both be enabled";
        errors.invalid(&path.child("shareProcessNamespace"), true, why);
    }
    scheduling::affinity(errors, &path.child("affinity"), get(spec, "affinity"));
    dns(errors, &path.child("dnsConfig"), spec);
    let gates = path.child("readinessGates");
    for (index, gate) in list(spec, "readinessGates").iter().enumerate() {
        let path = gates.index(index);
        formats::qualified_name(errors, &path.child("conditionType"), text(gate, "conditionType"));
    }
    scheduling_gates(errors, &path.child("schedulingGates"), spec);
    scheduling::spread(errors, &path.child("topologySpreadConstraints"), spec);
    security::host_process(errors, path, spec);
    host_users(errors, path, spec);
    host_name(errors, &path.child("hostnameOverride"), spec);
    names_of(errors, path, spec, claimed.is_none());
    scheduling::tolerations(errors, &path.child("tolerations"), list(spec, "tolerations"));
    host_aliases(errors, &path.child("hostAliases"), spec);
    for field in ["priorityClassName", "runtimeClassName"] {
        let name = word(spec, field).filter(|name| field == "runtimeClassName" || !name.is_empty());
        if let Some(name) = name {
            formats::dns_subdomain(errors, &path.child(field), name);
        }
    }
    if let Some(policy) = word(spec, "preemptionPolicy") {
        let policies = ["PreemptLowerPriority", "Never"];
        errors.required_one_of(&path.child("preemptionPolicy"), policy, &policies);
    }
    if let Some(overhead) = set(spec, "overhead") {
        let limits = json!({"limits": overhead});
        let path = path.child("overhead");
        resources::requirements(errors, &path, &limits, Owner::Container, &BTreeSet::new());
    }
    if let Some(system) = system {
        operating_system::fields(errors, path, spec, system);
    }
    file_volumes(errors, path, spec, &all);
}

/// Validates the resource claims of a Pod.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validatePodResourceClaim`.
fn resource_claims(errors: &mut Errors, path: &Path<'_>, spec: &Value) {
    let mut seen = HashSet::new();
    for (index, claim) in list(spec, "resourceClaims").iter().enumerate() {
        let path = path.index(index);
        let name = text(claim, "name");
        if name.is_empty() {
            errors.required(&path.child("name"), "");
        } else if seen.insert(name) {
            formats::dns_label(errors, &path.child("name"), name);
        } else {
            errors.duplicate(&path.child("name"), name);
        }
        let fields = ["resourceClaimName", "resourceClaimTemplateName"];
        // The value has the form of the internal Go type.
        let shown = || {
            let [reference, template] = fields.map(|field| encode(get(claim, field)));
            let name = encode(&name.into());
            format!(
                "{{\"Name\":{name},\"ResourceClaimName\":{reference},\"ResourceClaimTemplateName\":{template}}}"
            )
        };
        match fields.iter().filter(|field| set(claim, field).is_some()).count() {
            0 => {
                let why = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`";
                errors.invalid(&path, shown(), why);
            }
            1 => {}
            _ => {
                let why =
                    "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified";
                errors.invalid(&path, shown(), why);
            }
        }
        for field in fields {
            if let Some(name) = word(claim, field) {
                formats::dns_subdomain(errors, &path.child(field), name);
            }
        }
    }
}

/// Validates the Pod-level `resources`.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validatePodResources` and
/// `validatePodResourceConsistency`.
fn own_resources(errors: &mut Errors, path: &Path<'_>, owner: &Value, shared: &SharedContext<'_>) {
    let spec = get(owner, "spec");
    let Some(own) = set(spec, "resources") else { return };
    let path = path.child("resources");
    if text(get(spec, "os"), "name") == "windows" {
        errors.forbidden(&path, "may not be set for a windows pod");
        return;
    }
    if set(own, "claims").is_some() {
        errors.forbidden(&path.child("claims"), "claims may not be set for Resources at pod-level");
    }
    resources::requirements(errors, &path, own, Owner::Pod, &shared.claims);
    for (field, what) in [("requests", "requests"), ("limits", "limits")] {
        let path = path.child(field);
        let of_containers = pod_resources::of_containers(owner, field);
        for (name, value) in entries(own, field) {
            let counts = field == "requests" || resources::is_huge_page(name);
            let Some(value) = quantity::from_value(value).filter(|_| counts) else { continue };
            if let Some(sum) = of_containers.get(name).filter(|sum| **sum > value) {
                let why = format!("must be greater than or equal to aggregate container {what} of {sum}");
                errors.invalid_text(&path.key(name), &value.to_string(), why);
            }
        }
    }
    let of_pod: Vec<(&str, Quantity)> = entries(own, "limits")
        .filter_map(|(name, value)| Some((name, quantity::from_value(value)?)))
        .collect();
    let path = path.child("containers");
    for (index, container) in list(spec, "containers").iter().enumerate() {
        let path = path.index(index);
        let limits = get(get(container, "resources"), "limits");
        for (name, most) in &of_pod {
            let Some(limit) = set(limits, name).and_then(quantity::from_value).filter(|limit| limit > most)
            else {
                continue;
            };
            let why = format!("must be less than or equal to pod limits of {most}");
            errors.invalid_text(&path.key(name).child("limits"), &limit.to_string(), why);
        }
    }
}

/// Validates the DNS configuration of a Pod.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validatePodDNSConfig`.
fn dns(errors: &mut Errors, path: &Path<'_>, spec: &Value) {
    const MAX_DNS_NAMESERVERS: usize = 3;
    const MAX_DNS_SEARCH_PATHS: usize = 32;
    const MAX_DNS_SEARCH_LIST_CHARS: usize = 2048;
    let config = set(spec, "dnsConfig");
    if text(spec, "dnsPolicy") == "None" {
        let Some(config) = config else {
            errors.required(path, "must provide `dnsConfig` when `dnsPolicy` is None");
            return;
        };
        if list(config, "nameservers").is_empty() {
            let why = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            errors.required(&path.child("nameservers"), why);
            return;
        }
    }
    let Some(config) = config else { return };
    let (servers, searches) = (list(config, "nameservers"), list(config, "searches"));
    let json = |values: &[Value]| Value::from(values.to_vec());
    if servers.len() > MAX_DNS_NAMESERVERS {
        let why = format!("must not have more than {MAX_DNS_NAMESERVERS} nameservers");
        errors.invalid(&path.child("nameservers"), json(servers), why);
    }
    let of_servers = path.child("nameservers");
    for (index, server) in texts(config, "nameservers").enumerate() {
        addresses::ip(errors, &of_servers.index(index), server);
    }
    let of_searches = path.child("searches");
    if searches.len() > MAX_DNS_SEARCH_PATHS {
        let why = format!("must not have more than {MAX_DNS_SEARCH_PATHS} search paths");
        errors.invalid(&of_searches, json(searches), why);
    }
    let length: usize = texts(config, "searches").map(|search| search.len() + 1).sum();
    if length > MAX_DNS_SEARCH_LIST_CHARS + 1 {
        let why = format!(
            "must not have more than {MAX_DNS_SEARCH_LIST_CHARS} characters (including spaces) in the search list"
        );
        errors.invalid(&of_searches, json(searches), why);
    }
    for (index, search) in texts(config, "searches").enumerate().filter(|(_, search)| *search != ".") {
        let search = search.strip_suffix('.').unwrap_or(search);
        errors.all_invalid(
            &of_searches.index(index),
            search,
            formats::dns_subdomain_with_underscores(search),
        );
    }
    let options = path.child("options");
    for (index, option) in list(config, "options").iter().enumerate() {
        if text(option, "name").is_empty() {
            errors.required(&options.index(index), "must not be empty");
        }
    }
}

fn scheduling_gates(errors: &mut Errors, path: &Path<'_>, spec: &Value) {
    let mut seen = HashSet::new();
    for (index, gate) in list(spec, "schedulingGates").iter().enumerate() {
        let name = text(gate, "name");
        formats::qualified_name(errors, &path.index(index), name);
        if !seen.insert(name) {
            errors.duplicate(&path.index(index), name);
        }
    }
}

/// Validates a Pod that runs in a separate user namespace.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validateHostUsers`.
fn host_users(errors: &mut Errors, path: &Path<'_>, spec: &Value) {
    const WHY: &str = "when `hostUsers` is false";
    if get(spec, "hostUsers") != &Value::Bool(false) {
        return;
    }
    for (field, shown) in [("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")] {
        if flag(spec, field) {
            errors.forbidden(&path.child(shown), WHY);
        }
    }
    for_each_container(path, spec, |path, container| {
        if !list(container, "volumeDevices").is_empty() {
            errors.forbidden(&path.child("volumeDevices"), WHY);
        }
    });
}

/// Validates `hostnameOverride` of a Pod.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validatePodHostName`.
fn host_name(errors: &mut Errors, path: &Path<'_>, spec: &Value) {
    const MAX_HOSTNAME_OVERRIDE_LENGTH: usize = 64;
    let Some(name) = word(spec, "hostnameOverride") else { return };
    if flag(spec, "setHostnameAsFQDN") {
        errors.forbidden(path, "may not be specified when setHostnameAsFQDN is true");
    }
    if flag(spec, "hostNetwork") {
        errors.forbidden(path, "may not be specified when hostNetwork is true");
    }
    if name.len() > MAX_HOSTNAME_OVERRIDE_LENGTH {
        errors.too_long(path, MAX_HOSTNAME_OVERRIDE_LENGTH);
    }
    formats::dns_subdomain(errors, path, name);
}

/// Validates the names in the spec and `activeDeadlineSeconds`, in upstream's order.
fn names_of(errors: &mut Errors, path: &Path<'_>, spec: &Value, has_host_names: bool) {
    let account = text(spec, "serviceAccountName");
    let mut optional = |field: &str, wrong: fn(&str) -> Vec<String>| {
        let name = text(spec, field);
        if !name.is_empty() {
            errors.all_invalid(&path.child(field), name, wrong(name));
        }
    };
    optional("serviceAccountName", names::dns1123_subdomain);
    let deprecated = text(spec, "serviceAccount");
    // An absent value defaults to that of the other field.
    let is_other = !deprecated.is_empty() && deprecated != account;
    if is_other {
        let why =
            format!("must be the same as serviceAccountName: {}", kubernetes_types::quoting::quote(account));
        errors.invalid_text(&path.child("deprecatedServiceAccount"), deprecated, why);
    }
    let mut optional = |field: &str, wrong: fn(&str) -> Vec<String>| {
        let name = text(spec, field);
        if !name.is_empty() {
            errors.all_invalid(&path.child(field), name, wrong(name));
        }
    };
    optional("nodeName", names::dns1123_subdomain);
    let most = i64::from(i32::MAX);
    let deadline = int(spec, "activeDeadlineSeconds").filter(|deadline| !(1..=most).contains(deadline));
    if let Some(deadline) = deadline {
        errors.invalid(&path.child("activeDeadlineSeconds"), deadline, formats::between(1, most));
    }
    for field in ["hostname", "subdomain"] {
        let name = text(spec, field);
        if has_host_names && !name.is_empty() {
            formats::dns_label(errors, &path.child(field), name);
        }
    }
}

/// Validates the host aliases of a Pod.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `ValidateHostAliases`.
fn host_aliases(errors: &mut Errors, path: &Path<'_>, spec: &Value) {
    for (index, alias) in list(spec, "hostAliases").iter().enumerate() {
        let item = path.index(index);
        addresses::ip(errors, &item.child("ip"), text(alias, "ip"));
        let path = item.child("hostnames");
        for (index, name) in texts(alias, "hostnames").enumerate() {
            formats::dns_subdomain(errors, &path.index(index), name);
        }
    }
}

/// Checks that variables reference files only in `emptyDir` volumes.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validateFileKeyRefVolumes`.
fn file_volumes(errors: &mut Errors, path: &Path<'_>, spec: &Value, volumes: &[&Value]) {
    for_each_container(path, spec, |path, container| {
        let path = path.child("env");
        for (index, variable) in list(container, "env").iter().enumerate() {
            let Some(reference) = set(get(variable, "valueFrom"), "fileKeyRef") else { continue };
            let item = path.index(index);
            let path = item.child("valueFrom");
            let path = path.child("fileKeyRef");
            let path = path.child("volumeName");
            let name = text(reference, "volumeName");
            match volumes.iter().rev().find(|volume| text(volume, "name") == name) {
                None => errors.not_found(&path, name),
                Some(volume) if set(volume, "emptyDir").is_none() => {
                    errors.invalid_text(&path, name, "referenced volume must be of type emptyDir");
                }
                Some(_) => {}
            }
        }
    });
}
