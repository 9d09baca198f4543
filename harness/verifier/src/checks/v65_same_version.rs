//! V65: an object of the version already is passed through, or refused in words.

use futures::FutureExt as _;

use crate::check::{Audience, Check, Observed, Probe, Severity, Violation};
use crate::converter::{Answer, ConverterProbe, Seen, lost};

pub(super) const CHECK: Check = Check {
    id: "V65",
    title: "same version: an object that is of the version already is passed through or refused, not changed",
    severity: Severity::Warning,
    why: "kube-apiserver does not send such objects, but other programs that call conversion webhooks do, and a list may \
          hold objects of several versions. Converters that upstream and controller-runtime write answer them with the \
          result Failure, which is right, too; losing fields of them or failing with an HTTP error is not.",
    source: "apiextensions-apiserver pkg/apiserver/conversion/webhook_converter.go, getObjectsToConvert",
    audience: Audience::Conversion,
    probe: Probe::Conversion(|probe| run(probe).boxed()),
};

async fn run(probe: &ConverterProbe<'_>) -> Seen {
    let mut seen: Seen = Vec::new();
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
    // Of a webhook that answers nothing there is nothing more to say.
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
            probe.check_steady(object, other).await?;
            let fields = super::listed(fields.iter().map(String::as_str));
            ("changed", format!("an object that is of {own} already loses {fields} of its spec"))
        }
        Answer::Invalid(fault) => (fault.kind, format!("an object is of {own} already: {}", fault.message)),
    };
    Ok(vec![Violation::new(kind, message).with_exchanges([exchange])])
}
