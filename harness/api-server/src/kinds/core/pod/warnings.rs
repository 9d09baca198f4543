//! Warns about Pods and pod templates.

use std::collections::{HashMap, HashSet};

use kubernetes_types::names;
use kubernetes_types::quoting::quote;
use serde_json::{Value, json};

use crate::kinds::common::addresses;
use crate::kinds::common::fields::{Path, entries, get, int, list, set, text, texts};
use crate::kinds::common::warnings::Warnings;
use crate::kinds::core::persistent_volume_claim::{fractional, warn_about_spec};
use crate::kinds::core::pod::validation::profiles::for_each_container;
use crate::kinds::core::pod::volume_warnings;

/// The deprecated node labels, each with a message.
///
/// Source: kubernetes pkg/api/node/util.go, `deprecatedNodeLabels`.
const DEPRECATED_LABELS: [(&str, &str); 8] = [
    ("beta.kubernetes.io/arch", "deprecated since v1.14; use \"kubernetes.io/arch\" instead"),
    ("beta.kubernetes.io/os", "deprecated since v1.14; use \"kubernetes.io/os\" instead"),
    (
        "failure-domain.beta.kubernetes.io/region",
        "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead",
    ),
    (
        "failure-domain.beta.kubernetes.io/zone",
        "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead",
    ),
    (
        "beta.kubernetes.io/instance-type",
        "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead",
    ),
    ("app.kubernetes.io/created-by", "deprecated since v1.9"),
    (
        "scheduler.alpha.kubernetes.io/preferAvoidPods",
        "deprecated since v1.22; use Taints and Tolerations instead",
    ),
    ("node-role.kubernetes.io/master", "use \"node-role.kubernetes.io/control-plane\" instead"),
];

/// The deprecated Pod annotations that do not have an effect.
const DEPRECATED_ANNOTATIONS: [(&str, &str); 3] = [
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        "non-functional in v1.16+; use the \"priorityClassName\" field instead",
    ),
    ("security.alpha.kubernetes.io/sysctls", "non-functional in v1.11+; use the \"sysctls\" field instead"),
    (
        "security.alpha.kubernetes.io/unsafe-sysctls",
        "non-functional in v1.11+; use the \"sysctls\" field instead",
    ),
];

/// The deprecated or removed volume types.
const DEPRECATED_VOLUMES: [(&str, &str); 9] = [
    ("photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    ("scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("storageos", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("rbd", "deprecated in v1.28, non-functional in v1.31+"),
];

pub(crate) fn deprecated_label(label: &str) -> Option<&'static str> {
    DEPRECATED_LABELS.into_iter().find(|(name, _)| *name == label).map(|(_, message)| message)
}

pub(crate) fn pod(warnings: &mut Warnings, pod: &Value) {
    of_both(warnings, None, pod);
}

pub(crate) fn template(warnings: &mut Warnings, path: &Path<'_>, template: &Value) {
    of_both(warnings, Some(path), template);
}

/// Adds the warnings that apply both to a Pod and to the pod template at `root`.
///
/// Source: kubernetes pkg/api/pod/warnings.go, `warningsForPodSpecAndMeta`.
/// Rule: VLO-26.
fn of_both(warnings: &mut Warnings, root: Option<&Path<'_>>, owner: &Value) {
    const SECCOMP: &str = "seccomp.security.alpha.kubernetes.io/pod";
    let spec = get(owner, "spec");
    let (path, metadata) = (Path::below(root, "spec"), Path::below(root, "metadata"));
    let annotations_path = metadata.child("annotations");
    let annotations = get(get(owner, "metadata"), "annotations");
    scheduling(warnings, &path, spec);
    for (name, message) in DEPRECATED_ANNOTATIONS {
        if annotations.get(name).is_some() {
            warnings.push(format!("{}: {message}", annotations_path.key(name)));
        }
    }
    of_volumes(warnings, &path.child("volumes"), spec);
    volume_warnings::overlapping(warnings, spec);
    duplicates(warnings, &path, spec);
    for name in ["memory", "ephemeral-storage"] {
        fractional(warnings, &path.child("overhead"), get(spec, "overhead"), name);
    }
    let context = get(spec, "securityContext");
    if set(context, "seccompProfile").is_none() && annotations.get(SECCOMP).is_some() {
        no_seccomp(warnings, &annotations_path, SECCOMP);
    }
    for_each_container(&path, spec, |path, container| {
        profiles(warnings, &annotations_path, annotations, container, root.map(|_| context));
        let resources = path.child("resources");
        for name in ["memory", "ephemeral-storage"] {
            for field in ["limits", "requests"] {
                let amounts = get(get(container, "resources"), field);
                fractional(warnings, &resources.child(field), amounts, name);
            }
        }
        variables(warnings, path, container);
    });
    ports(warnings, &path, spec);
    if int(spec, "terminationGracePeriodSeconds").is_some_and(|seconds| seconds < 0) {
        let path = path.child("terminationGracePeriodSeconds");
        let message = "must be >= 0; negative values are invalid and will be treated as 1";
        warnings.push(format!("{path}: {message}"));
    }
    affinity_to_pods(warnings, &path.child("affinity"), get(spec, "affinity"));
    let dns = path.child("dnsConfig");
    let servers = dns.child("nameservers");
    for (index, server) in texts(get(spec, "dnsConfig"), "nameservers").enumerate() {
        addresses::unusual_ip(warnings, &servers.index(index), server);
    }
    let aliases = path.child("hostAliases");
    for (index, alias) in list(spec, "hostAliases").iter().enumerate() {
        let path = aliases.index(index);
        addresses::unusual_ip(warnings, &path.child("ip"), text(alias, "ip"));
    }
}

/// Warns about deprecated node labels in selectors, and about spread constraints without a label selector.
fn scheduling(warnings: &mut Warnings, path: &Path<'_>, spec: &Value) {
    let selector = path.child("nodeSelector");
    for (label, _) in entries(spec, "nodeSelector") {
        if let Some(message) = deprecated_label(label) {
            warnings.push(format!("{}: {message}", selector.key(label)));
        }
    }
    let affinity = get(get(spec, "affinity"), "nodeAffinity");
    let of_affinity = path.child("affinity");
    let of_affinity = of_affinity.child("nodeAffinity");
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    let terms = of_affinity.child(required);
    let terms = terms.child("nodeSelectorTerms");
    for (index, term) in list(get(affinity, required), "nodeSelectorTerms").iter().enumerate() {
        node_selector_term(warnings, &terms.index(index), term, false);
    }
    let preferred = "preferredDuringSchedulingIgnoredDuringExecution";
    let terms = of_affinity.child(preferred);
    for (index, term) in list(affinity, preferred).iter().enumerate() {
        let path = terms.index(index);
        node_selector_term(warnings, &path.child("preference"), get(term, "preference"), true);
    }
    let spread = path.child("topologySpreadConstraints");
    for (index, constraint) in list(spec, "topologySpreadConstraints").iter().enumerate() {
        let path = spread.index(index);
        let key = text(constraint, "topologyKey");
        if let Some(message) = deprecated_label(key) {
            warnings.push(format!("{}: {key} is {message}", path.child("topologyKey")));
        }
        no_selector(warnings, &path, constraint);
    }
}

/// Warns about a term or a constraint that does not have a label selector.
fn no_selector(warnings: &mut Warnings, path: &Path<'_>, owner: &Value) {
    if set(owner, "labelSelector").is_none() {
        let path = path.child("labelSelector");
        warnings.push(format!("{path}: a null labelSelector results in matching no pod"));
    }
}

/// Warns about deprecated node labels and invalid values in a term of a node selector.
///
/// Source: kubernetes pkg/api/node/util.go, `GetWarningsForNodeSelectorTerm`.
pub(crate) fn node_selector_term(warnings: &mut Warnings, path: &Path<'_>, term: &Value, with_values: bool) {
    let path = path.child("matchExpressions");
    for (index, expression) in list(term, "matchExpressions").iter().enumerate() {
        let path = path.index(index);
        let key = text(expression, "key");
        if let Some(message) = deprecated_label(key) {
            warnings.push(format!("{}: {key} is {message}", path.child("key")));
        }
        if with_values {
            let path = path.child("values");
            for (index, value) in texts(expression, "values").enumerate() {
                for why in names::label_value(value) {
                    warnings.push(format!("{}: {value} is invalid, {why}", path.index(index)));
                }
            }
        }
    }
}

fn of_volumes(warnings: &mut Warnings, path: &Path<'_>, spec: &Value) {
    for (index, volume) in list(spec, "volumes").iter().enumerate() {
        let path = path.index(index);
        for (field, message) in DEPRECATED_VOLUMES {
            if field == "cephfs"
                && let Some(claim) = set(get(volume, "ephemeral"), "volumeClaimTemplate")
            {
                let path = path.child("ephemeral");
                let path = path.child("volumeClaimTemplate");
                warn_about_spec(warnings, &path.child("spec"), get(claim, "spec"));
            }
            if set(volume, field).is_some() {
                let field = if field == "storageos" { "storageOS" } else { field };
                warnings.push(format!("{}: {message}", path.child(field)));
            }
        }
    }
}

/// Warns about duplicate host aliases, and about duplicate or empty names of image pull secrets.
fn duplicates(warnings: &mut Warnings, path: &Path<'_>, spec: &Value) {
    for (field, member) in [("hostAliases", "ip"), ("imagePullSecrets", "name")] {
        let path = path.child(field);
        let mut seen = HashSet::new();
        for (index, item) in list(spec, field).iter().enumerate() {
            let found = text(item, member);
            if !seen.insert(found) {
                let path = path.index(index);
                let path = path.child(member);
                warnings.push(format!("{path}: duplicate {member} {}", quote(found)));
            }
        }
    }
    let path = path.child("imagePullSecrets");
    for (index, item) in list(spec, "imagePullSecrets").iter().enumerate() {
        if text(item, "name").is_empty() {
            let path = path.index(index);
            warnings.push(format!("{}: invalid empty name \"\"", path.child("name")));
        }
    }
}

fn no_seccomp(warnings: &mut Warnings, annotations: &Path<'_>, name: &str) {
    let message = "non-functional in v1.27+; use the \"seccompProfile\" field instead";
    warnings.push(format!("{}: {message}", annotations.key(name)));
}

/// Warns about annotations with seccomp or `AppArmor` profiles of a container.
///
/// `template` is the Pod security context of a template; `None` for a Pod.
fn profiles(
    warnings: &mut Warnings,
    path: &Path<'_>,
    annotations: &Value,
    container: &Value,
    template: Option<&Value>,
) {
    let (name, context) = (text(container, "name"), get(container, "securityContext"));
    let seccomp = format!("container.seccomp.security.alpha.kubernetes.io/{name}");
    if set(context, "seccompProfile").is_none() && annotations.get(&seccomp).is_some() {
        no_seccomp(warnings, path, &seccomp);
    }
    let Some(of_pod) = template.filter(|_| set(context, "appArmorProfile").is_none()) else { return };
    let app_armor = format!("container.apparmor.security.beta.kubernetes.io/{name}");
    let Some(annotation) = annotations.get(&app_armor) else { return };
    let of_pod = set(of_pod, "appArmorProfile");
    if of_pod.is_none() || of_pod != app_armor_profile(annotation.as_str().unwrap_or_default()).as_ref() {
        let message = "deprecated since v1.30; use the \"appArmorProfile\" field instead";
        warnings.push(format!("{}: {message}", path.key(&app_armor)));
    }
}

/// Returns the profile that an annotation specifies.
///
/// Source: kubernetes pkg/api/pod/util.go, `ApparmorFieldForAnnotation`.
pub(crate) fn app_armor_profile(annotation: &str) -> Option<Value> {
    match annotation {
        "unconfined" => Some(json!({"type": "Unconfined"})),
        "runtime/default" => Some(json!({"type": "RuntimeDefault"})),
        _ => {
            let profile = annotation.strip_prefix("localhost/").filter(|profile| !profile.is_empty())?;
            Some(json!({"type": "Localhost", "localhostProfile": profile}))
        }
    }
}

/// Warns about duplicate variables, unless the later value combines a reference to the earlier one with other text.
fn variables(warnings: &mut Warnings, path: &Path<'_>, container: &Value) {
    let path = path.child("env");
    let mut seen = HashSet::new();
    for (index, variable) in list(container, "env").iter().enumerate() {
        let (name, value) = (text(variable, "name"), text(variable, "value"));
        if seen.insert(name) {
            continue;
        }
        let reference = format!("$({name})");
        if set(variable, "valueFrom").is_some() || value == reference || !value.contains(&reference) {
            let (path, name) = (path.index(index), quote(name));
            warnings.push(format!(
                "{path}: hides previous definition of {name}, which may be dropped when using apply"
            ));
        }
    }
}

/// A port of a container.
#[derive(Clone, Copy)]
struct Port<'a> {
    name: &'a str,
    number: i64,
    protocol: &'a str,
    address: &'a str,
    on_host: i64,
}

impl<'a> Port<'a> {
    fn new(port: &'a Value) -> Self {
        Self {
            name: text(port, "name"),
            number: int(port, "containerPort").unwrap_or(0),
            protocol: text(port, "protocol"),
            address: text(port, "hostIP"),
            on_host: int(port, "hostPort").unwrap_or(0),
        }
    }

    fn conflict(self, other: Self) -> Option<&'static str> {
        if (self.address, self.on_host) == (other.address, other.on_host) {
            return Some("duplicate");
        }
        if self.on_host == 0 || other.on_host == 0 {
            return Some("overlapping");
        }
        let is_open = self.address.is_empty() != other.address.is_empty();
        (self.on_host == other.on_host && is_open).then_some("dangerously ambiguous")
    }
}

/// Warns about conflicting ports, duplicate port names, and ports with `hostIP` but without `hostPort`.
fn ports(warnings: &mut Warnings, path: &Path<'_>, spec: &Value) {
    /// The maximum number of comparisons. Objects of typical size do not reach this limit.
    const MAX_COMPARISONS: usize = 4_000_000;
    let mut left = MAX_COMPARISONS;
    let mut known: HashMap<(i64, &str), Vec<(String, Port<'_>)>> = HashMap::new();
    for_each_container(path, spec, |path, container| {
        let path = path.child("ports");
        for (index, port) in list(container, "ports").iter().enumerate() {
            let (path, port) = (path.index(index), Port::new(port));
            if !port.address.is_empty() && port.on_host == 0 {
                let Port { name, number, protocol, address, .. } = port;
                warnings.push(format!(
                    "{path}: hostIP set without hostPort: {{Name:{name} HostPort:0 ContainerPort:{number} \
                     Protocol:{protocol} HostIP:{address}}}"
                ));
            }
            let others = known.entry((port.number, port.protocol)).or_default();
            left = left.saturating_sub(others.len());
            if left > 0 && !warnings.is_full() {
                for (other_path, other) in others.iter() {
                    if let Some(what) = port.conflict(*other) {
                        warnings.push(format!("{path}: {what} port definition with {other_path}"));
                    }
                }
            }
            others.push((path.to_string(), port));
        }
    });
    let mut named: HashMap<&str, String> = HashMap::new();
    for_each_container(path, spec, |path, container| {
        let path = path.child("ports");
        for (index, port) in list(container, "ports").iter().enumerate() {
            let (path, name) = (path.index(index), text(port, "name"));
            if name.is_empty() {
                continue;
            }
            if let Some(other) = named.get(name) {
                let name = quote(name);
                warnings.push(format!(
                    "{path}: duplicate port name {name} with {other}, services and probes that select ports by name \
                     will use {other}"
                ));
            } else {
                named.insert(name, path.to_string());
            }
        }
    });
}

fn affinity_to_pods(warnings: &mut Warnings, path: &Path<'_>, affinity: &Value) {
    for field in ["podAffinity", "podAntiAffinity"] {
        let (of_kind, kind) = (path.child(field), get(affinity, field));
        let required = "requiredDuringSchedulingIgnoredDuringExecution";
        let path = of_kind.child(required);
        for (index, term) in list(kind, required).iter().enumerate() {
            no_selector(warnings, &path.index(index), term);
        }
        let preferred = "preferredDuringSchedulingIgnoredDuringExecution";
        let path = of_kind.child(preferred);
        for (index, term) in list(kind, preferred).iter().enumerate() {
            let path = path.index(index);
            no_selector(warnings, &path.child("podAffinityTerm"), get(term, "podAffinityTerm"));
        }
    }
}
