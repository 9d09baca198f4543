//! V66: a webhook converts a review of 3 MiB in time.

use futures::FutureExt as _;
use kubernetes_types::json::set;
use serde_json::Value;

use crate::check::{Audience, Check, Observed, Probe, Repeatability, Severity, Violation};
use crate::converter::{Answer, ConversionObservations, ConverterProbe};

pub(super) const CHECK: Check = Check {
    id: "V66",
    title: "large lists: a review of 3 MiB is converted within the API server's timeout of 30 s",
    severity: Severity::Warning,
    why: "An object in a request may have 3 MiB, and a review has a list of objects. A webhook, or a proxy \
          in front of it, that accepts only smaller bodies or takes longer than 30 s makes stored objects \
          unreadable.",
    help: "Raise the body limit of the framework and of every proxy, and convert without network calls.",
    source: "apiserver pkg/server/config.go, MaxRequestBodyBytes; client-go rest/config.go",
    audience: Audience::Conversion,
    repeatability: Repeatability::Varies,
    probe: Probe::Conversion(|probe| run(probe).boxed()),
};

/// The total size of the objects in the review, in bytes.
const BYTES: usize = 3 << 20;

async fn run(probe: &ConverterProbe<'_>) -> ConversionObservations {
    let Some(case) = probe.pairs().into_iter().flatten().next() else {
        return vec![(None, Err(probe.nothing()))];
    };
    let observed = look(probe, &case.object, &case.to).await;
    let is_wrong = observed.as_ref().is_ok_and(|violations| !violations.is_empty());
    vec![(is_wrong.then_some(case.object), observed)]
}

async fn look(probe: &ConverterProbe<'_>, object: &Value, to: &str) -> Observed {
    // V62 reports a webhook that cannot convert one object or several.
    probe.converted(object, to).await?;
    let of = |count: usize| -> Vec<Value> {
        let numbered = |number: usize| {
            let mut object = object.clone();
            set(&mut object, &["metadata", "name"], format!("admit-verify-{number}"));
            set(&mut object, &["metadata", "uid"], format!("6f3d1d2e-2222-4000-8000-{number:012}"));
            object
        };
        (0..count).map(numbered).collect()
    };
    if let (_, Answer::Invalid(fault)) = probe.convert(&of(2), to).await {
        return Err(crate::Skipped::not_checked(format!("{}: see V62", fault.message)));
    }
    let count = BYTES / object.to_string().len().max(1) + 1;
    let (exchange, answer) = probe.convert(&of(count), to).await;
    let (kind, message) = match answer {
        Answer::Converted(_) => return Ok(Vec::new()),
        Answer::Failed(message) => ("rejected", message),
        Answer::Invalid(fault) => (fault.kind, fault.message),
    };
    let seconds = exchange.took.as_secs();
    let message =
        format!("{count} objects of 3 MiB in total are not converted, after {seconds} s: {message}");
    Ok(vec![Violation::new(kind, message)])
}
