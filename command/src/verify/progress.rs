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
        let counts = [several(objects, "object"), several(calls, "call"), several(findings, "finding")];
        let detail = counts.join(", ");
        reporter.report(activity(stage), done, total, &detail);
    })
}

fn activity(stage: Stage) -> &'static str {
    match stage {
        Stage::Configurations => "reading the configurations",
        Stage::Effects => "looking for side effects",
        Stage::Objects => "trying objects",
        Stage::Webhooks => "testing each webhook alone",
        Stage::Shrinking => "looking for smaller objects that show the findings",
        Stage::Interventions => {
            "calling the webhooks while they are restarted or their certificates are renewed"
        }
    }
}
