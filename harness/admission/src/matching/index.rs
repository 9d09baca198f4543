//! Indexes webhooks by their rules, so that most webhooks that do not match are never examined.

use std::collections::HashMap;
use std::sync::Arc;

use super::rules::{self, Request};
use crate::admission_run::AdmissionRun;
use crate::attributes::{GroupVersionResource, Operation};
use crate::config::{MatchPolicy, Rule, Webhook};

/// The webhooks of one phase in call order, indexed by the resources in their rules.
#[derive(Clone, Debug, Default)]
pub struct WebhookIndex {
    webhooks: Vec<Arc<Webhook>>,
    /// The rules for specific resources, by resource.
    by_resource: HashMap<String, Vec<Entry>>,
    /// The rules for all resources of specific API groups, by group.
    by_group: HashMap<String, Vec<Entry>>,
    /// The rules for all resources of all groups.
    for_all: Vec<Entry>,
    /// Whether any webhook also matches equivalent resources.
    has_equivalent: bool,
}

/// The rules of one webhook under one key of the index.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// The position of the webhook in call order.
    position: usize,
    operations: Operations,
}

/// A set of operations as a bit mask.
#[derive(Clone, Copy, Debug)]
struct Operations(u8);

impl Operations {
    const ALL: [Operation; 4] = [Operation::Create, Operation::Update, Operation::Delete, Operation::Connect];

    fn from_rule(rule: &Rule) -> Self {
        let named = Self::ALL
            .into_iter()
            .filter(|operation| super::exact_or_star(&rule.operations, operation.as_str()))
            .map(Self::bit);
        Self(named.fold(0, |all, one| all | one))
    }

    fn bit(operation: Operation) -> u8 {
        match operation {
            Operation::Create => 1,
            Operation::Update => 2,
            Operation::Delete => 4,
            Operation::Connect => 8,
        }
    }

    fn contains(self, operation: Operation) -> bool {
        self.0 & Self::bit(operation) != 0
    }
}

impl WebhookIndex {
    /// Creates an index of `webhooks`. The webhooks must be in call order.
    pub fn new(webhooks: Vec<Arc<Webhook>>) -> Self {
        let mut index = Self::default();
        for (position, webhook) in webhooks.iter().enumerate() {
            index.has_equivalent |= webhook.match_policy == MatchPolicy::Equivalent;
            for rule in &webhook.rules {
                index.add(position, rule);
            }
        }
        Self { webhooks, ..index }
    }

    /// Adds a rule. If the rule names resources, its groups are not indexed; this limits the size of the index.
    fn add(&mut self, position: usize, rule: &Rule) {
        let entry = Entry { position, operations: Operations::from_rule(rule) };
        let resources = || {
            rule.resources
                .iter()
                .map(|entry| entry.split_once('/').map_or(entry.as_str(), |(resource, _)| resource))
        };
        if !resources().any(|resource| resource == "*") {
            for resource in resources() {
                insert(self.by_resource.entry(resource.to_owned()).or_default(), entry);
            }
        } else if !rule.api_groups.iter().any(|group| group == "*") {
            for group in &rule.api_groups {
                insert(self.by_group.entry(group.clone()).or_default(), entry);
            }
        } else {
            insert(&mut self.for_all, entry);
        }
    }

    /// Returns all webhooks.
    pub fn webhooks(&self) -> &[Arc<Webhook>] {
        &self.webhooks
    }

    /// Returns whether any rule matches this operation on this cluster-scoped resource.
    pub fn has_rule_for(
        &self,
        operation: Operation,
        resource: &GroupVersionResource,
        subresource: &str,
    ) -> bool {
        let request = Request { operation, resource, subresource, namespace: "" };
        let mut rules = self.webhooks.iter().flat_map(|webhook| &webhook.rules);
        rules.any(|rule| rules::matches(rule, request))
    }

    /// Returns the positions of webhooks whose rules may match the request of `run` or an equivalent resource.
    ///
    /// [`decide`](super::decide) would skip all other webhooks.
    pub(crate) fn candidates(&self, run: &mut AdmissionRun<'_>) -> Vec<usize> {
        if self.has_equivalent {
            run.look_up_equivalents();
        }
        let attributes = run.attributes();
        let own = &attributes.resource;
        let mut found = Vec::new();
        let mut add = |entries: &[Entry]| {
            let due = entries.iter().filter(|entry| entry.operations.contains(attributes.operation));
            found.extend(due.map(|entry| entry.position));
        };
        add(&self.for_all);
        let others = run.equivalents().iter().map(|equivalent| &*equivalent.resource);
        // Most resources have a single version, which is that of the request.
        let others = others.filter(|other| (&other.group, &other.resource) != (&own.group, &own.resource));
        for (group, resource) in std::iter::once(own).chain(others).map(|it| (&it.group, &it.resource)) {
            add(self.by_resource.get(resource).map_or(&[], Vec::as_slice));
            add(self.by_group.get(group).map_or(&[], Vec::as_slice));
        }
        found.sort_unstable();
        found.dedup();
        found
    }
}

/// Adds an entry, or merges it with the last entry if both are for the same webhook. Webhooks are added in order.
fn insert(entries: &mut Vec<Entry>, entry: Entry) {
    match entries.last_mut() {
        Some(last) if last.position == entry.position => last.operations.0 |= entry.operations.0,
        _ => entries.push(entry),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::attributes::{Attributes, GroupVersionKind, GroupVersionResource};
    use crate::cluster_state::{ClusterState, ConversionError, EquivalentResource};
    use crate::config::Scope;
    use crate::matching::is_called;
    use crate::ownership::TimePrecision;
    use crate::testing::{create_config_map, webhook};

    /// A cluster state in which `configmaps` are also served as `things` of the group `other`.
    struct Renamed;

    impl ClusterState for Renamed {
        fn namespace(&self, _: &str) -> Option<Arc<serde_json::Value>> {
            None
        }

        fn equivalent_resources(&self, _: &GroupVersionResource, _: &str) -> Arc<[EquivalentResource]> {
            [("", "configmaps", "ConfigMap"), ("other", "things", "Thing")]
                .map(|(group, resource, kind)| EquivalentResource {
                    resource: Arc::new(GroupVersionResource::new(group, "v1", resource)),
                    kind: Some(Arc::new(GroupVersionKind::new(group, "v1", kind))),
                })
                .into()
        }

        fn convert(
            &self,
            _: &serde_json::Value,
            _: &GroupVersionKind,
        ) -> Result<serde_json::Value, ConversionError> {
            Err(ConversionError::Refused("no conversion".to_owned()))
        }

        fn set_defaults(&self, _: &mut serde_json::Value) {}

        fn is_built_in(&self, _: &GroupVersionKind) -> bool {
            true
        }
    }

    fn some(words: &'static [&'static str]) -> impl Strategy<Value = Vec<String>> {
        prop::collection::vec(prop::sample::select(words), 0..3)
            .prop_map(|words| words.into_iter().map(str::to_owned).collect())
    }

    prop_compose! {
        fn rule()(
            operations in some(&["*", "CREATE", "DELETE"]),
            api_groups in some(&["*", "", "other"]),
            resources in some(&["*", "*/*", "configmaps", "configmaps/status", "things", "*/status", "pods"]),
        ) -> Rule {
            Rule { operations, api_groups, api_versions: vec!["*".to_owned()], resources, scope: Scope::All }
        }
    }

    proptest! {
        #[test]
        fn a_webhook_that_is_called_is_a_candidate(
            rules in prop::collection::vec((prop::collection::vec(rule(), 0..3), any::<bool>()), 0..6),
            subresource in prop::sample::select(&["", "status"][..]),
        ) {
            let webhooks: Vec<Arc<Webhook>> = rules
                .into_iter()
                .map(|(rules, exact)| {
                    let match_policy = if exact { MatchPolicy::Exact } else { MatchPolicy::Equivalent };
                    Arc::new(Webhook { rules, match_policy, ..webhook("w") })
                })
                .collect();
            let attributes = Attributes { subresource: subresource.to_owned(), ..create_config_map() };
            let mut run = AdmissionRun::new(attributes, TimePrecision::Seconds, &Renamed);
            let candidates = WebhookIndex::new(webhooks.clone()).candidates(&mut run);
            prop_assert!(candidates.is_sorted_by(|a, b| a < b));
            for (position, webhook) in webhooks.iter().enumerate() {
                prop_assert!(!is_called(webhook, &mut run) || candidates.contains(&position));
            }
        }
    }

    #[test]
    fn a_webhook_for_other_resources_or_operations_is_not_a_candidate() {
        let list = |entry: &str| vec![entry.to_owned()];
        let rule = || webhook("w").rules.remove(0);
        let rules = [
            Rule { resources: list("pods"), ..rule() },
            Rule { api_groups: list("apps"), ..rule() },
            Rule { operations: list("DELETE"), ..rule() },
            Rule { resources: list("configmaps"), ..rule() },
            rule(),
        ];
        let webhooks = rules.map(|rule| Arc::new(Webhook { rules: vec![rule], ..webhook("w") }));
        let mut run = AdmissionRun::new(create_config_map(), TimePrecision::Seconds, &Renamed);
        let index = WebhookIndex::new(webhooks.into());
        assert_eq!(index.candidates(&mut run), [3, 4]);
        assert_eq!(index.webhooks().len(), 5);
    }

    #[test]
    fn the_operations_of_all_rules_of_a_webhook_count() {
        let rule = |operation: &str| {
            let mut rule = webhook("w").rules.remove(0);
            (rule.operations, rule.resources) = (vec![operation.to_owned()], vec!["configmaps".to_owned()]);
            rule
        };
        let webhooks = [["DELETE", "UPDATE"], ["DELETE", "CREATE"], ["CREATE", "DELETE"]].map(|operations| {
            Arc::new(Webhook { rules: operations.into_iter().map(rule).collect(), ..webhook("w") })
        });
        let mut run = AdmissionRun::new(create_config_map(), TimePrecision::Seconds, &Renamed);
        assert_eq!(WebhookIndex::new(webhooks.into()).candidates(&mut run), [1, 2]);
    }
}
