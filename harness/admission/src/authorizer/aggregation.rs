//! Collects the rules of aggregated `ClusterRole`s from other `ClusterRole`s.

use std::sync::Arc;

use serde_json::Value;

use kubernetes_types::selector::{Labels, Selector};

/// Returns the rules that an aggregated `ClusterRole` collects from `all`, sorted by the names of the roles.
///
/// Returns `None` if the role does not have an `aggregationRule`, or if one of its selectors is invalid.
///
/// Source: kubernetes `pkg/controller/clusterroleaggregation/clusterroleaggregation_controller.go`, `syncClusterRole`.
pub fn aggregated_rules(role: &Value, all: &[Arc<Value>]) -> Option<Vec<Value>> {
    let selectors = role.get("aggregationRule")?.get("clusterRoleSelectors").and_then(Value::as_array);
    let name = role.pointer("/metadata/name");
    let mut rules: Vec<Value> = Vec::new();
    for selector in selectors.into_iter().flatten() {
        let selector = Selector::parse(selector).ok()?;
        let selected = all.iter().filter(|other| {
            other.pointer("/metadata/name") != name
                && selector.matches(Labels::from_object(other).unwrap_or_default())
        });
        for other in selected {
            for rule in other.get("rules").and_then(Value::as_array).into_iter().flatten() {
                if !rules.contains(rule) {
                    rules.push(rule.clone());
                }
            }
        }
    }
    Some(rules)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn role(name: &str, label: &str, verbs: &[&str]) -> Arc<Value> {
        let rules: Vec<Value> = verbs.iter().map(|verb| json!({"verbs": [verb]})).collect();
        Arc::new(json!({"metadata": {"name": name, "labels": {label: "true"}}, "rules": rules}))
    }

    #[test]
    fn aggregated_rules_are_sorted_by_role_name_without_duplicates() {
        let gathering = json!({
            "metadata": {"name": "b", "labels": {"x": "true"}},
            "aggregationRule": {"clusterRoleSelectors": [
                {"matchLabels": {"y": "true"}}, {"matchLabels": {"x": "true"}},
            ]},
            "rules": [{"verbs": ["own"]}],
        });
        let all = [
            role("a", "x", &["1", "2"]),
            Arc::new(gathering.clone()),
            role("c", "y", &["3", "2"]),
            role("d", "z", &["4"]),
            role("e", "x", &["1", "5"]),
        ];
        let expected: Vec<Value> = ["3", "2", "1", "5"].iter().map(|verb| json!({"verbs": [verb]})).collect();
        assert_eq!(aggregated_rules(&gathering, &all), Some(expected));
        assert_eq!(aggregated_rules(&all[0], &all), None);
    }
}
