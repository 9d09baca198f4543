//! `TaintNodesByCondition`: prevents scheduling to a new Node until it is ready.

use serde_json::{Value, json};

use kubernetes_admission::attributes::{Attributes, Operation};
use kubernetes_admission::plugin::Plugin;
use kubernetes_types::status::Status;

/// Adds a taint to a new Node. The node controller removes the taint when the Node is ready.
///
/// Source: kubernetes plugin/pkg/admission/nodetaint/admission.go.
/// Rule: KND-02.
#[derive(Clone, Copy, Debug)]
pub struct TaintNodesByCondition;

const KEY: &str = "node.kubernetes.io/not-ready";
const EFFECT: &str = "NoSchedule";

impl Plugin for TaintNodesByCondition {
    fn name(&self) -> &'static str {
        "TaintNodesByCondition"
    }

    fn admit(&self, attributes: &mut Attributes) -> Result<(), Box<Status>> {
        let is_node = attributes.resource.group_resource() == "nodes" && attributes.subresource.is_empty();
        if is_node
            && attributes.operation == Operation::Create
            && let Some(spec) = attributes.object.as_mut().and_then(super::spec)
        {
            let taints = spec.entry("taints").or_insert(Value::Null);
            if taints.is_null() {
                *taints = json!([]);
            }
            // Validation rejects any other shape.
            if let Some(taints) = taints.as_array_mut()
                && !taints.iter().any(|taint| taint["key"] == KEY && taint["effect"] == EFFECT)
            {
                taints.push(json!({"key": KEY, "effect": EFFECT}));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::request;
    use super::*;

    #[track_caller]
    fn check(operation: Operation, spec: &Value, expected: &Value) {
        let object = json!({"metadata": {"name": "n"}, "spec": spec});
        let mut attributes = request(operation, "nodes", "Node", object);
        TaintNodesByCondition.admit(&mut attributes).unwrap();
        assert_eq!(attributes.object.unwrap()["spec"], *expected);
    }

    #[test]
    fn new_node_gets_the_not_ready_taint() {
        let own = json!({"key": KEY, "effect": EFFECT});
        let other = json!({"key": KEY, "effect": "NoExecute"});
        check(Operation::Create, &json!({}), &json!({"taints": [own]}));
        check(Operation::Create, &json!({"taints": [other]}), &json!({"taints": [other, own]}));
        let valued = json!({"key": KEY, "effect": EFFECT, "value": "v"});
        check(Operation::Create, &json!({"taints": [valued]}), &json!({"taints": [valued]}));
        check(Operation::Update, &json!({}), &json!({}));
    }
}
