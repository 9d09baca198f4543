//! Checks for privilege escalation: a user may grant only permissions that the user has.

use std::collections::{BTreeMap, BTreeSet};

use kubernetes_types::quoting::quote;
use kubernetes_types::status::{Unsupported, aggregate};

use super::policy_rule::{PolicyRule, covers_path, quoted};
use crate::attributes::UserInfo;

/// The permissions that a user would grant without having them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Escalation {
    missing: BTreeSet<String>,
}

impl Escalation {
    /// Returns the permissions in `granted` that are missing from `held`; `None` if `held` covers them all.
    ///
    /// # Errors
    /// Returns [`Unsupported`] if there are too many permissions to compare. kube-apiserver does not have a limit
    /// and runs out of memory.
    ///
    /// Source: component-helpers `auth/rbac/validation/policy_comparator.go`, `Covers`.
    pub fn find(held: &[PolicyRule], granted: &[PolicyRule]) -> Result<Option<Self>, Unsupported> {
        let rights = granted.iter().map(single_rights).fold(0, usize::saturating_add);
        if rights > MAX_RIGHTS {
            let what = format!("rules that grant more than {MAX_RIGHTS} permissions");
            return Err(Unsupported { what });
        }
        let missing: Vec<PolicyRule> = granted
            .iter()
            .flat_map(broken_down)
            .filter(|rule| !held.iter().any(|owned| covers(owned, rule)))
            .collect();
        let texts: BTreeSet<String> = compacted(missing).iter().map(PolicyRule::compact).collect();
        Ok((!texts.is_empty()).then_some(Self { missing: texts }))
    }

    /// Returns the message for the user. `errors` are the reasons why some permissions may not have been found.
    ///
    /// Source: kubernetes pkg/registry/rbac/validation/rule.go, `ConfirmNoEscalation`.
    pub fn message(&self, user: &UserInfo, errors: Vec<String>) -> String {
        let missing: Vec<&str> = self.missing.iter().map(String::as_str).collect();
        let errors = match aggregate(errors) {
            error if error.is_empty() => error,
            error => format!("; resolution errors: [{error}]"),
        };
        format!(
            "user {} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}{errors}",
            quote(&user.username),
            quoted(&user.groups),
            missing.join("\n")
        )
    }
}

/// The maximum number of individual permissions that are compared with a user's permissions.
const MAX_RIGHTS: usize = 100_000;

/// Returns the number of rules into which [`broken_down`] splits a rule.
fn single_rights(rule: &PolicyRule) -> usize {
    let product = |counts: &[usize]| counts.iter().copied().fold(1, usize::saturating_mul);
    let (verbs, names) = (rule.verbs.len(), rule.resource_names.len().max(1));
    product(&[rule.api_groups.len(), rule.resources.len(), verbs, names])
        .saturating_add(product(&[rule.non_resource_urls.len(), verbs]))
}

/// Splits a rule into rules with one verb and one resource, name, or path each.
fn broken_down(rule: &PolicyRule) -> Vec<PolicyRule> {
    let one = |text: &String| vec![text.clone()];
    let mut rules = Vec::new();
    for group in &rule.api_groups {
        for resource in &rule.resources {
            for verb in &rule.verbs {
                let any = PolicyRule {
                    verbs: one(verb),
                    api_groups: one(group),
                    resources: one(resource),
                    ..PolicyRule::default()
                };
                if rule.resource_names.is_empty() {
                    rules.push(any.clone());
                }
                for name in &rule.resource_names {
                    rules.push(PolicyRule { resource_names: one(name), ..any.clone() });
                }
            }
        }
    }
    for url in &rule.non_resource_urls {
        for verb in &rule.verbs {
            rules.push(PolicyRule { verbs: one(verb), non_resource_urls: one(url), ..PolicyRule::default() });
        }
    }
    rules
}

/// Returns whether `owned` covers `part`. `part` must be a result of [`broken_down`].
///
/// Source: component-helpers `auth/rbac/validation/policy_comparator.go`, `ruleCovers`.
fn covers(owned: &PolicyRule, part: &PolicyRule) -> bool {
    let has = |list: &[String], wanted: &String| list.contains(wanted);
    let has_all = |list: &[String], wanted: &[String]| {
        list.iter().any(|item| item == "*") || wanted.iter().all(|item| has(list, item))
    };
    let covers_resource = |wanted: &String| {
        let of_all = wanted.split_once('/').map(|(_, subresource)| format!("*/{subresource}"));
        has(&owned.resources, wanted) || of_all.is_some_and(|of_all| has(&owned.resources, &of_all))
    };
    let covers_url = |wanted: &String| owned.non_resource_urls.iter().any(|url| covers_path(url, wanted));
    let covers_names = owned.resource_names.is_empty()
        || (!part.resource_names.is_empty()
            && part.resource_names.iter().all(|name| has(&owned.resource_names, name)));
    has_all(&owned.verbs, &part.verbs)
        && has_all(&owned.api_groups, &part.api_groups)
        && (owned.resources.iter().any(|resource| resource == "*")
            || part.resources.iter().all(covers_resource))
        && part.non_resource_urls.iter().all(covers_url)
        && covers_names
}

/// Merges rules that differ only in their verbs.
///
/// Source: kubernetes `pkg/registry/rbac/validation/policy_compact.go`, `CompactRules`.
fn compacted(rules: Vec<PolicyRule>) -> Vec<PolicyRule> {
    let mut compacted: Vec<PolicyRule> = Vec::new();
    let mut places = BTreeMap::new();
    for rule in rules {
        if !rule.non_resource_urls.is_empty() {
            compacted.push(rule);
            continue;
        }
        let what = (rule.api_groups.clone(), rule.resources.clone(), rule.resource_names.clone());
        let place = *places.entry(what).or_insert(compacted.len());
        match compacted.get_mut(place) {
            Some(known) => known.verbs.extend(rule.verbs),
            None => compacted.push(rule),
        }
    }
    compacted
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn rules(rules: &Value) -> Vec<PolicyRule> {
        rules.as_array().unwrap().iter().map(PolicyRule::from_value).collect()
    }

    #[track_caller]
    fn check(held: &Value, granted: &Value, missing: &[&str]) {
        let found = Escalation::find(&rules(held), &rules(granted)).unwrap();
        let found: Vec<String> = found.into_iter().flat_map(|escalation| escalation.missing).collect();
        assert_eq!(found, missing, "{held} {granted}");
    }

    #[test]
    fn held_permissions_can_be_granted() {
        let pods = json!([{"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods", "pods/log"]}]);
        check(&pods, &pods, &[]);
        let all = json!([{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]);
        check(&all, &pods, &[]);
        check(&all, &all, &[]);
        let logs = json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["*/log"]}]);
        check(
            &logs,
            &json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["pods/log", "x/log"]}]),
            &[],
        );
        let named = |names: &[&str]| json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": names}]);
        check(&pods, &named(&["a"]), &[]);
        check(&named(&["a", "b"]), &named(&["a"]), &[]);
        let urls = |url: &str| json!([{"verbs": ["get"], "nonResourceURLs": [url]}]);
        check(&urls("/a/*"), &urls("/a/b"), &[]);
        check(&urls("*"), &urls("/a/*"), &[]);
    }

    #[test]
    fn missing_permissions_are_listed_with_merged_verbs() {
        let held = json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]);
        check(
            &held,
            &json!([
                {"verbs": ["get", "list", "watch"], "apiGroups": [""], "resources": ["pods", "secrets"]},
                {"verbs": ["get", "post"], "nonResourceURLs": ["/x"]},
            ]),
            &[
                r#"{APIGroups:[""], Resources:["pods"], Verbs:["list" "watch"]}"#,
                r#"{APIGroups:[""], Resources:["secrets"], Verbs:["get" "list" "watch"]}"#,
                r#"{NonResourceURLs:["/x"], Verbs:["get"]}"#,
                r#"{NonResourceURLs:["/x"], Verbs:["post"]}"#,
            ],
        );
        let named =
            json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["a"]}]);
        check(&named, &held, &[r#"{APIGroups:[""], Resources:["pods"], Verbs:["get"]}"#]);
        let several = json!([{"verbs": ["get"], "apiGroups": ["", "x"], "resources": ["pods"]}]);
        check(&held, &several, &[r#"{APIGroups:["x"], Resources:["pods"], Verbs:["get"]}"#]);
        check(
            &held,
            &json!([{"verbs": ["*"], "apiGroups": [""], "resources": ["pods"]}]),
            &[r#"{APIGroups:[""], Resources:["pods"], Verbs:["*"]}"#],
        );
    }

    #[test]
    fn permissions_are_counted_before_rules_are_split() {
        let many = |count: usize| vec!["x"; count];
        let rule =
            |count| json!([{"verbs": many(count), "apiGroups": many(count), "resources": many(count)}]);
        assert!(Escalation::find(&rules(&rule(46)), &rules(&rule(46))).is_ok());
        assert_eq!(
            Escalation::find(&[], &rules(&rule(100_000))).unwrap_err().what,
            "rules that grant more than 100000 permissions"
        );
    }

    #[test]
    fn the_message_names_the_user_and_its_groups() {
        let granted = json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]);
        let escalation = Escalation::find(&[], &rules(&granted)).unwrap().unwrap();
        let user = UserInfo {
            username: "alice".to_owned(),
            groups: vec!["a".to_owned(), "b".to_owned()],
            ..UserInfo::default()
        };
        assert_eq!(
            escalation.message(&user, Vec::new()),
            "user \"alice\" (groups=[\"a\" \"b\"]) is attempting to grant RBAC permissions not currently held:\n\
             {APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"get\"]}"
        );
        for (errors, end) in [(&["x"][..], "[x]"), (&["x", "y", "x"], "[[x, y]]")] {
            let errors = errors.iter().map(|error| (*error).to_owned()).collect();
            let message = escalation.message(&user, errors);
            assert!(message.ends_with(&format!("; resolution errors: {end}")), "{message}");
        }
    }
}
