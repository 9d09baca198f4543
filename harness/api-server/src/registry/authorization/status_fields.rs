//! Authorizes changes to fields of a status.

use std::collections::{BTreeMap, BTreeSet};

use kubernetes_admission::authorizer::{AccessRequest, AccessTarget, ResourceTarget};
use kubernetes_types::equality::same;
use kubernetes_types::json::at;
use kubernetes_types::names;
use kubernetes_types::quoting::quote;
use kubernetes_types::schema::Type;
use kubernetes_types::status::{FieldError, Status};
use serde_json::Value;

use super::forbidden;
use crate::apimachinery::metadata;
use crate::kinds::rbac::{list, text};
use crate::kinds::resource::resource_claim;
use crate::registry::authorization::signers;
use crate::registry::request::ObjectRequest;

/// Returns an error for each part of the status of a `ResourceClaim` that the user may not change.
///
/// `verb` is the verb of the request.
///
/// Source: kubernetes pkg/registry/resource/utils.go, `AuthorizedForBinding` and `AuthorizedForDeviceStatus`.
/// Rule: VLO-47.
pub(crate) fn of_claim(request: &ObjectRequest<'_>, verb: &str, new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let resource = &request.target.resource;
    if resource.gvr.group_resource() != "resourceclaims.resource.k8s.io"
        || request.target.subresource != "status"
    {
        return errors;
    }
    let status = Type::for_kind(&resource.kind).member("status");
    let is_same = |field: &str| {
        let [new, old] = [new, old].map(|object| at(object, &["status", field]));
        same(new, old, status.member(field))
    };
    if !is_same("allocation") || !is_same("reservedFor") {
        let target = ResourceTarget { subresource: "binding", ..target(request) };
        if let Err(why) = check(request, verb, target) {
            errors.push(FieldError::forbidden(
                "status.allocation",
                format!(
                    "changing status.allocation or status.reservedFor requires resource=\"resourceclaims/binding\", \
                     verb=\"{verb}\" permission: {why}"
                ),
            ));
        }
    }
    let allocation = at(new, &["status", "allocation"]);
    if allocation.is_null() {
        return errors;
    }
    let mut verbs = vec![format!("arbitrary-node:{verb}")];
    if is_on_node(request, node_name(allocation)) {
        verbs.insert(0, format!("associated-node:{verb}"));
    }
    for driver in changed_drivers(new, old, status.member("devices").item()) {
        let namespace = request.target.namespace.as_str();
        let target = ResourceTarget { subresource: "driver", namespace, name: &driver, ..target(request) };
        // One permission is sufficient.
        let denials: Vec<String> =
            verbs.iter().map_while(|verb| check(request, verb, target).err()).collect();
        if denials.len() == verbs.len() {
            errors.push(FieldError::forbidden(
                "status.devices",
                format!(
                    "changing status.devices requires resource=\"resourceclaims/driver\", verb=\"[{}]\" permission: {}",
                    verbs.join(" "),
                    denials.first().map_or("", String::as_str)
                ),
            ));
        }
    }
    errors
}

fn target<'a>(request: &'a ObjectRequest<'_>) -> ResourceTarget<'a> {
    let gvr = &request.target.resource.gvr;
    ResourceTarget {
        group: &gvr.group,
        version: &gvr.version,
        resource: &gvr.resource,
        ..ResourceTarget::default()
    }
}

/// Returns the message of the denial if the user does not have permission.
fn check(request: &ObjectRequest<'_>, verb: &str, target: ResourceTarget<'_>) -> Result<(), String> {
    let asked = AccessRequest { user: &request.user, verb, target: AccessTarget::Resource(target) };
    let decision = request.authorizer.authorize(&asked);
    if decision.is_allowed() { Ok(()) } else { Err(forbidden(&asked, &decision.reason).message) }
}

/// Returns the drivers whose devices were added, changed, or removed.
///
/// Source: kubernetes pkg/registry/resource/utils.go, `getModifiedDrivers`.
fn changed_drivers(new: &Value, old: &Value, device: Type) -> BTreeSet<String> {
    let devices = |object| list(at(object, &["status"]), "devices");
    let mut before: BTreeMap<[String; 4], &Value> = BTreeMap::new();
    for found in devices(old) {
        before.insert(resource_claim::status::device_id(found).map(str::to_owned), found);
    }
    let mut drivers = BTreeSet::new();
    for found in devices(new) {
        let before = before.remove(&resource_claim::status::device_id(found).map(str::to_owned));
        if before.is_none_or(|before| !same(before, found, device)) {
            drivers.insert(text(found, "driver").to_owned());
        }
    }
    drivers.extend(before.values().map(|removed| text(removed, "driver").to_owned()));
    drivers
}

/// Returns the name of the node that has the allocated devices; empty if there may be several nodes.
///
/// Source: kubernetes pkg/registry/resource/utils.go, `nodeNameFromAllocation`.
fn node_name(allocation: &Value) -> &str {
    let [term] = list(at(allocation, &["nodeSelector"]), "nodeSelectorTerms") else { return "" };
    let [field] = list(term, "matchFields") else { return "" };
    let [name] = list(field, "values") else { return "" };
    let is_name = text(field, "key") == "metadata.name" && text(field, "operator") == "In";
    let is_only = list(term, "matchExpressions").is_empty();
    name.as_str().filter(|_| is_name && is_only).unwrap_or_default()
}

/// Returns whether the user is a service account of a Pod on this node.
///
/// Source: kubernetes pkg/registry/resource/utils.go, `saAssociatedWithAllocatedNode`.
fn is_on_node(request: &ObjectRequest<'_>, node: &str) -> bool {
    const NODE_NAME: &str = "authentication.kubernetes.io/node-name";
    let user = &request.user;
    let account = user.username.strip_prefix("system:serviceaccount:").and_then(|rest| rest.split_once(':'));
    let is_account = account.is_some_and(|(namespace, name)| {
        names::dns1123_label(namespace).is_empty() && names::dns1123_subdomain(name).is_empty()
    });
    let nodes = user.extra.get(NODE_NAME).map_or(&[][..], Vec::as_slice);
    is_account && matches!(nodes, [only] if !node.is_empty() && only == node)
}

/// Checks that the user may sign for the signer of a `PodCertificateRequest` whose status changes.
///
/// # Errors
/// Returns 422 if the user does not have permission.
///
/// Source: kubernetes pkg/registry/certificates/podcertificaterequest/strategy.go, `StatusStrategy.ValidateUpdate`.
/// Rule: VLO-48.
pub(crate) fn check_pod_certificate(
    request: &ObjectRequest<'_>,
    new: &Value,
    old: &Value,
) -> Result<(), Box<Status>> {
    let resource = &request.target.resource;
    if resource.gvr.group_resource() != "podcertificaterequests.certificates.k8s.io"
        || request.target.subresource != "status"
    {
        return Ok(());
    }
    let status = |object| at(object, &["status"]);
    let signer = at(old, &["spec", "signerName"]).as_str().unwrap_or_default();
    if same(status(new), status(old), Type::for_kind(&resource.kind).member("status"))
        || signers::may(request, "sign", signer)
    {
        return Ok(());
    }
    let (user, signer) = (quote(&request.user.username), quote(signer));
    let why = format!("User {user} is not permitted to \"sign\" for signer {signer}");
    let error = FieldError::forbidden("spec.signerName", why);
    let (kind, name) = (&resource.kind, metadata::text(new, "name"));
    Err(Box::new(Status::invalid(&kind.group, &kind.kind, name, &[error])))
}
