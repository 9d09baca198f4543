//! `DefaultTolerationSeconds`: sets how long Pods tolerate a node that is not ready or unreachable.

use serde_json::{Map, Value, json};

use kubernetes_admission::attributes::{Attributes, Operation};
use kubernetes_admission::plugin::Plugin;
use kubernetes_types::status::Status;

/// Adds tolerations for not-ready and unreachable nodes, unless the Pod already tolerates these taints.
///
/// Source: kubernetes plugin/pkg/admission/defaulttolerationseconds/admission.go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "the plugin has two flags")]
pub struct DefaultTolerationSeconds {
    /// `--default-not-ready-toleration-seconds`: the default is five minutes.
    pub not_ready: i64,
    /// `--default-unreachable-toleration-seconds`: the default is five minutes.
    pub unreachable: i64,
}

impl Default for DefaultTolerationSeconds {
    fn default() -> Self {
        Self { not_ready: 300, unreachable: 300 }
    }
}

const TAINTS: [&str; 2] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];

impl Plugin for DefaultTolerationSeconds {
    fn name(&self) -> &'static str {
        "DefaultTolerationSeconds"
    }

    fn admit(&self, attributes: &mut Attributes) -> Result<(), Box<Status>> {
        let writes = matches!(attributes.operation, Operation::Create | Operation::Update);
        if writes
            && super::is_pod(attributes)
            && let Some(spec) = attributes.object.as_mut().and_then(super::spec)
        {
            self.give(spec);
        }
        Ok(())
    }
}

impl DefaultTolerationSeconds {
    fn give(self, spec: &mut Map<String, Value>) {
        let given = spec.get("tolerations").and_then(Value::as_array).cloned().unwrap_or_default();
        let text = |toleration: &Value, field: &str| {
            toleration.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let is_tolerated = |taint: &str| {
            given.iter().any(|toleration| {
                ["", taint].contains(&text(toleration, "key").as_str())
                    && ["", "NoExecute"].contains(&text(toleration, "effect").as_str())
            })
        };
        let added: Vec<Value> = TAINTS
            .into_iter()
            .zip([self.not_ready, self.unreachable])
            .filter(|(taint, _)| !is_tolerated(taint))
            .map(|(taint, seconds)| {
                json!({
                    "key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds,
                })
            })
            .collect();
        if !added.is_empty() {
            spec.insert("tolerations".to_owned(), given.into_iter().chain(added).collect());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(tolerations: &Value, keys: &[&str]) {
        let mut spec = Map::from_iter([("tolerations".to_owned(), tolerations.clone())]);
        DefaultTolerationSeconds::default().give(&mut spec);
        let found: Vec<&str> =
            spec["tolerations"].as_array().unwrap().iter().filter_map(|it| it["key"].as_str()).collect();
        assert_eq!(found, keys);
    }

    #[test]
    fn existing_tolerations_are_kept() {
        check(&json!([]), &TAINTS);
        check(&json!([{"key": TAINTS[0], "operator": "Exists"}]), &TAINTS);
        check(&json!([{"key": TAINTS[1], "effect": "NoSchedule"}]), &[TAINTS[1], TAINTS[0], TAINTS[1]]);
        check(&json!([{"key": "", "operator": "Exists"}]), &[""]);
    }
}
