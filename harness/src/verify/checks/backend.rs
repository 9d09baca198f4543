//! What has to be written so that the backend of a webhook comes up, and who is asked about it: for checks of lockouts.

use super::matched::{self, Place};
use crate::attributes::Operation;
use crate::config::Webhook;
use crate::server::Surroundings;
use crate::verify::check::Severity;

/// Objects that somebody has to write: group, version, resource and kind.
pub(super) type Needed = (&'static str, &'static str, &'static str, &'static str);

/// What a backend needs in its namespace to come up and to be found.
pub(super) const BACKEND: [Needed; 8] = [
    PODS,
    REPLICA_SETS,
    DEPLOYMENTS,
    ("", "v1", "services", "Service"),
    ("", "v1", "endpoints", "Endpoints"),
    ("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice"),
    SECRETS,
    ("coordination.k8s.io", "v1", "leases", "Lease"),
];
pub(super) const PODS: Needed = ("", "v1", "pods", "Pod");
pub(super) const REPLICA_SETS: Needed = ("apps", "v1", "replicasets", "ReplicaSet");
pub(super) const DEPLOYMENTS: Needed = ("apps", "v1", "deployments", "Deployment");
pub(super) const SECRETS: Needed = ("", "v1", "secrets", "Secret");

/// The resources of `needed` that `webhook` is called for in `namespace`, when objects without labels are created or
/// updated there.
pub(super) fn caught(
    webhook: &Webhook,
    needed: &[Needed],
    (namespace, name): (&str, &str),
    surroundings: &Surroundings,
) -> Vec<&'static str> {
    let is_caught = |(group, version, resource, kind): &Needed| {
        let place = Place { group, version, resource, kind, subresource: "", namespace, name };
        [Operation::Create, Operation::Update]
            .into_iter()
            .any(|operation| matched::is_called(webhook, &place, operation, surroundings))
    };
    needed.iter().filter(|needed| is_caught(needed)).map(|(_, _, resource, _)| *resource).collect()
}

/// How sure it is that `webhook` is called for what [`caught`] says, and under which reserve: labels might keep objects
/// out, and are not known here.
pub(super) fn certainty(webhook: &Webhook) -> (Severity, &'static str) {
    if webhook.object_selector.is_everything() {
        (Severity::Error, "")
    } else {
        (Severity::Warning, ", unless their labels keep them out of the objectSelector")
    }
}
