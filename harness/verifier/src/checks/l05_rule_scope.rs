//! L05: the rules match only requests that the webhook needs.

use std::collections::BTreeSet;

use kubernetes_admission::config::FailurePolicy;
use kubernetes_api_server::ClusterFixture;
use kubernetes_types::json::at;
use kubernetes_types::schema;
use serde_json::Value;

use super::{match_outcome, v50_system_resources};
use crate::check::{Audience, Check, Observed, Probe, Repeatability, Severity, Skipped, Violation};
use crate::subject::Subject;

pub(super) const CHECK: Check = Check {
    id: "L05",
    title: "rule scope: the rules match only the operations, groups, scope, and namespaces that the webhook \
            needs",
    severity: Severity::Note,
    why: "Each call takes time, and each request that a webhook matches waits for it. `*` in operations \
          includes DELETE, whose object is null, and CONNECT, whose object contains options; `*` in \
          apiGroups includes every group that is installed later; without a scope, a rule matches both namespaced and cluster-scoped \
          objects. A webhook with failurePolicy Fail and without a namespaceSelector blocks writes in every \
          namespace while it is down, including kube-system. If the webhook matches objects that the \
          control plane needs, V50 reports it instead.",
    help: "List the operations, groups, and resources that the webhook handles, and add a namespaceSelector.",
    source: "Admission Webhook Good Practices, Limit the scope of each webhook; kubernetes \
             admissionregistration/v1 \
             types.go",
    audience: Audience::All,
    repeatability: Repeatability::Same,
    probe: Probe::Configuration(run),
};

fn run(subject: &Subject, cluster_fixture: &ClusterFixture) -> Observed {
    let webhook = &subject.webhook;
    if webhook.rules.is_empty() {
        return Err(Skipped::not_applicable("the webhook has no rules and is never called"));
    }
    let is_star = |entries: &[String]| entries.iter().any(|entry| entry == "*");
    let mut violations = Vec::new();
    for (index, rule) in webhook.rules.iter().enumerate() {
        let mut wide = |kind: &str, message: String, field: &str| {
            violations.push(Violation::new(kind, message).at(format!("rules[{index}].{field}")));
        };
        if is_star(&rule.operations) {
            let message = "`*` matches every operation, including DELETE, whose object is null, and CONNECT, \
                           whose object contains options";
            wide("all operations", message.to_owned(), "operations");
        }
        if is_star(&rule.api_groups) {
            let message = "`*` matches every group, including groups that are installed later";
            wide("all groups", message.to_owned(), "apiGroups");
        }
        let written = at(subject.declaration(), &["rules"]).get(index).unwrap_or(&Value::Null);
        let is_left_out = written.get("scope").is_none_or(Value::is_null);
        if is_left_out && is_for_both(rule, cluster_fixture) {
            let message = "scope is not set and defaults to `*`: it also matches cluster-scoped objects, \
                           which a namespaceSelector does not exclude";
            wide("scope is not set", message.to_owned(), "scope");
        }
    }
    violations.extend(is_everywhere(subject, cluster_fixture));
    Ok(violations)
}

/// Reports a webhook with the failure policy `Fail` for built-in resources in every namespace, unless V50 reports it.
fn is_everywhere(subject: &Subject, cluster_fixture: &ClusterFixture) -> Option<Violation> {
    let webhook = &subject.webhook;
    let is_limited = !webhook.namespace_selector.is_empty() || !webhook.match_conditions.is_empty();
    if is_limited || webhook.failure_policy != FailurePolicy::Fail {
        return None;
    }
    if v50_system_resources::run(subject, cluster_fixture).is_ok_and(|found| !found.is_empty()) {
        return None;
    }
    let served = cluster_fixture.resources();
    let caught = served.iter().filter(|it| it.namespaced && schema::is_known(&it.kind)).filter(|it| {
        let name = (it.name.group.as_str(), it.name.version.as_str(), it.name.resource.as_str());
        webhook
            .rules
            .iter()
            .any(|rule| rule.operations.iter().any(|operation| match_outcome::catches(rule, operation, name)))
    });
    let caught: BTreeSet<&str> = caught.map(|it| it.name.resource.as_str()).collect();
    if caught.is_empty() {
        return None;
    }
    let message = format!(
        "the webhook has failurePolicy Fail and no namespaceSelector: while it is down, writes of {} are \
         rejected in all namespaces, including kube-system and its own",
        super::listed(caught)
    );
    Some(Violation::new("every namespace", message).at("namespaceSelector"))
}

/// Returns whether the rule matches both namespaced and cluster-scoped resources, so that `scope` has an effect.
fn is_for_both(rule: &kubernetes_admission::config::Rule, cluster_fixture: &ClusterFixture) -> bool {
    let served = cluster_fixture.resources();
    let catches = |namespaced: bool| {
        served.iter().filter(|it| it.namespaced == namespaced).any(|it| {
            let name = (it.name.group.as_str(), it.name.version.as_str(), it.name.resource.as_str());
            rule.operations.iter().any(|operation| match_outcome::catches(rule, operation, name))
        })
    };
    catches(true) && catches(false)
}
