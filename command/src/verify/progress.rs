//! Reports the progress of a verification.

use std::sync::Arc;

use harness::verify::{Progress, Stage};

use crate::diagnostic::several;
use crate::progress::ProgressReporter;

/// Returns a callback for the verifier to report its progress.
pub(super) fn observer(reporter: &Arc<ProgressReporter>) -> Box<dyn Fn(Progress) + Send + Sync> {
    let reporter = Arc::clone(reporter);
    Box::new(move |progress| {
        let Progress { stage, done, total, objects, calls, .. } = progress;
        let detail = format!("{}, {}", several(objects, "object"), several(calls, "call"));
        reporter.report(activity(stage), done, total, &detail);
    })
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
