//! Validates files in volumes (from Secrets, `ConfigMap`s, Pod fields, tokens, and certificates) and projected volumes.

use std::collections::HashSet;

use serde_json::Value;

use crate::kinds::certificates::{
    certificate_signing_request, cluster_trust_bundle, pod_certificate_request,
};
use crate::kinds::common::fields::{Errors, Path, get, int, list, set, text, word};
use crate::kinds::common::{formats, selectors};
use crate::kinds::core::pod::validation::environment::{FieldTarget, field_reference, resource_reference};

/// The error message for an invalid file mode.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `fileModeErrorMsg`.
const MODE: &str = "must be a number between 0 and 0777 (octal), both inclusive";

fn mode(errors: &mut Errors, path: &Path<'_>, mode: Option<i64>) {
    if let Some(mode) = mode.filter(|mode| !(0..=0o777).contains(mode)) {
        errors.invalid(path, mode, MODE);
    }
}

/// Validates the files from a Secret or a `ConfigMap`.
pub(crate) fn of_keys(errors: &mut Errors, path: &Path<'_>, source: &Value) {
    mode(errors, &path.child("defaultMode"), int(source, "defaultMode"));
    let path = path.child("items");
    for (index, item) in list(source, "items").iter().enumerate() {
        key_to_path(errors, &path.index(index), item);
    }
}

/// Validates a file from a Secret or a `ConfigMap`.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validateKeyToPath`.
fn key_to_path(errors: &mut Errors, path: &Path<'_>, item: &Value) {
    errors.all_required(path, item, &["key", "path"]);
    formats::unreserved_path(errors, &path.child("path"), text(item, "path"));
    mode(errors, &path.child("mode"), int(item, "mode"));
}

/// Validates the files with Pod fields.
///
/// As upstream does, reports errors in a file with the path of the volume.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validateDownwardAPIVolumeSource`.
pub(crate) fn of_fields(errors: &mut Errors, path: &Path<'_>, source: &Value) {
    mode(errors, &path.child("defaultMode"), int(source, "defaultMode"));
    for item in list(source, "items") {
        pod_file(errors, path, item);
    }
}

/// Validates a file with a Pod field.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validateDownwardAPIVolumeFile`.
fn pod_file(errors: &mut Errors, path: &Path<'_>, item: &Value) {
    let target = text(item, "path");
    if target.is_empty() {
        errors.required(&path.child("path"), "");
    }
    formats::unreserved_path(errors, &path.child("path"), target);
    match (set(item, "fieldRef"), set(item, "resourceFieldRef")) {
        (Some(field), resource) => {
            field_reference(errors, &path.child("fieldRef"), field, FieldTarget::File);
            if resource.is_some() {
                let why = "fieldRef and resourceFieldRef can not be specified simultaneously";
                errors.invalid_text(path, "resource", why);
            }
        }
        (None, Some(resource)) => {
            resource_reference(errors, &path.child("resourceFieldRef"), resource, FieldTarget::File);
        }
        (None, None) => errors.required(path, "one of fieldRef and resourceFieldRef is required"),
    }
    mode(errors, &path.child("mode"), int(item, "mode"));
}

/// The paths in a projected volume. Each path must be unique.
struct Paths<'a> {
    volume: &'a Path<'a>,
    taken: HashSet<&'a str>,
}

impl<'a> Paths<'a> {
    /// Adds a path. The error for a duplicate path contains `shown`.
    fn add(&mut self, errors: &mut Errors, target: &'a str, shown: &str) {
        if !self.taken.insert(target) {
            errors.invalid_text(self.volume, shown, "conflicting duplicate paths");
        }
    }
}

/// Validates a projected volume.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validateProjectionSources`.
/// Rule: VLO-09, VLO-49.
pub(crate) fn projected(errors: &mut Errors, path: &Path<'_>, source: &Value) {
    mode(errors, &path.child("defaultMode"), int(source, "defaultMode"));
    let mut paths = Paths { volume: path, taken: HashSet::new() };
    let sources = path.child("sources");
    for (index, source) in list(source, "sources").iter().enumerate() {
        let path = sources.index(index);
        let mut count = 0;
        for field in ["secret", "configMap"] {
            let Some(projection) = set(source, field) else { continue };
            count += 1;
            keys(errors, &path.child(field), projection, &mut paths);
        }
        if let Some(projection) = set(source, "downwardAPI") {
            count += 1;
            for file in list(projection, "items") {
                pod_file(errors, &path.child("downwardAPI"), file);
                let target = text(file, "path");
                if !target.is_empty() {
                    paths.add(errors, target, target);
                }
            }
        }
        if let Some(projection) = set(source, "serviceAccountToken") {
            count += 1;
            token(errors, &path.child("serviceAccountToken"), projection, &paths);
        }
        if let Some(bundle) = set(source, "clusterTrustBundle") {
            count += 1;
            trust_bundle(errors, &path.child("clusterTrustBundle"), bundle);
            let target = text(bundle, "path");
            paths.add(errors, target, target);
        }
        if let Some(projection) = set(source, "podCertificate") {
            count += 1;
            certificate(errors, &path.child("podCertificate"), projection, &mut paths);
        }
        if count > 1 {
            errors.forbidden(&path, "may not specify more than 1 volume type per source");
        }
    }
}

fn keys<'a>(errors: &mut Errors, path: &Path<'_>, source: &'a Value, paths: &mut Paths<'a>) {
    let name = text(source, "name");
    if name.is_empty() {
        errors.required(&path.child("name"), "");
    }
    let items = path.child("items");
    for (index, item) in list(source, "items").iter().enumerate() {
        key_to_path(errors, &items.index(index), item);
        let target = text(item, "path");
        if !target.is_empty() {
            paths.add(errors, target, name);
        }
    }
}

/// Validates a projected token. As upstream does, reports errors in the token's `path` with the path of the volume.
fn token(errors: &mut Errors, path: &Path<'_>, source: &Value, paths: &Paths<'_>) {
    let seconds = path.child("expirationSeconds");
    match int(source, "expirationSeconds") {
        None => errors.required(&seconds, ""),
        Some(found) if found < 600 => {
            errors.invalid(&seconds, found, "may not specify a duration less than 10 minutes");
        }
        Some(found) if found > 1 << 32 => {
            errors.invalid(&seconds, found, "may not specify a duration larger than 2^32 seconds");
        }
        Some(_) => {}
    }
    let (target_path, target) = (paths.volume.child("path"), text(source, "path"));
    if target.is_empty() {
        errors.required(&target_path, "");
    } else {
        formats::unreserved_path(errors, &target_path, target);
    }
}

/// Validates a projected certificate and key. They can be in one file or in several files.
fn certificate<'a>(errors: &mut Errors, path: &Path<'_>, source: &'a Value, paths: &mut Paths<'a>) {
    pod_certificate_request::validation::projected(errors, path, source);
    let mut has_path = false;
    for field in ["credentialBundlePath", "keyPath", "certificateChainPath"] {
        let target = text(source, field);
        if target.is_empty() {
            continue;
        }
        has_path = true;
        formats::unreserved_path(errors, &path.child(field), target);
        paths.add(errors, target, target);
    }
    if !has_path {
        errors.required(
            path,
            "specify at least one of credentialBundlePath, keyPath, and certificateChainPath",
        );
    }
}

/// Validates a cluster trust bundle, selected by name or by signer.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validateProjectionSources`; names.go,
/// `ValidateClusterTrustBundleName`.
fn trust_bundle(errors: &mut Errors, path: &Path<'_>, bundle: &Value) {
    let selector_path = path.child("labelSelector");
    match (word(bundle, "name"), word(bundle, "signerName")) {
        (Some(_), Some(_)) => {
            let why = "only one of name and signerName may be used";
            errors.invalid_structure(path, "core.ClusterTrustBundleProjection", bundle, why);
        }
        (Some(name), None) => {
            let name_path = path.child("name");
            if name.is_empty() {
                errors.required(&name_path, "must be a valid object name");
            }
            // The name of a signer's bundle begins with the name of the signer.
            let signer = name.rsplit_once(':').map(|(signer, _)| signer.replace(':', "/"));
            for why in cluster_trust_bundle::name_errors(name, signer.as_deref().unwrap_or_default()) {
                errors.invalid_text(&name_path, name, format!("not a valid clustertrustbundlename: {why}"));
            }
            if let Some(selector) = set(bundle, "labelSelector") {
                let why = "labelSelector must be unset if name is specified";
                errors.invalid_structure(&selector_path, "v1.LabelSelector", selector, why);
            }
        }
        (None, Some(signer)) => {
            let signer_path = path.child("signerName");
            if signer.is_empty() {
                errors.required(&signer_path, "must be a valid signer name");
            }
            certificate_signing_request::validation::signer_name(errors, &signer_path, signer);
            selectors::label_selector(errors, &selector_path, get(bundle, "labelSelector"));
        }
        (None, None) => errors.required(path, "either name or signerName must be specified"),
    }
    let (target_path, target) = (path.child("path"), text(bundle, "path"));
    if target.is_empty() {
        errors.required(&target_path, "");
    }
    formats::unreserved_path(errors, &target_path, target);
}
