//! V67: a webhook converts objects that are no longer valid, or rejects them with a message.

use futures::FutureExt as _;

use crate::check::{Audience, Check, Probe, Repeatability, Severity, Skipped, Violation};
use crate::converter::{Answer, Case, ConversionObservations, ConverterProbe};

pub(super) const CHECK: Check = Check {
    id: "V67",
    title: "no longer valid objects: an object that its schema no longer allows is converted or rejected \
            with a message",
    severity: Severity::Warning,
    why: "When a schema becomes stricter, stored objects stay as they are, and the API server converts them \
          without validation. Each object sent by this check violates one constraint of the schema of its \
          version, and the API server would not store it today. The webhook may reject it, too, or convert \
          it in any way. But if it crashes or returns an HTTP error, clients see a closed connection and \
          cannot tell which object to fix.",
    help: "Return the result Failure with a message that names the object instead of crashing.",
    source: "Versions in CustomResourceDefinitions, Webhook conversion, Response; apiextensions-apiserver \
             pkg/apiserver/customresource_handler.go",
    audience: Audience::Conversion,
    repeatability: Repeatability::Same,
    probe: Probe::Conversion(|probe| run(probe).boxed()),
};

async fn run(probe: &ConverterProbe<'_>) -> ConversionObservations {
    let Some(valid) = probe.pairs().into_iter().flatten().next() else {
        return vec![(None, Err(probe.nothing()))];
    };
    // V62 reports a webhook that fails on valid objects.
    if let (_, Answer::Invalid(fault)) = probe.convert(std::slice::from_ref(&valid.object), &valid.to).await {
        return vec![(None, Err(Skipped::not_checked(format!("{}: see V62", fault.message))))];
    }
    let mut seen: ConversionObservations = Vec::new();
    for (what, Case { object, to, .. }) in probe.near_misses() {
        let (exchange, answer) = probe.convert(std::slice::from_ref(&object), &to).await;
        match answer {
            Answer::Converted(_) | Answer::Failed(_) => seen.push((None, Ok(Vec::new()))),
            Answer::Invalid(fault) => {
                let message = format!("an object that violates `{what}` of its schema: {}", fault.message);
                let violation = Violation::new(fault.kind, message).with_exchanges([exchange]);
                seen.push((Some(object), Ok(vec![violation])));
            }
        }
    }
    if seen.is_empty() {
        let why = "the schemas have no constraint that can be violated on its own";
        seen.push((None, Err(Skipped::not_applicable(why))));
    }
    seen
}
