//! Explains to users why a webhook is not called.

use kubernetes_types::selector::{Labels, Selector};
use serde_json::{Value, json};

use super::rules::{self, Field};
use super::selectors;
use crate::attributes::Attributes;
use crate::config::{MatchPolicy, Rule, Scope, Webhook};
use crate::event::Mismatch;

/// Describes why a webhook does not match: one line for a selector, or one line for each rule.
///
/// `attributes` must contain the object at the time of the decision. `namespace` is the stored namespace of the
/// request, if it exists.
pub fn explain(
    webhook: &Webhook,
    attributes: &Attributes,
    namespace: Option<&Value>,
    mismatch: &Mismatch,
) -> Vec<String> {
    match mismatch {
        Mismatch::NamespaceSelector => {
            unmet_namespace_selector(&webhook.namespace_selector, attributes, namespace)
        }
        Mismatch::ObjectSelector => unmet_object_selector(&webhook.object_selector, attributes),
        Mismatch::Rules => unmatched_rules(webhook, attributes)
            .map(|(index, _, mismatch)| format!("rules[{index}].{mismatch}"))
            .collect(),
        Mismatch::Exempt => {
            vec![format!("{} are exempt, whatever the rules say", attributes.resource.group_resource())]
        }
        // The record contains the values of the conditions.
        Mismatch::Conditions | Mismatch::NotReinvoked => Vec::new(),
    }
}

/// Describes the criteria after `mismatch` that do not match, either, in the same form as [`explain`].
///
/// The dispatcher stops at the first criterion: the `namespaceSelector`, the `objectSelector`, then the rules. An API group,
/// version, or resource that is not in a rule with the `matchPolicy` `Equivalent` is left out, because another version of
/// the resource could be.
pub fn explain_further(
    webhook: &Webhook,
    attributes: &Attributes,
    namespace: Option<&Value>,
    mismatch: &Mismatch,
) -> Vec<String> {
    let mut further = Vec::new();
    if *mismatch == Mismatch::NamespaceSelector
        && selectors::object(&webhook.object_selector, attributes).is_ok_and(|matches| !matches)
    {
        further.extend(unmet_object_selector(&webhook.object_selector, attributes));
    }
    let is_certain = |rule: &Rule| {
        let mut fields = rules::mismatches(rule, super::request(attributes, &attributes.resource));
        fields
            .next()
            .is_some_and(|field| webhook.match_policy == MatchPolicy::Exact || !may_be_equivalent(field))
    };
    if matches!(mismatch, Mismatch::NamespaceSelector | Mismatch::ObjectSelector)
        && webhook.rules.iter().all(is_certain)
    {
        further.extend(explain(webhook, attributes, namespace, &Mismatch::Rules));
    }
    further
}

/// Returns the rules that do not match a request, each with its index and the fields that do not match.
///
/// The description begins with the name of the field: `resources has ["pods"], …`.
pub fn unmatched_rules<'a>(
    webhook: &'a Webhook,
    attributes: &'a Attributes,
) -> impl Iterator<Item = (usize, &'a Rule, String)> {
    webhook.rules.iter().enumerate().filter_map(|(index, rule)| {
        let mismatch = rule_mismatch(rule, attributes, webhook.match_policy)?;
        Some((index, rule, mismatch))
    })
}

/// Describes the first requirement of a namespace selector that the labels of the namespace do not meet.
pub(crate) fn unmet_namespace_selector(
    namespace_selector: &Selector,
    attributes: &Attributes,
    namespace: Option<&Value>,
) -> Vec<String> {
    let own = attributes.object.as_ref().filter(|_| selectors::uses_new_labels(attributes));
    let Some(namespace) = own.or(namespace) else { return Vec::new() };
    let what = format!("the namespace {}", Value::from(attributes.namespace.as_str()));
    let refused = namespace_selector.refused_by(Labels::from_object(namespace).unwrap_or_default());
    selector("namespaceSelector", refused, &what, namespace)
}

/// Describes, for the new and the old object, the first requirement of an object selector that its labels do not meet.
pub(crate) fn unmet_object_selector(object_selector: &Selector, attributes: &Attributes) -> Vec<String> {
    [("object", &attributes.object), ("old object", &attributes.old_object)]
        .into_iter()
        .filter_map(|(what, object)| Some((what, object.as_ref()?)))
        .flat_map(|(what, object)| {
            // The object of a request to a subresource may have another kind, such as Eviction.
            let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
            let what = &match &*attributes.subresource {
                "" => format!("the {what}"),
                _ if kind.is_empty() || kind == attributes.kind.kind => format!("the {what}"),
                _ => format!("the {what}, which is {kind} and not {},", attributes.kind.kind),
            };
            let refused = object_selector.refused_by(Labels::from_object(object).unwrap_or_default());
            selector("objectSelector", refused, what, object)
        })
        .collect()
}

/// Describes the fields of a rule that do not match the request, such as `scope is Cluster, …`.
///
/// With the `matchPolicy` `Equivalent`, another version of the resource can match a rule with another API group or version,
/// so these are described only if operation and scope match.
pub(crate) fn rule_mismatch(rule: &Rule, attributes: &Attributes, policy: MatchPolicy) -> Option<String> {
    let fields: Vec<Field> =
        rules::mismatches(rule, super::request(attributes, &attributes.resource)).collect();
    let first = *fields.first()?;
    let may_match = |field: Field| {
        policy == MatchPolicy::Equivalent
            && !may_be_equivalent(first)
            && matches!(field, Field::ApiGroups | Field::ApiVersions)
    };
    let described = fields.into_iter().filter(|field| !may_match(*field));
    let described: Vec<String> = described.map(|field| refusal(rule, field, attributes, policy)).collect();
    Some(described.join("; "))
}

/// Returns whether another version of the resource may match a field that the requested version does not match.
fn may_be_equivalent(field: Field) -> bool {
    !matches!(field, Field::Scope | Field::Operations)
}

fn selector(field: &str, refused: Option<String>, what: &str, object: &Value) -> Vec<String> {
    let labels = object.pointer("/metadata/labels").and_then(Value::as_object);
    let labels = match labels.filter(|labels| !labels.is_empty()) {
        Some(labels) => format!("has the labels {}", json!(labels)),
        None => "has no labels".to_owned(),
    };
    refused
        .map(|requirement| format!("{field} requires {requirement}; {what} {labels}"))
        .into_iter()
        .collect()
}

fn refusal(rule: &Rule, field: Field, attributes: &Attributes, policy: MatchPolicy) -> String {
    let resource = &attributes.resource;
    let list = |name: &str, entries: &[String], found: &str| {
        format!("{name} has {}, but the request has {}", json!(entries), json!(found))
    };
    let exact = match policy {
        MatchPolicy::Exact => " (matchPolicy is Exact)",
        MatchPolicy::Equivalent => "",
    };
    match field {
        Field::Scope => {
            let scope = match rule.scope {
                Scope::All => "*",
                Scope::Cluster => "Cluster",
                Scope::Namespaced => "Namespaced",
            };
            let found = if attributes.namespace.is_empty() { "cluster-scoped" } else { "in a namespace" };
            format!("scope is {scope}, the object is {found}")
        }
        Field::Operations => list("operations", &rule.operations, attributes.operation.as_str()),
        Field::ApiGroups => list("apiGroups", &rule.api_groups, &resource.group) + exact,
        Field::ApiVersions => list("apiVersions", &rule.api_versions, &resource.version) + exact,
        Field::Resources => {
            let found = match attributes.subresource.as_str() {
                "" => resource.resource.clone(),
                subresource => format!("{}/{subresource}", resource.resource),
            };
            list("resources", &rule.resources, &found)
        }
    }
}

#[cfg(test)]
mod tests {
    use kubernetes_types::selector::Selector;

    use super::*;
    use crate::attributes::Operation;
    use crate::testing::{create_config_map, webhook};

    #[track_caller]
    fn check(webhook: &Webhook, mismatch: &Mismatch, expected: &[&str]) {
        let namespace = json!({"metadata": {"name": "ns", "labels": {"tier": "bronze"}}});
        assert_eq!(explain(webhook, &create_config_map(), Some(&namespace), mismatch), expected);
    }

    #[test]
    fn criteria_after_the_first_mismatch_are_explained() {
        let mut webhook = webhook("w");
        webhook.namespace_selector = Selector::parse(&json!({"matchLabels": {"tier": "gold"}})).unwrap();
        webhook.object_selector = Selector::parse(&json!({"matchLabels": {"app": "web"}})).unwrap();
        webhook.rules[0].operations = vec!["CREATE".to_owned()];
        let mut attributes = create_config_map();
        attributes.operation = Operation::Delete;
        let further = |webhook: &Webhook, mismatch| explain_further(webhook, &attributes, None, &mismatch);
        let labels = "objectSelector requires app=web; the object has no labels";
        let operations = r#"rules[0].operations has ["CREATE"], but the request has "DELETE""#;
        assert_eq!(further(&webhook, Mismatch::NamespaceSelector), [labels, operations]);
        assert_eq!(further(&webhook, Mismatch::ObjectSelector), [operations]);
        assert_eq!(further(&webhook, Mismatch::Rules), [""; 0]);
        webhook.object_selector = Selector::default();
        webhook.rules[0].operations = vec!["*".to_owned()];
        webhook.rules[0].resources = vec!["pods".to_owned()];
        assert_eq!(further(&webhook, Mismatch::NamespaceSelector), [""; 0]);
        webhook.match_policy = MatchPolicy::Exact;
        let resources = r#"rules[0].resources has ["pods"], but the request has "configmaps""#;
        assert_eq!(further(&webhook, Mismatch::NamespaceSelector), [resources]);
    }

    #[test]
    fn a_selector_explains_its_first_unmet_requirement() {
        let mut webhook = webhook("w");
        webhook.namespace_selector = Selector::parse(&json!({"matchExpressions": [
            {"key": "tier", "operator": "Exists"},
            {"key": "tier", "operator": "In", "values": ["gold", "silver"]},
        ]}))
        .unwrap();
        webhook.object_selector = Selector::parse(&json!({"matchLabels": {"app": "web"}})).unwrap();
        let expected = r#"namespaceSelector requires tier in (gold,silver); the namespace "ns" has the labels {"tier":"bronze"}"#;
        check(&webhook, &Mismatch::NamespaceSelector, &[expected]);
        let expected = "objectSelector requires app=web; the object has no labels";
        check(&webhook, &Mismatch::ObjectSelector, &[expected]);
    }

    #[test]
    fn labels_in_a_write_of_the_status_of_a_namespace_do_not_count() {
        let mut webhook = webhook("w");
        webhook.namespace_selector = Selector::parse(&json!({"matchLabels": {"tier": "gold"}})).unwrap();
        let stored = json!({"metadata": {"name": "ns", "labels": {"tier": "bronze"}}});
        let mut attributes = create_config_map();
        attributes.resource.resource = "namespaces".into();
        attributes.operation = Operation::Update;
        attributes.object = Some(json!({"metadata": {"name": "ns", "labels": {"tier": "silver"}}}));
        let expect = |attributes: &Attributes, tier: &str| {
            let labels = format!(
                r#"namespaceSelector requires tier=gold; the namespace "ns" has the labels {{"tier":"{tier}"}}"#
            );
            assert_eq!(explain(&webhook, attributes, Some(&stored), &Mismatch::NamespaceSelector), [labels]);
        };
        expect(&attributes, "silver");
        attributes.subresource = "status".into();
        expect(&attributes, "bronze");
    }

    #[test]
    fn every_rule_explains_the_fields_that_do_not_match() {
        let mut webhook = webhook("w");
        let rule = webhook.rules.remove(0);
        let list = |entry: &str| vec![entry.to_owned()];
        webhook.match_policy = MatchPolicy::Exact;
        webhook.rules = vec![
            Rule { scope: Scope::Cluster, operations: list("DELETE"), ..rule.clone() },
            Rule { operations: list("DELETE"), ..rule.clone() },
            Rule { api_groups: list("apps"), ..rule.clone() },
            Rule { resources: list("pods"), ..rule.clone() },
        ];
        check(
            &webhook,
            &Mismatch::Rules,
            &[
                r#"rules[0].scope is Cluster, the object is in a namespace; operations has ["DELETE"], but the request has "CREATE""#,
                r#"rules[1].operations has ["DELETE"], but the request has "CREATE""#,
                r#"rules[2].apiGroups has ["apps"], but the request has "" (matchPolicy is Exact)"#,
                r#"rules[3].resources has ["pods"], but the request has "configmaps""#,
            ],
        );
        // Another version of the resource may match the group, but not the operation.
        let rule =
            Rule { operations: list("DELETE"), api_groups: list("apps"), resources: list("pods"), ..rule };
        webhook.match_policy = MatchPolicy::Equivalent;
        webhook.rules = vec![rule];
        let expected = r#"rules[0].operations has ["DELETE"], but the request has "CREATE"; resources has ["pods"], but the request has "configmaps""#;
        check(&webhook, &Mismatch::Rules, &[expected]);
    }
}
