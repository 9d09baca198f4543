//! The checks of the baseline level. This level prevents known privilege escalations.

use std::collections::BTreeSet;

use kubernetes_types::json::{at, text};
use kubernetes_types::quoting::quote;
use serde_json::Value;

use super::checks::{Subject, Violation};
use super::messages::{Values, bad, context, name, named, plural, quoted, setters};
use crate::plugins::containers::{self, items};

const APP_ARMOR_ANNOTATION: &str = "container.apparmor.security.beta.kubernetes.io/";
const SECCOMP_POD_ANNOTATION: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_CONTAINER_ANNOTATION: &str = "container.seccomp.security.alpha.kubernetes.io/";

/// Checks the `AppArmor` profiles of the Pod and its containers.
///
/// Source: pod-security-admission `policy/check_appArmorProfile.go`.
pub(super) fn app_armor_profile(subject: &Subject<'_>) -> Option<Violation> {
    let mut values = Values::new();
    let mut is_bad = |owner| {
        let profile = context(owner, &["appArmorProfile"]);
        let kind = text(profile, &["type"]);
        let is_bad = !profile.is_null() && !["RuntimeDefault", "Localhost"].contains(&kind);
        values.extend(is_bad.then_some(kind));
        is_bad
    };
    let is_pod = is_bad(subject.spec);
    let containers = bad(subject.spec, is_bad);
    let annotations = annotations(subject.metadata, |key, value| {
        let is_allowed = value.is_empty() || value == "runtime/default" || value.starts_with("localhost/");
        key.starts_with(APP_ARMOR_ANNOTATION) && !is_allowed
    });
    let word = plural(annotations.len(), "annotation", "annotations");
    let of_annotations = (!annotations.is_empty()).then(|| word.to_owned());
    let who: Vec<String> = setters(is_pod, &containers).into_iter().chain(of_annotations).collect();
    if who.is_empty() {
        return None;
    }
    let values: Vec<&str> = values.into_iter().chain(annotations.iter().map(String::as_str)).collect();
    let reason = plural(values.len(), "forbidden AppArmor profile", "forbidden AppArmor profiles");
    let detail = format!("{} must not set AppArmor profile type to {}", who.join(" and "), quoted(values));
    Some(Violation { reason, detail })
}

/// Checks that containers add only allowed capabilities.
///
/// Source: pod-security-admission `policy/check_capabilities_baseline.go`.
pub(super) fn capabilities(subject: &Subject<'_>) -> Option<Violation> {
    const ALLOWED: [&str; 13] = [
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    ];
    let mut added = Values::new();
    let containers = bad(subject.spec, |container| {
        let given =
            items(context(container, &["capabilities"]), "add").map(|it| it.as_str().unwrap_or_default());
        let forbidden: Vec<&str> = given.filter(|capability| !ALLOWED.contains(capability)).collect();
        added.extend(&forbidden);
        !forbidden.is_empty()
    });
    (!containers.is_empty()).then(|| Violation {
        reason: "non-default capabilities",
        detail: format!(
            "{} must not include {} in securityContext.capabilities.add",
            named(&containers),
            quoted(added)
        ),
    })
}

/// Checks that the Pod does not share the namespaces of the host.
///
/// Source: pod-security-admission `policy/check_hostNamespaces.go`.
pub(super) fn host_namespaces(subject: &Subject<'_>) -> Option<Violation> {
    let shared = ["hostNetwork", "hostPID", "hostIPC"].into_iter();
    let shared = shared.filter(|field| subject.spec.get(field) == Some(&Value::Bool(true)));
    let shared: Vec<String> = shared.map(|field| format!("{field}=true")).collect();
    (!shared.is_empty()).then(|| Violation { reason: "host namespaces", detail: shared.join(", ") })
}

/// Checks that the Pod does not have `hostPath` volumes.
///
/// Source: pod-security-admission `policy/check_hostPathVolumes.go`.
pub(super) fn host_path_volumes(subject: &Subject<'_>) -> Option<Violation> {
    let volumes = items(subject.spec, "volumes").filter(|volume| !at(volume, &["hostPath"]).is_null());
    let volumes: Vec<&str> = volumes.map(name).collect();
    let what = plural(volumes.len(), "volume", "volumes");
    (!volumes.is_empty())
        .then(|| Violation { reason: "hostPath volumes", detail: format!("{what} {}", quoted(volumes)) })
}

/// Checks that containers do not use host ports.
///
/// Source: pod-security-admission `policy/check_hostPorts.go`.
pub(super) fn host_ports(subject: &Subject<'_>) -> Option<Violation> {
    let mut ports: BTreeSet<String> = BTreeSet::new();
    let containers = bad(subject.spec, |container| {
        let host = items(container, "ports").filter_map(|port| port.get("hostPort").and_then(Value::as_i64));
        let before: Vec<String> = host.filter(|port| *port != 0).map(|port| port.to_string()).collect();
        let is_bad = !before.is_empty();
        ports.extend(before);
        is_bad
    });
    (!containers.is_empty()).then(|| Violation {
        reason: "hostPort",
        detail: format!(
            "{} {} {} {}",
            named(&containers),
            plural(containers.len(), "uses", "use"),
            plural(ports.len(), "hostPort", "hostPorts"),
            ports.into_iter().collect::<Vec<_>>().join(", ")
        ),
    })
}

/// Checks that probes and lifecycle handlers do not set a host.
///
/// Source: pod-security-admission `policy/check_hostProbesAndhostLifecycle.go`.
pub(super) fn host_probes(subject: &Subject<'_>) -> Option<Violation> {
    const HANDLERS: [&[&str]; 5] = [
        &["livenessProbe"],
        &["readinessProbe"],
        &["startupProbe"],
        &["lifecycle", "postStart"],
        &["lifecycle", "preStop"],
    ];
    let mut hosts = Values::new();
    let containers: Values<'_> = bad(subject.spec, |container| {
        let handlers = HANDLERS.iter().map(|path| at(container, path));
        let given =
            handlers.flat_map(|handler| ["httpGet", "tcpSocket"].map(|how| text(handler, &[how, "host"])));
        let given: Vec<&str> = given.filter(|host| !host.is_empty()).collect();
        hosts.extend(&given);
        !given.is_empty()
    })
    .into_iter()
    .collect();
    let containers: Vec<&str> = containers.into_iter().collect();
    (!containers.is_empty()).then(|| Violation {
        reason: "probe or lifecycle host",
        detail: format!(
            "{} {} {} {}",
            named(&containers),
            plural(containers.len(), "uses", "use"),
            plural(hosts.len(), "probe or lifecycle host", "probe or lifecycle hosts"),
            quoted(hosts)
        ),
    })
}

/// Checks that containers are not privileged.
///
/// Source: pod-security-admission `policy/check_privileged.go`.
pub(super) fn privileged(subject: &Subject<'_>) -> Option<Violation> {
    let containers = bad(subject.spec, |container| context(container, &["privileged"]) == true);
    (!containers.is_empty()).then(|| Violation {
        reason: "privileged",
        detail: format!("{} must not set securityContext.privileged=true", named(&containers)),
    })
}

/// Checks that containers do not set a `procMount` other than `Default`.
///
/// Source: pod-security-admission `policy/check_procMount_baseline.go`, `procMount_1_0`.
pub(super) fn proc_mount(subject: &Subject<'_>) -> Option<Violation> {
    let mut types = Values::new();
    let containers = bad(subject.spec, |container| {
        let kind = context(container, &["procMount"]).as_str();
        let is_bad = kind.is_some_and(|kind| kind != "Default");
        types.extend(kind.filter(|_| is_bad));
        is_bad
    });
    (!containers.is_empty()).then(|| Violation {
        reason: "procMount",
        detail: format!("{} must not set securityContext.procMount to {}", named(&containers), quoted(types)),
    })
}

/// Checks the `procMount` of the containers unless the Pod runs in a separate user namespace.
///
/// Source: pod-security-admission `policy/check_procMount_baseline.go`, `procMount1_35baseline`.
pub(super) fn proc_mount_outside_user_namespaces(subject: &Subject<'_>) -> Option<Violation> {
    if subject.is_relaxed() { None } else { proc_mount(subject) }
}

/// Checks that every `seLinuxOptions` sets only an allowed type, and neither a user nor a role.
///
/// Source: pod-security-admission `policy/check_seLinuxOptions.go`.
pub(super) fn se_linux_options(subject: &Subject<'_>) -> Option<Violation> {
    let mut types = Values::new();
    let (mut sets_user, mut sets_role) = (false, false);
    let mut is_bad = |owner| {
        let options = context(owner, &["seLinuxOptions"]);
        let kind = text(options, &["type"]);
        let is_allowed = ["", "container_t", "container_init_t", "container_kvm_t"].contains(&kind)
            || (kind == "container_engine_t" && subject.is_since(31));
        if !is_allowed {
            types.insert(kind);
        }
        let (user, role) = (!text(options, &["user"]).is_empty(), !text(options, &["role"]).is_empty());
        sets_user |= user;
        sets_role |= role;
        !is_allowed || user || role
    };
    let is_pod = is_bad(subject.spec);
    let containers = bad(subject.spec, is_bad);
    let who = setters(is_pod, &containers)?;
    let of_types = (!types.is_empty())
        .then(|| format!("{} {}", plural(types.len(), "type", "types"), quoted(types.iter().copied())));
    let user = sets_user.then(|| "user may not be set".to_owned());
    let role = sets_role.then(|| "role may not be set".to_owned());
    let what: Vec<String> = of_types.into_iter().chain(user).chain(role).collect();
    let detail = format!("{who} set forbidden securityContext.seLinuxOptions: {}", what.join("; "));
    Some(Violation { reason: "seLinuxOptions", detail })
}

/// Checks the seccomp profile: annotations before 1.19, fields since 1.19.
///
/// Source: pod-security-admission `policy/check_seccompProfile_baseline.go`.
pub(super) fn seccomp_profile(subject: &Subject<'_>) -> Option<Violation> {
    if subject.is_since(19) { seccomp_fields(subject) } else { seccomp_annotations(subject) }
}

/// Checks the seccomp profile in the security contexts of the Pod and its containers.
pub(super) fn seccomp_fields(subject: &Subject<'_>) -> Option<Violation> {
    let mut values = Values::new();
    let mut is_bad = |owner| {
        let profile = context(owner, &["seccompProfile"]);
        let is_bad = !profile.is_null() && !is_valid_seccomp(profile);
        values.extend(is_bad.then(|| text(profile, &["type"])));
        is_bad
    };
    let is_pod = is_bad(subject.spec);
    let containers = bad(subject.spec, is_bad);
    let who = setters(is_pod, &containers)?;
    let detail = format!("{who} must not set securityContext.seccompProfile.type to {}", quoted(values));
    Some(Violation { reason: "seccompProfile", detail })
}

pub(super) fn is_valid_seccomp(profile: &Value) -> bool {
    ["Localhost", "RuntimeDefault"].contains(&text(profile, &["type"]))
}

fn seccomp_annotations(subject: &Subject<'_>) -> Option<Violation> {
    let of_containers = containers::all(subject.spec)
        .map(|container| format!("{SECCOMP_CONTAINER_ANNOTATION}{}", name(container)));
    let keys: BTreeSet<String> =
        std::iter::once(SECCOMP_POD_ANNOTATION.to_owned()).chain(of_containers).collect();
    let is_valid = |value: &str| {
        ["runtime/default", "docker/default"].contains(&value) || value.starts_with("localhost/")
    };
    let forbidden = annotations(subject.metadata, |key, value| keys.contains(key) && !is_valid(value));
    let what = plural(forbidden.len(), "annotation", "annotations");
    (!forbidden.is_empty()).then(|| Violation {
        reason: "seccompProfile",
        detail: format!("forbidden {what} {}", forbidden.into_iter().collect::<Vec<_>>().join(", ")),
    })
}

/// Checks that the Pod sets only safe sysctls.
///
/// Source: pod-security-admission `policy/check_sysctls.go`.
pub(super) fn sysctls(subject: &Subject<'_>) -> Option<Violation> {
    /// The safe sysctls, each with the first minor version that allows it.
    const ALLOWED: [(&str, u64); 14] = [
        ("kernel.shm_rmid_forced", 0),
        ("net.ipv4.ip_local_port_range", 0),
        ("net.ipv4.tcp_syncookies", 0),
        ("net.ipv4.ping_group_range", 0),
        ("net.ipv4.ip_unprivileged_port_start", 0),
        ("net.ipv4.ip_local_reserved_ports", 27),
        ("net.ipv4.tcp_keepalive_time", 29),
        ("net.ipv4.tcp_fin_timeout", 29),
        ("net.ipv4.tcp_keepalive_intvl", 29),
        ("net.ipv4.tcp_keepalive_probes", 29),
        ("net.ipv4.tcp_rmem", 32),
        ("net.ipv4.tcp_wmem", 32),
        ("net.ipv4.tcp_slow_start_after_idle", 37),
        ("net.ipv4.tcp_notsent_lowat", 37),
    ];
    let is_allowed =
        |name: &str| ALLOWED.iter().any(|(allowed, since)| *allowed == name && subject.is_since(*since));
    let given = items(at(subject.spec, &["securityContext"]), "sysctls").map(name);
    let forbidden: Vec<&str> = given.filter(|name| !is_allowed(name)).collect();
    (!forbidden.is_empty()).then(|| Violation { reason: "forbidden sysctls", detail: forbidden.join(", ") })
}

/// Checks that neither the Pod nor its containers run as Windows host processes.
///
/// Source: pod-security-admission `policy/check_windowsHostProcess.go`.
pub(super) fn windows_host_process(subject: &Subject<'_>) -> Option<Violation> {
    let is_bad = |owner| context(owner, &["windowsOptions", "hostProcess"]) == true;
    let containers = bad(subject.spec, is_bad);
    let who = setters(is_bad(subject.spec), &containers)?;
    let detail = format!("{who} must not set securityContext.windowsOptions.hostProcess=true");
    Some(Violation { reason: "hostProcess", detail })
}

/// Returns the annotations for which `is_forbidden` returns true, as `key="value"`.
fn annotations(metadata: &Value, is_forbidden: impl Fn(&str, &str) -> bool) -> BTreeSet<String> {
    let annotations = at(metadata, &["annotations"]).as_object().into_iter().flatten();
    annotations
        .map(|(key, value)| (key, value.as_str().unwrap_or_default()))
        .filter(|(key, value)| is_forbidden(key, value))
        .map(|(key, value)| format!("{key}={}", quote(value)))
        .collect()
}
