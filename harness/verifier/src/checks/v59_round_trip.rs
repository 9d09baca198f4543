//! V59: what is converted to another version and back is still there.

use futures::FutureExt as _;
use futures::future::BoxFuture;

use crate::check::{Audience, Check, Observed, Probe, Severity, Violation};
use crate::converter::{Case, ConverterProbe, lost};

use super::listed;

pub(super) const CHECK: Check = Check {
    id: "V59",
    title: "round trip: an object that is converted to another version and back has lost nothing",
    severity: Severity::Error,
    why: "Objects are stored in one version and read and written in all of them: a client that reads an object in one \
          version and writes it back takes with it whatever the conversion lost, and nobody is told. A field without a \
          place in the other version has to be kept, most often in an annotation. What the schema of the other version \
          does not have is pruned on the way, as the API server does. Fields may be added, amounts, times and durations \
          may be written in another way, and fields that say nothing may be left out.",
    source: "Versions in CustomResourceDefinitions, Webhook conversion; apiextensions-apiserver \
             pkg/apiserver/customresource_handler.go",
    audience: Audience::Conversion,
    probe: Probe::Conversion(|probe| probe.each(run).boxed()),
};

fn run<'a>(probe: &'a ConverterProbe<'a>, case: &'a Case) -> BoxFuture<'a, Observed> {
    look(probe, case).boxed()
}

async fn look(probe: &ConverterProbe<'_>, Case { object, to, .. }: &Case) -> Observed {
    let from = object.get("apiVersion").and_then(serde_json::Value::as_str).unwrap_or_default();
    let (there, converted) = probe.converted(object, to).await?;
    let converted = probe.converter.pruned(converted);
    let (back, returned) = probe.converted(&converted, from).await?;
    let mut lost = lost(object, &probe.converter.pruned(returned));
    // Of the rest of the metadata the API server takes nothing from a webhook.
    lost.retain(|path| {
        !path.starts_with("/metadata")
            || ["/metadata/labels", "/metadata/annotations"].iter().any(|kept| path.starts_with(kept))
    });
    if lost.is_empty() {
        return Ok(Vec::new());
    }
    probe.check_steady(object, to).await?;
    let fields = listed(lost.iter().map(String::as_str));
    let message = format!("from {from} to {to} and back an object loses {fields}");
    Ok(vec![Violation::new(format!("lost between {from} and {to}"), message).with_exchanges([there, back])])
}
