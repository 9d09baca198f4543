//! Finds the objects that a webhook's backend requires to start, for checks that detect lockouts.

use kubernetes_admission::conditions::Condition;
use kubernetes_admission::config::Webhook;
use kubernetes_api_server::ClusterFixture;

use super::match_outcome::{self, LabelSet, MatchOutcome, RequestTarget};
use crate::check::Severity;

/// A required kind of object: group, version, resource, and kind.
pub(super) type Needed = (&'static str, &'static str, &'static str, &'static str);

/// The objects that a backend needs in its namespace to start and to be reachable.
pub(super) const BACKEND: [Needed; 10] = [
    PODS,
    // The scheduler and the kubelet create these.
    ("", "v1", "pods/binding", "Binding"),
    ("", "v1", "serviceaccounts/token", "TokenRequest"),
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

/// The resources whose creations or updates a webhook is called for.
#[derive(Debug, Default)]
pub(super) struct Caught {
    /// The resources for which the webhook is called.
    pub(super) resources: Vec<&'static str>,
    /// The resources for which the result of the match conditions is unknown.
    pub(super) unclear: Vec<&'static str>,
    /// The reason why the result of the match conditions is unknown for the first resource in `unclear`.
    pub(super) why: String,
    /// Whether the labels of `resources` are known from the backend's manifests. If not, no labels are assumed.
    pub(super) is_certain: bool,
}

/// Returns the resources of `needed` for which `webhook` is called.
///
/// The resources are created or updated in `namespace` for the service `name`. The objects have the labels from the
/// manifests, or no labels. If resources with known labels match, only these resources are returned.
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
        let (parent, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        let place = RequestTarget { group, version, resource: parent, kind, subresource, namespace, name };
        let known = cluster_fixture.webhook_manifests().labels_for(kind, namespace, name);
        let is_known = known.is_some() && nothing_depends_on_objects;
        for labels in known.unwrap_or_else(|| vec![LabelSet::new()]) {
            match match_outcome::is_called_for_writes(webhook, &place, &labels, cluster_fixture) {
                MatchOutcome::Called if is_known => certain.push(*resource),
                MatchOutcome::Called => caught.resources.push(resource),
                MatchOutcome::NotCalled => {}
                MatchOutcome::Unclear(why) => {
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

/// Returns whether the condition reads `object` or `oldObject`.
fn reads_objects(condition: &Condition) -> bool {
    condition.mentions("object") || condition.mentions("oldObject")
}

/// Returns the severity of a violation about the result of [`caught`], and the restriction to add to its message.
///
/// The result may be uncertain, because the content of the objects is unknown.
pub(super) fn certainty(webhook: &Webhook) -> (Severity, &'static str) {
    if webhook.match_conditions.iter().any(reads_objects) {
        (Severity::Warning, ", unless matchConditions exclude them by their content")
    } else if webhook.object_selector.is_empty() {
        (Severity::Error, "")
    } else {
        (Severity::Warning, ", unless the objectSelector excludes them by their labels")
    }
}
