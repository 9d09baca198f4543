//! The checks that the restricted level adds to the baseline level.

use kubernetes_types::json::at;
use serde_json::Value;

use super::baseline;
use super::checks::{Subject, Violation};
use super::messages::{Values, bad, context, name, named, plural, quoted, setters};
use crate::plugins::containers::{self, items};

/// Checks that all containers disallow privilege escalation.
///
/// Source: pod-security-admission `policy/check_allowPrivilegeEscalation.go`.
pub(super) fn allow_privilege_escalation(subject: &Subject<'_>) -> Option<Violation> {
    if subject.is_windows() {
        return None;
    }
    let containers =
        bad(subject.spec, |container| context(container, &["allowPrivilegeEscalation"]) != false);
    (!containers.is_empty()).then(|| Violation {
        reason: "allowPrivilegeEscalation != false",
        detail: format!("{} must set securityContext.allowPrivilegeEscalation=false", named(&containers)),
    })
}

/// Checks that containers drop all capabilities and add only `NET_BIND_SERVICE`.
///
/// Source: pod-security-admission `policy/check_capabilities_restricted.go`.
pub(super) fn capabilities(subject: &Subject<'_>) -> Option<Violation> {
    if subject.is_windows() {
        return None;
    }
    let given = |container, list| items(context(container, &["capabilities"]), list);
    let keeping = bad(subject.spec, |container| !given(container, "drop").any(|dropped| dropped == "ALL"));
    let mut added = Values::new();
    let adding = bad(subject.spec, |container| {
        let forbidden = given(container, "add").map(|it| it.as_str().unwrap_or_default());
        let forbidden: Vec<&str> = forbidden.filter(|added| *added != "NET_BIND_SERVICE").collect();
        added.extend(&forbidden);
        !forbidden.is_empty()
    });
    let mut details = Vec::new();
    if !keeping.is_empty() {
        details.push(format!("{} must set securityContext.capabilities.drop=[\"ALL\"]", named(&keeping)));
    }
    if !adding.is_empty() {
        let added = quoted(added);
        details
            .push(format!("{} must not include {added} in securityContext.capabilities.add", named(&adding)));
    }
    (!details.is_empty())
        .then(|| Violation { reason: "unrestricted capabilities", detail: details.join("; ") })
}

/// Checks that the Pod has only volumes of allowed types.
///
/// Source: pod-security-admission `policy/check_restrictedVolumes.go`.
pub(super) fn volumes(subject: &Subject<'_>) -> Option<Violation> {
    const ALLOWED: [&str; 9] = [
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "image",
        "persistentVolumeClaim",
        "projected",
        "secret",
    ];
    const RESTRICTED: [&str; 21] = [
        "hostPath",
        "gcePersistentDisk",
        "awsElasticBlockStore",
        "gitRepo",
        "nfs",
        "iscsi",
        "glusterfs",
        "rbd",
        "flexVolume",
        "cinder",
        "cephfs",
        "flocker",
        "fc",
        "azureFile",
        "vsphereVolume",
        "quobyte",
        "azureDisk",
        "photonPersistentDisk",
        "portworxVolume",
        "scaleIO",
        "storageos",
    ];
    let is = |volume: &Value, kind: &str| !at(volume, &[kind]).is_null();
    let bad = items(subject.spec, "volumes").filter(|volume| !ALLOWED.iter().any(|kind| is(volume, kind)));
    let bad: Vec<&Value> = bad.collect();
    let types: Values<'_> = bad
        .iter()
        .map(|volume| RESTRICTED.into_iter().find(|kind| is(volume, kind)).unwrap_or("unknown"))
        .collect();
    (!bad.is_empty()).then(|| Violation {
        reason: "restricted volume types",
        detail: format!(
            "{} {} {} {} {}",
            plural(bad.len(), "volume", "volumes"),
            quoted(bad.iter().map(|volume| name(volume))),
            plural(bad.len(), "uses", "use"),
            plural(types.len(), "restricted volume type", "restricted volume types"),
            quoted(types)
        ),
    })
}

/// Checks that all containers must run as a non-root user.
///
/// Source: pod-security-admission `policy/check_runAsNonRoot.go`.
pub(super) fn run_as_non_root(subject: &Subject<'_>) -> Option<Violation> {
    const REASON: &str = "runAsNonRoot != true";
    if subject.is_relaxed() {
        return None;
    }
    let says = |owner| context(owner, &["runAsNonRoot"]).as_bool();
    let explicit = bad(subject.spec, |container| says(container) == Some(false));
    if let Some(who) = setters(says(subject.spec) == Some(false), &explicit) {
        let detail = format!("{who} must not set securityContext.runAsNonRoot=false");
        return Some(Violation { reason: REASON, detail });
    }
    let implicit =
        bad(subject.spec, |container| says(container).is_none() && says(subject.spec) != Some(true));
    (!implicit.is_empty()).then(|| Violation {
        reason: REASON,
        detail: format!("pod or {} must set securityContext.runAsNonRoot=true", named(&implicit)),
    })
}

/// Checks that neither the Pod nor its containers set the user ID 0.
///
/// Source: pod-security-admission `policy/check_runAsUser.go`.
pub(super) fn run_as_user(subject: &Subject<'_>) -> Option<Violation> {
    if subject.is_relaxed() {
        return None;
    }
    let is_root = |owner| context(owner, &["runAsUser"]).as_i64() == Some(0);
    let containers = bad(subject.spec, is_root);
    let who = setters(is_root(subject.spec), &containers)?;
    Some(Violation { reason: "runAsUser=0", detail: format!("{who} must not set runAsUser=0") })
}

/// Checks that each container has an allowed seccomp profile, set by the container or by the Pod.
///
/// Source: pod-security-admission `policy/check_seccompProfile_restricted.go`.
pub(super) fn seccomp_profile(subject: &Subject<'_>) -> Option<Violation> {
    if subject.is_windows() {
        return None;
    }
    let explicit = baseline::seccomp_fields(subject);
    // The profile that the Pod sets has been validated at this point.
    if explicit.is_some() || !context(subject.spec, &["seccompProfile"]).is_null() {
        return explicit;
    }
    let without = containers::all(subject.spec)
        .filter(|container| context(container, &["seccompProfile"]).is_null())
        .map(name);
    let without: Vec<&str> = without.collect();
    (!without.is_empty()).then(|| Violation {
        reason: "seccompProfile",
        detail: format!(
            "pod or {} must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\"",
            named(&without)
        ),
    })
}
