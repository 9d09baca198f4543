//! Builds requests that a webhook outage blocks, for the proofs of findings about configurations.

use kubernetes_admission::admission_run::AdmissionRun;
use kubernetes_admission::attributes::{
    Attributes, GroupVersionKind, GroupVersionResource, Operation, UserInfo,
};
use kubernetes_admission::cluster_state::ClusterState as _;
use kubernetes_admission::config::Webhook;
use kubernetes_admission::matching;
use kubernetes_admission::ownership::TimePrecision;
use kubernetes_api_server::ClusterFixture;
use kubernetes_types::json::set;
use serde_json::json;

use super::backend::Needed;
use super::match_outcome::{LabelSet, Labeled};
use crate::corpus;
use crate::sample_request::SampleRequest;

/// Returns a cluster administrator's request for which `webhook` is called while it is down.
///
/// If `namespace` is empty, the object of the request is cluster-scoped. Otherwise it is in `namespace`, and the
/// namespace has only its name label. Returns `None` if the corpus does not contain such an object, or if the webhook
/// is not called for it.
pub(super) fn request(
    webhook: &Webhook,
    needed: Needed,
    namespace: &str,
    cluster_fixture: &ClusterFixture,
) -> Option<SampleRequest> {
    let requests = requests(needed, namespace, &[], cluster_fixture)?;
    let state = Labeled { cluster_fixture, namespace, labels: &LabelSet::new(), is_bare: true };
    let request = requests.into_iter().find(|request| is_called(webhook, request, &state))?;
    Some(SampleRequest::while_down(webhook, request, true).about_its_namespace())
}

/// Returns two requests that differ only in the labels of the object.
///
/// `webhook` is down. It is called for the labels `picked` but not for `others`. Returns `None` if the corpus does not
/// contain a suitable object.
pub(super) fn by_labels(
    webhook: &Webhook,
    picked: &[(String, String)],
    others: &[(String, String)],
    cluster_fixture: &ClusterFixture,
) -> Option<[SampleRequest; 2]> {
    let resources = cluster_fixture.resources();
    resources.iter().filter(|resource| resource.namespaced).find_map(|resource| {
        let (name, kind) = (&resource.name, &resource.kind);
        let needed = (&*name.group, &*name.version, &*name.resource, &*kind.kind);
        let called = requests(needed, corpus::NAMESPACE, picked, cluster_fixture)?;
        let missed = requests(needed, corpus::NAMESPACE, others, cluster_fixture)?;
        let mut pairs = called.into_iter().zip(missed);
        let (namespace, labels) = (corpus::NAMESPACE, LabelSet::new());
        let state = Labeled { cluster_fixture, namespace, labels: &labels, is_bare: false };
        let (called, missed) = pairs.find(|(called, missed)| {
            is_called(webhook, called, &state) && !is_called(webhook, missed, &state)
        })?;
        let shown = |request, is_called| SampleRequest::while_down(webhook, request, is_called);
        Some([shown(called, true), shown(missed, false)])
    })
}

/// Returns the creation and an update of an object of the corpus with the given labels.
fn requests(
    (group, version, resource, kind): (&str, &str, &str, &str),
    namespace: &str,
    labels: &[(String, String)],
    cluster_fixture: &ClusterFixture,
) -> Option<[Attributes; 2]> {
    let mut object = corpus::example(&GroupVersionKind::new(group, version, kind), cluster_fixture)?;
    if !namespace.is_empty() {
        set(&mut object, &["metadata", "namespace"], namespace);
    }
    for (label, value) in labels {
        set(&mut object, &["metadata", "labels", label], value.as_str());
    }
    let groups = ["system:masters", "system:authenticated"].map(str::to_owned).to_vec();
    let user = UserInfo { username: "admin".to_owned(), groups, ..UserInfo::default() };
    let created = cluster_fixture.create(object, namespace, user).ok()?;
    if created.resource != GroupVersionResource::new(group, version, resource) {
        return None;
    }
    let options = json!({"kind": "UpdateOptions", "apiVersion": "meta.k8s.io/v1"});
    let updated = Attributes {
        operation: Operation::Update,
        old_object: created.object.clone(),
        options: Some(options),
        ..created.clone()
    };
    Some([created, updated])
}

fn is_called(webhook: &Webhook, request: &Attributes, state: &Labeled<'_>) -> bool {
    let times = TimePrecision::for_request(request, state.is_built_in(&request.kind));
    let run = AdmissionRun::new(request.clone(), times, state);
    matching::is_called(webhook, &mut run.with_authorizer(state.cluster_fixture.authorizer()))
}
