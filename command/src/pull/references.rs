//! Finds the objects that webhooks and policies name: Services, and params of policies.

use std::collections::{BTreeMap, BTreeSet};

use harness::json::{at, text};
use serde_json::Value;

/// What the objects that were read refer to.
#[derive(Debug, Default)]
pub(super) struct References {
    /// The namespace and the name of each Service that an admission or conversion webhook names.
    pub(super) services: BTreeSet<(String, String)>,
    /// The `paramKind` of each policy, by its kind and name.
    param_kinds: BTreeMap<(String, String), ParamKind>,
    /// The kind and the name of the policy of each binding, with its `paramRef`.
    bindings: Vec<((String, String), Value)>,
}

/// A `paramKind`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ParamKind {
    pub(super) group: String,
    pub(super) version: String,
    pub(super) kind: String,
}

/// The params that a binding selects: one name, or all objects that match a selector.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ParamSelection {
    pub(super) kind: ParamKind,
    /// The namespace of the params; empty for the namespace of the request.
    pub(super) namespace: String,
    /// The name; empty if `label_selector` is used.
    pub(super) name: String,
    /// The label selector as a query parameter; empty selects all objects.
    pub(super) label_selector: String,
}

impl References {
    /// Records what `object` refers to.
    pub(super) fn add(&mut self, object: &Value) {
        let kind = text(object, &["kind"]);
        let name = text(object, &["metadata", "name"]).to_owned();
        match kind {
            "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => {
                for webhook in at(object, &["webhooks"]).as_array().into_iter().flatten() {
                    self.add_service(at(webhook, &["clientConfig", "service"]));
                }
            }
            "CustomResourceDefinition" => {
                self.add_service(at(object, &["spec", "conversion", "webhook", "clientConfig", "service"]));
            }
            "MutatingAdmissionPolicy" | "ValidatingAdmissionPolicy" => {
                let param = at(object, &["spec", "paramKind"]);
                let api_version = text(param, &["apiVersion"]);
                let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
                if !api_version.is_empty() {
                    let param_kind = ParamKind {
                        group: group.to_owned(),
                        version: version.to_owned(),
                        kind: text(param, &["kind"]).to_owned(),
                    };
                    self.param_kinds.insert((kind.to_owned(), name), param_kind);
                }
            }
            "MutatingAdmissionPolicyBinding" | "ValidatingAdmissionPolicyBinding" => {
                let policy_kind = kind.trim_end_matches("Binding").to_owned();
                let policy = text(object, &["spec", "policyName"]).to_owned();
                let param = at(object, &["spec", "paramRef"]);
                if param.is_object() {
                    self.bindings.push(((policy_kind, policy), param.clone()));
                }
            }
            _ => {}
        }
    }

    fn add_service(&mut self, service: &Value) {
        let (namespace, name) = (text(service, &["namespace"]), text(service, &["name"]));
        if !namespace.is_empty() && !name.is_empty() {
            self.services.insert((namespace.to_owned(), name.to_owned()));
        }
    }

    /// Returns the params that the bindings select, without duplicates.
    pub(super) fn params(&self) -> BTreeSet<ParamSelection> {
        let select = |(policy, param): &((String, String), Value)| {
            Some(ParamSelection {
                kind: self.param_kinds.get(policy)?.clone(),
                namespace: text(param, &["namespace"]).to_owned(),
                name: text(param, &["name"]).to_owned(),
                label_selector: label_selector(at(param, &["selector"])),
            })
        };
        self.bindings.iter().filter_map(select).collect()
    }
}

/// Formats a `LabelSelector` as the query parameter `labelSelector`.
fn label_selector(selector: &Value) -> String {
    let mut requirements = Vec::new();
    for (key, value) in at(selector, &["matchLabels"]).as_object().into_iter().flatten() {
        requirements.push(format!("{key}={}", value.as_str().unwrap_or_default()));
    }
    for expression in at(selector, &["matchExpressions"]).as_array().into_iter().flatten() {
        let key = text(expression, &["key"]);
        let values = at(expression, &["values"]).as_array().into_iter().flatten();
        let values: Vec<&str> = values.filter_map(Value::as_str).collect();
        let values = values.join(",");
        requirements.push(match text(expression, &["operator"]) {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "DoesNotExist" => format!("!{key}"),
            _ => key.to_owned(),
        });
    }
    requirements.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn selector_is_formatted_as_a_query_parameter() {
        let selector = json!({
            "matchLabels": {"team": "x"},
            "matchExpressions": [
                {"key": "a", "operator": "In", "values": ["1", "2"]},
                {"key": "b", "operator": "NotIn", "values": ["3"]},
                {"key": "c", "operator": "Exists"},
                {"key": "d", "operator": "DoesNotExist"},
            ],
        });
        assert_eq!(label_selector(&selector), "team=x,a in (1,2),b notin (3),c,!d");
        assert_eq!(label_selector(&json!({})), "");
    }

    #[test]
    fn params_belong_to_the_policy_of_the_same_kind() {
        let mut references = References::default();
        for kind in ["MutatingAdmissionPolicy", "ValidatingAdmissionPolicy"] {
            references.add(&json!({"kind": kind, "metadata": {"name": "p"}, "spec": {
                "paramKind": {"apiVersion": "example.com/v1", "kind": kind.replace("AdmissionPolicy", "")},
            }}));
        }
        references.add(
            &json!({"kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": "b"}, "spec": {
                "policyName": "p", "paramRef": {"name": "limits", "namespace": "shop"},
            }}),
        );
        let params: Vec<ParamSelection> = references.params().into_iter().collect();
        let kind = ParamKind {
            group: "example.com".to_owned(),
            version: "v1".to_owned(),
            kind: "Validating".to_owned(),
        };
        let (namespace, name) = ("shop".to_owned(), "limits".to_owned());
        assert_eq!(params, [ParamSelection { kind, namespace, name, label_selector: String::new() }]);
    }
}
