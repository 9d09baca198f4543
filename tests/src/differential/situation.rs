//! Generates random situations: combines existing objects, webhooks, and requests into a case.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::configurations::{self, WebhookPosition};
use super::{requests, roles, schemas, webhooks};
use crate::names::CASE_LABEL;
use crate::random::Random;
#[cfg(test)]
use crate::{case::Case, names::Names, yaml};

/// A random situation.
#[derive(Clone, Debug)]
pub struct Situation {
    /// The document in the format of `case.yaml`.
    pub case: Value,
    /// The number of times that each excluded feature was drawn, by the name of the feature.
    pub left_out: BTreeMap<String, usize>,
}

/// The state during the generation of a situation.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is independent of the others")]
pub(crate) struct Generator<'a> {
    pub(crate) random: Random,
    excluded: &'a BTreeSet<String>,
    left_out: BTreeMap<String, usize>,
    /// Whether the situation has custom resources.
    pub(crate) widgets: bool,
    /// Whether the custom resources have a status subresource.
    pub(crate) has_status: bool,
    /// Whether the custom resources have a scale subresource.
    pub(crate) has_scale: bool,
    /// The namespaces of the requests.
    pub(crate) namespaces: Vec<String>,
    /// Whether roles grant permissions to users who are not administrators.
    pub(crate) has_roles: bool,
    /// The positions of the situation's webhooks.
    pub(crate) places: Vec<WebhookPosition>,
}

/// The API group of the custom resources.
pub(crate) const GROUP: &str = "<id>.example.com";

/// The keys of labels. There are only a few, so that selectors and patches often match.
const KEYS: [&str; 4] = ["env", "team", "example.com/tier", "injected"];
/// The values of labels.
const VALUES: [&str; 4] = ["a", "b", "", "prod"];

impl Situation {
    /// Creates a situation from `seed` and the situation's `number`, without the `excluded` features.
    pub fn new(seed: u64, number: u64, excluded: &BTreeSet<String>) -> Self {
        let mut generator = Generator::new(seed, number, excluded);
        let case = generator.case();
        Self { case, left_out: generator.left_out }
    }

    /// Creates a situation about a schema from `seed` and the situation's `number`.
    pub fn of_schemas(seed: u64, number: u64) -> Self {
        let case = Generator::new(seed, number, &BTreeSet::new()).schema_case();
        Self { case, left_out: BTreeMap::new() }
    }
}

impl<'a> Generator<'a> {
    /// Creates the generator for the situation with this `seed` and `number`.
    pub(crate) fn new(seed: u64, number: u64, excluded: &'a BTreeSet<String>) -> Self {
        Self {
            random: Random::new(seed, number),
            excluded,
            left_out: BTreeMap::new(),
            widgets: false,
            has_status: false,
            has_scale: false,
            namespaces: vec!["<ns>".to_owned()],
            has_roles: false,
            places: Vec::new(),
        }
    }
}

impl Generator<'_> {
    /// Returns whether to use a feature: true in `percent` of 100 situations, unless the feature is excluded.
    pub(crate) fn may(&mut self, feature: &str, percent: usize) -> bool {
        let drawn = self.random.chance(percent);
        if drawn && self.excluded.contains(feature) {
            *self.left_out.entry(feature.to_owned()).or_default() += 1;
            return false;
        }
        drawn
    }

    fn case(&mut self) -> Value {
        let mut cluster = vec![namespace("<ns>", self.labels(60))];
        if self.random.chance(40) {
            self.namespaces.push("<id>-two".to_owned());
            cluster.push(namespace("<id>-two", self.labels(60)));
        }
        self.widgets = self.may("custom-resources", 40);
        if self.widgets {
            cluster.push(self.definition());
            cluster.push(gadgets());
        }
        self.has_roles = self.may("roles", 14);
        if self.has_roles {
            cluster.extend(roles::roles(self));
        }
        let mut known = requests::ExistingObjects::default();
        for _ in 0..self.random.below(4) {
            cluster.extend(requests::existing(self, &mut known));
        }
        let webhooks = webhooks::webhooks(self);
        self.places = configurations::places(&webhooks);
        let count = self.random.between(1, 5);
        let mut requests: Vec<Value> = (0..count).map(|_| requests::request(self, &mut known)).collect();
        if self.may("schemas", 15) {
            let (definition, about) = schemas::situation(self);
            cluster.extend(definition);
            requests.extend(about);
        }
        json!({"version": 1, "cluster": cluster, "webhooks": webhooks, "requests": requests})
    }

    /// Returns a case that is only about a schema.
    fn schema_case(&mut self) -> Value {
        let (definition, requests) = schemas::situation(self);
        let cluster: Vec<Value> = std::iter::once(namespace("<ns>", Map::new())).chain(definition).collect();
        json!({"version": 1, "cluster": cluster, "requests": requests})
    }

    /// Returns random labels in `percent` of 100 calls, otherwise an empty map.
    pub(crate) fn labels(&mut self, percent: usize) -> Map<String, Value> {
        let mut labels = Map::new();
        if self.random.chance(percent) {
            for key in self.random.some_of(&KEYS) {
                labels.insert(key.to_owned(), json!(self.random.one_of(&VALUES)));
            }
        }
        labels
    }

    /// Returns a random label key.
    pub(crate) fn key(&mut self) -> &'static str {
        self.random.one_of(&KEYS)
    }

    /// Returns a random label value.
    pub(crate) fn value(&mut self) -> &'static str {
        self.random.one_of(&VALUES)
    }

    /// Returns a random label selector.
    pub(crate) fn selector(&mut self) -> Value {
        let mut selector = Map::new();
        if self.random.chance(40) {
            selector.insert("matchLabels".to_owned(), json!({self.key(): self.value()}));
        }
        if self.random.chance(65) {
            let mut expressions = Vec::new();
            for _ in 0..self.random.between(1, 2) {
                let operator = self.random.one_of(&["In", "NotIn", "Exists", "DoesNotExist"]);
                let mut expression = json!({"key": self.key(), "operator": operator});
                if operator.ends_with("In") {
                    expression["values"] = json!(self.random.some_of(&VALUES));
                }
                expressions.push(expression);
            }
            selector.insert("matchExpressions".to_owned(), json!(expressions));
        }
        Value::Object(selector)
    }

    /// Returns the definition of the widgets: two versions with equal schemas.
    fn definition(&mut self) -> Value {
        let stored = self.random.one_of(&["v1", "v2"]);
        let free = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        self.has_status = self.may("custom-status", 75);
        self.has_scale = self.may("custom-scale", 30);
        let (has_status, has_scale) = (self.has_status, self.has_scale);
        let versions: Vec<Value> = ["v1", "v2"]
            .iter()
            .map(|name| {
                let mut schema = free.clone();
                schema["properties"] = json!({"spec": free, "status": free});
                let mut version = json!({
                    "name": name, "served": true, "storage": *name == stored, "schema": {"openAPIV3Schema": schema},
                });
                if has_status {
                    version["subresources"]["status"] = json!({});
                }
                if has_scale {
                    version["subresources"]["scale"] =
                        json!({"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"});
                }
                version
            })
            .collect();
        widgets(&versions)
    }
}

/// Returns the definition of the widgets with these versions.
pub(super) fn widgets(versions: &[Value]) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("widgets.{GROUP}")},
        "spec": {
            "group": GROUP, "scope": "Namespaced", "versions": versions,
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
        },
    })
}

/// Returns the definition of widgets with one version. It accepts any fields.
pub(super) fn free_widgets() -> Value {
    let free = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    widgets(&[json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": free}})])
}

/// Returns the definition of the gadgets, a cluster-scoped kind with one version.
fn gadgets() -> Value {
    let free = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("gadgets.{GROUP}")},
        "spec": {
            "group": GROUP, "scope": "Cluster",
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": free}}],
            "names": {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"},
        },
    })
}

/// Returns a namespace for which the webhooks of the case may be called.
pub(crate) fn namespace(name: &str, mut labels: Map<String, Value>) -> Value {
    labels.insert(CASE_LABEL.to_owned(), json!("<id>"));
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
}

/// Parses the first `count` situations of a subject. Panics if one of them is not a case.
#[cfg(test)]
pub(super) fn cases(count: u64, mut situation: impl FnMut(u64) -> Situation) -> Vec<Case> {
    let parse = |number| {
        let text = yaml::write(&situation(number).case);
        let case = Case::parse(&Names::random().expand(&text));
        case.unwrap_or_else(|error| panic!("situation {number}: {error}\n{text}"))
    };
    (0..count).map(parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_situation_depends_on_its_seed_and_its_number_only() {
        let none = BTreeSet::new();
        assert_eq!(Situation::new(7, 3, &none).case, Situation::new(7, 3, &none).case);
        assert_ne!(Situation::new(7, 3, &none).case, Situation::new(7, 4, &none).case);
        assert_ne!(Situation::new(7, 3, &none).case, Situation::new(8, 3, &none).case);
    }

    #[test]
    fn every_situation_is_a_case() {
        cases(300, |number| Situation::new(1, number, &BTreeSet::new()));
    }

    #[test]
    fn excluded_features_are_counted_and_not_generated() {
        let excluded = BTreeSet::from(["custom-resources".to_owned(), "schemas".to_owned()]);
        let situations: Vec<Situation> = (0..50).map(|number| Situation::new(1, number, &excluded)).collect();
        for feature in &excluded {
            assert!(situations.iter().any(|it| it.left_out.contains_key(feature)), "{feature}");
        }
        assert!(situations.iter().all(|it| !it.case.to_string().contains("CustomResourceDefinition")));
    }
}
