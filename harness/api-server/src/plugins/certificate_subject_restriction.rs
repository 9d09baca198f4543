//! `CertificateSubjectRestriction`: rejects requests for client certificates of `system:masters`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kubernetes_admission::attributes::{Attributes, Operation};
use kubernetes_admission::plugin::{Plugin, Remarks};
use kubernetes_types::json::text;
use kubernetes_types::status::Status;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::prelude::FromDer as _;

use super::forbidden;

const SIGNER: &str = "kubernetes.io/kube-apiserver-client";

/// Rejects requests to `kubernetes.io/kube-apiserver-client` for a certificate of the organization `system:masters`.
///
/// Source: kubernetes plugin/pkg/admission/certificates/subjectrestriction/admission.go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CertificateSubjectRestriction;

impl Plugin for CertificateSubjectRestriction {
    fn name(&self) -> &'static str {
        "CertificateSubjectRestriction"
    }

    fn validate(&self, attributes: &Attributes, _remarks: &mut Remarks) -> Result<(), Box<Status>> {
        let is_new = attributes.operation == Operation::Create
            && attributes.subresource.is_empty()
            && attributes.resource.group_resource() == "certificatesigningrequests.certificates.k8s.io";
        let (true, Some(object)) = (is_new, &attributes.object) else { return Ok(()) };
        if text(object, &["spec", "signerName"]) == SIGNER
            && has_organization(text(object, &["spec", "request"]), "system:masters")
        {
            let why = format!("use of {SIGNER} signer with system:masters group is not allowed");
            return Err(forbidden(attributes, &why));
        }
        Ok(())
    }
}

/// Returns whether the subject of a base64-encoded certificate request has the organization `name`.
///
/// Validation must already have rejected requests that cannot be parsed.
fn has_organization(request: &str, name: &str) -> bool {
    let Ok(data) = STANDARD.decode(request) else { return false };
    let Ok(block) = pem::parse(data) else { return false };
    let Ok((_, request)) = X509CertificationRequest::from_der(block.contents()) else { return false };
    request
        .certification_request_info
        .subject
        .iter_organization()
        .any(|organization| organization.as_str() == Ok(name))
}
