//! Sets the defaults of volumes, image pull policies, and field references.

use serde_json::{Value, json};

use crate::kinds::common;
use crate::kinds::common::defaults::{each, ensure, fill, fill_pointer, is_empty, resource_list, with};

/// Sets the defaults of one item in `spec.volumes` of a Pod.
///
/// Source: kubernetes pkg/apis/core/v1/defaults.go, `SetDefaults_Volume`, and the `+default` marks of api
/// core/v1/types.go.
pub(crate) fn volume(volume: &mut Value) {
    let sources = volume.as_object().map_or(0, |members| {
        members.iter().filter(|(field, value)| *field != "name" && !value.is_null()).count()
    });
    if sources == 0 {
        fill(volume, "emptyDir", json!({}));
    }
    for field in ["secret", "configMap", "downwardAPI", "projected"] {
        with(volume, field, |source| fill(source, "defaultMode", 0o644));
    }
    with(volume, "downwardAPI", downward_items);
    with(volume, "projected", |projected| each(projected, "sources", projection));
    with(volume, "image", |source| {
        let policy = pull_policy(common::defaults::text(source, "reference"));
        fill(source, "pullPolicy", policy);
    });
    with(volume, "ephemeral", |source| {
        with(source, "volumeClaimTemplate", |template| {
            ensure(template, "metadata");
            if let Some(spec) = ensure(template, "spec") {
                claim_spec(spec);
            }
        });
    });
    persistent_source(volume);
}

/// Sets the defaults of the volume sources that Pods and `PersistentVolume`s share.
pub(crate) fn persistent_source(owner: &mut Value) {
    with(owner, "hostPath", |source| {
        if is_empty(source, "type") {
            fill(source, "type", "");
        }
    });
    with(owner, "rbd", |source| {
        fill(source, "pool", "rbd");
        fill(source, "user", "admin");
        fill(source, "keyring", "/etc/ceph/keyring");
    });
    with(owner, "iscsi", |source| fill(source, "iscsiInterface", "default"));
    with(owner, "azureDisk", |source| {
        fill_pointer(source, "cachingMode", "ReadWrite");
        fill_pointer(source, "fsType", "ext4");
        fill(source, "readOnly", false);
        fill_pointer(source, "kind", "Shared");
    });
    with(owner, "scaleIO", |source| {
        fill(source, "storageMode", "ThinProvisioned");
        fill(source, "fsType", "xfs");
    });
}

/// Sets the default of `owner.fieldRef.apiVersion`.
pub(crate) fn field_reference(owner: &mut Value) {
    with(owner, "fieldRef", |reference| fill(reference, "apiVersion", "v1"));
}

/// Returns the default pull policy: `Always` for the tag `latest`, otherwise `IfNotPresent`.
///
/// An image with neither a tag nor a digest has the tag `latest`. An invalid image name gets `IfNotPresent`.
///
/// Source: kubernetes pkg/util/parsers/parsers.go, `ParseImageName`.
pub(crate) fn pull_policy(image: &str) -> &'static str {
    let (name, digest) = image.split_once('@').map_or((image, None), |(name, digest)| (name, Some(digest)));
    let last = name.rsplit('/').next().unwrap_or_default();
    let tag = match (last.split_once(':'), digest) {
        (Some((_, tag)), _) => tag,
        (None, None) if is_image_name(name) => "latest",
        (None, _) => "",
    };
    if tag == "latest" { "Always" } else { "IfNotPresent" }
}

/// Source: github.com/distribution/reference `reference.go`, `RepositoryNameTotalLengthMax`.
const REPOSITORY_NAME_TOTAL_LENGTH_MAX: usize = 255;

/// Returns whether the part of an image name after the registry consists of valid characters.
fn is_image_name(name: &str) -> bool {
    let path = match name.split_once('/') {
        Some((first, rest)) if first.contains(['.', ':']) || first == "localhost" => rest,
        Some(_) | None => name,
    };
    // Upstream includes the length of Docker Hub's `library/` prefix.
    let is_in_library = path.len() == name.len() && !name.contains('/');
    let length = path.len() + if is_in_library { "library/".len() } else { 0 };
    !path.is_empty()
        && length <= REPOSITORY_NAME_TOTAL_LENGTH_MAX
        && path
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-/".contains(&byte))
}

fn downward_items(source: &mut Value) {
    each(source, "items", field_reference);
}

fn projection(projection: &mut Value) {
    with(projection, "serviceAccountToken", |token| fill(token, "expirationSeconds", 3600));
    with(projection, "downwardAPI", downward_items);
}

/// Sets the defaults of the `spec` of a `PersistentVolumeClaim`.
///
/// Source: kubernetes pkg/apis/core/v1/defaults.go, `SetDefaults_PersistentVolumeClaimSpec`.
pub(crate) fn claim_spec(spec: &mut Value) {
    fill_pointer(spec, "volumeMode", "Filesystem");
    if let Some(resources) = ensure(spec, "resources") {
        resource_list(resources, "limits");
        resource_list(resources, "requests");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latest_tag_is_always_pulled() {
        for (image, policy) in [
            ("busybox", "Always"),
            ("busybox:latest", "Always"),
            ("localhost:5000/a/b", "Always"),
            ("busybox:1", "IfNotPresent"),
            ("localhost:5000/a/b:1", "IfNotPresent"),
            ("busybox@sha256:00", "IfNotPresent"),
            ("Not An Image", "IfNotPresent"),
            ("", "IfNotPresent"),
        ] {
            assert_eq!(pull_policy(image), policy, "{image}");
        }
    }
}
