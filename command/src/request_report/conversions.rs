//! Reports the calls to conversion webhooks during a request.

use std::fmt::Write as _;
use std::time::Duration;

use harness::event::ConversionCall;
use output::OneLine;
use serde::{Deserialize, Serialize};

use super::milliseconds;
use crate::screen::Marks;
use crate::style::{BAD, FAINT, GOOD, brief};

/// A call to a conversion webhook.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ConversionReport {
    /// The `metadata.name` of the `CustomResourceDefinition`.
    definition: String,
    /// The namespace of the object; omitted if it is cluster-scoped.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    namespace: String,
    /// The name of the object; omitted before the server generates it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    name: String,
    /// The `apiVersion` of the object.
    from: String,
    /// The requested `apiVersion`.
    to: String,
    /// The duration of the call in milliseconds.
    duration_ms: f64,
    /// Whether the object was converted.
    converted: bool,
    /// The reason why the conversion failed; omitted if it succeeded.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    message: String,
}

impl ConversionReport {
    pub(super) fn new(call: &ConversionCall) -> Self {
        Self {
            definition: call.definition.clone(),
            namespace: call.namespace.clone(),
            name: call.name.clone(),
            from: call.from.clone(),
            to: call.to.clone(),
            duration_ms: milliseconds(call.took),
            converted: call.failure.is_none(),
            message: call.failure.clone().unwrap_or_default(),
        }
    }
}

/// Appends a line for each call.
pub(super) fn lines(text: &mut String, conversions: &[ConversionReport], marks: Marks) {
    if conversions.is_empty() {
        return;
    }
    let _ = writeln!(text, "\nConversions");
    let pad = marks.width();
    for ConversionReport { definition, namespace, name, from, to, duration_ms, converted, message } in
        conversions
    {
        let (style, mark) = if *converted { (GOOD, marks.passed) } else { (BAD, marks.failed) };
        let took = brief(Duration::from_secs_f64(duration_ms / 1e3));
        let object = if namespace.is_empty() { name.clone() } else { format!("{namespace}/{name}") };
        let failure = if *converted { String::new() } else { format!(": {message}") };
        let what = format!("{object} from {from} to {to}{failure}");
        let (definition, what) = (OneLine(definition), OneLine(what));
        let _ =
            writeln!(text, "    {style}{mark:<pad$}{style:#} {definition}  {FAINT}{took}{FAINT:#}  {what}");
    }
}
