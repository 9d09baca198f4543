//! Implements `ClusterTrustBundle` objects.

use crate::kinds::kind::Kind;
use kubernetes_types::json::text;

/// The behavior of `ClusterTrustBundle` objects.
pub(crate) const KIND: Kind = Kind {
    group: "certificates.k8s.io",
    resource: "clustertrustbundles",
    kind: "ClusterTrustBundle",
    validate_name: |name, object| {
        crate::kinds::object_names::trust_bundle(name, text(object, &["spec", "signerName"]))
    },
    requires_resource_version: true,
    validate: crate::kinds::validation::certificates::trust_bundle,
    cells: Some(crate::kinds::tables::cluster::trust_bundle),
    selectable_fields: Some(&["metadata.name", "spec.signerName"]),
    ..Kind::PLAIN
};
