//! V63: the same object is always converted to the same one.

use futures::FutureExt as _;
use futures::future::BoxFuture;

use crate::check::{Audience, Check, Observed, Probe, Severity, Violation};
use crate::converter::{Case, ConverterProbe};

pub(super) const CHECK: Check = Check {
    id: "V63",
    title: "same conversion: the same object is converted to the same one every time",
    severity: Severity::Error,
    why: "The API server converts an object each time that somebody reads it, and compares what it converted to see \
          whether a write changes anything. Times, random values and the order of a map make watchers see changes that \
          nobody made, and writes fail with conflicts.",
    source: "Versions in CustomResourceDefinitions, Webhook conversion; apiserver pkg/storage/etcd3/store.go",
    audience: Audience::Conversion,
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
            let message = format!("the same object is converted to {to} in two ways");
            return Ok(vec![Violation::new("differs", message).with_exchanges([first, second])]);
        }
    }
    Ok(Vec::new())
}
