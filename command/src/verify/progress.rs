//! Reports the progress of a verification.

use std::sync::Arc;

use harness::verify::{Progress, Stage};

use crate::diagnostic::several;
use crate::progress::ProgressReporter;

/// Returns a callback for the verifier to report its progress.
pub(super) fn observer(reporter: &Arc<ProgressReporter>) -> Box<dyn Fn(Progress) + Send + Sync> {
    let reporter = Arc::clone(reporter);
    Box::new(move |progress| {
        let Progress { stage, done, total, objects, calls, findings, .. } = progress;
        let counts = [several(objects, "object"), several(calls, "call"), found(findings)];
        let detail = counts.join(", ");
        reporter.report(activity(stage), done, total, &detail);
    })
}

/// Formats the number of findings so far.
///
/// The report combines findings with the same cause, and so may have fewer.
fn found(findings: usize) -> String {
    let findings_so_far = several(findings, "finding");
    if findings > 1 { format!("up to {findings_so_far}") } else { findings_so_far }
}

fn activity(stage: Stage) -> &'static str {
    match stage {
        Stage::Configurations => "reading the configurations",
        Stage::Effects => "looking for side effects",
        Stage::Objects => "trying objects",
        Stage::Webhooks => "checking one webhook at a time",
        Stage::Shrinking => "looking for smaller objects that show the findings",
        Stage::Interventions => {
            "calling the webhooks while they are restarted or their certificates are renewed"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_with_the_same_cause_are_not_combined_yet() {
        assert_eq!([0, 1, 12].map(found), ["0 findings", "1 finding", "up to 12 findings"]);
    }
}
