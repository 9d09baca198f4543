//! Implements `CertificateSigningRequest` objects.

use crate::kinds::kind::Kind;
use kubernetes_types::json::keep;

/// The behavior of `CertificateSigningRequest` objects.
pub(crate) const KIND: Kind = Kind {
    group: "certificates.k8s.io",
    resource: "certificatesigningrequests",
    kind: "CertificateSigningRequest",
    validate_name: |name, _| crate::kinds::object_names::path_segment_errors(name),
    set_requester: crate::kinds::strategy::create::set_requester,
    prepare_update: |object, old| keep(object, old, "spec"),
    prepare_status: crate::kinds::strategy::certificate::complete_conditions,
    prepare_subresources: &[("approval", crate::kinds::strategy::certificate::keep_all_but_conditions)],
    reset_fields: &[
        ("status", &[&["spec"], &["status", "conditions"]]),
        ("", &[&["spec"], &["status"]]),
        ("approval", &[&["spec"], &["status", "certificate"]]),
    ],
    validate: |errors, object, change| {
        if change.is_none() {
            crate::kinds::validation::signing_requests::new(errors, object);
        }
    },
    validate_after: crate::kinds::strategy::certificate::errors,
    cells: Some(crate::kinds::tables::cluster::signing_request),
    selectable_fields: Some(&["metadata.name", "spec.signerName"]),
    ..Kind::PLAIN
};
