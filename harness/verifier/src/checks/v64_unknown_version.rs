//! V64: a version that is not known is refused in words.

use futures::FutureExt as _;

use crate::check::{Audience, Check, Observed, Probe, Severity, Violation};
use crate::converter::{Answer, ConverterProbe, Seen};

pub(super) const CHECK: Check = Check {
    id: "V64",
    title: "unknown version: objects are not converted to a version that the definition does not have",
    severity: Severity::Warning,
    why: "While a definition gets a new version, or loses one, replicas of the webhook that do not know it are asked for it. \
          Such a review is to be answered with the result Failure and a message, which the client sees: a crash or an \
          HTTP error hides why, and an object that is merely renamed is stored with fields that its version does not have.",
    source: "Versions in CustomResourceDefinitions, Webhook conversion, Response",
    audience: Audience::Conversion,
    probe: Probe::Conversion(|probe| run(probe).boxed()),
};

async fn run(probe: &ConverterProbe<'_>) -> Seen {
    let Some(case) = probe.pairs().into_iter().flatten().next() else {
        return vec![(None, Err(probe.nothing()))];
    };
    let observed = look(probe, &case.object, &case.to).await;
    let is_wrong = observed.as_ref().is_ok_and(|violations| !violations.is_empty());
    vec![(is_wrong.then_some(case.object), observed)]
}

async fn look(probe: &ConverterProbe<'_>, object: &serde_json::Value, known: &str) -> Observed {
    // Of a webhook that answers nothing there is nothing more to say.
    probe.converted(object, known).await?;
    let unknown = probe.converter.unknown();
    let (exchange, answer) = probe.convert(std::slice::from_ref(object), &unknown).await;
    let (kind, message) = match answer {
        Answer::Failed(_) => return Ok(Vec::new()),
        Answer::Converted(_) => {
            ("converted", format!("an object is converted to {unknown}, which does not exist"))
        }
        Answer::Invalid(fault) => {
            (fault.kind, format!("asked for {unknown}, which does not exist: {}", fault.message))
        }
    };
    Ok(vec![Violation::new(kind, message).with_exchanges([exchange])])
}
