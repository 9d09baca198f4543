//! V62: a review of a conversion is answered as the API server expects it.

use futures::FutureExt as _;

use crate::check::{Audience, Check, Observed, Obstacle, Probe, Severity, Violation};
use crate::converter::{Answer, Case, ConverterProbe, Seen};

pub(super) const CHECK: Check = Check {
    id: "V62",
    title: "conversion review: the answer has the uid, a result, and as many objects in the version that was asked for",
    severity: Severity::Error,
    why: "The API server takes a conversion only if the answer is a review of the version that it sent, has the uid of the \
          request, a result, and as many objects as were sent, in their order, of their kind and in the version that was \
          asked for. There is no failure policy: whatever needs the conversion fails.",
    source: "apiextensions-apiserver pkg/apiserver/conversion/webhook_converter.go",
    audience: Audience::Conversion,
    probe: Probe::Conversion(|probe| run(probe).boxed()),
};

/// How many objects are sent at a time.
const MOST: usize = 3;

async fn run(probe: &ConverterProbe<'_>) -> Seen {
    let mut seen = Vec::new();
    for cases in probe.pairs() {
        for case in &cases {
            let observed = look(probe, std::slice::from_ref(case)).await;
            let is_wrong = observed.as_ref().is_ok_and(|violations| !violations.is_empty());
            seen.push((is_wrong.then(|| case.object.clone()), observed));
            // One is enough to see that a webhook does not answer.
            if is_wrong {
                break;
            }
        }
        let several: Vec<Case> = cases.into_iter().take(MOST).collect();
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
        // Of the values that a schema allows a converter may not understand all.
        Answer::Failed(message) if cases.iter().any(|case| !case.is_given) => {
            Err(Obstacle::not_checked(format!(
                "an object that was made from the schema could not be converted ({message}): give objects with -f"
            )))
        }
        Answer::Failed(message) => {
            let message =
                format!("an object that the API server stores cannot be converted to {to}: {message}");
            Ok(vec![Violation::new("refused", message).with_exchanges([exchange])])
        }
    }
}
