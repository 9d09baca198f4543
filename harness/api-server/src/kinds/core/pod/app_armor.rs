//! Copies `AppArmor` profiles from the annotations of a new Pod to its fields.

use kubernetes_types::json::{at, set};
use serde_json::Value;

use crate::kinds::core::pod;
use crate::kinds::core::pod::validation::annotations::APP_ARMOR_PREFIX;
use crate::kinds::core::pod::validation::security;

/// Sets the `AppArmor` profiles of containers that have one only in an annotation. Returns the warnings.
///
/// Source: kubernetes pkg/registry/core/pod/strategy.go, `applyAppArmorVersionSkew`.
/// Rule: VLO-36.
pub(crate) fn apply_app_armor_annotations(pod: &mut Value) -> Vec<String> {
    let annotations = at(pod, &["metadata", "annotations"]);
    let is_profile = |name: &String| name.starts_with(APP_ARMOR_PREFIX);
    let has_any = annotations.as_object().is_some_and(|all| all.keys().any(is_profile));
    if !has_any || at(pod, &["spec", "os", "name"]) == "windows" {
        return Vec::new();
    }
    let annotations = annotations.clone();
    let of_pod = at(pod, &["spec", "securityContext", "appArmorProfile"]).clone();
    let mut warnings = Vec::new();
    for field in ["initContainers", "containers", "ephemeralContainers"] {
        let containers = pod.pointer_mut(&format!("/spec/{field}")).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            let name = container.get("name").and_then(Value::as_str).unwrap_or_default();
            let annotation = format!("{APP_ARMOR_PREFIX}{name}");
            let Some(value) = annotations.get(&annotation).and_then(Value::as_str) else { continue };
            if !at(container, &["securityContext", "appArmorProfile"]).is_null() {
                continue;
            }
            let profile = pod::warnings::app_armor_profile(value).filter(security::is_app_armor_profile);
            if profile.as_ref() == Some(&of_pod) {
                continue;
            }
            if let Some(profile) = profile {
                set(container, &["securityContext", "appArmorProfile"], profile);
            }
            warnings.push(format!(
                "metadata.annotations[{annotation}]: deprecated since v1.30; use the \"appArmorProfile\" field instead"
            ));
        }
    }
    warnings
}
