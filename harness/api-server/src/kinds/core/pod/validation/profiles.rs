//! Compares the security profiles in the annotations of a Pod with those in its fields.

use serde_json::Value;

use crate::kinds::common::fields::{Errors, Path, get, list, set, text, word};
use crate::kinds::core::pod::validation::annotations::{
    APP_ARMOR_PREFIX, SECCOMP_CONTAINER_PREFIX, SECCOMP_POD,
};

/// Validates that the profiles in annotations and fields of a new Pod are equal.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validateSeccompAnnotationsAndFields` and
/// `validateAppArmorAnnotationsAndFieldsMatchOnCreate`.
/// Rule: VLO-36.
pub(crate) fn match_annotations(errors: &mut Errors, path: &Path<'_>, pod: &Value) {
    let (spec, annotations) = (get(pod, "spec"), get(get(pod, "metadata"), "annotations"));
    let context = get(spec, "securityContext");
    if let Some(profile) = set(context, "seccompProfile") {
        seccomp(errors, &path.child("securityContext"), profile, word(annotations, SECCOMP_POD));
    }
    for_each_container(path, spec, |path, container| {
        let Some(profile) = set(get(container, "securityContext"), "seccompProfile") else { return };
        let annotation = format!("{SECCOMP_CONTAINER_PREFIX}{}", text(container, "name"));
        seccomp(errors, &path.child("securityContext"), profile, word(annotations, &annotation));
    });
    if text(get(spec, "os"), "name") == "windows" {
        return;
    }
    for_each_container(path, spec, |path, container| {
        let own = set(get(container, "securityContext"), "appArmorProfile");
        let Some(profile) = own.or_else(|| set(context, "appArmorProfile")) else { return };
        let annotation = format!("{APP_ARMOR_PREFIX}{}", text(container, "name"));
        let Some(annotation) = word(annotations, &annotation) else { return };
        let path = path.child("securityContext");
        matches(
            errors,
            &path.child("appArmorProfile"),
            "apparmor",
            profile,
            annotation,
            &["runtime/default"],
        );
    });
}

fn seccomp(errors: &mut Errors, context: &Path<'_>, profile: &Value, annotation: Option<&str>) {
    let defaults = ["runtime/default", "docker/default"];
    if let Some(annotation) = annotation {
        matches(errors, &context.child("seccompProfile"), "seccomp", profile, annotation, &defaults);
    }
}

/// Validates that a profile equals the profile in an annotation. `defaults` are the names of the default profile.
fn matches(
    errors: &mut Errors,
    path: &Path<'_>,
    what: &str,
    profile: &Value,
    annotation: &str,
    defaults: &[&str],
) {
    let is_same_type = match text(profile, "type") {
        "Unconfined" => annotation == "unconfined",
        "RuntimeDefault" => defaults.contains(&annotation),
        "Localhost" => annotation.starts_with("localhost/"),
        _ => return,
    };
    if !is_same_type {
        let why = format!("{what} type in annotation and field must match");
        errors.forbidden(&path.child("type"), why);
    } else if text(profile, "type") == "Localhost"
        && word(profile, "localhostProfile") != annotation.strip_prefix("localhost/")
    {
        let why = format!("{what} profile in annotation and field must match");
        errors.forbidden(&path.child("localhostProfile"), why);
    }
}

/// Calls `visit` for each container of a Pod, in upstream's order.
///
/// Source: kubernetes pkg/api/pod/util.go, `VisitContainersWithPath`.
pub(crate) fn for_each_container<'a>(
    path: &Path<'_>,
    spec: &'a Value,
    mut visit: impl FnMut(&Path<'_>, &'a Value),
) {
    for field in ["initContainers", "containers", "ephemeralContainers"] {
        let path = path.child(field);
        for (index, container) in list(spec, field).iter().enumerate() {
            visit(&path.index(index), container);
        }
    }
}
