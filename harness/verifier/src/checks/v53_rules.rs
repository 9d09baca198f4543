//! V53: the rules are for what their author meant.

use std::collections::BTreeSet;

use kubernetes_admission::config::{FailurePolicy, MatchPolicy, Rule, Scope, Webhook};
use kubernetes_api_server::{ClusterFixture, ServedResource, is_connection};
use kubernetes_types::selector::Labels;

use crate::check::{Audience, Check, Observed, Obstacle, Probe, Severity, Violation};
use crate::subject::Subject;

pub(super) const CHECK: Check = Check {
    id: "V53",
    title: "its rules catch what they seem to: stars, subresources, scope, matchPolicy, labels",
    severity: Severity::Warning,
    why: "`*` is every resource and no subresource, `*/*` is both; a subresource is asked for in its parent's group, \
          whatever the kind of its body; scope and matchPolicy Exact leave out more than one thinks; and the bodies of \
          scale, eviction, binding, token and of connections have no labels that a selector could pick. A rule that \
          never matches gives no error: the webhook is just not called.",
    source: "kubernetes admissionregistration/v1 types.go, RuleWithOperations; apiserver \
             pkg/admission/plugin/webhook/predicates/{rules/rules.go,object/matcher.go}; kubernetes/kubernetes#132287",
    audience: Audience::All,
    probe: Probe::Configuration(run),
};

/// Subresources whose body is of another group than they are: the subresource and the body's group.
const BODIES_OF_OTHER_GROUPS: [(&str, &str); 3] =
    [("scale", "autoscaling"), ("eviction", "policy"), ("token", "authentication.k8s.io")];
/// Subresources whose body is an object without the labels of the one that it belongs to.
const OTHER_LABELS: [&str; 4] = ["scale", "eviction", "binding", "token"];

fn run(subject: &Subject, cluster_fixture: &ClusterFixture) -> Observed {
    let webhook = &subject.webhook;
    if webhook.rules.is_empty() {
        return Err(Obstacle::not_applicable("it has no rules and is never called"));
    }
    let served = cluster_fixture.resources();
    let mut violations = Vec::new();
    violations.extend(stars(webhook));
    for (index, rule) in webhook.rules.iter().enumerate() {
        let at = |field: &str| format!("rules[{index}].{field}");
        violations.extend(body_of_other_group(rule).map(|violation| violation.at(at("apiGroups"))));
        violations.extend(scope(rule, &served).map(|violation| violation.at(at("scope"))));
    }
    violations.extend(exact(webhook));
    violations.extend(labels(webhook));
    Ok(violations)
}

fn resources(webhook: &Webhook) -> impl Iterator<Item = &str> {
    webhook.rules.iter().flat_map(|rule| &rule.resources).map(String::as_str)
}

fn stars(webhook: &Webhook) -> Option<Violation> {
    let has = |wanted: &str| resources(webhook).any(|entry| entry == wanted);
    // Whoever lists some beside the star has thought of them.
    let lists_some = resources(webhook).any(|entry| entry.contains('/'));
    let (kind, message) = if has("*/*") {
        (
            "all subresources",
            "`*/*` is for every subresource, too: status, scale, exec, and whatever comes; is that meant?",
        )
    } else if has("*") && !lists_some {
        (
            "no subresources",
            "`*` is for no subresource: not for pods/exec, pods/ephemeralcontainers or */scale",
        )
    } else {
        return None;
    };
    Some(Violation::new(kind, message).with_severity(Severity::Note).at("rules"))
}

fn body_of_other_group(rule: &Rule) -> Option<Violation> {
    let entry = rule.resources.iter().find_map(|entry| {
        let (_, subresource) = entry.split_once('/')?;
        let (_, group) = BODIES_OF_OTHER_GROUPS.into_iter().find(|(name, _)| *name == subresource)?;
        // Whoever lists another group as well has thought of it.
        (rule.api_groups == [group]).then_some((entry, group))
    });
    let (entry, group) = entry?;
    let message = format!(
        "a rule for {entry} in the group {group} never matches: that is the group of the body; the resource is in its \
         parent's group"
    );
    Some(Violation::new("the group of the body", message))
}

/// Resources that a rule names and its scope leaves out.
fn scope(rule: &Rule, served: &[ServedResource]) -> Option<Violation> {
    let (namespaced, word) = match rule.scope {
        Scope::All => return None,
        Scope::Cluster => (false, "Cluster"),
        Scope::Namespaced => (true, "Namespaced"),
    };
    let left_out: BTreeSet<&str> = rule
        .resources
        .iter()
        .filter(|entry| {
            let name = entry.split_once('/').map_or(entry.as_str(), |(name, _)| name);
            let mut known = served
                .iter()
                .filter(|known| {
                    let group = &known.name.group;
                    known.name.resource == name
                        && rule.api_groups.iter().any(|entry| entry == "*" || entry == group)
                })
                .peekable();
            known.peek().is_some() && known.all(|known| known.namespaced != namespaced)
        })
        .map(String::as_str)
        .collect();
    if left_out.is_empty() {
        return None;
    }
    let left_out = left_out.into_iter().collect::<Vec<_>>().join(", ");
    let message = format!("a rule for {left_out} with the scope {word} never matches them");
    Some(Violation::new(format!("left out by the scope {word}"), message))
}

fn exact(webhook: &Webhook) -> Option<Violation> {
    let is_for_all_versions = |rule: &Rule| rule.api_versions.iter().any(|version| version == "*");
    if webhook.match_policy == MatchPolicy::Equivalent || webhook.rules.iter().all(is_for_all_versions) {
        return None;
    }
    let severity = match webhook.failure_policy {
        FailurePolicy::Fail => Severity::Warning,
        FailurePolicy::Ignore => Severity::Note,
    };
    let message = "matchPolicy Exact: who writes the same objects through another served group or version is not seen; \
                   take Equivalent unless the rules name them all";
    Some(Violation::new("matchPolicy Exact", message).with_severity(severity).at("matchPolicy"))
}

fn labels(webhook: &Webhook) -> Option<Violation> {
    let selector = &webhook.object_selector;
    if selector.is_empty() {
        return None;
    }
    let is_picked_anyway = selector.matches(Labels::default());
    // The body of a connection has no metadata at all: not even a selector for what has no label picks it.
    let never: BTreeSet<&str> = resources(webhook)
        .filter(|entry| {
            let subresource = entry.split_once('/').map_or("", |(_, name)| name);
            is_connection(subresource) || (!is_picked_anyway && OTHER_LABELS.contains(&subresource))
        })
        .collect();
    if never.is_empty() {
        return None;
    }
    let never = never.into_iter().collect::<Vec<_>>().join(", ");
    let message = format!(
        "the objectSelector `{selector}` never picks {never}: what is sent there does not have the labels of the object"
    );
    Some(Violation::new("a selector where there are no labels", message).at("objectSelector"))
}
