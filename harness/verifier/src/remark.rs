//! Defines the remarks of a report.

use serde::{Deserialize, Serialize};

use super::violation::Severity;

/// A warning or a note about a run as a whole, such as about webhooks that were never called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Remark {
    /// Whether the remark is a warning or a note.
    pub severity: Severity,
    /// A sentence that describes the condition.
    pub message: String,
    /// The advice on what to do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub help: Vec<String>,
}

impl Remark {
    /// Creates a remark from `text`: the message and, separated by `; `, the advice.
    pub fn new(severity: Severity, text: &str) -> Self {
        let mut parts = text.split("; ").filter(|part| !part.is_empty()).map(str::to_owned);
        Self { severity, message: parts.next().unwrap_or_default(), help: parts.collect() }
    }
}
