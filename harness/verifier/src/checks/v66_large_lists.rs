//! V66: a review of 3 MiB is answered, in time.

use futures::FutureExt as _;
use kubernetes_types::json::set;
use serde_json::Value;

use crate::check::{Audience, Check, Observed, Probe, Severity, Violation};
use crate::converter::{Answer, ConverterProbe, Seen};

pub(super) const CHECK: Check = Check {
    id: "V66",
    title: "large lists: a review of 3 MiB is converted within the 30 s that the API server waits",
    severity: Severity::Warning,
    why: "An object may have 3 MiB in a request, and a review has a list of them. A webhook, or a proxy in front of it, that \
          takes smaller bodies only, or takes longer than 30 seconds, makes objects that are stored unreadable.",
    source: "apiserver pkg/server/config.go, MaxRequestBodyBytes; client-go rest/config.go",
    audience: Audience::Conversion,
    probe: Probe::Conversion(|probe| run(probe).boxed()),
};

/// How large the objects of the review are together, in bytes.
const BYTES: usize = 3 << 20;

async fn run(probe: &ConverterProbe<'_>) -> Seen {
    let Some(case) = probe.pairs().into_iter().flatten().next() else {
        return vec![(None, Err(probe.nothing()))];
    };
    let observed = look(probe, &case.object, &case.to).await;
    let is_wrong = observed.as_ref().is_ok_and(|violations| !violations.is_empty());
    vec![(is_wrong.then_some(case.object), observed)]
}

async fn look(probe: &ConverterProbe<'_>, object: &Value, to: &str) -> Observed {
    // Of a webhook that does not convert one object, or not several, V62 speaks.
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
        return Err(crate::Obstacle::not_checked(format!("{}: see V62", fault.message)));
    }
    let count = BYTES / object.to_string().len().max(1) + 1;
    let (exchange, answer) = probe.convert(&of(count), to).await;
    let (kind, message) = match answer {
        Answer::Converted(_) => return Ok(Vec::new()),
        Answer::Failed(message) => ("refused", message),
        Answer::Invalid(fault) => (fault.kind, fault.message),
    };
    let seconds = exchange.took.as_secs();
    let message = format!("{count} objects of 3 MiB are not converted, after {seconds} s: {message}");
    Ok(vec![Violation::new(kind, message)])
}
