//! Which requests a configuration catches, for checks that need no call.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::attributes::{Attributes, GroupVersionKind, GroupVersionResource, Operation, UserInfo};
use crate::cluster_state::{ClusterState, ConversionError, EquivalentResource};
use crate::config::{Rule, Webhook};
use crate::matching;
use crate::server::Surroundings;
use crate::verify::check::{Observed, Obstacle, Violation};
use crate::verify::subject::Subject;

/// Something that a request may be about.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    pub(super) group: &'a str,
    pub(super) version: &'a str,
    pub(super) resource: &'a str,
    pub(super) kind: &'a str,
    /// Such as `status`; empty for the object itself.
    pub(super) subresource: &'a str,
    /// Empty for a cluster-scoped object.
    pub(super) namespace: &'a str,
    pub(super) name: &'a str,
}

/// Whether `webhook` is called for an object there that has no labels.
pub(super) fn is_called(
    webhook: &Webhook,
    place: &Place<'_>,
    operation: Operation,
    surroundings: &Surroundings,
) -> bool {
    let kind = GroupVersionKind::new(place.group, place.version, place.kind);
    let object = json!({
        "apiVersion": kind.api_version(),
        "kind": place.kind,
        "metadata": {"name": place.name, "namespace": place.namespace},
    });
    let request = Attributes {
        operation,
        resource: GroupVersionResource::new(place.group, place.version, place.resource),
        subresource: place.subresource.to_owned(),
        kind,
        namespace: place.namespace.to_owned(),
        name: place.name.to_owned(),
        object: (operation != Operation::Delete).then(|| object.clone()),
        old_object: (operation != Operation::Create).then_some(object),
        options: None,
        dry_run: false,
        user: UserInfo::default(),
    };
    matching::is_called(webhook, request, &Assumed(surroundings))
}

/// The surroundings, with every namespace that is asked for: one that nobody gave has the label that the API server gives
/// it, and no other.
struct Assumed<'a>(&'a Surroundings);

impl ClusterState for Assumed<'_> {
    fn namespace(&self, name: &str) -> Option<Arc<Value>> {
        let assumed = || {
            Arc::new(json!({
                "apiVersion": "v1", "kind": "Namespace",
                "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}},
            }))
        };
        Some(self.0.namespace(name).unwrap_or_else(assumed))
    }

    fn equivalent_resources(
        &self,
        resource: &GroupVersionResource,
        subresource: &str,
    ) -> Vec<EquivalentResource> {
        self.0.equivalent_resources(resource, subresource)
    }

    fn convert(&self, object: &Value, kind: &GroupVersionKind) -> Result<Value, ConversionError> {
        self.0.convert(object, kind)
    }

    fn set_defaults(&self, object: &mut Value) {
        self.0.set_defaults(object);
    }

    fn is_built_in(&self, kind: &GroupVersionKind) -> bool {
        self.0.is_built_in(kind)
    }
}

/// Whether `rule` is for this operation on this group, version and resource, whatever its scope and the selectors.
pub(super) fn catches(rule: &Rule, operation: &str, (group, version, resource): (&str, &str, &str)) -> bool {
    let has = |entries: &[String], what: &str| entries.iter().any(|entry| entry == "*" || entry == what);
    let is_for_resource = |entry: &String| {
        let (name, subresource) = entry.split_once('/').unwrap_or((entry, ""));
        matches!(subresource, "" | "*") && (name == "*" || name == resource)
    };
    has(&rule.operations, operation)
        && has(&rule.api_groups, group)
        && has(&rule.api_versions, version)
        && rule.resources.iter().any(is_for_resource)
}

/// What it means that `subjects` are called for too much: match conditions that nobody evaluates may keep it from them.
/// They can only take requests away, so that nothing found is nothing found.
pub(super) fn unless_conditions<'a>(
    subjects: impl IntoIterator<Item = &'a Subject>,
    violations: Vec<Violation>,
) -> Observed {
    let ignoring = subjects.into_iter().find(|subject| !subject.ignored_conditions().is_empty());
    let (Some(subject), Some(violation)) = (ignoring, violations.first()) else { return Ok(violations) };
    Err(Obstacle::Unequipped(format!(
        "unless the matchConditions of {}, which were ignored, leave that out: {}",
        subject.name(),
        violation.message
    )))
}
