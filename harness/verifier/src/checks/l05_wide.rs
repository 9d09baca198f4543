//! L05: the rules say what they are for.

use std::collections::BTreeSet;

use kubernetes_admission::config::FailurePolicy;
use kubernetes_api_server::ClusterFixture;
use kubernetes_types::json::at;
use kubernetes_types::schema;
use serde_json::Value;

use super::{matched, v50_system};
use crate::check::{Audience, Check, Observed, Obstacle, Probe, Severity, Violation};
use crate::subject::Subject;

pub(super) const CHECK: Check = Check {
    id: "L05",
    title: "it matches no more than it needs to: operations, groups, scope, namespaces",
    severity: Severity::Note,
    why: "Each call takes time, and each request that a webhook matches waits for it. `*` in operations includes \
          DELETE and CONNECT, which carry no new object; `*` in apiGroups includes every group that is installed \
          later; without a scope, a rule matches both namespaced and cluster-scoped objects. A webhook that fails \
          closed and has no namespaceSelector blocks writes in every namespace while it is down, kube-system \
          included. Where that takes down the control plane, V50 reports it.",
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
    violations.extend(is_everywhere(subject, cluster_fixture));
    Ok(violations)
}

/// That it fails closed in every namespace, for resources of Kubernetes of which V50 says nothing. Custom resources are often
/// the webhook's own.
fn is_everywhere(subject: &Subject, cluster_fixture: &ClusterFixture) -> Option<Violation> {
    let webhook = &subject.webhook;
    let is_limited = !webhook.namespace_selector.is_empty() || !webhook.match_conditions.is_empty();
    if is_limited || webhook.failure_policy != FailurePolicy::Fail {
        return None;
    }
    if v50_system::run(subject, cluster_fixture).is_ok_and(|found| !found.is_empty()) {
        return None;
    }
    let served = cluster_fixture.resources();
    let caught = served.iter().filter(|it| it.namespaced && schema::is_known(&it.kind)).filter(|it| {
        let name = (it.name.group.as_str(), it.name.version.as_str(), it.name.resource.as_str());
        webhook
            .rules
            .iter()
            .any(|rule| rule.operations.iter().any(|operation| matched::catches(rule, operation, name)))
    });
    let caught: BTreeSet<&str> = caught.map(|it| it.name.resource.as_str()).collect();
    if caught.is_empty() {
        return None;
    }
    let message = format!(
        "it fails closed and has no namespaceSelector: while it is down, writes of {} are refused in all namespaces, kube-system \
         and its own included",
        super::listed(caught)
    );
    Some(Violation::new("every namespace", message).at("namespaceSelector"))
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
