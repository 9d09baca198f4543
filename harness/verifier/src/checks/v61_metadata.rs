//! V61: a conversion changes only labels and annotations in the metadata.

use futures::FutureExt as _;
use futures::future::BoxFuture;
use kubernetes_types::json::at;
use kubernetes_types::names;
use serde_json::Value;

use crate::check::{Audience, Check, Observed, Probe, Repeatability, Severity, Violation};
use crate::converter::{Case, ConverterProbe};

pub(super) const CHECK: Check = Check {
    id: "V61",
    title: "conversion of metadata: only labels and annotations change, and they stay valid",
    severity: Severity::Error,
    why: "The API server rejects a converted object with another name, namespace, or uid, or with invalid \
          labels or annotations; the request that needs the conversion then fails. The API server ignores \
          other changes of the metadata, such as finalizers: a webhook that makes them expects something \
          that does not happen.",
    help: "Copy the metadata unchanged, except for labels and annotations.",
    source: "apiextensions-apiserver pkg/apiserver/conversion/webhook_converter.go, validateConvertedObject \
             and \
             restoreObjectMeta",
    audience: Audience::Conversion,
    repeatability: Repeatability::Same,
    probe: Probe::Conversion(|probe| probe.each(run).boxed()),
};

fn run<'a>(probe: &'a ConverterProbe<'a>, case: &'a Case) -> BoxFuture<'a, Observed> {
    look(probe, case).boxed()
}

async fn look(probe: &ConverterProbe<'_>, Case { object, to, .. }: &Case) -> Observed {
    let (exchange, converted) = probe.converted(object, to).await?;
    let found = faults(at(object, &["metadata"]), at(&converted, &["metadata"]));
    let violations = found.into_iter().map(|(kind, message, severity)| {
        Violation::new(kind, message).with_severity(severity).with_exchanges([exchange.clone()])
    });
    Ok(violations.collect())
}

fn faults(before: &Value, after: &Value) -> Vec<(String, String, Severity)> {
    let Some(after) = after.as_object() else {
        return vec![(
            "no metadata".to_owned(),
            "the converted object has no metadata".to_owned(),
            Severity::Error,
        )];
    };
    let mut faults = Vec::new();
    for field in ["name", "namespace", "uid"] {
        let (before, after) = (at(before, &[field]), after.get(field).unwrap_or(&Value::Null));
        let is_empty = |value: &Value| value.as_str().unwrap_or_default().is_empty();
        if before != after && !(is_empty(before) && is_empty(after)) {
            let message = format!("the conversion changes metadata.{field} from {before} to {after}");
            faults.push((field.to_owned(), message, Severity::Error));
        }
    }
    for field in ["labels", "annotations"] {
        let invalid = match after.get(field) {
            None | Some(Value::Null) => None,
            Some(Value::Object(entries)) => entries.iter().find_map(|(key, value)| wrong(field, key, value)),
            Some(_) => Some(format!("metadata.{field} is not a map")),
        };
        faults.extend(invalid.map(|message| (format!("invalid {field}"), message, Severity::Error)));
    }
    let own = ["name", "namespace", "uid", "labels", "annotations"];
    let others = before.as_object().into_iter().flatten().map(|(field, _)| field).chain(after.keys());
    for field in others.filter(|field| !own.contains(&field.as_str())) {
        let (before, after) = (at(before, &[field]), after.get(field).unwrap_or(&Value::Null));
        if before != after && !faults.iter().any(|(kind, ..)| kind == field) {
            let message = format!(
                "the conversion changes metadata.{field} from {before} to {after}, which the API \
                         server ignores"
            );
            faults.push((field.clone(), message, Severity::Warning));
        }
    }
    faults
}

/// Returns the error in the key or value of a label or annotation, if any.
fn wrong(field: &str, key: &str, value: &Value) -> Option<String> {
    let Some(text) = value.as_str() else {
        return Some(format!("metadata.{field}[{key}] is {value}, not a string"));
    };
    let (wrong_key, wrong_value) = if field == "labels" {
        (names::label_key(key), names::label_value(text))
    } else {
        (names::label_key(&key.to_lowercase()), Vec::new())
    };
    let why = wrong_key.into_iter().chain(wrong_value).next()?;
    Some(format!("metadata.{field}[{key}] is invalid: {why}"))
}
