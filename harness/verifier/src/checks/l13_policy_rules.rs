//! L13: the rules of policies and bindings match requests.

use kubernetes_admission::config::{MatchPolicy, Rule};
use kubernetes_admission::policy::{MatchResources, NamedRule};
use kubernetes_api_server::ClusterFixture;

use super::l04_served::unserved;
use super::v53_rules::{body_of_other_group, scope};
use crate::check::{Audience, Check, Defect, Probe, Repeatability, Severity, Violation};
use crate::manifests::{About, Manifests};

pub(super) const CHECK: Check = Check {
    id: "L13",
    title: "policy rules: the rules of policies and bindings match served resources and operations that those \
            resources support",
    severity: Severity::Warning,
    why: "A rule for pod, for deployments in the core group, or for a removed API version is valid but matches \
          nothing, so the policy is never applied. The same holds for operations that a resource does not support. \
          Custom resources count as served only if the manifests contain their CustomResourceDefinitions.",
    help: "Use the plural resource name, and a group, version, scope, and operations that the API server serves.",
    source: "apiserver pkg/admission/plugin/policy/matching/matching.go; the discovery of kube-apiserver 1.37.1",
    audience: Audience::Policies,
    repeatability: Repeatability::Same,
    probe: Probe::Manifests(About::Policies, run),
};

fn run(manifests: &Manifests<'_>) -> Vec<Defect> {
    manifests.policies().examine(|object| {
        let constraints =
            object.definition().map(|policy| (&policy.match_constraints, "spec.matchConstraints"));
        let of_binding = || Some((object.binding()?.match_resources.as_ref()?, "spec.matchResources"));
        let Some((resources, field)) = constraints.or_else(of_binding) else { return Vec::new() };
        rules(resources, field, &manifests.cluster_fixture)
    })
}

fn rules(resources: &MatchResources, field: &str, cluster_fixture: &ClusterFixture) -> Vec<Violation> {
    let MatchResources { resource_rules, exclude_resource_rules, match_policy, .. } = resources;
    let mut violations = Vec::new();
    for (list, rules) in [("resourceRules", resource_rules), ("excludeResourceRules", exclude_resource_rules)]
    {
        let found = of_list(rules, *match_policy, cluster_fixture).into_iter();
        violations.extend(found.map(|mut violation| {
            let rest = violation.field.strip_prefix("rules").unwrap_or_default();
            violation.field = format!("{field}.{list}{rest}");
            // Exclusions often name resources of several releases.
            if list == "resourceRules" { violation } else { violation.with_severity(Severity::Note) }
        }));
    }
    violations
}

fn of_list(rules: &[NamedRule], policy: MatchPolicy, cluster_fixture: &ClusterFixture) -> Vec<Violation> {
    let rules: Vec<&Rule> = rules.iter().map(|rule| &rule.rule).collect();
    let (mut violations, _) = unserved(rules.iter().copied(), policy, cluster_fixture);
    let served = cluster_fixture.resources();
    for (index, rule) in rules.into_iter().enumerate() {
        let at = |field: &str| format!("rules[{index}].{field}");
        violations.extend(body_of_other_group(rule).map(|violation| violation.at(at("apiGroups"))));
        violations.extend(scope(rule, &served).map(|violation| violation.at(at("scope"))));
    }
    violations
}
