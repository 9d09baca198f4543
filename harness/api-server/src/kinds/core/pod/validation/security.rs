//! Validates the security contexts of Pods and containers.

use std::collections::HashSet;

use kubernetes_types::quoting::quote;
use serde_json::Value;

use crate::kinds::common::fields::{Errors, Path, flag, get, int, list, set, text, texts, word};
use crate::kinds::common::formats;
use crate::kinds::core::pod::validation::profiles::for_each_container;

/// Validates the user and group IDs in a security context.
fn ids(errors: &mut Errors, path: &Path<'_>, context: &Value, fields: &[&str]) {
    for field in fields {
        if let Some(id) = int(context, field) {
            id_in_range(errors, &path.child(field), id);
        }
    }
}

/// Validates a user ID or a group ID.
///
/// Source: apimachinery pkg/util/validation/validation.go, `IsValidUserID` and `IsValidGroupID`.
pub(crate) fn id_in_range(errors: &mut Errors, path: &Path<'_>, id: i64) {
    let most = i64::from(i32::MAX);
    if !(0..=most).contains(&id) {
        errors.invalid(path, id, formats::between(0, most));
    }
}

/// Validates the security context of a container.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `ValidateSecurityContext`.
/// Rule: VLO-11.
pub(crate) fn of_container(errors: &mut Errors, path: &Path<'_>, container: &Value, host_users: bool) {
    let Some(context) = set(container, "securityContext") else { return };
    ids(errors, path, context, &["runAsUser", "runAsGroup"]);
    let mount = word(context, "procMount");
    errors.one_of(&path.child("procMount"), mount, &["Default", "Unmasked"]);
    if host_users && mount == Some("Unmasked") {
        let why = "`hostUsers` must be false to use `Unmasked`";
        errors.invalid_text(&path.child("procMount"), "Unmasked", why);
    }
    seccomp(errors, &path.child("seccompProfile"), get(context, "seccompProfile"));
    if get(context, "allowPrivilegeEscalation") == &Value::Bool(false) {
        if flag(context, "privileged") {
            let why = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
            errors.invalid_structure(path, "core.SecurityContext", context, why);
        }
        for _ in texts(get(context, "capabilities"), "add").filter(|name| *name == "CAP_SYS_ADMIN") {
            let why = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN";
            errors.invalid_structure(path, "core.SecurityContext", context, why);
        }
    }
    windows(errors, path, context);
    app_armor(errors, &path.child("appArmorProfile"), get(context, "appArmorProfile"));
}

/// Validates the security context of a Pod.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validatePodSpecSecurityContext`.
/// Rule: VLO-11.
pub(crate) fn of_pod(errors: &mut Errors, path: &Path<'_>, spec: &Value) {
    let Some(context) = set(spec, "securityContext") else { return };
    ids(errors, path, context, &["fsGroup", "runAsUser", "runAsGroup"]);
    let groups = path.child("supplementalGroups");
    for (index, group) in list(context, "supplementalGroups").iter().enumerate() {
        id_in_range(errors, &groups.index(index), group.as_i64().unwrap_or(0));
    }
    sysctls(errors, &path.child("sysctls"), context, spec);
    let policies = ["Always", "OnRootMismatch"];
    errors.one_of(&path.child("fsGroupChangePolicy"), word(context, "fsGroupChangePolicy"), &policies);
    seccomp(errors, &path.child("seccompProfile"), get(context, "seccompProfile"));
    windows(errors, path, context);
    app_armor(errors, &path.child("appArmorProfile"), get(context, "appArmorProfile"));
    let policies = ["Merge", "Strict"];
    let found = word(context, "supplementalGroupsPolicy");
    errors.one_of(&path.child("supplementalGroupsPolicy"), found, &policies);
    let policies = ["MountOption", "Recursive"];
    errors.one_of(&path.child("seLinuxChangePolicy"), word(context, "seLinuxChangePolicy"), &policies);
}

/// Validates the `hostProcess` of a Pod for Windows: all containers must have the same value.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validateWindowsHostProcessPod`.
/// Rule: VLO-37.
pub(crate) fn host_process(errors: &mut Errors, path: &Path<'_>, spec: &Value) {
    let of = |owner: &Value| {
        let options = get(get(owner, "securityContext"), "windowsOptions");
        set(options, "hostProcess").and_then(Value::as_bool)
    };
    let of_pod = of(spec);
    let (mut containers, mut host_processes) = (0, 0);
    for_each_container(path, spec, |path, container| {
        let own = of(container);
        if let (Some(of_pod), Some(own)) = (of_pod, own)
            && of_pod != own
        {
            let (path, why) = (
                path.child("securityContext"),
                format!("pod hostProcess value must be identical if both are specified, was {of_pod}"),
            );
            errors.invalid(&path.child("windowsOptions").child("hostProcess"), own, why);
        }
        containers += 1;
        host_processes += usize::from(own.or(of_pod) == Some(true));
    });
    if host_processes == 0 {
        return;
    }
    if host_processes != containers {
        let why =
            "If pod contains any hostProcess containers then all containers must be HostProcess containers";
        errors.invalid_text(path, "", why);
    }
    if !flag(spec, "hostNetwork") {
        let why = "hostNetwork must be true if pod contains any hostProcess containers";
        errors.invalid(&path.child("hostNetwork"), false, why);
    }
}

/// Validates the sysctls of a Pod.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validateSysctls`; component-helpers
/// pkg/util/sysctl/namespace.go, `GetNamespace`.
fn sysctls(errors: &mut Errors, path: &Path<'_>, context: &Value, spec: &Value) {
    let mut seen = HashSet::new();
    for (index, sysctl) in list(context, "sysctls").iter().enumerate() {
        let item = path.index(index);
        let path = item.child("name");
        let name = text(sysctl, "name");
        if name.is_empty() {
            errors.required(&path, "");
        } else if !is_sysctl(name) {
            let why = "must have at most 253 characters and match regex \
                       ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";
            errors.invalid_text(&path, name, why);
        } else if seen.contains(name) {
            errors.duplicate(&path, name);
        }
        let dotted = name.replace('/', ".");
        let is_of_host =
            ["kernel.shm", "kernel.msg", "fs.mqueue."].iter().any(|start| dotted.starts_with(start))
                || dotted == "kernel.sem";
        if flag(spec, "hostNetwork") && dotted.starts_with("net.") {
            errors.invalid_text(&path, name, "may not be specified when 'hostNetwork' is true");
        } else if flag(spec, "hostIPC") && is_of_host {
            errors.invalid_text(&path, name, "may not be specified when 'hostIPC' is true");
        }
        seen.insert(name);
    }
}

/// Returns whether the name of a sysctl is valid.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `IsValidSysctlName`.
fn is_sysctl(name: &str) -> bool {
    let is_end = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_part = |part: &str| {
        let bytes = part.as_bytes();
        bytes.first().is_some_and(is_end)
            && bytes.last().is_some_and(is_end)
            && bytes.iter().all(|byte| is_end(byte) || b"-_".contains(byte))
    };
    name.len() <= 253 && name.split(['.', '/']).all(is_part)
}

/// Validates a seccomp profile.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validateSeccompProfileField`.
fn seccomp(errors: &mut Errors, path: &Path<'_>, profile: &Value) {
    if profile.is_null() {
        return;
    }
    let (kind, local) = (text(profile, "type"), word(profile, "localhostProfile"));
    let local_path = path.child("localhostProfile");
    if kind.is_empty() {
        errors.required(&path.child("type"), "type is required when seccompProfile is set");
    } else {
        let supported = ["Localhost", "RuntimeDefault", "Unconfined"];
        errors.one_of(&path.child("type"), Some(kind), &supported);
    }
    match (kind, local) {
        ("Localhost", None) => errors.required(&local_path, "must be set when seccomp type is Localhost"),
        ("Localhost", Some(local)) => formats::descending_path(errors, &local_path, local),
        (_, Some(local)) => {
            // The value has the form of the internal Go type.
            let shown = format!("{{\"Type\":{},\"LocalhostProfile\":{}}}", quote(kind), quote(local));
            errors.invalid(&local_path, shown, "can only be set when seccomp type is Localhost");
        }
        (_, None) => {}
    }
}

/// Returns whether an `AppArmor` profile is valid.
pub(crate) fn is_app_armor_profile(profile: &Value) -> bool {
    let mut errors = Errors::default();
    app_armor(&mut errors, &Path::new(""), profile);
    errors.len() == 0
}

/// Validates an `AppArmor` profile.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `ValidateAppArmorProfileField`.
fn app_armor(errors: &mut Errors, path: &Path<'_>, profile: &Value) {
    /// The maximum length in bytes of a path, without the terminating null.
    const MAX_LOCALHOST_PROFILE_LENGTH: usize = 4095;
    if profile.is_null() {
        return;
    }
    let local_path = path.child("localhostProfile");
    let local = word(profile, "localhostProfile");
    match text(profile, "type") {
        "" => errors.required(&path.child("type"), "type is required when appArmorProfile is set"),
        "Localhost" => {
            let missing = "must be set when AppArmor type is Localhost";
            let Some(local) = local else {
                errors.required(&local_path, missing);
                return;
            };
            if local.trim() != local {
                errors.invalid_text(&local_path, local, "must not be padded with whitespace");
            } else if local.is_empty() {
                errors.required(&local_path, missing);
            }
            if local.len() > MAX_LOCALHOST_PROFILE_LENGTH {
                errors.too_long(&local_path, MAX_LOCALHOST_PROFILE_LENGTH);
            }
        }
        "RuntimeDefault" | "Unconfined" => {
            if let Some(local) = local {
                errors.invalid_text(&local_path, local, "can only be set when AppArmor type is Localhost");
            }
        }
        other => {
            let supported = ["Localhost", "RuntimeDefault", "Unconfined"];
            errors.unsupported(&path.child("type"), other, &supported);
        }
    }
}

/// Validates Windows options.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validateWindowsSecurityContextOptions`.
/// Rule: VLO-37.
fn windows(errors: &mut Errors, path: &Path<'_>, context: &Value) {
    /// The maximum size of a GMSA credential spec in KiB.
    const MAX_GMSA_CREDENTIAL_SPEC_LENGTH_IN_KIB: usize = 64;
    let Some(options) = set(context, "windowsOptions") else { return };
    let path = path.child("windowsOptions");
    if let Some(name) = word(options, "gmsaCredentialSpecName") {
        formats::dns_subdomain(errors, &path.child("gmsaCredentialSpecName"), name);
    }
    if let Some(specification) = word(options, "gmsaCredentialSpec") {
        let path = path.child("gmsaCredentialSpec");
        if specification.is_empty() {
            errors.invalid_text(&path, specification, "gmsaCredentialSpec cannot be an empty string");
        } else if specification.len() > MAX_GMSA_CREDENTIAL_SPEC_LENGTH_IN_KIB * 1024 {
            let why =
                format!("gmsaCredentialSpec size must be under {MAX_GMSA_CREDENTIAL_SPEC_LENGTH_IN_KIB} KiB");
            errors.invalid_text(&path, specification, why);
        }
    }
    if let Some(name) = word(options, "runAsUserName") {
        for why in wrong_user(name) {
            errors.invalid_text(&path.child("runAsUserName"), name, format!("runAsUserName{why}"));
        }
    }
}

/// Returns the reasons why a Windows user name is invalid. The name may begin with a domain.
fn wrong_user(name: &str) -> Vec<String> {
    const MAX_RUN_AS_USER_NAME_DOMAIN_LENGTH: usize = 256;
    const MAX_RUN_AS_USER_NAME_USER_LENGTH: usize = 104;
    const FORBIDDEN_NETBIOS_CHARACTERS: &str = "\\/:*?\"<>|";
    let alone = |why: &str| vec![why.to_owned()];
    if name.is_empty() {
        return alone(" cannot be an empty string");
    }
    if name.chars().any(|letter| letter.is_ascii_control()) {
        return alone(" cannot contain control characters");
    }
    if name.matches('\\').count() > 1 {
        return alone(" cannot contain more than one backslash");
    }
    let (domain, user) = name.split_once('\\').map_or((None, name), |(domain, user)| (Some(domain), user));
    let mut wrong = Vec::new();
    if domain.is_some_and(|domain| domain.len() >= MAX_RUN_AS_USER_NAME_DOMAIN_LENGTH) {
        wrong.push(format!("'s Domain length must be under {MAX_RUN_AS_USER_NAME_DOMAIN_LENGTH} characters"));
    }
    let is_net_bios = |domain: &str| {
        (1..=15).contains(&domain.chars().count())
            && !domain.starts_with('.')
            && !domain.contains(|letter| FORBIDDEN_NETBIOS_CHARACTERS.contains(letter))
    };
    let is_dns = |domain: &str| {
        domain.split('.').all(|label| {
            let is_end = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
            let bytes = label.as_bytes();
            is_end(bytes.first())
                && is_end(bytes.last())
                && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
        })
    };
    if domain.is_some_and(|domain| !is_net_bios(domain) && !is_dns(domain)) {
        wrong.push("'s Domain doesn't match the NetBios nor the DNS format".to_owned());
    }
    if user.is_empty() {
        wrong.push("'s User cannot be empty".to_owned());
    } else if user.len() > MAX_RUN_AS_USER_NAME_USER_LENGTH {
        wrong.push(format!(
            "'s User length must not be longer than {MAX_RUN_AS_USER_NAME_USER_LENGTH} characters"
        ));
    }
    if !user.is_empty() && user.chars().all(|letter| letter == '.' || letter == ' ') {
        wrong.push("'s User cannot contain only periods or spaces".to_owned());
    }
    if user.contains(|letter| "\"/\\:;|=,+*?<>@[]".contains(letter)) {
        wrong.push("'s User cannot contain the following characters: \"/\\:;|=,+*?<>@[]".to_owned());
    }
    wrong
}
