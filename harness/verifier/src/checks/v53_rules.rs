//! V53: the rules match what their author intended.

use std::collections::BTreeSet;

use kubernetes_admission::config::{FailurePolicy, MatchPolicy, Rule, Scope, Webhook};
use kubernetes_api_server::{ClusterFixture, ServedResource, is_connection};
use kubernetes_types::selector::{Labels, Selector};

use crate::check::{
    Audience, CORRECT_AS_THE_MESSAGE_SAYS, Check, Observed, Probe, Repeatability, Severity, Skipped,
    Violation,
};
use crate::subject::Subject;

pub(super) const CHECK: Check = Check {
    id: "V53",
    title: "rule pitfalls: the rules match what they seem to match",
    severity: Severity::Warning,
    why: "`*` matches every resource but no subresource; `*/*` matches both. A subresource is in the group \
          of its parent, whatever the kind of its body. scope and matchPolicy Exact exclude more than \
          expected. The bodies of scale, eviction, binding, token, and of connections do not have labels \
          that a selector could match. A rule that never matches gives no error: the webhook is just not \
          called.",
    help: CORRECT_AS_THE_MESSAGE_SAYS,
    source: "kubernetes admissionregistration/v1 types.go, RuleWithOperations; apiserver \
             pkg/admission/plugin/webhook/predicates/{rules/rules.go,object/matcher.go}; \
             kubernetes/kubernetes#132287",
    audience: Audience::All,
    repeatability: Repeatability::Same,
    probe: Probe::Configuration(run),
};

/// Subresources whose body belongs to a different API group than the resource, with the API group of the body.
const BODIES_OF_OTHER_GROUPS: [(&str, &str); 3] =
    [("scale", "autoscaling"), ("eviction", "policy"), ("token", "authentication.k8s.io")];
/// Subresources whose body does not have the labels of the parent object.
const OTHER_LABELS: [&str; 4] = ["scale", "eviction", "binding", "token"];

fn run(subject: &Subject, cluster_fixture: &ClusterFixture) -> Observed {
    let webhook = &subject.webhook;
    if webhook.rules.is_empty() {
        return Err(Skipped::not_applicable("the webhook has no rules and is never called"));
    }
    let served = cluster_fixture.resources();
    let mut violations = Vec::new();
    violations.extend(stars(webhook));
    for (index, rule) in webhook.rules.iter().enumerate() {
        let at = |field: &str| format!("rules[{index}].{field}");
        violations.extend(body_of_other_group(rule).map(|violation| violation.at(at("apiGroups"))));
        violations.extend(scope(rule, &served).map(|violation| violation.at(at("scope"))));
    }
    violations.extend(unsatisfiable(webhook, &served));
    violations.extend(exact(webhook));
    violations.extend(labels(webhook));
    Ok(violations)
}

fn resources(webhook: &Webhook) -> impl Iterator<Item = &str> {
    webhook.rules.iter().flat_map(|rule| &rule.resources).map(String::as_str)
}

fn stars(webhook: &Webhook) -> Option<Violation> {
    let has = |wanted: &str| resources(webhook).any(|entry| entry == wanted);
    // An author who lists subresources in addition to `*` has considered them.
    let lists_some = resources(webhook).any(|entry| entry.contains('/'));
    let (kind, message) = if has("*/*") {
        (
            "all subresources",
            "`*/*` also matches every subresource: status, scale, exec, and future ones; list the \
             subresources that you need",
        )
    } else if has("*") && !lists_some {
        ("no subresources", "`*` matches no subresource: not pods/exec, pods/ephemeralcontainers, or */scale")
    } else {
        return None;
    };
    Some(Violation::new(kind, message).with_severity(Severity::Note).at("rules"))
}

/// Reports a rule for a subresource in the group of the subresource's body.
pub(super) fn body_of_other_group(rule: &Rule) -> Option<Violation> {
    let entry = rule.resources.iter().find_map(|entry| {
        let (_, subresource) = entry.split_once('/')?;
        let (_, group) = BODIES_OF_OTHER_GROUPS.into_iter().find(|(name, _)| *name == subresource)?;
        // An author who also lists another group has considered it.
        (rule.api_groups == [group]).then_some((entry, group))
    });
    let (entry, group) = entry?;
    let message = format!(
        "a rule for {entry} in the group {group} never matches: that is the group of the body; use the \
         group of the parent resource"
    );
    Some(Violation::new("the group of the body", message))
}

/// Reports resources that a rule names but that its scope excludes.
pub(super) fn scope(rule: &Rule, served: &[ServedResource]) -> Option<Violation> {
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
    let message = format!("a rule for {left_out} with scope {word} never matches");
    Some(Violation::new(format!("excluded by scope {word}"), message))
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
    let message = "matchPolicy Exact: the webhook is not called for the same objects in another served \
                   group or version; use Equivalent unless the rules name them all";
    Some(Violation::new("matchPolicy Exact", message).with_severity(severity).at("matchPolicy"))
}

/// Reports selectors that no labels satisfy.
fn unsatisfiable(webhook: &Webhook, served: &[ServedResource]) -> impl Iterator<Item = Violation> {
    let never = ("the webhook is never called", Severity::Error);
    // A namespaceSelector does not apply to other cluster-scoped objects.
    let rarely =
        ("the webhook is called only for cluster-scoped objects other than Namespaces", Severity::Warning);
    let selectors = [
        ("objectSelector", &webhook.object_selector, never),
        (
            "namespaceSelector",
            &webhook.namespace_selector,
            if webhook.rules.iter().any(|rule| may_be_cluster_scoped(rule, served)) { rarely } else { never },
        ),
    ];
    let is_unsatisfiable =
        |selector: &Selector| selector.error().is_none() && Selector::common_labels(&[selector]).is_none();
    selectors.into_iter().filter(move |(_, selector, _)| is_unsatisfiable(selector)).map(
        |(field, selector, (effect, severity))| {
            let message = format!("no labels satisfy the {field} `{selector}`: {effect}");
            let violation = Violation::new("unsatisfiable selector", message).at(field);
            violation
                .with_severity(severity)
                .with_why("A selector matches only if all of its requirements match. kube-apiserver accepts a selector that can never match, and does not call the webhook.")
                .with_help("Correct or remove the requirements that exclude each other.")
        },
    )
}

/// Returns whether a rule may match cluster-scoped objects other than Namespaces. The scope of resources that are not served
/// is unknown.
fn may_be_cluster_scoped(rule: &Rule, served: &[ServedResource]) -> bool {
    rule.scope != Scope::Namespaced
        && rule.resources.iter().any(|entry| {
            let name = entry.split('/').next().unwrap_or_default();
            let mut known = served.iter().filter(|known| known.name.resource == name).peekable();
            name == "*"
                || known.peek().is_none()
                || known.any(|known| !known.namespaced && name != "namespaces")
        })
}

fn labels(webhook: &Webhook) -> Option<Violation> {
    let selector = &webhook.object_selector;
    if selector.is_empty() {
        return None;
    }
    let is_picked_anyway = selector.matches(Labels::default());
    // The body of a connection has no metadata, so no selector matches it, not even one for absent labels.
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
        "the objectSelector `{selector}` never matches {never}: the request body does not have the labels \
         of the object"
    );
    Some(Violation::new("objectSelector without labels to match", message).at("objectSelector"))
}
