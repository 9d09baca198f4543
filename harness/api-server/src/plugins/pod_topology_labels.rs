//! `PodTopologyLabels`: copies the topology labels of the Node to Bindings and to Pods with a node.

use std::sync::Arc;

use kubernetes_admission::attributes::{Attributes, Operation};
use kubernetes_admission::plugin::Plugin;
use kubernetes_types::json::{at, text};
use kubernetes_types::status::Status;
use serde_json::{Map, Value};

use crate::apimachinery::metadata;
use crate::storage::ObjectReader;

const LABELS: [&str; 2] = ["topology.kubernetes.io/zone", "topology.kubernetes.io/region"];

/// Sets the zone and the region of the Node as labels of a new Pod or of a Binding of a Pod.
///
/// Source: kubernetes plugin/pkg/admission/podtopologylabels/admission.go.
pub(crate) struct PodTopologyLabels {
    objects: Arc<dyn ObjectReader>,
}

impl PodTopologyLabels {
    /// Creates the plugin with a reader for the objects of the server.
    pub(crate) fn new(objects: Arc<dyn ObjectReader>) -> Self {
        Self { objects }
    }
}

impl Plugin for PodTopologyLabels {
    fn name(&self) -> &'static str {
        "PodTopologyLabels"
    }

    fn admit(&self, attributes: &mut Attributes) -> Result<(), Box<Status>> {
        let is_of_pods =
            attributes.operation == Operation::Create && attributes.resource.group_resource() == "pods";
        let (true, Some(object)) = (is_of_pods, attributes.object.as_mut()) else { return Ok(()) };
        let name = match attributes.subresource.as_str() {
            "" => text(object, &["spec", "nodeName"]),
            "binding" if text(object, &["target", "kind"]) == "Node" => text(object, &["target", "name"]),
            _ => "",
        };
        if name.is_empty() {
            return Ok(());
        }
        let Some(node) = self.objects.get("", "nodes", "", name) else { return Ok(()) };
        let copied = LABELS.iter().filter_map(|label| {
            let value = at(&node, &["metadata", "labels", label]);
            (!value.is_null()).then(|| ((*label).to_owned(), value.clone()))
        });
        let copied: Map<String, Value> = copied.collect();
        if !copied.is_empty() {
            let mut labels = at(object, &["metadata", "labels"]).as_object().cloned().unwrap_or_default();
            labels.extend(copied);
            metadata::set(object, "labels", labels.into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::{Stored, request};
    use super::*;

    #[track_caller]
    fn check(subresource: &str, object: Value, expected: &Value) {
        let labels = json!({"topology.kubernetes.io/zone": "z", "other": "o"});
        let node = json!({"metadata": {"name": "n", "labels": labels}});
        let plugin = PodTopologyLabels::new(Arc::new(Stored(vec![("nodes", node)])));
        let mut attributes = request(Operation::Create, "pods", "Pod", object);
        subresource.clone_into(&mut attributes.subresource);
        plugin.admit(&mut attributes).unwrap();
        assert_eq!(attributes.object.unwrap()["metadata"]["labels"], *expected);
    }

    #[test]
    fn labels_of_the_node_are_copied() {
        let zone = json!({"a": "b", "topology.kubernetes.io/zone": "z"});
        let metadata = json!({"name": "p", "labels": {"a": "b", "topology.kubernetes.io/zone": "other"}});
        check("", json!({"metadata": metadata, "spec": {"nodeName": "n"}}), &zone);
        check("binding", json!({"metadata": metadata, "target": {"kind": "Node", "name": "n"}}), &zone);
        check("binding", json!({"metadata": metadata, "target": {"name": "n"}}), &metadata["labels"]);
        check("", json!({"metadata": metadata, "spec": {"nodeName": "m"}}), &metadata["labels"]);
        check("", json!({"metadata": metadata, "spec": {}}), &metadata["labels"]);
    }
}
