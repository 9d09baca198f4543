//! Determines the kinds of the objects that rules match.

use std::collections::BTreeSet;

use kubernetes_admission::attributes::GroupVersionKind;
use kubernetes_admission::config::Rule;
use kubernetes_api_server::ClusterFixture;
use kubernetes_types::schema::MESSAGES;

/// Returns the kinds of the objects that a rule matches, or `None` if the rule can match unknown kinds.
pub(super) fn kinds_of(rule: &Rule, cluster_fixture: &ClusterFixture) -> Option<Vec<GroupVersionKind>> {
    let has_star = |list: &[String]| list.iter().any(|entry| entry == "*");
    if has_star(&rule.api_groups) {
        return None;
    }
    let mut served = cluster_fixture.resources();
    served.retain(|served| rule.api_groups.contains(&served.name.group));
    // A group that is not served may have a resource with any of the names.
    if !rule.api_groups.iter().all(|group| served.iter().any(|served| served.name.group == *group)) {
        return None;
    }
    served.retain(|served| has_star(&rule.api_versions) || rule.api_versions.contains(&served.name.version));
    let mut kinds = Vec::new();
    for entry in &rule.resources {
        let name = entry.strip_suffix("/status").unwrap_or(entry);
        let matched = served.iter().filter(|served| served.name.resource == name);
        let before = kinds.len();
        kinds.extend(matched.map(|served| served.kind.clone()));
        if kinds.len() == before {
            return None;
        }
    }
    Some(kinds)
}

/// Returns the names of the fields at the top of the objects that the rules match, or `None` if the rules can match
/// objects of unknown kinds.
pub(super) fn top_level_fields(
    rules: &[&Rule],
    cluster_fixture: &ClusterFixture,
) -> Option<BTreeSet<&'static str>> {
    let served = cluster_fixture.resources();
    let mut names = BTreeSet::new();
    for rule in rules {
        for group in &rule.api_groups {
            let resources: Vec<_> = served.iter().filter(|served| served.name.group == *group).collect();
            for entry in &rule.resources {
                let matched: Vec<_> = resources
                    .iter()
                    .filter(|served| entry == "*" || served.name.resource == *entry)
                    .collect();
                if matched.is_empty() {
                    return None;
                }
                for served in matched {
                    let message = MESSAGES.get(MESSAGES.of_kind(&served.kind)?);
                    names.extend(message.members().iter().map(|field| field.name));
                }
            }
        }
    }
    Some(names)
}
