//! V54: a user cannot bypass a webhook with a label.

use kubernetes_admission::config::FailurePolicy;
use kubernetes_admission::event::Phase;
use kubernetes_api_server::ClusterFixture;
use kubernetes_types::selector::{Labels, Selector};

use super::outage;
use crate::check::{Audience, Check, Observed, Probe, Repeatability, Severity, Skipped, Violation};
use crate::subject::Subject;

pub(super) const CHECK: Check = Check {
    id: "V54",
    title: "bypass by label: a user cannot bypass a webhook with failurePolicy Fail through the object's \
            labels",
    severity: Severity::Warning,
    why: "The user who creates an object chooses its labels. A user can therefore bypass a webhook with \
          failurePolicy Fail and an objectSelector, with a label that the selector does not match, or \
          without the label that it requires. This is correct for an optional feature (a sidecar to opt in \
          to or out of) and wrong for a policy.",
    help: "Select by namespace labels with a namespaceSelector, or match every object.",
    source: "kubernetes admissionregistration/v1 types.go, objectSelector: \"Use the object selector only \
             if the webhook \
             is opt-in, because end users may skip the admission webhook by setting the labels\"",
    audience: Audience::All,
    repeatability: Repeatability::Same,
    probe: Probe::Configuration(run),
};

fn run(subject: &Subject, cluster_fixture: &ClusterFixture) -> Observed {
    let webhook = &subject.webhook;
    if webhook.failure_policy == FailurePolicy::Ignore {
        return Err(Skipped::not_applicable("failurePolicy is Ignore: the webhook may be skipped anyway"));
    }
    let selector = &webhook.object_selector;
    if selector.is_empty() {
        return Ok(Vec::new());
    }
    let (kind, way, others) = if selector.matches(Labels::default()) {
        let refused = selector.refused_label();
        ("can be bypassed with a label", "an object with labels that it does not match", refused)
    } else {
        ("can be bypassed without a label", "an object without labels", None)
    };
    let picked: Vec<(String, String)> =
        Selector::common_labels(&[selector]).unwrap_or_default().into_iter().collect();
    let shown = outage::by_labels(webhook, &picked, others.as_slice(), cluster_fixture);
    // A mutating webhook is often an optional feature; a validating one is a policy.
    let severity = match subject.webhook.phase {
        Phase::Validating => Severity::Warning,
        Phase::Mutating => Severity::Note,
    };
    let message = format!(
        "with failurePolicy Fail and the objectSelector `{selector}`, the webhook is not called for {way}: \
         to enforce a policy, select by namespace labels, or match every object"
    );
    let violation = Violation::new(kind, message).with_severity(severity).at("objectSelector");
    Ok(vec![violation.with_requests(shown.into_iter().flatten())])
}
