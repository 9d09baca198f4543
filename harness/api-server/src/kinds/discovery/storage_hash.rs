//! Computes the `storageVersionHash` in discovery.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

use crate::kinds::discovery::{Resource, Resources};

/// Source: apiserver pkg/endpoints/discovery/storageversionhash.go, `StorageVersionHash`.
pub(crate) fn storage_version_hash(group: &str, version: &str, kind: &str) -> String {
    let digest = Sha256::digest(format!("{group}/{version}/{kind}"));
    STANDARD.encode(digest.get(..8).unwrap_or_default())
}

impl Resources {
    /// Returns the hash of the kind in which the objects of a resource are stored; `None` if they are not stored.
    ///
    /// Source: apiserver pkg/endpoints/installer.go, `registerResourceHandlers`;
    /// pkg/endpoints/discovery/storageversionhash.go.
    pub(crate) fn storage_hash(&self, resource: &Resource) -> Option<String> {
        if let Some(custom) = &resource.custom {
            return Some(custom.storage_hash.clone());
        }
        if !resource.verbs.iter().any(|verb| verb == "update") {
            return None;
        }
        let mut kind = self.storage_kind(resource);
        // Upstream stores some kinds in a version that it does not serve, and Events in the version of the core group.
        // Source: kubernetes pkg/kubeapiserver/default_storage_factory_builder.go, `DefaultAPIResourceConfigSource`.
        match kind.kind.as_str() {
            "ClusterTrustBundle"
            | "PodCertificateRequest"
            | "CustomResourceDefinition"
            | "StorageVersionMigration" => "v1beta1".clone_into(&mut kind.version),
            "DeviceTaintRule" => "v1beta2".clone_into(&mut kind.version),
            "Event" => kind.group.clear(),
            _ => {}
        }
        Some(storage_version_hash(&kind.group, &kind.version, &kind.kind))
    }
}
