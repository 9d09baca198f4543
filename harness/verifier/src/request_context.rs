//! Describes the properties of a request that are required, in addition to its object, to reproduce a finding.

use kubernetes_admission::cluster_state::ClusterState as _;
use kubernetes_types::json::{at, text};
use serde_json::Value;

use super::plan::Plan;
use super::report::{Finding, Report};

/// The label that the API server sets on every namespace.
const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";

/// Describes the last request of each finding unless it is an ordinary creation.
pub(super) fn describe(report: &mut Report, plan: &Plan) {
    for finding in report.checks.iter_mut().flat_map(|check| &mut check.findings) {
        let labels = namespace_labels(finding, plan);
        let last = finding.steps.iter().rev().find(|step| !step.is_other && step.direct.is_none());
        let Some(request) = last.map(|step| at(&step.review, &["request"])) else { continue };
        finding.request = description(request, &plan.environment.user.username, &labels);
    }
}

/// Returns the labels of the request's namespace if the webhook selects namespaces by their labels.
fn namespace_labels(finding: &Finding, plan: &Plan) -> String {
    let mut of_finding =
        plan.subjects.iter().filter(|subject| finding.webhooks.contains_key(&subject.name()));
    if of_finding.all(|subject| subject.webhook.namespace_selector.is_empty()) {
        return String::new();
    }
    let Some(step) = finding.steps.last() else { return String::new() };
    let namespace = text(&step.review, &["request", "namespace"]);
    let Some(namespace) = plan.environment.cluster_fixture.namespace(namespace) else { return String::new() };
    let labels = at(&namespace, &["metadata", "labels"]).as_object().into_iter().flatten();
    let labels = labels.filter(|(key, _)| *key != NAMESPACE_NAME);
    let labels = labels.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()));
    labels.collect::<Vec<_>>().join(",")
}

/// Describes how `request` differs from a creation by `user`, or returns `None` if it does not differ.
fn description(request: &Value, user: &str, namespace_labels: &str) -> Option<String> {
    let operation = text(request, &["operation"]);
    let (resource, subresource) = (text(request, &["resource", "resource"]), text(request, &["subResource"]));
    let requested_by = text(request, &["userInfo", "username"]);
    let is_dry_run = request["dryRun"] == true;
    let is_creation = operation == "CREATE" && subresource.is_empty();
    if is_creation && requested_by == user && !is_dry_run && namespace_labels.is_empty() {
        return None;
    }
    let mut description = format!("{operation} of {resource}");
    if !subresource.is_empty() {
        description = format!("{description}/{subresource}");
    }
    if requested_by != user {
        description = format!("{description} by {requested_by}");
    }
    if is_dry_run {
        description.push_str(", as a dry run");
    }
    if !namespace_labels.is_empty() {
        description = format!("{description}, in a namespace with the labels {namespace_labels}");
    }
    Some(description)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn request_is_described_if_it_is_not_an_ordinary_creation() {
        let request = |operation: &str, subresource: &str, user: &str, is_dry_run: bool| {
            json!({"operation": operation, "resource": {"resource": "pods"}, "subResource": subresource,
                "userInfo": {"username": user}, "dryRun": is_dry_run})
        };
        for (request, labels, expected) in [
            (request("CREATE", "", "me", false), "", None),
            (request("CREATE", "", "kubelet", false), "", Some("CREATE of pods by kubelet")),
            (request("UPDATE", "status", "me", true), "", Some("UPDATE of pods/status, as a dry run")),
            (
                request("CREATE", "", "me", false),
                "inject=yes",
                Some("CREATE of pods, in a namespace with the labels inject=yes"),
            ),
        ] {
            assert_eq!(description(&request, "me", labels).as_deref(), expected);
        }
    }
}
