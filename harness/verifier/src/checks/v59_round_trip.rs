//! V59: a round-trip conversion does not lose fields.

use futures::FutureExt as _;
use futures::future::BoxFuture;

use crate::check::{Audience, Check, Observed, Probe, Repeatability, Severity, Violation};
use crate::converter::{Case, ConverterProbe, lost};

use super::listed;

pub(super) const CHECK: Check = Check {
    id: "V59",
    title: "round trip: an object converted to another version and back keeps all its fields",
    severity: Severity::Error,
    why: "Objects are stored in one version and read and written in all of them. If a client reads an \
          object in one version and writes it back, fields that the conversion lost are removed from the \
          stored object without an error. A field that the other version does not have must be kept, \
          usually in an annotation. Fields that are not in the schema of the other version are pruned on \
          the way, as the API server does. The conversion may add fields, write quantities, times, and \
          durations in another form, and omit fields with empty values.",
    help: "Keep fields that the other version does not have in an annotation, and restore them on the way \
           back.",
    source: "Versions in CustomResourceDefinitions, Webhook conversion; apiextensions-apiserver \
             pkg/apiserver/customresource_handler.go",
    audience: Audience::Conversion,
    repeatability: Repeatability::Same,
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
    // The API server ignores the webhook's other metadata.
    lost.retain(|path| {
        !path.starts_with("/metadata")
            || ["/metadata/labels", "/metadata/annotations"].iter().any(|kept| path.starts_with(kept))
    });
    if lost.is_empty() {
        return Ok(Vec::new());
    }
    probe.check_deterministic(object, to).await?;
    let fields = listed(lost.iter().map(String::as_str));
    let message = format!("an object converted from {from} to {to} and back loses {fields}");
    Ok(vec![Violation::new(format!("lost between {from} and {to}"), message).with_exchanges([there, back])])
}
