//! What has to be written so that the backend of a webhook comes up, and who is asked about it: for checks of lockouts.

use kubernetes_admission::conditions::Condition;
use kubernetes_admission::config::Webhook;
use kubernetes_api_server::ClusterFixture;

use super::matched::{self, Catch, LabelSet, Place};
use crate::check::Severity;

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

/// What a webhook is called for.
#[derive(Debug, Default)]
pub(super) struct Caught {
    /// The resources.
    pub(super) resources: Vec<&'static str>,
    /// Resources of which nobody knows whether match conditions leave them out.
    pub(super) unclear: Vec<&'static str>,
    /// Why the first of these is not known.
    pub(super) why: String,
    /// Whether manifests of the backend say which labels those of `resources` have; otherwise it is assumed that they have
    /// none.
    pub(super) is_certain: bool,
}

/// The resources of `needed` that `webhook` is called for in `namespace`, when they are created or updated there for the
/// service `name`: with the labels that the manifests give them, or else without labels. Resources of which the labels are
/// known come alone.
pub(super) fn caught(
    webhook: &Webhook,
    needed: &[Needed],
    (namespace, name): (&str, &str),
    cluster_fixture: &ClusterFixture,
) -> Caught {
    let mut caught = Caught::default();
    let mut certain = Vec::new();
    let nothing_depends_on_objects = !webhook.match_conditions.iter().any(reads_objects);
    for (group, version, resource, kind) in needed {
        let place = Place { group, version, resource, kind, subresource: "", namespace, name };
        let known = cluster_fixture.given().labels_for(kind, namespace, name);
        let is_known = known.is_some() && nothing_depends_on_objects;
        for labels in known.unwrap_or_else(|| vec![LabelSet::new()]) {
            match matched::is_written_past(webhook, &place, &labels, cluster_fixture) {
                Catch::Called if is_known => certain.push(*resource),
                Catch::Called => caught.resources.push(resource),
                Catch::NotCalled => {}
                Catch::Unclear(why) => {
                    if caught.unclear.is_empty() {
                        caught.why = why;
                    }
                    caught.unclear.push(resource);
                }
            }
        }
    }
    caught.is_certain = !certain.is_empty();
    if caught.is_certain {
        caught.resources = certain;
    }
    for resources in [&mut caught.resources, &mut caught.unclear] {
        resources.dedup();
    }
    caught
}

/// Whether what is in the objects decides the condition.
fn reads_objects(condition: &Condition) -> bool {
    condition.mentions("object") || condition.mentions("oldObject")
}

/// How sure it is that `webhook` is called for what [`caught`] says, and under which reserve: what is in the objects is
/// not known here.
pub(super) fn certainty(webhook: &Webhook) -> (Severity, &'static str) {
    if webhook.match_conditions.iter().any(reads_objects) {
        (Severity::Warning, ", unless what is in them keeps them out by its matchConditions")
    } else if webhook.object_selector.is_empty() {
        (Severity::Error, "")
    } else {
        (Severity::Warning, ", unless their labels keep them out of the objectSelector")
    }
}
