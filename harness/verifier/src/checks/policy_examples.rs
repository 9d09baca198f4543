//! Evaluates admission policies for small objects of the built-in kinds.

use std::sync::Arc;

use kubernetes_admission::attributes::{Attributes, GroupVersionKind};
use kubernetes_admission::policies::mutate_by;
use kubernetes_admission::policy::{Definition, MutatingPolicy, PolicyRecord, PolicyRun};
use kubernetes_api_server::ClusterFixture;
use kubernetes_types::selector::Selector;
use serde_json::Value;

use super::match_conditions::{requests, required_labels};
use super::match_outcome::user;
use crate::corpus;
use crate::policies::{GROUP, PolicyObject};

/// Returns requests that create and update small objects, with and without labels and annotations.
///
/// All objects have the labels that `selector`, an objectSelector, requires.
pub(super) fn example_requests(
    selector: &Selector,
    cluster_fixture: &ClusterFixture,
) -> impl Iterator<Item = Attributes> {
    let labels = required_labels(selector);
    corpus::examples(cluster_fixture).flat_map(move |object| requests(&object, &labels, cluster_fixture))
}

/// Returns the definition of `object`, a policy, for examples, which are in a namespace without labels.
///
/// The policy matches every namespace, unless it reads `namespaceObject`: its expressions may read the labels that the
/// namespaceSelector requires.
pub(super) fn in_every_namespace(object: &PolicyObject, definition: &Definition) -> Definition {
    let mut definition = definition.clone();
    if !object.object.to_string().contains("namespaceObject") {
        definition.match_constraints.namespace_selector = Selector::default();
    }
    definition
}

/// Returns requests that create the objects of manifests, without policies and configurations.
pub(super) fn own_requests(
    objects: &[Value],
    cluster_fixture: &ClusterFixture,
) -> impl Iterator<Item = Attributes> {
    let objects = objects.iter().filter(|object| GroupVersionKind::from_object(object).group != GROUP);
    objects.filter_map(|object| cluster_fixture.create(object.clone(), "default", user("jane", &[])).ok())
}

/// Returns a policy for examples whose expressions see `params` as null, so that it can be applied without a param.
pub(super) fn without_params(object: &PolicyObject, policy: &MutatingPolicy) -> Arc<MutatingPolicy> {
    let definition = in_every_namespace(object, &policy.definition);
    let definition = Definition { param_kind: None, ..definition };
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
