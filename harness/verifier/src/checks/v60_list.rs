//! V60: the conversion of an object does not depend on other objects in the review.

use futures::FutureExt as _;

use crate::check::{Audience, Check, Probe, Repeatability, Severity, Violation};
use crate::converter::{Answer, Case, ConversionObservations, ConverterProbe};

pub(super) const CHECK: Check = Check {
    id: "V60",
    title: "lists: each object of a review is converted as if it were alone",
    severity: Severity::Warning,
    why: "A review has a list of objects, and each must be converted as if it were alone. A converter that \
          reuses one variable for all of them copies fields of one object into the next.",
    help: "Use a new variable for each object of the list.",
    source: "apiextensions-apiserver pkg/apis/apiextensions/v1/types.go, ConversionRequest",
    audience: Audience::Conversion,
    repeatability: Repeatability::Same,
    probe: Probe::Conversion(|probe| run(probe).boxed()),
};

/// The number of objects in a conversion review.
const OBJECTS: usize = 8;

async fn run(probe: &ConverterProbe<'_>) -> ConversionObservations {
    let mut seen = Vec::new();
    for cases in probe.pairs() {
        let cases: Vec<Case> = cases.into_iter().take(OBJECTS).collect();
        let observed = look(probe, &cases).await;
        let object = observed.as_ref().ok().and_then(|(object, _)| object.clone());
        seen.push((object, observed.map(|(_, violations)| violations)));
    }
    if seen.is_empty() {
        seen.push((None, Err(probe.nothing())));
    }
    seen
}

type ListResult = (Option<serde_json::Value>, Vec<Violation>);

async fn look(probe: &ConverterProbe<'_>, cases: &[Case]) -> Result<ListResult, crate::Skipped> {
    let Some(Case { to, .. }) = cases.first() else { return Err(probe.nothing()) };
    let objects: Vec<_> = cases.iter().map(|case| case.object.clone()).collect();
    let mut alone = Vec::new();
    for object in &objects {
        alone.push(probe.converted(object, to).await?);
    }
    let (exchange, answer) = probe.convert(&objects, to).await;
    let together = match answer {
        Answer::Converted(together) => together,
        Answer::Failed(message) => {
            let message = format!(
                "objects that the webhook converts one by one fail in one review: \
                                   {message}"
            );
            return Ok((None, vec![Violation::new("fails", message).with_exchanges([exchange])]));
        }
        Answer::Invalid(fault) => {
            return Err(crate::Skipped::not_checked(format!("{}: see V62", fault.message)));
        }
    };
    let pairs = objects.iter().zip(alone.into_iter().zip(together));
    for (object, ((single, alone), together)) in pairs {
        if alone != together {
            probe.check_deterministic(object, to).await?;
            let message = "the result of a conversion depends on the other objects in the review";
            let violation = Violation::new("differs", message).with_exchanges([single, exchange]);
            return Ok((Some(object.clone()), vec![violation]));
        }
    }
    Ok((None, Vec::new()))
}
