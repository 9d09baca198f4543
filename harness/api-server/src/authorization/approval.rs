//! Authorization of approving or denying a `CertificateSigningRequest`, which requires permission for its signer.

use kubernetes_admission::authorizer::{AccessRequest, AccessTarget, ResourceTarget};
use kubernetes_types::status::Status;
use serde_json::Value;

use crate::metadata;
use crate::request::ObjectRequest;

const GROUP: &str = "certificates.k8s.io";

/// Checks the permission of a request that approves or denies `old`.
///
/// The user needs permission for the signer of the request or for all signers of the domain.
///
/// Source: kubernetes plugin/pkg/admission/certificates/approval/admission.go, `Validate`, and
/// pkg/certauthorization/authorization.go, `IsAuthorizedForSignerName`.
/// Rule: RBAC-25.
///
/// # Errors
/// 403 if the user does not have permission.
pub(crate) fn check(request: &ObjectRequest<'_>, old: &Value) -> Result<(), Box<Status>> {
    let gvr = &request.target.resource.gvr;
    let is_approval = gvr.group == GROUP && request.target.subresource == "approval";
    if !is_approval {
        return Ok(());
    }
    let signer = old.pointer("/spec/signerName").and_then(Value::as_str).unwrap_or_default();
    let may = |name: &str| {
        let target = ResourceTarget {
            group: GROUP,
            version: "*",
            resource: "signers",
            name,
            ..ResourceTarget::default()
        };
        let target = AccessTarget::Resource(target);
        let asked = AccessRequest { user: &request.user, verb: "approve", target };
        request.authorizer.authorize(&asked).is_allowed()
    };
    let domain = signer.split_once('/').map_or(signer, |(domain, _)| domain);
    if may(signer) || may(&format!("{domain}/*")) {
        return Ok(());
    }
    let why = format!(
        "user not permitted to approve requests with signerName {}",
        kubernetes_types::quoting::quote(signer)
    );
    Err(Box::new(Status::forbidden(&gvr.group, &gvr.resource, metadata::text(old, "name"), &why)))
}
