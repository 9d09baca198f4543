//! `PodResizeValidator`: rejects resizes of Pods for which the Node does not have enough resources.

use std::sync::Arc;

use kubernetes_admission::attributes::{Attributes, Operation};
use kubernetes_admission::plugin::{Plugin, Remarks};
use kubernetes_types::json::{at, text};
use kubernetes_types::quantity::Quantity;
use kubernetes_types::status::{Status, StatusCause};
use serde_json::Value;

use super::forbidden;
use crate::kinds::core::pod::pod_resources;
use crate::storage::ObjectReader;

/// Rejects a resized Pod whose requests exceed the allocatable resources of the Node.
///
/// Source: kubernetes plugin/pkg/admission/podresize/admission.go.
pub(crate) struct PodResizeValidator {
    objects: Arc<dyn ObjectReader>,
}

impl PodResizeValidator {
    /// Creates the plugin with a reader for the objects of the server.
    pub(crate) fn new(objects: Arc<dyn ObjectReader>) -> Self {
        Self { objects }
    }
}

/// Returns the new and the old Pod of an update; `None` unless the Pod has a node and its generation changes.
pub(super) fn changed_pods(attributes: &Attributes) -> Option<(&Value, &Value)> {
    let (Some(pod), Some(old)) = (&attributes.object, &attributes.old_object) else { return None };
    let is_update =
        attributes.operation == Operation::Update && attributes.resource.group_resource() == "pods";
    let generation = |pod| at(pod, &["metadata", "generation"]).as_i64().unwrap_or(0);
    let is_changed = !text(pod, &["spec", "nodeName"]).is_empty() && generation(pod) != generation(old);
    (is_update && is_changed).then_some((pod, old))
}

impl Plugin for PodResizeValidator {
    fn name(&self) -> &'static str {
        "PodResizeValidator"
    }

    fn validate(&self, attributes: &Attributes, _remarks: &mut Remarks) -> Result<(), Box<Status>> {
        if attributes.subresource != "resize" {
            return Ok(());
        }
        let Some((pod, _)) = changed_pods(attributes) else { return Ok(()) };
        let name = text(pod, &["spec", "nodeName"]);
        let Some(node) = self.objects.get("", "nodes", "", name) else {
            return Err(forbidden(attributes, &format!("node \"{name}\" not found")));
        };
        let os = at(&node, &["metadata", "labels", "kubernetes.io/os"]);
        if let Some(os) = os.as_str().filter(|os| *os != "linux") {
            let why = format!("pod resize is only supported on linux nodes, node \"{name}\" is \"{os}\"");
            return Err(rejection(attributes, &why, "UnsupportedPlatform"));
        }
        let missing = missing_resources(pod, &node);
        if missing.is_empty() {
            return Ok(());
        }
        let why = format!("node didn't have enough allocatable resources: {}", missing.join("; "));
        Err(rejection(attributes, &why, "NodeCapacity"))
    }
}

/// Returns a message for each resource whose requests exceed the allocatable amount of the Node.
///
/// Source: kubernetes plugin/pkg/admission/podresize/admission.go, `validateRequestsWithinAllocatable`.
fn missing_resources(pod: &Value, node: &Value) -> Vec<String> {
    let requests = pod_resources::of_pod_with_overhead(pod);
    let allocatable = pod_resources::list(node.get("status"), "allocatable");
    let compared = [("cpu", Quantity::milli_value as fn(&Quantity) -> i64), ("memory", Quantity::value)];
    let missing = compared.into_iter().filter_map(|(name, number)| {
        let [requested, limit] =
            [&requests, &allocatable].map(|list| list.get(name).cloned().unwrap_or(Quantity::ZERO));
        (requested > limit).then(|| {
            let (requested, limit) = (number(&requested), number(&limit));
            format!("{name}, requested: {requested}, allocatable: {limit}")
        })
    });
    missing.collect()
}

fn rejection(attributes: &Attributes, why: &str, reason: &str) -> Box<Status> {
    let mut status = forbidden(attributes, why);
    let cause = StatusCause { reason: reason.to_owned(), ..StatusCause::default() };
    status.details.get_or_insert_default().causes.push(cause);
    status
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::{Stored, request};
    use super::*;

    fn message(node: &Value, requests: &Value) -> Option<String> {
        let pod = |generation: i64, requests: &Value| {
            json!({
                "metadata": {"name": "p", "generation": generation},
                "spec": {"nodeName": "n", "containers": [{"resources": {"requests": requests}}], "overhead": {"cpu": "1"}},
            })
        };
        let mut attributes = request(Operation::Update, "pods", "Pod", pod(2, requests));
        attributes.old_object = Some(pod(1, &json!({})));
        "resize".clone_into(&mut attributes.subresource);
        let plugin = PodResizeValidator::new(Arc::new(Stored(vec![("nodes", node.clone())])));
        plugin.validate(&attributes, &mut Remarks::default()).err().map(|status| status.message)
    }

    #[test]
    fn requests_have_to_fit_the_node() {
        let node = json!({
            "metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "2", "memory": "1Ki"}},
        });
        assert_eq!(message(&node, &json!({"cpu": "1", "memory": "1024"})), None);
        assert_eq!(
            message(&node, &json!({"cpu": "1001m", "memory": "1025"})).as_deref(),
            Some(
                "pods \"p\" is forbidden: node didn't have enough allocatable resources: cpu, requested: 2001, \
                 allocatable: 2000; memory, requested: 1025, allocatable: 1024"
            )
        );
    }

    #[test]
    fn node_has_to_run_linux() {
        let node = json!({"metadata": {"name": "n", "labels": {"kubernetes.io/os": "windows"}}});
        assert_eq!(
            message(&node, &json!({})).as_deref(),
            Some(
                "pods \"p\" is forbidden: pod resize is only supported on linux nodes, node \"n\" is \"windows\""
            )
        );
    }
}
