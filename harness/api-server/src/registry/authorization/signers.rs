//! Authorizes requests that approve, sign, or attest for a certificate signer.

use kubernetes_admission::attributes::GroupVersionKind;
use kubernetes_admission::authorizer::{AccessRequest, AccessTarget, ResourceTarget};
use kubernetes_types::equality::{same, semantically_equal};
use kubernetes_types::json::{at, text};
use kubernetes_types::quoting::quote;
use kubernetes_types::schema::Type;
use kubernetes_types::status::Status;
use serde_json::Value;

use crate::apimachinery::metadata;
use crate::registry::request::ObjectRequest;

const GROUP: &str = "certificates.k8s.io";

/// Checks that the user has permission if the request approves, signs, or attests for a signer.
///
/// The user needs permission for the signer or for all signers of its domain.
///
/// Source: kubernetes plugin/pkg/admission/certificates/{approval,signing,ctbattest}/admission.go, `Validate`, and
/// pkg/certauthorization/authorization.go, `IsAuthorizedForSignerName`.
/// Rule: RBAC-25.
///
/// # Errors
/// Returns 403 if the user does not have permission.
pub(crate) fn check(
    request: &ObjectRequest<'_>,
    new: &Value,
    old: Option<&Value>,
) -> Result<(), Box<Status>> {
    let gvr = &request.target.resource.gvr;
    if gvr.group != GROUP {
        return Ok(());
    }
    let signer = |object| text(object, &["spec", "signerName"]);
    let is_enabled = |plugin: &str| request.registry.admission.runs(plugin);
    let (verb, signer, why) = match (gvr.resource.as_str(), request.target.subresource.as_str(), old) {
        ("certificatesigningrequests", "approval", Some(old)) if is_enabled("CertificateApproval") => {
            ("approve", signer(old), "approve requests with signerName")
        }
        ("certificatesigningrequests", "status", Some(old))
            if is_enabled("CertificateSigning") && is_signed(new, old, &request.target.resource.kind) =>
        {
            ("sign", signer(old), "sign requests with signerName")
        }
        ("clustertrustbundles", _, old) if is_enabled("ClusterTrustBundleAttest") => {
            let kind = &request.target.resource.kind;
            if signer(new).is_empty() || old.is_some_and(|old| differs_in_lifecycle_only(new, old, kind)) {
                return Ok(());
            }
            ("attest", signer(new), "attest for signerName")
        }
        _ => return Ok(()),
    };
    if may(request, verb, signer) {
        return Ok(());
    }
    let why = format!("user not permitted to {why} {}", quote(signer));
    Err(Box::new(Status::forbidden(&gvr.group, &gvr.resource, metadata::text(new, "name"), &why)))
}

/// Returns whether the user has permission for a signer or for all signers of its domain.
///
/// Source: kubernetes pkg/certauthorization/authorization.go, `IsAuthorizedForSignerName`.
pub(crate) fn may(request: &ObjectRequest<'_>, verb: &str, signer: &str) -> bool {
    let may = |name: &str| {
        let target = ResourceTarget {
            group: GROUP,
            version: "*",
            resource: "signers",
            name,
            ..ResourceTarget::default()
        };
        let target = AccessTarget::Resource(target);
        let asked = AccessRequest { user: &request.user, verb, target };
        request.authorizer.authorize(&asked).is_allowed()
    };
    let domain = signer.split_once('/').map_or(signer, |(domain, _)| domain);
    may(signer) || may(&format!("{domain}/*"))
}

/// Returns whether a status update changes the certificate or the conditions.
fn is_signed(new: &Value, old: &Value, kind: &GroupVersionKind) -> bool {
    let of = Type::for_kind(kind).member("status");
    let is_same = |field: &str| {
        let [new, old] = [new, old].map(|object| at(object, &["status", field]));
        same(new, old, of.member(field))
    };
    !is_same("certificate") || !is_same("conditions")
}

/// Returns whether only owner references, finalizers, and managed fields differ.
///
/// Source: kubernetes pkg/registry/rbac/helpers.go, `IsOnlyMutatingGCFields`.
fn differs_in_lifecycle_only(new: &Value, old: &Value, kind: &GroupVersionKind) -> bool {
    let rest = metadata::without_collector_fields;
    semantically_equal(&rest(new), &rest(old), kind)
}
