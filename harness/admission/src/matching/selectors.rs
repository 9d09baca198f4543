//! Matches the namespace and object selectors of webhooks and policies.

use kubernetes_types::selector::{Labels, Selector};
use kubernetes_types::status::Status;

use crate::attributes::{Attributes, Operation};
use crate::cluster_state::ClusterState;

/// Returns whether the namespace selector matches, or an error for the client that applies only if the rules match.
///
/// Cluster-scoped objects always match, unless they are Namespaces.
///
/// Source: apiserver pkg/admission/plugin/webhook/predicates/namespace/matcher.go, `MatchNamespaceSelector` and
/// `GetNamespaceLabels`.
/// Rule: SEL-20, SEL-21, SEL-22, SEL-23, SEL-24.
pub(crate) fn namespace(
    selector: &Selector,
    attributes: &Attributes,
    state: &dyn ClusterState,
) -> Result<bool, Box<Status>> {
    if attributes.namespace.is_empty() && attributes.resource.resource != "namespaces" {
        return Ok(true);
    }
    if selector.is_empty() {
        return Ok(true);
    }
    can_be_evaluated(selector)?;
    if uses_new_labels(attributes) {
        let labels = attributes.object.as_ref().and_then(Labels::from_object).ok_or_else(|| {
            Box::new(Status::internal_error("object does not implement the Object interfaces"))
        })?;
        return Ok(selector.matches(labels));
    }
    let namespace = state
        .namespace(&attributes.namespace)
        .ok_or_else(|| Box::new(Status::not_found("", "namespaces", &attributes.namespace)))?;
    Ok(selector.matches(Labels::from_object(&namespace).unwrap_or_default()))
}

/// Returns whether the namespace selector uses the labels in the request instead of the stored labels.
///
/// This applies to a Namespace that is created or updated.
pub(super) fn uses_new_labels(attributes: &Attributes) -> bool {
    attributes.resource.resource == "namespaces"
        && attributes.subresource.is_empty()
        && matches!(attributes.operation, Operation::Create | Operation::Update)
}

/// Returns whether the object selector matches the new or the old object.
///
/// Returns an error for the client that applies only if the rules match.
///
/// Source: apiserver pkg/admission/plugin/webhook/predicates/object/matcher.go, `MatchObjectSelector`.
/// Rule: SEL-21, SEL-30, SEL-31.
pub(crate) fn object(selector: &Selector, attributes: &Attributes) -> Result<bool, Box<Status>> {
    can_be_evaluated(selector)?;
    let objects = [&attributes.object, &attributes.old_object].into_iter().flatten();
    let mut labels = objects.filter_map(Labels::from_object);
    Ok(selector.is_empty() || labels.any(|labels| selector.matches(labels)))
}

fn can_be_evaluated(selector: &Selector) -> Result<(), Box<Status>> {
    selector.error().map_or(Ok(()), |error| Err(Box::new(Status::internal_error(error))))
}
