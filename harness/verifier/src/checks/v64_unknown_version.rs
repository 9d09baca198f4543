//! V64: a webhook rejects an unknown version with a message.

use futures::FutureExt as _;

use crate::check::{Audience, Check, Observed, Probe, Repeatability, Severity, Violation};
use crate::converter::{Answer, ConversionObservations, ConverterProbe};

pub(super) const CHECK: Check = Check {
    id: "V64",
    title: "unknown version: the webhook does not convert to a version that the definition does not have",
    severity: Severity::Warning,
    why: "While a CustomResourceDefinition gains or loses a version, replicas of the webhook that do not \
          know the version receive requests for it. The correct response has the result Failure and a \
          message, which the client sees. A crash or an HTTP error hides the reason, and an object that is \
          merely renamed is stored with fields that its version does not have.",
    help: "Return the result Failure with a message for an unknown desiredAPIVersion.",
    source: "Versions in CustomResourceDefinitions, Webhook conversion, Response",
    audience: Audience::Conversion,
    repeatability: Repeatability::Same,
    probe: Probe::Conversion(|probe| run(probe).boxed()),
};

async fn run(probe: &ConverterProbe<'_>) -> ConversionObservations {
    let Some(case) = probe.pairs().into_iter().flatten().next() else {
        return vec![(None, Err(probe.nothing()))];
    };
    let observed = look(probe, &case.object, &case.to).await;
    let is_wrong = observed.as_ref().is_ok_and(|violations| !violations.is_empty());
    vec![(is_wrong.then_some(case.object), observed)]
}

async fn look(probe: &ConverterProbe<'_>, object: &serde_json::Value, known: &str) -> Observed {
    // A webhook that fails on known versions is not checked further.
    probe.converted(object, known).await?;
    let unknown = probe.converter.unknown();
    let (exchange, answer) = probe.convert(std::slice::from_ref(object), &unknown).await;
    let (kind, message) = match answer {
        Answer::Failed(_) => return Ok(Vec::new()),
        Answer::Converted(_) => {
            ("converted", format!("the webhook converts an object to {unknown}, which does not exist"))
        }
        Answer::Invalid(fault) => {
            (fault.kind, format!("asked for {unknown}, which does not exist: {}", fault.message))
        }
    };
    Ok(vec![Violation::new(kind, message).with_exchanges([exchange])])
}
