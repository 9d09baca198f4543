//! Validates the fields that depend on the operating system of a Pod.

use serde_json::Value;

use crate::kinds::common::fields::{Errors, Path, flag, get, list, set};
use crate::kinds::core::pod::validation::profiles::for_each_container;

/// The fields of a Pod's security context that a Windows Pod must not have.
const OF_POD_CONTEXT: [&str; 11] = [
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "fsGroup",
    "fsGroupChangePolicy",
    "sysctls",
    "runAsUser",
    "runAsGroup",
    "supplementalGroups",
    "supplementalGroupsPolicy",
    "seLinuxChangePolicy",
];

/// The fields of a container's security context that a Windows Pod must not have.
const OF_CONTAINER_CONTEXT: [&str; 10] = [
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
];

/// Validates `os` and the fields that a Pod for this operating system must not have.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validateOS`, `validateLinux`, and `validateWindows`.
/// Rule: VLO-37.
pub(crate) fn fields(errors: &mut Errors, path: &Path<'_>, spec: &Value, system: &str) {
    let os = path.child("os");
    match system {
        "" => errors.required(&os.child("name"), ""),
        "linux" => linux(errors, path, spec),
        "windows" => windows(errors, path, spec),
        other => errors.one_of(&os, Some(other), &["linux", "windows"]),
    }
}

fn linux(errors: &mut Errors, path: &Path<'_>, spec: &Value) {
    let mut check = |path: &Path<'_>, owner: &Value| {
        if set(get(owner, "securityContext"), "windowsOptions").is_some() {
            let path = path.child("securityContext");
            errors.forbidden(&path.child("windowsOptions"), "windows options cannot be set for a linux pod");
        }
    };
    check(path, spec);
    for_each_container(path, spec, check);
}

fn windows(errors: &mut Errors, path: &Path<'_>, spec: &Value) {
    const WHY: &str = "cannot be set for a windows pod";
    let (context, of_context) = (get(spec, "securityContext"), path.child("securityContext"));
    for field in OF_POD_CONTEXT {
        let is_set = match field {
            "sysctls" => !list(context, field).is_empty(),
            _ => set(context, field).is_some(),
        };
        if is_set {
            errors.forbidden(&of_context.child(field), WHY);
        }
    }
    for (field, is_set) in [
        ("hostUsers", set(spec, "hostUsers").is_some()),
        ("hostPID", flag(spec, "hostPID")),
        ("hostIPC", flag(spec, "hostIPC")),
        ("shareProcessNamespace", set(spec, "shareProcessNamespace").is_some()),
    ] {
        if is_set {
            errors.forbidden(&path.child(field), WHY);
        }
    }
    for_each_container(path, spec, |path, container| {
        let (context, path) = (get(container, "securityContext"), path.child("securityContext"));
        for field in OF_CONTAINER_CONTEXT {
            if set(context, field).is_some() {
                errors.forbidden(&path.child(field), WHY);
            }
        }
    });
}
