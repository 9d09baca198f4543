//! V65: a webhook returns an object in the requested version unchanged, or rejects it.

use futures::FutureExt as _;

use crate::check::{Audience, Check, Observed, Probe, Repeatability, Severity, Violation};
use crate::converter::{Answer, ConversionObservations, ConverterProbe, lost};

pub(super) const CHECK: Check = Check {
    id: "V65",
    title: "same version: an object that already has the requested version is returned unchanged or rejected",
    severity: Severity::Warning,
    why: "kube-apiserver does not send such objects, but other programs that call conversion webhooks do, \
          and a list may hold objects of several versions. The upstream and controller-runtime converters \
          respond with the result Failure, which is also correct; losing fields or failing with an HTTP \
          error is not.",
    help: "Return the object unchanged if its apiVersion is the desiredAPIVersion.",
    source: "apiextensions-apiserver pkg/apiserver/conversion/webhook_converter.go, getObjectsToConvert",
    audience: Audience::Conversion,
    repeatability: Repeatability::Same,
    probe: Probe::Conversion(|probe| run(probe).boxed()),
};

async fn run(probe: &ConverterProbe<'_>) -> ConversionObservations {
    let mut seen: ConversionObservations = Vec::new();
    let mut done: Vec<String> = Vec::new();
    for case in probe.pairs().into_iter().flatten() {
        let own = case.object.get("apiVersion").and_then(serde_json::Value::as_str).unwrap_or_default();
        if done.iter().any(|version| version == own) {
            continue;
        }
        done.push(own.to_owned());
        let observed = look(probe, &case.object, own, &case.to).await;
        let is_wrong = observed.as_ref().is_ok_and(|violations| !violations.is_empty());
        seen.push((is_wrong.then(|| case.object.clone()), observed));
    }
    if seen.is_empty() {
        seen.push((None, Err(probe.nothing())));
    }
    seen
}

async fn look(probe: &ConverterProbe<'_>, object: &serde_json::Value, own: &str, other: &str) -> Observed {
    // A webhook that fails on other versions is not checked further.
    probe.converted(object, other).await?;
    let (exchange, answer) = probe.convert(std::slice::from_ref(object), own).await;
    let (kind, message) = match answer {
        Answer::Failed(_) => return Ok(Vec::new()),
        Answer::Converted(objects) => {
            let spec = |object: &serde_json::Value| object.get("spec").cloned().unwrap_or_default();
            let fields = objects.first().map(|found| lost(&spec(object), &spec(found))).unwrap_or_default();
            if fields.is_empty() {
                return Ok(Vec::new());
            }
            probe.check_deterministic(object, other).await?;
            let fields = super::listed(fields.iter().map(String::as_str));
            ("changed", format!("an object that is already in {own} loses {fields} of its spec"))
        }
        Answer::Invalid(fault) => (fault.kind, format!("an object is already in {own}: {}", fault.message)),
    };
    Ok(vec![Violation::new(kind, message).with_exchanges([exchange])])
}
