//! V55: match conditions compile, give a bool, never fail, and are cheap.

use crate::server::Surroundings;
use crate::verify::check::{Audience, Check, Observed, Obstacle, Probe, Severity};
use crate::verify::subject::Subject;

pub(super) const CHECK: Check = Check {
    id: "V55",
    title: "its matchConditions compile, give a bool, never fail on what is not there, and stay within the budget",
    severity: Severity::Error,
    why: "A match condition that fails, for example since it reads object.metadata.labels of a DELETE, where object is \
          null, refuses the request if failurePolicy is Fail, and skips the webhook if it is Ignore: both without a \
          call, so that nothing in the webhook's own logs tells of it.",
    source: "KEP-3716; apiserver pkg/admission/plugin/webhook/matchconditions/matcher.go",
    audience: Audience::All,
    probe: Probe::Configuration(run),
};

fn run(subject: &Subject, _: &Surroundings) -> Observed {
    let conditions = subject.declaration()["matchConditions"].as_array().map_or(0, Vec::len);
    if conditions == 0 {
        return Err(Obstacle::not_applicable("it has no matchConditions"));
    }
    Err(Obstacle::not_checked("admit does not evaluate CEL yet"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;

    #[test]
    fn conditions_are_not_checked_and_never_passed() {
        let webhook = json!({"name": "w.example.com", "clientConfig": {"url": "https://127.0.0.1:1/"},
            "sideEffects": "None", "admissionReviewVersions": ["v1"]});
        let mut configuration = json!({"apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "c"}, "webhooks": [webhook]});
        let mut subject = Subject::of(&[configuration.clone()]).unwrap().remove(0);
        let surroundings = Surroundings::new([]);
        assert!(matches!(run(&subject, &surroundings), Err(Obstacle::NotApplicable(_))));

        configuration["webhooks"][0]["matchConditions"] = json!([{"name": "a", "expression": "true"}]);
        subject.configuration = Arc::new(configuration);
        assert!(matches!(run(&subject, &surroundings), Err(Obstacle::NotChecked(_))));
    }
}
