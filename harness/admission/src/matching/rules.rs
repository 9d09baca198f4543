//! Matches rules against requests.

pub(crate) use crate::attributes::{GroupVersionResource, Operation};
use crate::config::{Rule, Scope};

/// The parts of a request that rules match.
///
/// `resource` may be an equivalent resource; the other fields are the request's own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'a> {
    pub(super) operation: Operation,
    pub(super) resource: &'a GroupVersionResource,
    pub(super) subresource: &'a str,
    pub(super) namespace: &'a str,
}

/// Returns whether `rule` matches `request`.
///
/// Source: apiserver pkg/admission/plugin/webhook/predicates/rules/rules.go, `Matcher.Matches`.
/// Rule: SEL-03.
pub(crate) fn matches(rule: &Rule, request: Request<'_>) -> bool {
    mismatches(rule, request).next().is_none()
}

/// Returns the fields of `rule` that do not match `request`, in the order in which they are checked.
pub(super) fn mismatches<'a>(rule: &'a Rule, request: Request<'a>) -> impl Iterator<Item = Field> + 'a {
    let tests: [(Field, Test); 5] = [
        (Field::Scope, scope),
        (Field::Operations, operation),
        (Field::ApiGroups, group),
        (Field::ApiVersions, version),
        (Field::Resources, resource),
    ];
    tests.into_iter().filter(move |(_, test)| !test(rule, request)).map(|(field, _)| field)
}

type Test = fn(&Rule, Request<'_>) -> bool;

/// A field of a rule, in the order in which the fields are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Scope,
    Operations,
    ApiGroups,
    ApiVersions,
    Resources,
}

/// Returns whether the scope of the rule includes the resource.
///
/// Rule: SEL-07.
fn scope(rule: &Rule, request: Request<'_>) -> bool {
    let namespaced = !request.namespace.is_empty() && !is_namespaces(request.resource);
    match rule.scope {
        Scope::All => true,
        Scope::Cluster => !namespaced,
        Scope::Namespaced => namespaced,
    }
}

fn operation(rule: &Rule, request: Request<'_>) -> bool {
    exact_or_star(&rule.operations, request.operation.as_str())
}

fn group(rule: &Rule, request: Request<'_>) -> bool {
    exact_or_star(&rule.api_groups, &request.resource.group)
}

fn version(rule: &Rule, request: Request<'_>) -> bool {
    exact_or_star(&rule.api_versions, &request.resource.version)
}

/// Returns whether any entry in the rule's `resources` matches.
///
/// An entry without a slash matches only the main resource; `/*` matches the main resource and every subresource.
///
/// Rule: SEL-05, SEL-06.
fn resource(rule: &Rule, request: Request<'_>) -> bool {
    rule.resources.iter().any(|entry| {
        let (resource, subresource) = entry.split_once('/').unwrap_or((entry, ""));
        is_or_star(resource, &request.resource.resource) && is_or_star(subresource, request.subresource)
    })
}

/// Returns whether a list of operations, groups, or versions contains the value or `*`, at any position.
///
/// Rule: SEL-04.
pub fn exact_or_star(entries: &[String], requested: &str) -> bool {
    entries.iter().any(|entry| is_or_star(entry, requested))
}

fn is_or_star(entry: &str, requested: &str) -> bool {
    entry == "*" || entry == requested
}

fn is_namespaces(resource: &GroupVersionResource) -> bool {
    resource.group.is_empty() && resource.version == "v1" && resource.resource == "namespaces"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(entries: &[&str]) -> Vec<String> {
        entries.iter().map(|entry| (*entry).to_owned()).collect()
    }

    fn anything() -> Rule {
        Rule {
            operations: list(&["*"]),
            api_groups: list(&["*"]),
            api_versions: list(&["*"]),
            resources: list(&["*/*"]),
            scope: Scope::All,
        }
    }

    /// Checks whether `rule` matches a CREATE in the namespace `default`.
    ///
    /// The path is `group/version/resource` or `group/version/resource/subresource`.
    #[track_caller]
    fn check(rule: &Rule, path: &str, expect: bool) {
        check_in("default", Operation::Create, rule, path, expect);
    }

    #[track_caller]
    fn check_in(namespace: &str, operation: Operation, rule: &Rule, path: &str, expect: bool) {
        let parts: Vec<&str> = path.splitn(4, '/').collect();
        let resource = GroupVersionResource::new(parts[0], parts[1], parts[2]);
        let subresource = parts.get(3).copied().unwrap_or_default();
        let request = Request { operation, resource: &resource, subresource, namespace };
        assert_eq!(matches(rule, request), expect, "{rule:?} on {operation} {path} in {namespace:?}");
    }

    #[track_caller]
    fn check_resources(entries: &[&str], path: &str, expect: bool) {
        check(&Rule { resources: list(entries), ..anything() }, path, expect);
    }

    #[test]
    fn a_resource_without_a_slash_is_for_the_main_resource_only() {
        check_resources(&["pods"], "/v1/pods", true);
        check_resources(&["pods"], "/v1/pods/status", false);
        check_resources(&["pods"], "/v1/services", false);
    }

    #[test]
    fn a_star_matches_every_resource_and_no_subresource() {
        check_resources(&["*"], "/v1/pods", true);
        check_resources(&["*"], "apps/v1/deployments", true);
        check_resources(&["*"], "/v1/pods/status", false);
    }

    #[test]
    fn two_stars_match_everything() {
        check_resources(&["*/*"], "/v1/pods", true);
        check_resources(&["*/*"], "/v1/pods/exec", true);
    }

    #[test]
    fn a_star_after_the_slash_also_matches_the_main_resource() {
        check_resources(&["pods/*"], "/v1/pods", true);
        check_resources(&["pods/*"], "/v1/pods/status", true);
        check_resources(&["pods/*"], "/v1/services/status", false);
    }

    #[test]
    fn a_star_before_the_slash_matches_one_subresource_of_every_resource() {
        check_resources(&["*/status"], "/v1/pods/status", true);
        check_resources(&["*/status"], "apps/v1/deployments/status", true);
        check_resources(&["*/status"], "/v1/pods", false);
        check_resources(&["*/status"], "/v1/pods/exec", false);
    }

    #[test]
    fn one_matching_entry_is_sufficient() {
        check_resources(&["services", "pods/status"], "/v1/pods/status", true);
        check_resources(&[], "/v1/pods", false);
    }

    #[test]
    fn only_the_first_slash_separates_resource_and_subresource() {
        check_resources(&["pods/a/b"], "/v1/pods/a/b", true);
        check_resources(&["pods/a/b"], "/v1/pods/a", false);
    }

    #[test]
    fn groups_versions_and_operations_match_exactly_or_by_a_star() {
        check(&Rule { api_groups: list(&[""]), ..anything() }, "/v1/pods", true);
        check(&Rule { api_groups: list(&[""]), ..anything() }, "apps/v1/deployments", false);
        check(&Rule { api_groups: list(&["batch", "*"]), ..anything() }, "apps/v1/deployments", true);
        check(&Rule { api_versions: list(&["v1beta1"]), ..anything() }, "/v1/pods", false);
        check(&Rule { api_versions: list(&["v1beta1", "v1"]), ..anything() }, "/v1/pods", true);
        let deletes = Rule { operations: list(&["UPDATE", "DELETE"]), ..anything() };
        check_in("", Operation::Delete, &deletes, "/v1/nodes", true);
        check_in("", Operation::Create, &deletes, "/v1/nodes", false);
        check_in("", Operation::Connect, &anything(), "/v1/pods/exec", true);
    }

    #[test]
    fn scope_distinguishes_namespaced_and_cluster_scoped_objects() {
        let namespaced = Rule { scope: Scope::Namespaced, ..anything() };
        let cluster = Rule { scope: Scope::Cluster, ..anything() };
        for (namespace, path, is_namespaced) in [
            ("default", "/v1/pods", true),
            ("", "/v1/nodes", false),
            // A Namespace and its subresources have a namespace in the request, but are cluster-scoped.
            ("default", "/v1/namespaces", false),
            ("default", "/v1/namespaces/status", false),
            // Only `namespaces` in the core group are Namespaces.
            ("default", "example.com/v1/namespaces", true),
        ] {
            check_in(namespace, Operation::Update, &namespaced, path, is_namespaced);
            check_in(namespace, Operation::Update, &cluster, path, !is_namespaced);
            check_in(namespace, Operation::Update, &anything(), path, true);
        }
    }
}
