//! V54: nobody gets around a webhook by a label.

use kubernetes_admission::config::FailurePolicy;
use kubernetes_admission::event::Phase;
use kubernetes_api_server::ClusterFixture;
use kubernetes_types::selector::{Labels, Selector};

use super::down;
use crate::check::{Audience, Check, Observed, Obstacle, Probe, Severity, Violation};
use crate::subject::Subject;

pub(super) const CHECK: Check = Check {
    id: "V54",
    title: "no way around: whether a webhook that must not be missed is called does not depend on the object's labels",
    severity: Severity::Warning,
    why: "Who creates an object chooses its labels. A webhook with failurePolicy Fail and an objectSelector is therefore \
          one that every user can leave out: by a label that its selector does not pick, or by not setting the one that \
          it asks for. That is right for an offer (a sidecar to opt in or out of), and wrong for a rule.",
    source: "kubernetes admissionregistration/v1 types.go, objectSelector: \"Use the object selector only if the webhook \
             is opt-in, because end users may skip the admission webhook by setting the labels\"",
    audience: Audience::All,
    probe: Probe::Configuration(run),
};

fn run(subject: &Subject, cluster_fixture: &ClusterFixture) -> Observed {
    let webhook = &subject.webhook;
    if webhook.failure_policy == FailurePolicy::Ignore {
        return Err(Obstacle::not_applicable("failurePolicy is Ignore: it may be missed anyway"));
    }
    let selector = &webhook.object_selector;
    if selector.is_empty() {
        return Ok(Vec::new());
    }
    let (kind, way, others) = if selector.matches(Labels::default()) {
        let refused = selector.refused_label();
        ("can be opted out of by a label", "an object with labels that it does not pick", refused)
    } else {
        ("can be left out by setting no label", "an object without labels", None)
    };
    let picked: Vec<(String, String)> =
        Selector::common_labels(&[selector]).unwrap_or_default().into_iter().collect();
    let shown = down::by_labels(webhook, &picked, others.as_slice(), cluster_fixture);
    // What mutates is often an offer; what validates is a rule.
    let severity = match subject.webhook.phase {
        Phase::Validating => Severity::Warning,
        Phase::Mutating => Severity::Note,
    };
    let message = format!(
        "with failurePolicy Fail and the objectSelector `{selector}` it never sees {way}: if no user may go without it, \
         select by the labels of namespaces, or everything"
    );
    let violation = Violation::new(kind, message).with_severity(severity).at("objectSelector");
    Ok(vec![violation.with_requests(shown.into_iter().flatten())])
}
