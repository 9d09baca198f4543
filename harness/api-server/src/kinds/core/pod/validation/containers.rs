//! Validates containers, init containers, and ephemeral containers.

use std::collections::{BTreeSet, HashSet};

use serde_json::Value;

use crate::kinds::common::fields::{Errors, Path, flag, get, int, list, set, text, word};
use crate::kinds::common::formats;
use crate::kinds::common::resources::{Owner, requirements};
use crate::kinds::core::pod::validation::volumes::Volumes;
use crate::kinds::core::pod::validation::{environment, handlers, security, volumes};

/// The fields of the Pod that the validation of its containers needs.
pub(crate) struct SharedContext<'a> {
    pub(crate) volumes: Volumes<'a>,
    /// The names in `resourceClaims`.
    pub(crate) claims: BTreeSet<&'a str>,
    /// The `terminationGracePeriodSeconds` of the Pod.
    pub(crate) grace_period: Option<i64>,
    pub(crate) restart_policy: &'a str,
    /// The `hostUsers` of the Pod; true by default.
    pub(crate) host_users: bool,
}

const WITHOUT_POLICY: &str = "must specify restartPolicy when restart rules are used";

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

/// Validates the containers of a Pod.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validateContainers`.
/// Rule: VLO-05, VLO-06.
pub(crate) fn containers(errors: &mut Errors, path: &Path<'_>, spec: &Value, shared: &SharedContext<'_>) {
    let containers = list(spec, "containers");
    if containers.is_empty() {
        errors.required(path, "");
        return;
    }
    let mut names = HashSet::new();
    for (index, container) in containers.iter().enumerate() {
        let path = path.index(index);
        common(errors, &path, container, shared);
        let name = text(container, "name");
        if !names.insert(name) {
            errors.duplicate(&path.child("name"), name);
        }
        handlers::of_container(errors, &path, container, shared.grace_period);
        restart_policy(errors, &path, container);
    }
    host_ports(errors, path, containers);
}

/// Validates the init containers of a Pod.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validateInitContainers`.
pub(crate) fn init_containers(
    errors: &mut Errors,
    path: &Path<'_>,
    spec: &Value,
    shared: &SharedContext<'_>,
) {
    let mut names: HashSet<&str> = list(spec, "containers").iter().map(|other| text(other, "name")).collect();
    for (index, container) in list(spec, "initContainers").iter().enumerate() {
        let item = path.index(index);
        common(errors, &item, container, shared);
        if word(container, "restartPolicy").is_some() {
            restart_policy(errors, &item, container);
        } else if !list(container, "restartPolicyRules").is_empty() {
            errors.required(&item.child("restartPolicy"), WITHOUT_POLICY);
        }
        let name = text(container, "name");
        if names.contains(name) {
            errors.duplicate(&item.child("name"), name);
        } else if !name.is_empty() {
            names.insert(name);
        }
        host_ports(errors, path, std::slice::from_ref(container));
        if word(container, "restartPolicy") == Some("Always") {
            handlers::of_container(errors, &item, container, shared.grace_period);
            continue;
        }
        for field in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
            if set(container, field).is_some() {
                let why = "may not be set for init containers without restartPolicy=Always";
                errors.forbidden(&item.child(field), why);
            }
        }
        let policies = item.child("resizePolicy");
        for (index, policy) in list(container, "resizePolicy").iter().enumerate() {
            if text(policy, "restartPolicy") == "RestartContainer" {
                let why = "must not be set to 'RestartContainer' for non-sidecar initContainers";
                errors.invalid_text(&policies.index(index).child("restartPolicy"), "RestartContainer", why);
            }
        }
    }
}

/// Validates the ephemeral containers of a Pod.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validateEphemeralContainers`.
pub(crate) fn ephemeral_containers(
    errors: &mut Errors,
    path: &Path<'_>,
    spec: &Value,
    shared: &SharedContext<'_>,
) {
    const WHY: &str = "cannot be set for an Ephemeral Container";
    let others = list(spec, "containers").iter().chain(list(spec, "initContainers"));
    let others: HashSet<&str> = others.map(|other| text(other, "name")).collect();
    let mut names = others.clone();
    for (index, container) in list(spec, "ephemeralContainers").iter().enumerate() {
        let path = path.index(index);
        common(errors, &path, container, shared);
        image(errors, &path, container);
        let name = text(container, "name");
        if !names.insert(name) {
            errors.duplicate(&path.child("name"), name);
        }
        let target = text(container, "targetContainerName");
        if !target.is_empty() && !others.contains(target) {
            errors.not_found(&path.child("targetContainerName"), target);
        }
        // The fields are in the order in which the Go type declares them.
        let is_set = |field: &str| match get(container, field) {
            Value::Null => false,
            Value::Array(items) => !items.is_empty(),
            Value::Object(members) => field != "resources" || !members.is_empty(),
            Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
        };
        let forbidden = [
            "ports",
            "resources",
            "resizePolicy",
            "restartPolicy",
            "restartPolicyRules",
            "livenessProbe",
            "readinessProbe",
            "startupProbe",
            "lifecycle",
        ];
        for field in forbidden.into_iter().filter(|field| is_set(field)) {
            errors.forbidden(&path.child(field), WHY);
        }
        let mounts = path.child("volumeMounts");
        for (index, mount) in list(container, "volumeMounts").iter().enumerate() {
            for field in ["subPath", "subPathExpr"] {
                if !text(mount, field).is_empty() {
                    errors.forbidden(&mounts.index(index).child(field), WHY);
                }
            }
        }
    }
}

/// Validates the fields that all types of containers have.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validateContainerCommon`.
fn common(errors: &mut Errors, path: &Path<'_>, container: &Value, shared: &SharedContext<'_>) {
    let name = text(container, "name");
    if name.is_empty() {
        errors.required(&path.child("name"), "");
    } else {
        formats::dns_label(errors, &path.child("name"), name);
    }
    if text(container, "image").is_empty() {
        errors.required(&path.child("image"), "");
    }
    let policies = ["File", "FallbackToLogsOnError"];
    let policy = text(container, "terminationMessagePolicy");
    errors.required_one_of(&path.child("terminationMessagePolicy"), policy, &policies);
    ports(errors, &path.child("ports"), container);
    environment::variables(errors, &path.child("env"), container);
    environment::sources(errors, &path.child("envFrom"), container);
    volumes::mounts(errors, &path.child("volumeMounts"), container, &shared.volumes);
    volumes::devices(errors, &path.child("volumeDevices"), container, &shared.volumes);
    volumes::pull_policy(errors, &path.child("imagePullPolicy"), text(container, "imagePullPolicy"));
    let resources = get(container, "resources");
    requirements(errors, &path.child("resources"), resources, Owner::Container, &shared.claims);
    resize_policy(errors, &path.child("resizePolicy"), container, shared.restart_policy);
    security::of_container(errors, &path.child("securityContext"), container, shared.host_users);
}

/// Validates the image of a container in a Pod, not in a template.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validateContainerOnlyForPod`.
pub(crate) fn image(errors: &mut Errors, path: &Path<'_>, container: &Value) {
    let image = text(container, "image");
    if image.trim() != image {
        errors.invalid_text(&path.child("image"), image, "must not have leading or trailing whitespace");
    }
}

/// Validates the ports of a container.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validateContainerPorts`.
fn ports(errors: &mut Errors, path: &Path<'_>, container: &Value) {
    let mut names = HashSet::new();
    for (index, port) in list(container, "ports").iter().enumerate() {
        let path = path.index(index);
        let name = text(port, "name");
        if !name.is_empty() {
            let wrong = formats::port_name(name);
            if wrong.is_empty() && !names.insert(name) {
                errors.duplicate(&path.child("name"), name);
            }
            errors.all_invalid(&path.child("name"), name, wrong);
        }
        match int(port, "containerPort").unwrap_or(0) {
            0 => errors.required(&path.child("containerPort"), ""),
            number => formats::port(errors, &path.child("containerPort"), number),
        }
        match int(port, "hostPort").unwrap_or(0) {
            0 => {}
            number => formats::port(errors, &path.child("hostPort"), number),
        }
        errors.required_one_of(&path.child("protocol"), text(port, "protocol"), &PROTOCOLS);
    }
}

/// Reports duplicate host ports.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `AccumulateUniqueHostPorts`.
fn host_ports(errors: &mut Errors, path: &Path<'_>, containers: &[Value]) {
    let mut seen = HashSet::new();
    for (index, container) in containers.iter().enumerate() {
        let item = path.index(index);
        let path = item.child("ports");
        for (index, port) in list(container, "ports").iter().enumerate() {
            let number = int(port, "hostPort").unwrap_or(0);
            if number == 0 {
                continue;
            }
            let taken = format!("{}/{}/{number}", text(port, "protocol"), text(port, "hostIP"));
            if seen.contains(&taken) {
                errors.duplicate(&path.index(index).child("hostPort"), &taken);
            } else {
                seen.insert(taken);
            }
        }
    }
}

/// Checks that host ports equal container ports in a Pod that uses the host network.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validatePodHostNetworkDeps`.
pub(crate) fn host_network(errors: &mut Errors, path: &Path<'_>, spec: &Value, is_pod: bool) {
    if !flag(spec, "hostNetwork") {
        return;
    }
    let path = path.child("containers");
    for (index, container) in list(spec, "containers").iter().enumerate() {
        let item = path.index(index);
        let path = item.child("ports");
        for (index, port) in list(container, "ports").iter().enumerate() {
            let of = |field| int(port, field).unwrap_or(0);
            let (on_host, number) = (of("hostPort"), of("containerPort"));
            if (is_pod || on_host != 0) && on_host != number {
                let path = path.index(index);
                let why = "must match `containerPort` when `hostNetwork` is true";
                errors.invalid(&path.child("hostPort"), on_host, why);
            }
        }
    }
}

/// Validates the resize policy of a container.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validateResizePolicy`.
fn resize_policy(errors: &mut Errors, path: &Path<'_>, container: &Value, pod: &str) {
    let mut seen = HashSet::new();
    for (index, policy) in list(container, "resizePolicy").iter().enumerate() {
        let (resource, restart) = (text(policy, "resourceName"), text(policy, "restartPolicy"));
        if !seen.insert(resource) {
            errors.duplicate(&path.index(index), resource);
        }
        errors.required_one_of(path, resource, &["cpu", "memory"]);
        errors.required_one_of(path, restart, &["NotRequired", "RestartContainer"]);
        if pod == "Never" && restart != "NotRequired" {
            let why = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
            errors.invalid_text(path, restart, why);
        }
    }
}

/// Validates the restart policy of a container and its rules.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validateContainerRestartPolicy`.
fn restart_policy(errors: &mut Errors, path: &Path<'_>, container: &Value) {
    const MAX_RESTART_POLICY_RULES: usize = 20;
    const MAX_EXIT_CODES: usize = 255;
    let rules = list(container, "restartPolicyRules");
    let policy = word(container, "restartPolicy");
    if policy.is_none() && !rules.is_empty() {
        errors.required(&path.child("restartPolicy"), WITHOUT_POLICY);
    }
    errors.one_of(&path.child("restartPolicy"), policy, &["Always", "Never", "OnFailure"]);
    let path = path.child("restartPolicyRules");
    if rules.len() > MAX_RESTART_POLICY_RULES {
        errors.too_many(&path, rules.len(), MAX_RESTART_POLICY_RULES);
    }
    for (index, rule) in rules.iter().enumerate() {
        let path = path.index(index);
        let actions = ["Restart", "RestartAllContainers"];
        errors.one_of(&path.child("action"), Some(text(rule, "action")), &actions);
        let codes_path = path.child("exitCodes");
        let Some(codes) = set(rule, "exitCodes") else {
            errors.required(&codes_path, "must be specified");
            continue;
        };
        let operator = text(codes, "operator");
        errors.one_of(&codes_path.child("operator"), Some(operator), &["In", "NotIn"]);
        let count = list(codes, "values").len();
        if count > MAX_EXIT_CODES {
            errors.too_many(&codes_path.child("values"), count, MAX_EXIT_CODES);
        }
    }
}
