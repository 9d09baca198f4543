//! L04: the rules name served resources and supported operations.

use std::collections::BTreeSet;

use kubernetes_admission::attributes::{GroupVersionResource, Operation};
use kubernetes_admission::cluster_state::ClusterState as _;
use kubernetes_admission::config::{MatchPolicy, Rule, Webhook};
use kubernetes_admission::matching::exact_or_star;
use kubernetes_api_server::{ClusterFixture, ServedResource, is_connection};

use super::listed;
use crate::check::{Audience, Check, Observed, Probe, Repeatability, Severity, Skipped, Violation};
use crate::subject::Subject;

pub(super) const CHECK: Check = Check {
    id: "L04",
    title: "served resources: the rules name resources that are served and operations that these support",
    severity: Severity::Warning,
    why: "A rule for pod, for Pods, for deployments in the core group, or for a removed API version is \
          valid and matches nothing: the webhook is just not called. CONNECT on pods also matches nothing, \
          because connections are made to subresources such as pods/exec. Every other operation on these \
          subresources also matches nothing, as does an operation that a subresource does not support, such as CREATE on \
          deployments/scale. A webhook without rules is never called. Custom resources are served if the \
          manifests have their CustomResourceDefinition.",
    help: "Use the plural resource name, and a group and version that the API server serves.",
    source: "kubernetes admissionregistration/v1 types.go, Rule; apiserver \
             pkg/admission/plugin/webhook/predicates/rules/rules.go; the discovery of kube-apiserver 1.37.1",
    audience: Audience::All,
    repeatability: Repeatability::Same,
    probe: Probe::Configuration(run),
};

fn run(subject: &Subject, cluster_fixture: &ClusterFixture) -> Observed {
    let webhook = &subject.webhook;
    if webhook.rules.is_empty() {
        let message = "the webhook has no rules: kube-apiserver never calls it";
        return Ok(vec![
            Violation::new("no rules", message).at("rules").with_help("Add a rule, or remove the webhook."),
        ]);
    }
    let (violations, undefined) = unserved(&webhook.rules, webhook.match_policy, cluster_fixture);
    if violations.is_empty() && !undefined.is_empty() {
        let undefined: Vec<&str> = undefined.iter().map(String::as_str).collect();
        return Err(Skipped::unequipped(format!(
            "admit cannot determine whether {} is served: add the CustomResourceDefinition",
            listed(undefined)
        )));
    }
    Ok(violations)
}

/// Returns a message about each rule if no rule can match; empty otherwise.
pub(crate) fn never_matching(webhook: &Webhook, cluster_fixture: &ClusterFixture) -> Vec<String> {
    let error = |rule: &Rule| {
        let (violations, _) = unserved([rule], webhook.match_policy, cluster_fixture);
        let error = violations.into_iter().find(|violation| violation.severity == Some(Severity::Error));
        error.map(|violation| violation.message)
    };
    webhook.rules.iter().map(error).collect::<Option<_>>().unwrap_or_default()
}

/// Returns the violations in rules, and the resources that only a `CustomResourceDefinition` could define.
pub(super) fn unserved<'r>(
    rules: impl IntoIterator<Item = &'r Rule>,
    policy: MatchPolicy,
    cluster_fixture: &ClusterFixture,
) -> (Vec<Violation>, BTreeSet<String>) {
    let served = cluster_fixture.resources();
    let mut violations = Vec::new();
    let mut undefined = BTreeSet::new();
    for (index, written) in rules.into_iter().enumerate() {
        violations.extend(
            misnamed_groups(written)
                .map(|(position, violation)| violation.at(format!("rules[{index}].apiGroups[{position}]"))),
        );
        // With the groups that the rule means, so that a wrong group is not also reported as a wrong resource.
        let rule = &Rule {
            api_groups: written.api_groups.iter().map(|group| meant_group(group).to_owned()).collect(),
            ..written.clone()
        };
        let field = |position: usize| format!("rules[{index}].resources[{position}]");
        let matching = |entry: &str| served.iter().any(|it| names(rule, entry, it, policy, cluster_fixture));
        let unmatched: Vec<(usize, &String)> =
            rule.resources.iter().enumerate().filter(|(_, entry)| !matching(entry)).collect();
        let unknown: Vec<&str> =
            rule.api_groups.iter().map(String::as_str).filter(|group| is_custom(group)).collect();
        let unknown: Vec<&str> =
            unknown.into_iter().filter(|group| !cluster_fixture.has_group(group)).collect();
        if !unmatched.is_empty() && !unknown.is_empty() {
            undefined.extend(unmatched.iter().map(|(_, entry)| format!("{entry} of {}", unknown.join(", "))));
        } else {
            let is_whole_rule = unmatched.len() == rule.resources.len();
            for (position, entry) in unmatched {
                // A list of several resources may include names from several releases, but not misspelled names.
                let meant = meant(entry, &served);
                let is_certain = is_whole_rule
                    && !rule.api_groups.iter().any(|group| is_custom(group))
                    && (meant.is_some() || is_elsewhere(rule, entry, &served));
                let severity = match (is_whole_rule, meant) {
                    _ if is_certain => Severity::Error,
                    (true, _) | (false, Some(_)) => Severity::Warning,
                    (false, None) => Severity::Note,
                };
                let violation = Violation::new("no such resource", not_served(rule, entry, &served));
                violations.push(violation.with_severity(severity).at(field(position)));
            }
        }
        for (position, entry) in rule.resources.iter().enumerate() {
            let matched = served.iter().filter(|it| names(rule, entry, it, policy, cluster_fixture));
            let violation =
                operations(rule, entry, matched).map(|message| Violation::new("no such operation", message));
            violations.extend(violation.map(|violation| {
                violation.at(field(position)).with_help(
                    "Use operations that the resource supports, or name the resource that supports these operations.",
                )
            }));
        }
    }
    (violations, undefined)
}

/// Returns the group that an entry of `apiGroups` means: the core group for `core` and `v1`, and `apps` for `apps/v1`.
///
/// Returns other entries unchanged.
fn meant_group(entry: &str) -> &str {
    match entry.split_once('/') {
        Some((group, _)) => meant_group(group),
        None if ["core", "v1"].contains(&entry) => "",
        None => entry,
    }
}

/// Returns a violation for each entry of `apiGroups` that is not the name of a group, with its position.
fn misnamed_groups(rule: &Rule) -> impl Iterator<Item = (usize, Violation)> {
    let entries = rule.api_groups.iter().enumerate();
    entries.map(|(position, entry)| (position, entry, meant_group(entry))).filter_map(
        |(position, entry, group)| {
            let (right, help) = match group {
                group if group == entry => return None,
                "" => ("the core group is \"\"".to_owned(), CORE_GROUP_HELP),
                group => (format!("the group is \"{group}\""), GROUP_HELP),
            };
            let message = format!("the API group \"{entry}\" does not exist: {right}");
            let violation = Violation::new("no such group", message).with_help(help);
            // The entry has no effect if the rule also has the right one.
            let is_redundant = exact_or_star(&rule.api_groups, group);
            let severity = if is_redundant { Severity::Note } else { Severity::Error };
            Some((position, violation.with_severity(severity)))
        },
    )
}

/// The advice on an entry of `apiGroups` that means the core group.
const CORE_GROUP_HELP: &str =
    "Write \"\" in apiGroups for the core group, which contains pods, services, and configmaps.";
/// The advice on an entry of `apiGroups` with a version.
const GROUP_HELP: &str = "Write only the name of the group in apiGroups, and the version in apiVersions.";

/// Returns whether the group may belong to custom resources, because it contains a dot or is `*`.
///
/// Source: apiextensions-apiserver pkg/apis/apiextensions/validation/validation.go: a group has at least two labels.
fn is_custom(group: &str) -> bool {
    group == "*" || group.contains('.')
}

/// Returns whether the rule matches `served`, directly or through another version with the `matchPolicy` `Equivalent`.
fn names(
    rule: &Rule,
    entry: &str,
    served: &ServedResource,
    policy: MatchPolicy,
    cluster_fixture: &ClusterFixture,
) -> bool {
    let (name, subresource) = entry.split_once('/').unwrap_or((entry, ""));
    let has_subresource = match subresource {
        "" | "*" => true,
        named => served.subresources.iter().any(|it| it.name == named),
    };
    if !has_subresource {
        return false;
    }
    let is_named = |resource: &GroupVersionResource| {
        exact_or_star(&rule.api_groups, &resource.group)
            && exact_or_star(&rule.api_versions, &resource.version)
            && (name == "*" || name == resource.resource)
    };
    let subresource = if subresource == "*" { "" } else { subresource };
    let equivalent = || cluster_fixture.equivalent_resources(&served.name, subresource);
    is_named(&served.name)
        || (policy == MatchPolicy::Equivalent
            && equivalent().iter().any(|equivalent| is_named(&equivalent.resource)))
}

/// Returns the resource that an incorrect entry probably means: the entry is its kind, or its name in a different case.
fn meant<'a>(entry: &str, served: &'a [ServedResource]) -> Option<&'a ServedResource> {
    let name = entry.split('/').next().unwrap_or_default();
    if served.iter().any(|it| it.name.resource == name) {
        return None;
    }
    let lower = name.to_lowercase();
    served.iter().find(|it| it.kind.kind.to_lowercase() == lower || it.name.resource == lower)
}

/// Returns whether each group of the rule is served, but only other groups have the resource.
///
/// A resource of a group that is not served may exist in an older version of Kubernetes.
fn is_elsewhere(rule: &Rule, entry: &str, served: &[ServedResource]) -> bool {
    let name = entry.split('/').next().unwrap_or_default();
    let is_served = |group: &String| served.iter().any(|it| it.name.group == *group);
    let mut same_name = served.iter().filter(|it| it.name.resource == name).peekable();
    rule.api_groups.iter().all(is_served)
        && same_name.peek().is_some()
        && same_name.all(|it| !exact_or_star(&rule.api_groups, &it.name.group))
}

/// Explains why an entry does not match a served resource, and suggests a fix.
fn not_served(rule: &Rule, entry: &str, served: &[ServedResource]) -> String {
    let (name, subresource) = entry.split_once('/').unwrap_or((entry, ""));
    let in_group = |group: &str| match group {
        "" => "the core group".to_owned(),
        group => format!("the group {group}"),
    };
    let asked: Vec<String> = rule
        .api_groups
        .iter()
        .flat_map(|group| rule.api_versions.iter().map(move |version| (group, version)))
        .map(|(group, version)| if group.is_empty() { version.clone() } else { format!("{group}/{version}") })
        .collect();
    let definitions = if rule.api_groups.iter().any(|group| is_custom(group)) {
        ", and no CustomResourceDefinition in the files adds it"
    } else {
        ""
    };
    let what = format!("Kubernetes 1.37 does not serve {entry} in {}{definitions}", asked.join(", "));
    let same_name: Vec<&ServedResource> = served.iter().filter(|it| it.name.resource == name).collect();
    let in_asked_group: Vec<&&ServedResource> =
        same_name.iter().filter(|it| exact_or_star(&rule.api_groups, &it.name.group)).collect();
    let hint = if let Some(first) = in_asked_group.first() {
        let has_version = in_asked_group.iter().any(|it| exact_or_star(&rule.api_versions, &it.name.version));
        if has_version && !subresource.is_empty() {
            format!("{name} has no subresource {subresource}")
        } else {
            format!("it serves {name} in {}", first.kind.api_version())
        }
    } else if let Some(first) = same_name.first() {
        format!("{name} is in {}", in_group(&first.name.group))
    } else {
        match meant(entry, served) {
            Some(meant) => {
                let group = &meant.name.group;
                let is_asked = exact_or_star(&rule.api_groups, group);
                let elsewhere = if is_asked { String::new() } else { format!(", in {}", in_group(group)) };
                format!("use the lowercase plural name {}{elsewhere}", meant.name.resource)
            }
            None => "the entry matches nothing".to_owned(),
        }
    };
    format!("{what}: {hint}")
}

/// Explains why the rule's operations never apply to the entry.
fn operations<'a>(
    rule: &Rule,
    entry: &str,
    matched: impl Iterator<Item = &'a ServedResource>,
) -> Option<String> {
    let (name, subresource) = entry.split_once('/').unwrap_or((entry, ""));
    let is_only_connect = rule.operations.iter().all(|operation| operation == "CONNECT");
    let has_connect = exact_or_star(&rule.operations, "CONNECT");
    if is_only_connect && subresource.is_empty() {
        return Some(format!(
            "CONNECT on {name} never happens: connections are made to subresources, such as pods/exec and \
             services/proxy"
        ));
    }
    if !has_connect && is_connection(subresource) {
        return Some(format!(
            "{entry} supports only CONNECT, but the rule has {}",
            rule.operations.join(", ")
        ));
    }
    if subresource == "*" || has_connect && is_connection(subresource) {
        return None;
    }
    let verbs: BTreeSet<&str> =
        matched.flat_map(|served| verbs(served, subresource)).map(String::as_str).collect();
    let supported: BTreeSet<&str> =
        verbs.iter().filter_map(|verb| operation(verb)).map(Operation::as_str).collect();
    // The verbs of a resource may be unknown.
    if verbs.is_empty() || supported.iter().any(|operation| exact_or_star(&rule.operations, operation)) {
        return None;
    }
    let supported =
        if supported.is_empty() { "only reads".to_owned() } else { format!("only {}", listed(supported)) };
    Some(format!("{entry} supports {supported}, but the rule has {}", rule.operations.join(", ")))
}

fn verbs<'a>(served: &'a ServedResource, subresource: &str) -> &'a [String] {
    if subresource.is_empty() {
        return &served.verbs;
    }
    let named = served.subresources.iter().find(|it| it.name == subresource);
    named.map_or(&[], |subresource| &subresource.verbs)
}

/// Returns the operation of requests with the given verb, or `None` for a verb that only reads.
pub(super) fn operation(verb: &str) -> Option<Operation> {
    match verb {
        "create" => Some(Operation::Create),
        "update" | "patch" => Some(Operation::Update),
        "delete" | "deletecollection" => Some(Operation::Delete),
        _ => None,
    }
}
