//! Implements `PodCertificateRequest` objects.

use crate::kinds::kind::{Kind, StatusKeeps};

/// The behavior of `PodCertificateRequest` objects.
pub(crate) const KIND: Kind = Kind {
    group: "certificates.k8s.io",
    resource: "podcertificaterequests",
    kind: "PodCertificateRequest",
    set_defaults: Some(crate::kinds::defaulting::extensions::pod_certificate_request),
    requires_resource_version: true,
    status_keeps: StatusKeeps::Metadata,
    validate: crate::kinds::validation::certificates::pod_request,
    validate_subresources: &[("status", crate::kinds::validation::certificates::pod_request_status)],
    cells: Some(crate::kinds::tables::cluster::pod_certificate_request),
    selectable_fields: Some(&["metadata.name", "spec.signerName", "spec.podName", "spec.nodeName"]),
    ..Kind::PLAIN
};
