//! L05: the rules say what they are for.

use kubernetes_api_server::ClusterFixture;
use kubernetes_types::json::at;
use serde_json::Value;

use super::matched;
use crate::check::{Audience, Check, Observed, Obstacle, Probe, Severity, Violation};
use crate::subject::Subject;

pub(super) const CHECK: Check = Check {
    id: "L05",
    title: "its rules are no wider than they need be: operations, groups, scope",
    severity: Severity::Note,
    why: "Every call costs time, and every object that a webhook matches waits for it. A star in operations is DELETE \
          and CONNECT, too, where there is no object to look at; a star in apiGroups is also every group that somebody \
          installs later; a scope that is not set is objects in namespaces and outside of them.",
    source: "Admission Webhook Good Practices, Limit the scope of each webhook; kubernetes admissionregistration/v1 \
             types.go",
    audience: Audience::All,
    probe: Probe::Configuration(run),
};

fn run(subject: &Subject, cluster_fixture: &ClusterFixture) -> Observed {
    let webhook = &subject.webhook;
    if webhook.rules.is_empty() {
        return Err(Obstacle::not_applicable("it has no rules and is never called"));
    }
    let is_star = |entries: &[String]| entries.iter().any(|entry| entry == "*");
    let mut violations = Vec::new();
    for (index, rule) in webhook.rules.iter().enumerate() {
        let mut wide = |kind: &str, message: String, field: &str| {
            violations.push(Violation::new(kind, message).at(format!("rules[{index}].{field}")));
        };
        if is_star(&rule.operations) {
            let message = "`*` is every operation: DELETE and CONNECT, where `object` is null, too";
            wide("all operations", message.to_owned(), "operations");
        }
        if is_star(&rule.api_groups) {
            let resources = rule.resources.join(", ");
            let message =
                format!("`*` is every group, also one that is installed later: {resources} of all of them");
            wide("all groups", message, "apiGroups");
        }
        let written = at(subject.declaration(), &["rules"]).get(index).unwrap_or(&Value::Null);
        let is_left_out = written.get("scope").is_none_or(Value::is_null);
        if is_left_out && is_for_both(rule, cluster_fixture) {
            let message = "scope is not set, so it is `*`: objects in namespaces, and others, which no \
                           namespaceSelector leaves out";
            wide("scope is left to the default", message.to_owned(), "scope");
        }
    }
    Ok(violations)
}

/// Whether the scope would make a difference: the rule is for namespaced resources and for others.
fn is_for_both(rule: &kubernetes_admission::config::Rule, cluster_fixture: &ClusterFixture) -> bool {
    let served = cluster_fixture.resources();
    let catches = |namespaced: bool| {
        served.iter().filter(|it| it.namespaced == namespaced).any(|it| {
            let name = (it.name.group.as_str(), it.name.version.as_str(), it.name.resource.as_str());
            rule.operations.iter().any(|operation| matched::catches(rule, operation, name))
        })
    };
    catches(true) && catches(false)
}
