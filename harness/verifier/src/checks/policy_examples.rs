//! Evaluates admission policies for small objects of the built-in kinds.

use std::sync::Arc;

use kubernetes_admission::attributes::{Attributes, GroupVersionKind};
use kubernetes_admission::policies::mutate_by;
use kubernetes_admission::policy::{Definition, MutatingPolicy, PolicyRecord, PolicyRun};
use kubernetes_api_server::ClusterFixture;
use serde_json::Value;

use super::match_conditions::requests;
use super::match_outcome::user;
use crate::corpus;
use crate::policies::GROUP;

/// Returns requests that create and update small objects, with and without labels and annotations.
pub(super) fn example_requests(cluster_fixture: &ClusterFixture) -> impl Iterator<Item = Attributes> {
    corpus::examples(cluster_fixture).flat_map(|object| requests(&object, cluster_fixture))
}

/// Returns requests that create the objects of manifests, without policies and configurations.
pub(super) fn own_requests(
    objects: &[Value],
    cluster_fixture: &ClusterFixture,
) -> impl Iterator<Item = Attributes> {
    let objects = objects.iter().filter(|object| GroupVersionKind::from_object(object).group != GROUP);
    objects.filter_map(|object| cluster_fixture.create(object.clone(), "default", user("jane", &[])).ok())
}

/// Returns a policy whose expressions see `params` as null, so that it can be applied without a param.
pub(super) fn without_params(policy: &MutatingPolicy) -> Arc<MutatingPolicy> {
    let definition = Definition { param_kind: None, ..policy.definition.clone() };
    Arc::new(MutatingPolicy { definition, ..policy.clone() })
}

/// Applies a policy, and returns the result and the changed request.
///
/// Returns `None` if the policy does not match the request.
pub(super) fn mutated(
    policy: &Arc<MutatingPolicy>,
    request: Attributes,
    cluster_fixture: &ClusterFixture,
) -> Option<(PolicyRun, Attributes)> {
    let mut run = cluster_fixture.evaluation(request);
    let record = single_run(mutate_by(policy, None, &mut run)?)?;
    record.invoked.then(|| (record, run.attributes().clone()))
}

/// Returns the evaluation of a policy for its only binding.
pub(super) fn single_run(record: PolicyRecord) -> Option<PolicyRun> {
    record.bindings.into_iter().next()?.runs.into_iter().next()
}
