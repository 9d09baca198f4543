//! V67: objects that are no longer valid are answered with a review.

use futures::FutureExt as _;

use crate::check::{Audience, Check, Obstacle, Probe, Severity, Violation};
use crate::converter::{Answer, Case, ConverterProbe, Seen};

pub(super) const CHECK: Check = Check {
    id: "V67",
    title: "no longer valid: an object that its schema does not allow any more is converted, or refused in words",
    severity: Severity::Warning,
    why: "When a schema becomes stricter, objects that were stored before stay as they are, and the API server has them \
          converted without validating them. Each of the objects that are sent here breaks one constraint of the schema of \
          its version, and the API server refuses to store it today. The webhook may refuse it, too, or convert it in any \
          way. But where it crashes or answers with an HTTP error, clients see a cut connection, and do not see which object is \
          to be mended.",
    source: "Versions in CustomResourceDefinitions, Webhook conversion, Response; apiextensions-apiserver \
             pkg/apiserver/customresource_handler.go",
    audience: Audience::Conversion,
    probe: Probe::Conversion(|probe| run(probe).boxed()),
};

async fn run(probe: &ConverterProbe<'_>) -> Seen {
    let Some(valid) = probe.pairs().into_iter().flatten().next() else {
        return vec![(None, Err(probe.nothing()))];
    };
    // Of a webhook that answers nothing V62 speaks.
    if let (_, Answer::Invalid(fault)) = probe.convert(std::slice::from_ref(&valid.object), &valid.to).await {
        return vec![(None, Err(Obstacle::not_checked(format!("{}: see V62", fault.message))))];
    }
    let mut seen: Seen = Vec::new();
    for (what, Case { object, to, .. }) in probe.near_misses() {
        let (exchange, answer) = probe.convert(std::slice::from_ref(&object), &to).await;
        match answer {
            Answer::Converted(_) | Answer::Failed(_) => seen.push((None, Ok(Vec::new()))),
            Answer::Invalid(fault) => {
                let message = format!("an object that breaks `{what}` of its schema: {}", fault.message);
                let violation = Violation::new(fault.kind, message).with_exchanges([exchange]);
                seen.push((Some(object), Ok(vec![violation])));
            }
        }
    }
    if seen.is_empty() {
        let why = "the schemas have no constraint that an object could break alone";
        seen.push((None, Err(Obstacle::not_applicable(why))));
    }
    seen
}
