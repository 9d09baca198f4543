//! Finds requests for which several webhooks are called, based only on rules, selectors, and conditions.

use std::collections::BTreeMap;
use std::fmt;

use kubernetes_admission::attributes::{GroupVersionResource, Operation};
use kubernetes_admission::config::{Rule, Scope, Webhook};
use kubernetes_admission::matching::exact_or_star;
use kubernetes_api_server::ClusterFixture;
use kubernetes_types::selector::Selector;
use serde_json::json;

use super::match_outcome::{self, MatchOutcome, NAME_LABEL, RequestTarget};

/// The reason why the result of match conditions is unknown.
pub(super) const UNKNOWN_OBJECTS: &str = "it depends on the content of the objects";

/// How certain it must be that match conditions are true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Certainty {
    /// The conditions are true for at least one of the requests.
    Certain,
    /// The conditions may be true.
    Possible,
}

/// Requests for which all webhooks of a set are called.
#[derive(Clone, Debug)]
pub(super) struct Common<'a> {
    cluster_fixture: &'a ClusterFixture,
    certainty: Certainty,
    /// The webhooks of the set that have match conditions.
    conditional: Vec<&'a Webhook>,
    /// The intersection of the webhooks' rules; never empty.
    rules: Vec<Rule>,
    namespace_selectors: Vec<&'a Selector>,
    object_selectors: Vec<&'a Selector>,
    namespace_labels: BTreeMap<String, String>,
    object_labels: BTreeMap<String, String>,
}

impl<'a> Common<'a> {
    /// Returns the requests for which `webhook` is called, or `None` if there are no such requests.
    pub(super) fn new(
        webhook: &'a Webhook,
        cluster_fixture: &'a ClusterFixture,
        certainty: Certainty,
    ) -> Option<Self> {
        Self {
            cluster_fixture,
            certainty,
            conditional: conditional(webhook).collect(),
            rules: webhook.rules.clone(),
            namespace_selectors: vec![&webhook.namespace_selector],
            object_selectors: vec![&webhook.object_selector],
            namespace_labels: BTreeMap::new(),
            object_labels: BTreeMap::new(),
        }
        .checked()
    }

    /// Returns the requests for which `webhook` is also called, or `None` if there are no such requests.
    ///
    /// Rules are compared literally. Additional matches of the `matchPolicy` `Equivalent` are ignored, so that every
    /// result is certain.
    pub(super) fn and(&self, webhook: &'a Webhook) -> Option<Self> {
        let mut both = self.clone();
        both.rules =
            self.rules.iter().flat_map(|a| webhook.rules.iter().filter_map(move |b| meet(a, b))).collect();
        both.namespace_selectors.push(&webhook.namespace_selector);
        both.object_selectors.push(&webhook.object_selector);
        both.conditional.extend(conditional(webhook));
        both.checked()
    }

    fn checked(mut self) -> Option<Self> {
        // The API server sets this label on every namespace.
        let named =
            Selector::parse(&json!({"matchExpressions": [{"key": NAME_LABEL, "operator": "Exists"}]}));
        let named = named.ok()?;
        let everything: Vec<&Selector> = self.namespace_selectors.iter().copied().chain([&named]).collect();
        self.object_labels = Selector::common_labels(&self.object_selectors)?;
        if let Some(mut labels) = Selector::common_labels(&everything) {
            // The name is irrelevant unless a selector requires it.
            if Selector::common_labels(&self.namespace_selectors)
                .is_some_and(|asked| !asked.contains_key(NAME_LABEL))
            {
                labels.remove(NAME_LABEL);
            }
            self.namespace_labels = labels;
        } else {
            // The selectors match no namespace, but cluster-scoped objects still match.
            self.rules.retain(|rule| rule.scope == Scope::Cluster);
        }
        if !self.conditional.is_empty() {
            let rules = std::mem::take(&mut self.rules);
            self.rules = rules.iter().flat_map(|rule| self.with_conditions(rule)).collect();
        }
        (!self.rules.is_empty()).then_some(self)
    }

    /// Returns the operations and resources of `rule` for which the match conditions of all webhooks are true.
    ///
    /// The certainty must be at least the required certainty. `*` is evaluated only for Pods, and CONNECT is not
    /// evaluated.
    fn with_conditions(&self, rule: &Rule) -> Vec<Rule> {
        let first = |entries: &[String], star: &str| match entries.first().map(String::as_str) {
            Some("*") | None => star.to_owned(),
            Some(entry) => entry.to_owned(),
        };
        let (group, version) = (first(&rule.api_groups, ""), first(&rule.api_versions, "v1"));
        let holds = |resource: &str, operation: Operation| {
            let (name, subresource) = resource.split_once('/').unwrap_or((resource, ""));
            let name = if name == "*" { "pods" } else { name };
            let gvr = GroupVersionResource::new(&group, &version, name);
            let Some(resource) = self.cluster_fixture.resource(&gvr) else {
                return self.certainty == Certainty::Possible;
            };
            let namespace = match self.namespace_labels.get(NAME_LABEL) {
                _ if !resource.namespaced => "",
                Some(named) => named,
                None => "default",
            };
            let place = RequestTarget {
                group: &group,
                version: &version,
                resource: name,
                kind: &resource.kind.kind,
                subresource: if subresource == "*" { "" } else { subresource },
                namespace,
                name: "example",
            };
            let catch = |webhook: &&Webhook| {
                let (labels, of_namespace) = (&self.object_labels, &self.namespace_labels);
                match_outcome::catch(webhook, &place, operation, labels, of_namespace, self.cluster_fixture)
            };
            self.conditional.iter().map(catch).all(|catch| match catch {
                MatchOutcome::Called => true,
                MatchOutcome::NotCalled => false,
                MatchOutcome::Unclear(_) => self.certainty == Certainty::Possible,
            })
        };
        let mut holding = Vec::new();
        for operation in [Operation::Create, Operation::Update, Operation::Delete] {
            let name = operation.to_string();
            if !exact_or_star(&rule.operations, &name) {
                continue;
            }
            for resource in rule.resources.iter().filter(|resource| holds(resource, operation)) {
                let (operations, resources) = (vec![name.clone()], vec![resource.clone()]);
                holding.push(Rule { operations, resources, ..rule.clone() });
            }
        }
        holding
    }
}

fn conditional(webhook: &Webhook) -> impl Iterator<Item = &Webhook> {
    (!webhook.match_conditions.is_empty()).then_some(webhook).into_iter()
}

/// Formats an example of the requests, such as `CREATE of pods in a namespace with team=a, labeled inject=yes`.
impl fmt::Display for Common<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(rule) = self.rules.first() else { return Ok(()) };
        let first = |entries: &[String]| entries.first().cloned().unwrap_or_default();
        write!(f, "{} of {}", first(&rule.operations), first(&rule.resources))?;
        match first(&rule.api_groups).as_str() {
            "" | "*" => {}
            group => write!(f, ".{group}")?,
        }
        if rule.scope != Scope::Cluster && !self.namespace_labels.is_empty() {
            write!(f, " in a namespace with {}", written(&self.namespace_labels))?;
        }
        if !self.object_labels.is_empty() {
            write!(f, ", labeled {}", written(&self.object_labels))?;
        }
        Ok(())
    }
}

fn written(labels: &BTreeMap<String, String>) -> String {
    labels.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(",")
}

/// Returns the intersection of two rules, if any.
fn meet(a: &Rule, b: &Rule) -> Option<Rule> {
    let rule = Rule {
        operations: meets(&a.operations, &b.operations, word),
        api_groups: meets(&a.api_groups, &b.api_groups, word),
        api_versions: meets(&a.api_versions, &b.api_versions, word),
        resources: meets(&a.resources, &b.resources, resource),
        scope: match (a.scope, b.scope) {
            (Scope::All, scope) | (scope, Scope::All) => scope,
            (a, b) if a == b => a,
            _ => return None,
        },
    };
    let lists = [&rule.operations, &rule.api_groups, &rule.api_versions, &rule.resources];
    lists.iter().all(|list| !list.is_empty()).then_some(rule)
}

fn meets(a: &[String], b: &[String], meet: fn(&str, &str) -> Option<String>) -> Vec<String> {
    a.iter().flat_map(|a| b.iter().filter_map(move |b| meet(a, b))).collect()
}

fn word(a: &str, b: &str) -> Option<String> {
    match (a, b) {
        ("*", other) | (other, "*") => Some(other.to_owned()),
        (a, b) => (a == b).then(|| a.to_owned()),
    }
}

/// Returns the intersection of two resource entries, such as `pods` for `pods` and `*/*`.
fn resource(a: &str, b: &str) -> Option<String> {
    let (name_a, subresource_a) = a.split_once('/').unwrap_or((a, ""));
    let (name_b, subresource_b) = b.split_once('/').unwrap_or((b, ""));
    let (resource, subresource) = (word(name_a, name_b)?, word(subresource_a, subresource_b)?);
    Some(if subresource.is_empty() { resource } else { format!("{resource}/{subresource}") })
}

#[cfg(test)]
mod tests {
    use kubernetes_admission::config;
    use serde_json::Value;

    use super::*;

    fn webhook(fields: &Value) -> Webhook {
        let mut webhook = json!({"name": "w.example.com", "clientConfig": {"url": "https://127.0.0.1:1/"},
            "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "rules": [{"operations": ["CREATE", "UPDATE"], "apiGroups": [""], "apiVersions": ["v1"],
                "resources": ["pods"]}]});
        for (field, value) in fields.as_object().into_iter().flatten() {
            webhook[field] = value.clone();
        }
        let configuration = json!({"apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "MutatingWebhookConfiguration", "metadata": {"name": "c"}, "webhooks": [webhook]});
        config::webhooks(&configuration).unwrap().remove(0)
    }

    #[track_caller]
    fn check(a: &Value, b: &Value, expected: Option<&str>) {
        let (a, b) = (webhook(a), webhook(b));
        let around = ClusterFixture::new([]);
        for (a, b) in [(&a, &b), (&b, &a)] {
            let common = Common::new(a, &around, Certainty::Certain).and_then(|common| common.and(b));
            assert_eq!(common.map(|common| common.to_string()).as_deref(), expected);
        }
    }

    fn rules(resources: &str, scope: &str) -> Value {
        json!({"rules": [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": [resources],
            "scope": scope}]})
    }

    #[test]
    fn resources_with_subresources_intersect() {
        let pods = json!({});
        check(&pods, &rules("*/*", "*"), Some("CREATE of pods"));
        check(&pods, &rules("*", "Namespaced"), Some("CREATE of pods"));
        check(&pods, &rules("*/status", "*"), None);
        check(&rules("pods/*", "*"), &rules("*/status", "*"), Some("* of pods/status"));
        check(&rules("*", "Cluster"), &rules("*", "Namespaced"), None);
        check(&pods, &json!({"rules": []}), None);
    }

    #[test]
    fn selectors_intersect_if_labels_match_both() {
        let namespaces = |key: &str, value: &str| json!({"namespaceSelector": {"matchLabels": {key: value}}});
        let objects = |value: &str| json!({"objectSelector": {"matchLabels": {"inject": value}}});
        check(&namespaces("team", "a"), &namespaces("team", "b"), None);
        check(&objects("yes"), &objects("no"), None);
        check(
            &namespaces("team", "a"),
            &objects("yes"),
            Some("CREATE of pods in a namespace with team=a, labeled inject=yes"),
        );
        let unnamed = json!({"namespaceSelector": {"matchExpressions": [
            {"key": "kubernetes.io/metadata.name", "operator": "DoesNotExist"},
        ]}});
        check(&unnamed, &json!({}), None);
    }

    #[test]
    fn namespace_selectors_do_not_apply_to_cluster_scoped_objects() {
        let nodes = |value: &str| {
            let mut fields = rules("nodes", "Cluster");
            fields["namespaceSelector"] = json!({"matchLabels": {"team": value}});
            fields
        };
        check(&nodes("a"), &nodes("b"), Some("* of nodes"));
    }
}
