//! Implements `PodCertificateRequest` objects.

pub(crate) mod keys;
pub(crate) mod validation;

use kubernetes_types::json::{at, text};
use serde_json::Value;

use crate::kinds::certificates::pod_certificate_request;
use crate::kinds::common::cells::{Context, items, labels, name, row};
use crate::kinds::common::defaults::{fill, with};
use crate::kinds::kind::{Kind, StatusKeeps};

/// The behavior of `PodCertificateRequest` objects.
pub(crate) const KIND: Kind = Kind {
    group: "certificates.k8s.io",
    resource: "podcertificaterequests",
    kind: "PodCertificateRequest",
    set_defaults: Some(set_defaults),
    requires_resource_version: true,
    status_keeps: StatusKeeps::Metadata,
    validate: pod_certificate_request::validation::validate,
    validate_subresources: &[("status", pod_certificate_request::validation::validate_status)],
    cells: Some(cells),
    selectable_fields: Some(&["metadata.name", "spec.signerName", "spec.podName", "spec.nodeName"]),
    ..Kind::PLAIN
};

/// Sets the defaults of a `PodCertificateRequest`.
///
/// Source: the `+default` marks of api certificates/v1/types.go.
pub(crate) fn set_defaults(object: &mut Value) {
    with(object, "spec", |spec| fill(spec, "maxExpirationSeconds", 86400));
}

pub(crate) fn cells(object: &Value, _: &Context<'_>) -> Vec<Value> {
    let conditions = items(object, &["status", "conditions"]).iter().rev();
    let mut kinds = conditions.map(|condition| text(condition, &["type"]));
    let state = kinds.find(|kind| ["Issued", "Denied", "Failed"].contains(kind));
    row![
        name(object),
        text(object, &["spec", "podName"]),
        text(object, &["spec", "serviceAccountName"]),
        text(object, &["spec", "nodeName"]),
        text(object, &["spec", "signerName"]),
        state.unwrap_or("Pending"),
        labels(at(object, &["spec", "unverifiedUserAnnotations"])),
    ]
}
