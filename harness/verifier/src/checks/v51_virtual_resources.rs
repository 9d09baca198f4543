//! V51: rules do not name authentication or authorization reviews.

use kubernetes_admission::config::{self, FailurePolicy};
use kubernetes_api_server::ClusterFixture;

use crate::check::{Audience, Check, Observed, Probe, Repeatability, Severity, Skipped, Violation};
use crate::checks::match_outcome;
use crate::subject::Subject;

pub(super) const CHECK: Check = Check {
    id: "V51",
    title: "virtual resources: no rule names TokenReviews, SubjectAccessReviews, and similar resources",
    severity: Severity::Warning,
    why: "These reviews are answered and never stored; the rest of the cluster uses them to authenticate \
          and authorize users. Since 1.37, kube-apiserver does not call webhooks for them, so a rule that \
          names them has no effect. Before 1.37, a webhook for them that is down locks out everyone who \
          could repair it.",
    help: "Remove these resources from the rules.",
    source: "kubernetes pkg/kubeapiserver/admission/exclusion/resources.go; \
             pkg/apis/admissionregistration/validation/warnings.go",
    audience: Audience::All,
    repeatability: Repeatability::Same,
    probe: Probe::Configuration(run),
};

fn run(subject: &Subject, _: &ClusterFixture) -> Observed {
    let webhook = &subject.webhook;
    if webhook.rules.is_empty() {
        return Err(Skipped::not_applicable("the webhook has no rules and is never called"));
    }
    let (mut named, mut by_star) = (Vec::new(), Vec::new());
    for (group, resource) in config::EXCLUDED {
        let holds = |entries: &[String], what: &str| entries.iter().any(|entry| entry == what);
        let catching = webhook
            .rules
            .iter()
            .filter(|rule| match_outcome::catches(rule, "CREATE", (group, "v1", resource)));
        let mut catching = catching.peekable();
        if catching.peek().is_none() {
            continue;
        }
        if catching.any(|rule| holds(&rule.api_groups, group) && holds(&rule.resources, resource)) {
            named.push(format!("{resource}.{group}"));
        } else {
            by_star.push(format!("{resource}.{group}"));
        }
    }
    let mut violations = Vec::new();
    if !named.is_empty() {
        let message = format!(
            "a rule names {}: API servers since 1.37 do not call webhooks for them, and older ones lock out \
             users while the webhook is down; remove them from the rules",
            named.join(", ")
        );
        violations.push(Violation::new("names virtual resources", message).at("rules"));
    }
    if !by_star.is_empty() && webhook.failure_policy == FailurePolicy::Fail {
        let message = format!(
            "`*` in a rule also matches {}: API servers before 1.37 call the webhook for them, with \
             failurePolicy Fail",
            by_star.join(", ")
        );
        let violation = Violation::new("matches virtual resources before 1.37", message);
        violations.push(violation.with_severity(Severity::Note).at("rules"));
    }
    Ok(violations)
}
