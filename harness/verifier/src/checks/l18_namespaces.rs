//! L18: a namespaceSelector selects a Namespace in the manifests.

use std::collections::BTreeMap;

use kubernetes_types::json::{at, text};
use serde_json::Value;

use crate::check::{Audience, Check, Defect, Probe, Repeatability, Severity, Violation};
use crate::manifests::{About, Manifests};
use crate::policies::is_policy_object;
use crate::similar_name::most_similar;

pub(super) const CHECK: Check = Check {
    id: "L18",
    title: "namespace labels: a label that a namespaceSelector requires is a label of a Namespace in the manifests",
    severity: Severity::Warning,
    why: "The API server accepts every label in a selector. A webhook or policy whose namespaceSelector requires a \
          misspelled label applies to no object in a namespace, and no error is reported. The check reports a \
          required label that no Namespace in the manifests has if a Namespace has a similar label, or the same \
          label with another value.",
    help: "Correct the label in the selector or in the Namespace.",
    source: "Dynamic Admission Control, Matching requests: namespaceSelector",
    audience: Audience::AllAndPolicies,
    repeatability: Repeatability::Same,
    probe: Probe::Manifests(About::Namespaces, run),
};

/// The label that the API server sets. A selector may name Namespaces that are not in the manifests.
pub(super) const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// A label of a Namespace.
#[derive(Clone, Copy)]
struct Label<'a> {
    key: &'a str,
    value: &'a str,
    namespace: &'a str,
}

/// A label that a selector requires, with one of `values`, or with any value if `values` is empty.
struct Requirement<'a> {
    key: &'a str,
    values: Vec<&'a str>,
}

fn run(manifests: &Manifests<'_>) -> Vec<Defect> {
    let namespaces = manifests
        .objects
        .iter()
        .filter(|object| (text(object, &["apiVersion"]), text(object, &["kind"])) == ("v1", "Namespace"));
    let labels: Vec<Label<'_>> = namespaces.flat_map(labels).collect();
    let mut defects = Vec::new();
    for (position, field, selector) in selectors(manifests) {
        for requirement in requirements(selector) {
            if let Some(violation) = unmet(&requirement, &labels) {
                defects.push(Defect { position, violation: violation.at(field.clone()) });
            }
        }
    }
    defects
}

fn labels(namespace: &Value) -> impl Iterator<Item = Label<'_>> {
    let name = text(namespace, &["metadata", "name"]);
    let labels = at(namespace, &["metadata", "labels"]).as_object().into_iter().flatten();
    labels.filter_map(move |(key, value)| Some(Label { key, value: value.as_str()?, namespace: name }))
}

/// Returns the namespace selectors of webhooks, policies, and bindings, each with its position and field.
fn selectors<'a>(manifests: &Manifests<'a>) -> Vec<(usize, String, &'a Value)> {
    const SELECTOR: &str = "namespaceSelector";
    let mut found = Vec::new();
    for (position, configuration) in manifests.configurations() {
        let webhooks = at(configuration, &["webhooks"]).as_array().into_iter().flatten();
        let selectors = webhooks.enumerate().filter_map(|(index, webhook)| {
            Some((position, format!("webhooks[{index}].{SELECTOR}"), webhook.get(SELECTOR)?))
        });
        found.extend(selectors);
    }
    let policies = manifests.objects.iter().enumerate().filter(|(_, object)| is_policy_object(object));
    for (position, object) in policies {
        let selectors = ["matchConstraints", "matchResources"].into_iter().filter_map(|constraints| {
            let selector = object.get("spec")?.get(constraints)?.get(SELECTOR)?;
            Some((position, format!("spec.{constraints}.{SELECTOR}"), selector))
        });
        found.extend(selectors);
    }
    found
}

/// Returns the labels that a Namespace must have. A Namespace without any labels meets the other requirements.
fn requirements(selector: &Value) -> Vec<Requirement<'_>> {
    let labels = at(selector, &["matchLabels"]).as_object().into_iter().flatten();
    let labels = labels.filter_map(|(key, value)| Some(Requirement { key, values: vec![value.as_str()?] }));
    let expressions = at(selector, &["matchExpressions"]).as_array().into_iter().flatten();
    let expressions = expressions.filter_map(|expression| {
        let values = at(expression, &["values"]).as_array().into_iter().flatten();
        let values = match text(expression, &["operator"]) {
            "In" => values.filter_map(Value::as_str).collect(),
            "Exists" => Vec::new(),
            _ => return None,
        };
        Some(Requirement { key: text(expression, &["key"]), values })
    });
    labels.chain(expressions).filter(|requirement| requirement.key != NAME_LABEL).collect()
}

/// Reports a requirement that no Namespace meets although one has a similar label.
fn unmet(requirement: &Requirement<'_>, labels: &[Label<'_>]) -> Option<Violation> {
    let Requirement { key, values } = requirement;
    let is_value = |value: &str| values.is_empty() || values.contains(&value);
    if labels.iter().any(|label| label.key == *key && is_value(label.value)) {
        return None;
    }
    let of_key: BTreeMap<&str, Label<'_>> =
        labels.iter().filter(|label| label.key == *key).map(|label| (label.value, *label)).collect();
    let similar_value =
        values.iter().find_map(|value| of_key.get(most_similar(value, of_key.keys().copied())?));
    let other_keys = labels.iter().filter(|label| is_value(label.value)).map(|label| label.key);
    let similar_key = || {
        let similar = most_similar(key, other_keys)?;
        labels.iter().find(|label| label.key == similar && is_value(label.value))
    };
    let required = match values.as_slice() {
        [] => format!("the label {key}"),
        [value] => format!("{key}={value}"),
        values => format!("{key} in ({})", values.join(", ")),
    };
    let missing = format!("the selector requires {required}, which no Namespace in the manifests has");
    // Labels that differ in their value may be labels of other Namespaces.
    let similar = if of_key.is_empty() { similar_key() } else { similar_value };
    if let Some(Label { key, value, namespace }) = similar {
        let message = format!("{missing}: did you mean {key}={value}, which Namespace {namespace} has?");
        return Some(Violation::new("no Namespace has the label", message));
    }
    let Label { key, value, namespace } = of_key.values().next()?;
    let message = format!("{missing}: Namespace {namespace} has {key}={value}");
    Some(Violation::new("no Namespace has the value", message).with_severity(Severity::Note))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_a_similar_label_or_another_value_is_reported() {
        let shop =
            json!({"metadata": {"name": "shop", "labels": {"env": "prod", "example.com/inject": "yes"}}});
        let dev = json!({"metadata": {"name": "dev", "labels": {"env": "dev"}}});
        let labels: Vec<Label<'_>> = labels(&shop).chain(labels(&dev)).collect();
        let expression = |key: &str, operator: &str, values: &[&str]| json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]});
        for (selector, expected) in [
            (
                json!({"matchLabels": {"env": "prd"}}),
                Some("did you mean env=prod, which Namespace shop has?"),
            ),
            (json!({"matchLabels": {"env": "staging"}}), Some(": Namespace dev has env=dev")),
            (
                json!({"matchLabels": {"example.com/injct": "yes"}}),
                Some("did you mean example.com/inject=yes"),
            ),
            (expression("env", "In", &["prd", "tst"]), Some("requires env in (prd, tst), which no ")),
            (expression("evn", "Exists", &[]), Some("requires the label evn, which no ")),
            (json!({"matchLabels": {"env": "prod"}}), None),
            (json!({"matchLabels": {"team": "payments"}}), None),
            (json!({"matchLabels": {"kubernetes.io/metadata.name": "shp"}}), None),
            (expression("env", "In", &["prd", "dev"]), None),
            (expression("env", "NotIn", &["prod", "dev"]), None),
            (expression("env", "DoesNotExist", &[]), None),
            (json!({}), None),
        ] {
            let found: Vec<String> =
                requirements(&selector).iter().filter_map(|it| Some(unmet(it, &labels)?.message)).collect();
            match (expected, found.as_slice()) {
                (None, []) => {}
                (Some(expected), [message]) => assert!(message.contains(expected), "{message}"),
                _ => panic!("{selector}: {found:?}"),
            }
        }
    }
}
