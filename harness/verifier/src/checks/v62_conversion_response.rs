//! V62: a conversion response has the form that the API server expects.

use futures::FutureExt as _;

use crate::check::{Audience, Check, Observed, Probe, Repeatability, Severity, Skipped, Violation};
use crate::converter::{Answer, Case, ConversionObservations, ConverterProbe};

pub(super) const CHECK: Check = Check {
    id: "V62",
    title: "conversion response: it has the uid, a result, and as many objects as were sent, in the \
            requested version",
    severity: Severity::Error,
    why: "The API server accepts a conversion only if the response is a review in the version that it sent, \
          with the uid of the request and a result. It must contain as many objects as were sent, in the \
          same order, of the same kind, and in the requested version. Conversions have no failure policy: \
          the request that needs the conversion fails.",
    help: "Copy the uid, set result.status, and return every object in the order of the request.",
    source: "apiextensions-apiserver pkg/apiserver/conversion/webhook_converter.go",
    audience: Audience::Conversion,
    repeatability: Repeatability::Same,
    probe: Probe::Conversion(|probe| run(probe).boxed()),
};

/// The number of objects in a conversion review.
const OBJECTS: usize = 3;

async fn run(probe: &ConverterProbe<'_>) -> ConversionObservations {
    let mut seen = Vec::new();
    for cases in probe.pairs() {
        for case in &cases {
            let observed = look(probe, std::slice::from_ref(case)).await;
            let is_wrong = observed.as_ref().is_ok_and(|violations| !violations.is_empty());
            seen.push((is_wrong.then(|| case.object.clone()), observed));
            // One object is enough to show that the webhook fails.
            if is_wrong {
                break;
            }
        }
        let several: Vec<Case> = cases.into_iter().take(OBJECTS).collect();
        if several.len() > 1 && seen.last().is_some_and(|(object, _)| object.is_none()) {
            seen.push((None, look(probe, &several).await));
        }
    }
    if seen.is_empty() {
        seen.push((None, Err(probe.nothing())));
    }
    seen
}

async fn look(probe: &ConverterProbe<'_>, cases: &[Case]) -> Observed {
    let Some(Case { to, .. }) = cases.first() else { return Err(probe.nothing()) };
    let objects: Vec<_> = cases.iter().map(|case| case.object.clone()).collect();
    let (exchange, answer) = probe.convert(&objects, to).await;
    match answer {
        Answer::Converted(_) => Ok(Vec::new()),
        Answer::Invalid(fault) => {
            Ok(vec![Violation::new(fault.kind, fault.message).with_exchanges([exchange])])
        }
        // A converter may not understand every value that a schema allows.
        Answer::Failed(message) if cases.iter().any(|case| !case.is_given) => {
            Err(Skipped::not_checked(format!(
                "an object generated from the schema could not be converted ({message}): pass objects that the \
                 webhook converts with -f"
            )))
        }
        Answer::Failed(message) => {
            let message =
                format!("an object that the API server stores cannot be converted to {to}: {message}");
            Ok(vec![Violation::new("rejected", message).with_exchanges([exchange])])
        }
    }
}
