//! V63: the same object is always converted to the same result.

use futures::FutureExt as _;
use futures::future::BoxFuture;

use crate::check::{Audience, Check, Observed, Probe, Repeatability, Severity, Violation};
use crate::converter::{Case, ConverterProbe};

pub(super) const CHECK: Check = Check {
    id: "V63",
    title: "deterministic conversion: the same object is always converted to the same result",
    severity: Severity::Error,
    why: "The API server converts an object each time that a client reads it, and compares converted \
          objects to detect changes. Timestamps, random values, and map iteration order make watchers see \
          changes that were not made, and make writes fail with conflicts.",
    help: "Derive every value from the object, and sort map keys.",
    source: "Versions in CustomResourceDefinitions, Webhook conversion; apiserver pkg/storage/etcd3/store.go",
    audience: Audience::Conversion,
    repeatability: Repeatability::Varies,
    probe: Probe::Conversion(|probe| probe.each(run).boxed()),
};

fn run<'a>(probe: &'a ConverterProbe<'a>, case: &'a Case) -> BoxFuture<'a, Observed> {
    look(probe, case).boxed()
}

async fn look(probe: &ConverterProbe<'_>, Case { object, to, .. }: &Case) -> Observed {
    let (first, one) = probe.converted(object, to).await?;
    for _ in 0..2 {
        let (second, other) = probe.converted(object, to).await?;
        if one != other {
            let message = format!("the same object is converted to {to} with two different results");
            return Ok(vec![Violation::new("differs", message).with_exchanges([first, second])]);
        }
    }
    Ok(Vec::new())
}
