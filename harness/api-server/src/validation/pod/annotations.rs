//! Validation of Pod annotations.

use serde_json::Value;

use super::super::fields::{Errors, Path, get, list, text, word};
use super::super::formats;

pub(super) const MIRROR: &str = "kubernetes.io/config.mirror";

/// Validates the annotations for mirror Pods, the deletion cost, and profiles.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `ValidatePodSpecificAnnotations`; pkg/apis/core/helper/helpers.go,
/// `GetDeletionCostFromPodAnnotations`.
pub(super) fn annotations(errors: &mut Errors, path: &Path<'_>, metadata: &Value, spec: &Value) {
    const POD_DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
    let annotations = get(metadata, "annotations");
    if let Some(value) = word(annotations, MIRROR)
        && text(spec, "nodeName").is_empty()
    {
        let why = "must set spec.nodeName if mirror pod annotation is set";
        errors.invalid_text(&path.key(MIRROR), value, why);
    }
    if let Some(cost) = word(annotations, POD_DELETION_COST) {
        // A leading plus or zero is invalid.
        let is_plain =
            cost == "0" || cost.starts_with(|first: char| first == '-' || ('1'..='9').contains(&first));
        if !is_plain || cost.parse::<i32>().is_err() {
            errors.invalid_text(&path.key(POD_DELETION_COST), cost, "must be a 32bit integer");
        }
    }
    profiles(errors, path, annotations, spec);
}

/// Validates seccomp and `AppArmor` profiles in annotations.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `ValidateSeccompPodAnnotations` and
/// `ValidateAppArmorPodAnnotations`.
/// Rule: VLO-36.
fn profiles(errors: &mut Errors, path: &Path<'_>, annotations: &Value, spec: &Value) {
    const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
    const SECCOMP_CONTAINER_PREFIX: &str = "container.seccomp.security.alpha.kubernetes.io/";
    const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";
    let all = annotations.as_object().into_iter().flatten();
    let all: Vec<(&str, &str)> =
        all.map(|(name, value)| (name.as_str(), value.as_str().unwrap_or_default())).collect();
    let seccomp = all.iter().filter(|(name, _)| *name == SECCOMP_POD);
    for (name, profile) in
        seccomp.chain(all.iter().filter(|(name, _)| name.starts_with(SECCOMP_CONTAINER_PREFIX)))
    {
        let path = path.child(name);
        match profile.strip_prefix("localhost/") {
            _ if ["runtime/default", "docker/default", "unconfined"].contains(profile) => {}
            Some(local) => formats::descending_path(errors, &path, local),
            None => errors.invalid_text(&path, profile, "must be a valid seccomp profile"),
        }
    }
    for (name, profile) in &all {
        let Some(container) = name.strip_prefix(APP_ARMOR) else { continue };
        let lists = ["initContainers", "containers", "ephemeralContainers"];
        let is_there =
            lists.iter().any(|field| list(spec, field).iter().any(|found| text(found, "name") == container));
        if !is_there {
            errors.invalid_text(&path.key(name), container, "container not found");
        }
        let known = ["", "runtime/default", "unconfined"];
        if !known.contains(profile) && !profile.starts_with("localhost/") {
            let profile_shown = kubernetes_types::quoting::quote(profile);
            let why = format!("invalid AppArmor profile name: {profile_shown}");
            errors.invalid_text(&path.key(name), profile, why);
        }
    }
}
