//! `NodeDeclaredFeatureValidator`: rejects updates of Pods that need a feature that the Node does not declare.

use std::sync::Arc;

use kubernetes_admission::attributes::{Attributes, GroupVersionKind};
use kubernetes_admission::plugin::{Plugin, Remarks};
use kubernetes_types::equality::same;
use kubernetes_types::json::{at, text};
use kubernetes_types::schema::Type;
use kubernetes_types::status::Status;
use serde_json::Value;

use super::forbidden;
use super::pod_resize_validator::changed_pods;
use crate::storage::ObjectReader;

/// Rejects an update of a Pod that needs a feature that is not in the status of the Node.
///
/// Source: kubernetes plugin/pkg/admission/nodedeclaredfeatures/admission.go.
pub(crate) struct NodeDeclaredFeatureValidator {
    objects: Arc<dyn ObjectReader>,
}

impl NodeDeclaredFeatureValidator {
    /// Creates the plugin with a reader for the objects of the server.
    pub(crate) fn new(objects: Arc<dyn ObjectReader>) -> Self {
        Self { objects }
    }
}

impl Plugin for NodeDeclaredFeatureValidator {
    fn name(&self) -> &'static str {
        "NodeDeclaredFeatureValidator"
    }

    fn validate(&self, attributes: &Attributes, _remarks: &mut Remarks) -> Result<(), Box<Status>> {
        if !["", "resize"].contains(&attributes.subresource.as_str()) {
            return Ok(());
        }
        let Some((pod, old)) = changed_pods(attributes) else { return Ok(()) };
        let mut needed = needed_features(pod, old);
        if needed.is_empty() {
            return Ok(());
        }
        let name = text(pod, &["spec", "nodeName"]);
        let Some(node) = self.objects.get("", "nodes", "", name) else {
            return Err(forbidden(attributes, &format!("node \"{name}\" not found")));
        };
        let declared = at(&node, &["status", "declaredFeatures"]).as_array();
        let is_declared = |feature: &str| declared.is_some_and(|all| all.iter().any(|one| one == feature));
        needed.retain(|feature| !is_declared(feature));
        if needed.is_empty() {
            return Ok(());
        }
        let features = needed.join(", ");
        let why =
            format!("pod update requires features {features} which are not available on node \"{name}\"");
        Err(forbidden(attributes, &why))
    }
}

/// Returns the features that an update needs, in upstream's order.
///
/// Source: component-helpers `nodedeclaredfeatures/features/inplacepodresize`, `InferForUpdate`; the other features do not
/// concern updates, or need a feature gate that is off by default.
fn needed_features(pod: &Value, old: &Value) -> Vec<&'static str> {
    let of = Type::for_kind(&GroupVersionKind::new("", "v1", "Pod")).member("spec");
    let mut needed = Vec::new();
    let resources = |pod| at(pod, &["spec", "resources"]);
    if !same(resources(pod), resources(old), of.member("resources")) {
        needed.push("InPlacePodLevelResourcesVerticalScaling");
    }
    let containers = |pod| at(pod, &["spec", "initContainers"]).as_array();
    let of = of.member("initContainers").item().member("resources");
    let mut pairs = containers(old).into_iter().flatten().zip(containers(pod).into_iter().flatten());
    if pairs.any(|(before, now)| {
        let of_container = |container| at(container, &["resources"]);
        text(before, &["restartPolicy"]) != "Always" && !same(of_container(before), of_container(now), of)
    }) {
        needed.push("InPlacePodVerticalScalingInitContainers");
    }
    needed
}

#[cfg(test)]
mod tests {
    use kubernetes_admission::attributes::Operation;
    use serde_json::json;

    use super::super::tests::{Stored, request};
    use super::*;

    #[test]
    fn node_has_to_declare_the_features_of_a_resize() {
        let pod = |generation: i64, cpu: &str| {
            let resources = json!({"requests": {"cpu": cpu}});
            json!({
                "metadata": {"name": "p", "generation": generation},
                "spec": {"nodeName": "n", "resources": resources, "initContainers": [{"resources": resources}]},
            })
        };
        let check = |declared: Value, cpu: &str| {
            let node = json!({"metadata": {"name": "n"}, "status": {"declaredFeatures": declared}});
            let mut attributes = request(Operation::Update, "pods", "Pod", pod(2, cpu));
            attributes.old_object = Some(pod(1, "1"));
            "resize".clone_into(&mut attributes.subresource);
            let plugin = NodeDeclaredFeatureValidator::new(Arc::new(Stored(vec![("nodes", node)])));
            plugin.validate(&attributes, &mut Remarks::default()).err().map(|status| status.message)
        };
        let pod_level = "InPlacePodLevelResourcesVerticalScaling";
        let of_init_containers = "InPlacePodVerticalScalingInitContainers";
        assert_eq!(check(json!([pod_level, of_init_containers]), "2"), None);
        assert_eq!(check(json!([]), "1000m"), None);
        assert_eq!(
            check(json!([pod_level]), "2").unwrap(),
            "pods \"p\" is forbidden: pod update requires features InPlacePodVerticalScalingInitContainers which are \
             not available on node \"n\""
        );
        assert!(check(json!([]), "2").unwrap().contains(
            "InPlacePodLevelResourcesVerticalScaling, InPlacePodVerticalScalingInitContainers which"
        ));
    }
}
