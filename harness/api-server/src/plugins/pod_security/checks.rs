//! The checks of each level and version, and their results.

use kubernetes_types::json::at;
use serde_json::Value;

use super::policy::{Level, LevelVersion, Version};
use super::{baseline, restricted};

/// A Pod or a pod template.
#[derive(Clone, Copy)]
pub(super) struct Subject<'a> {
    pub(super) metadata: &'a Value,
    pub(super) spec: &'a Value,
    pub(super) version: Version,
}

/// The description of a check that a Pod violates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Violation {
    /// A short description of the violated check.
    pub(super) reason: &'static str,
    /// The fields that violate the check.
    pub(super) detail: String,
}

type Check = fn(&Subject<'_>) -> Option<Violation>;

/// The first minor version in which a stricter check of the restricted level replaces the check; `None` if none does.
type Overridden = Option<u64>;

/// The baseline checks, sorted by name, each with its first minor version.
///
/// Source: pod-security-admission policy/registry.go, `populate`, and policy/check_*.go.
const BASELINE: [(u64, Overridden, Check); 12] = [
    (0, None, baseline::app_armor_profile),
    (0, Some(22), baseline::capabilities),
    (0, None, baseline::host_namespaces),
    (0, Some(0), baseline::host_path_volumes),
    (0, None, baseline::host_ports),
    (34, None, baseline::host_probes),
    (0, None, baseline::privileged),
    (0, Some(35), baseline::proc_mount_outside_user_namespaces),
    (0, None, baseline::se_linux_options),
    (0, Some(19), baseline::seccomp_profile),
    (0, None, baseline::sysctls),
    (0, None, baseline::windows_host_process),
];

/// The checks that only the restricted level has, sorted by name, each with its first minor version.
const RESTRICTED: [(u64, Check); 7] = [
    (8, restricted::allow_privilege_escalation),
    (22, restricted::capabilities),
    (35, baseline::proc_mount),
    (0, restricted::volumes),
    (0, restricted::run_as_non_root),
    (23, restricted::run_as_user),
    (19, restricted::seccomp_profile),
];

/// Returns the violations of a level in a Pod or a pod template.
pub(super) fn violations(policy: LevelVersion, metadata: &Value, spec: &Value) -> Vec<Violation> {
    let subject = Subject { metadata, spec, version: policy.version };
    let is_restricted = match policy.level {
        Level::Privileged => return Vec::new(),
        Level::Baseline => false,
        Level::Restricted => true,
    };
    let of_baseline = BASELINE.iter().filter(|(since, overridden, _)| {
        subject.is_since(*since)
            && !(is_restricted && overridden.is_some_and(|since| subject.is_since(since)))
    });
    let of_restricted = RESTRICTED.iter().filter(|(since, _)| is_restricted && subject.is_since(*since));
    let checks = of_baseline.map(|(_, _, check)| check).chain(of_restricted.map(|(_, check)| check));
    checks.filter_map(|check| check(&subject)).collect()
}

/// Formats the violations with details: `host namespaces (hostPID=true), hostPort (…)`.
///
/// Source: pod-security-admission policy/checks.go, `ForbiddenDetail`.
pub(super) fn details(violations: &[Violation]) -> String {
    let texts = violations.iter().map(|Violation { reason, detail }| match detail.as_str() {
        "" => (*reason).to_owned(),
        detail => format!("{reason} ({detail})"),
    });
    texts.collect::<Vec<_>>().join(", ")
}

/// Formats the violations without details: `host namespaces, hostPort`.
///
/// Source: pod-security-admission policy/checks.go, `ForbiddenReason`.
pub(super) fn reasons(violations: &[Violation]) -> String {
    violations.iter().map(|violation| violation.reason).collect::<Vec<_>>().join(", ")
}

impl Subject<'_> {
    /// Returns whether the checks are of version `v1.minor` or later.
    pub(super) fn is_since(&self, minor: u64) -> bool {
        self.version >= Version::Minor(minor)
    }

    /// Returns whether the checks are relaxed: since 1.35, if the Pod runs in a separate user namespace.
    pub(super) fn is_relaxed(&self) -> bool {
        self.is_since(35) && self.spec.get("hostUsers") == Some(&Value::Bool(false))
    }

    /// Returns whether the checks treat the Pod as a Windows Pod: since 1.25, if `spec.os` is Windows.
    pub(super) fn is_windows(&self) -> bool {
        self.is_since(25) && at(self.spec, &["os", "name"]) == "windows"
    }
}
