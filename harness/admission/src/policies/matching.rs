//! Decides whether a policy or a binding matches a request.

use std::sync::Arc;

use kubernetes_types::status::Status;

use super::explanation::mismatch;
use crate::admission_run::AdmissionRun;
pub(crate) use crate::attributes::{GroupVersionKind, GroupVersionResource};
use crate::config::MatchPolicy;
use crate::matching::{request, rules, selectors};
use crate::policy::{MatchField, MatchResources, NamedRule, PolicyMismatch};

/// The resource that a policy matches, and the kind of the objects that the policy evaluates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Match {
    pub(super) resource: Arc<GroupVersionResource>,
    pub(super) kind: Arc<GroupVersionKind>,
}

/// Returns the resource and the kind that match, or the field that excludes the request.
///
/// # Errors
/// Returns kube-apiserver's error message if a selector cannot be evaluated, the namespace does not exist, or the kind
/// of an equivalent resource is unknown.
///
/// Source: apiserver pkg/admission/plugin/policy/matching/matching.go, `Matches`.
/// Rule: POL-10, POL-11, POL-12, POL-13.
pub(super) fn matches(
    resources: &MatchResources,
    run: &mut AdmissionRun<'_>,
) -> Result<Result<Match, PolicyMismatch>, String> {
    let attributes = run.attributes();
    let namespace = selectors::namespace(&resources.namespace_selector, attributes, run.state());
    if namespace == Ok(false) {
        return Ok(Err(mismatch(resources, MatchField::NamespaceSelector, run)));
    }
    let object = selectors::object(&resources.object_selector, attributes);
    if object == Ok(false) {
        return Ok(Err(mismatch(resources, MatchField::ObjectSelector, run)));
    }
    if rules_match(&resources.exclude_resource_rules, resources.match_policy, run)?.is_some() {
        return Ok(Err(mismatch(resources, MatchField::ExcludeResourceRules, run)));
    }
    let found = if resources.resource_rules.is_empty() {
        Some(own(run))
    } else {
        rules_match(&resources.resource_rules, resources.match_policy, run)?
    };
    let Some(found) = found else {
        return Ok(Err(mismatch(resources, MatchField::ResourceRules, run)));
    };
    let text = |status: Box<Status>| status.message;
    namespace.map_err(text)?;
    object.map_err(text)?;
    Ok(Ok(found))
}

fn own(run: &AdmissionRun<'_>) -> Match {
    let attributes = run.attributes();
    Match { resource: Arc::new(attributes.resource.clone()), kind: Arc::new(attributes.kind.clone()) }
}

/// Matches the rules against the request's own resource first, then against equivalent resources.
///
/// Source: apiserver pkg/admission/plugin/policy/matching/matching.go, `matchesResourceRules`.
fn rules_match(
    rules: &[NamedRule],
    policy: MatchPolicy,
    run: &mut AdmissionRun<'_>,
) -> Result<Option<Match>, String> {
    let attributes = run.attributes();
    let is_match = |rule: &NamedRule, resource: &GroupVersionResource| {
        rules::matches(&rule.rule, request(attributes, resource))
    };
    if rules.iter().any(|rule| is_match(rule, &attributes.resource) && rule.has_name(&attributes.name)) {
        return Ok(Some(own(run)));
    }
    if policy == MatchPolicy::Exact || rules.is_empty() {
        return Ok(None);
    }
    run.look_up_equivalents();
    let attributes = run.attributes();
    for rule in rules {
        for candidate in run.equivalents() {
            if *candidate.resource == attributes.resource
                || !rules::matches(&rule.rule, request(attributes, &candidate.resource))
            {
                continue;
            }
            let Some(kind) = candidate.kind.clone() else {
                return Err(format!("unable to convert to {}: unknown kind", candidate.resource));
            };
            if rule.has_name(&attributes.name) {
                return Ok(Some(Match { resource: Arc::clone(&candidate.resource), kind }));
            }
        }
    }
    Ok(None)
}
