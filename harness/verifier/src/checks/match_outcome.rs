//! Determines which requests a configuration matches, for checks without calls.

use std::collections::BTreeMap;
use std::sync::Arc;

use kubernetes_admission::admission_run::AdmissionRun;
use kubernetes_admission::attributes::{
    Attributes, GroupVersionKind, GroupVersionResource, Operation, UserInfo,
};
use kubernetes_admission::cluster_state::{ClusterState, ConversionError, EquivalentResource};
use kubernetes_admission::config::{Rule, Webhook};
use kubernetes_admission::matching::{self, Decision, exact_or_star};
use kubernetes_admission::ownership::TimePrecision;
use kubernetes_api_server::ClusterFixture;
use kubernetes_types::json::set;
use serde_json::{Value, json};

use crate::check::Skipped;

/// The resource and the name of the object that a request is about.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestTarget<'a> {
    pub(super) group: &'a str,
    pub(super) version: &'a str,
    pub(super) resource: &'a str,
    pub(super) kind: &'a str,
    /// The subresource, such as `status`; empty for a request about the object itself.
    pub(super) subresource: &'a str,
    /// The namespace; empty for a cluster-scoped object.
    pub(super) namespace: &'a str,
    pub(super) name: &'a str,
}

pub(super) type LabelSet = BTreeMap<String, String>;

/// Whether a webhook is called for a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MatchOutcome {
    Called,
    NotCalled,
    /// The match conditions cannot be evaluated because little is known about the object; contains the error.
    Unclear(String),
}

impl RequestTarget<'_> {
    /// Returns an object with the given labels and without other content.
    fn object(&self, labels: &LabelSet) -> Value {
        let kind = GroupVersionKind::new(self.group, self.version, self.kind);
        let mut metadata = json!({"name": self.name});
        if !self.namespace.is_empty() && self.kind != "Namespace" {
            set(&mut metadata, &["namespace"], self.namespace);
        }
        let mut labels = labels.clone();
        if self.kind == "Namespace" {
            labels.insert(NAME_LABEL.to_owned(), self.name.to_owned());
        }
        if !labels.is_empty() {
            set(&mut metadata, &["labels"], json!(labels));
        }
        json!({"apiVersion": kind.api_version(), "kind": self.kind, "metadata": metadata})
    }

    /// Returns the user who usually writes the object: the responsible component, or a cluster administrator.
    ///
    /// Source: kubernetes cmd/kube-controller-manager/app, the names of the controllers, each of which has a service
    /// account; pkg/controlplane/controller/kubernetesservice; plugin/pkg/auth/authorizer/node.
    fn writer(&self) -> UserInfo {
        let controller = |name: &str| service_account("kube-system", name);
        let node = |name: &str| user(&format!("system:node:{name}"), &["system:nodes"]);
        match (self.resource, self.subresource, self.namespace) {
            ("leases", _, "kube-node-lease") | ("nodes", ..) => node(self.name),
            ("pods", "status", _) => node("node-1"),
            ("leases", _, "kube-system") => user(&format!("system:{}", self.name), &[]),
            ("leases", ..) => service_account(self.namespace, self.name),
            ("pods", _, "kube-system") | ("controllerrevisions", ..) => controller("daemon-set-controller"),
            ("pods", ..) => controller("replicaset-controller"),
            ("replicasets", ..) => controller("deployment-controller"),
            ("endpoints" | "endpointslices", _, "default") => user("system:apiserver", &["system:masters"]),
            ("endpoints", ..) => controller("endpoint-controller"),
            ("endpointslices", ..) => controller("endpointslice-controller"),
            ("certificatesigningrequests", "status", _) => controller("certificate-controller"),
            ("certificatesigningrequests", ..) => node("node-1"),
            _ => user("kubernetes-admin", &["system:masters"]),
        }
    }
}

/// The label that the API server sets to the name of a namespace.
pub(super) const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// Returns a user with these groups and `system:authenticated`.
pub(super) fn user(name: &str, groups: &[&str]) -> UserInfo {
    let groups = groups.iter().chain(&["system:authenticated"]).map(|group| (*group).to_owned()).collect();
    UserInfo { username: name.to_owned(), groups, ..UserInfo::default() }
}

fn service_account(namespace: &str, name: &str) -> UserInfo {
    let of_namespace = format!("system:serviceaccounts:{namespace}");
    user(&format!("system:serviceaccount:{namespace}:{name}"), &["system:serviceaccounts", &of_namespace])
}

/// Returns whether `webhook` is called when the usual writer creates or updates the object with the given labels.
pub(super) fn is_called_for_writes(
    webhook: &Webhook,
    place: &RequestTarget<'_>,
    labels: &LabelSet,
    cluster_fixture: &ClusterFixture,
) -> MatchOutcome {
    let mut caught = MatchOutcome::NotCalled;
    for operation in [Operation::Create, Operation::Update] {
        match catch(webhook, place, operation, labels, &LabelSet::new(), cluster_fixture) {
            MatchOutcome::Called => return MatchOutcome::Called,
            MatchOutcome::NotCalled => {}
            unclear @ MatchOutcome::Unclear(_) => caught = unclear,
        }
    }
    caught
}

/// Returns whether `webhook` is called for an operation on the object, with the given labels of object and namespace.
pub(super) fn catch(
    webhook: &Webhook,
    place: &RequestTarget<'_>,
    operation: Operation,
    labels: &LabelSet,
    namespace_labels: &LabelSet,
    cluster_fixture: &ClusterFixture,
) -> MatchOutcome {
    let object = || place.object(labels);
    let request = Attributes {
        operation,
        resource: GroupVersionResource::new(place.group, place.version, place.resource),
        subresource: place.subresource.to_owned(),
        kind: GroupVersionKind::new(place.group, place.version, place.kind),
        namespace: place.namespace.to_owned(),
        name: place.name.to_owned(),
        object: (operation != Operation::Delete).then(object),
        old_object: matches!(operation, Operation::Update | Operation::Delete).then(object),
        options: None,
        dry_run: false,
        user: place.writer(),
    };
    let state =
        Labeled { cluster_fixture, namespace: place.namespace, labels: namespace_labels, is_bare: false };
    let mut run = AdmissionRun::new(request, TimePrecision::Seconds, &state)
        .with_authorizer(cluster_fixture.authorizer());
    let decided = matching::decide(webhook, &mut run);
    if let Some(conditions) = &decided.conditions
        && let Some(error) = conditions.error()
    {
        return MatchOutcome::Unclear(error.to_owned());
    }
    if matches!(decided.decision, Decision::Call(_)) { MatchOutcome::Called } else { MatchOutcome::NotCalled }
}

/// A cluster state with additional labels on one namespace.
pub(super) struct Labeled<'a> {
    pub(super) cluster_fixture: &'a ClusterFixture,
    pub(super) namespace: &'a str,
    pub(super) labels: &'a LabelSet,
    /// Whether the namespace has no labels other than [`NAME_LABEL`].
    pub(super) is_bare: bool,
}

impl ClusterState for Labeled<'_> {
    fn namespace(&self, name: &str) -> Option<Arc<Value>> {
        let namespace = self.cluster_fixture.namespace(name);
        if name != self.namespace || (self.labels.is_empty() && !self.is_bare) {
            return namespace;
        }
        let bare = || Arc::new(json!({"metadata": {"name": name, "labels": {NAME_LABEL: name}}}));
        let namespace = if self.is_bare { Some(bare()) } else { namespace };
        let mut namespace = namespace.map(Arc::unwrap_or_clone).unwrap_or_default();
        for (key, value) in self.labels {
            set(&mut namespace, &["metadata", "labels", key], value.as_str());
        }
        Some(Arc::new(namespace))
    }

    fn equivalent_resources(
        &self,
        resource: &GroupVersionResource,
        subresource: &str,
    ) -> Arc<[EquivalentResource]> {
        self.cluster_fixture.equivalent_resources(resource, subresource)
    }

    fn convert(&self, object: &Value, kind: &GroupVersionKind) -> Result<Value, ConversionError> {
        self.cluster_fixture.convert(object, kind)
    }

    fn set_defaults(&self, object: &mut Value) {
        self.cluster_fixture.set_defaults(object);
    }

    fn is_built_in(&self, kind: &GroupVersionKind) -> bool {
        self.cluster_fixture.is_built_in(kind)
    }
}

/// Returns whether `rule` matches the operation on the resource, regardless of scope and selectors.
pub(super) fn catches(rule: &Rule, operation: &str, (group, version, resource): (&str, &str, &str)) -> bool {
    let is_for_resource = |entry: &String| {
        let (name, subresource) = entry.split_once('/').unwrap_or((entry, ""));
        matches!(subresource, "" | "*") && (name == "*" || name == resource)
    };
    exact_or_star(&rule.operations, operation)
        && exact_or_star(&rule.api_groups, group)
        && exact_or_star(&rule.api_versions, version)
        && rule.resources.iter().any(is_for_resource)
}

/// Creates the result of a check for which it is unknown whether match conditions exclude `what`.
pub(super) fn unclear(what: &str, why: &str) -> Skipped {
    Skipped::unequipped(format!("admit cannot determine whether matchConditions exclude {what}: {why}"))
}
