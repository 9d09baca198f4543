//! V51: no rule is for reviews of who somebody is and what they may do.

use kubernetes_admission::config::{self, FailurePolicy};
use kubernetes_api_server::ClusterFixture;

use crate::check::{Audience, Check, Observed, Obstacle, Probe, Severity, Violation};
use crate::checks::matched;
use crate::subject::Subject;

pub(super) const CHECK: Check = Check {
    id: "V51",
    title: "no rule is for TokenReviews, SubjectAccessReviews and their like",
    severity: Severity::Warning,
    why: "These reviews are answered and never stored; they are how the rest of the cluster asks who somebody is and \
          what they may do. Since 1.37 no webhook is called for them, so that a rule that names them has no effect; \
          before, a webhook in their way that is down locks out whoever would mend it.",
    source: "kubernetes pkg/kubeapiserver/admission/exclusion/resources.go; \
             pkg/apis/admissionregistration/validation/warnings.go",
    audience: Audience::All,
    probe: Probe::Configuration(run),
};

fn run(subject: &Subject, _: &ClusterFixture) -> Observed {
    let webhook = &subject.webhook;
    if webhook.rules.is_empty() {
        return Err(Obstacle::not_applicable("it has no rules and is never called"));
    }
    let (mut named, mut by_star) = (Vec::new(), Vec::new());
    for (group, resource) in config::EXCLUDED {
        let holds = |entries: &[String], what: &str| entries.iter().any(|entry| entry == what);
        let catching =
            webhook.rules.iter().filter(|rule| matched::catches(rule, "CREATE", (group, "v1", resource)));
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
            "a rule names {}: no API server since 1.37 calls a webhook for them, and an older one lets nobody in while \
             the webhook is down; take them out of the rules",
            named.join(", ")
        );
        violations.push(Violation::new("names virtual resources", message).at("rules"));
    }
    if !by_star.is_empty() && webhook.failure_policy == FailurePolicy::Fail {
        let message = format!(
            "by a star a rule also is for {}: API servers before 1.37 call it for them, with failurePolicy Fail",
            by_star.join(", ")
        );
        let violation = Violation::new("catches virtual resources before 1.37", message);
        violations.push(violation.with_severity(Severity::Note).at("rules"));
    }
    Ok(violations)
}
