//! Counts how often a webhook was called and responded.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

/// The counts of a webhook's calls for requests that an API server sends.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tried {
    /// Whether the webhook is mutating.
    pub mutating: bool,
    /// The number of calls.
    pub called: u64,
    /// The number of calls with a valid response; `None` in reports that do not contain this number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered: Option<u64>,
    /// The number of responses with a patch.
    pub patched: u64,
    /// The number of failed calls by reason, as in kube-apiserver's message.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub failures: BTreeMap<String, u64>,
    /// The number of corpus objects whose creation the webhook answered.
    #[serde(default)]
    pub objects: u64,
    /// The number of denials by reason; `NAME` replaces the object's name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub denied: BTreeMap<String, u64>,
    /// The label keys in the webhook's `objectSelector`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub selects: Vec<String>,
}

impl Tried {
    /// Returns the most frequent reason for failed calls if the webhook never returned a valid response.
    pub fn unanswered(&self) -> Option<&str> {
        if self.called == 0 || self.answered != Some(0) {
            return None;
        }
        let most = self.failures.iter().max_by_key(|(_, count)| **count);
        Some(most.map_or("no valid response", |(reason, _)| reason.as_str()))
    }

    /// Returns a note about a webhook that was not called or never changed an object, and a suggestion.
    pub(super) fn unseen(&self, name: &str, objects: u64) -> Option<String> {
        let what = match self {
            Self { called: 0, .. } => {
                format!("the webhook was not called for any of {objects} objects: nothing was tested")
            }
            Self { .. } if self.unanswered().is_some() => return None,
            Self { mutating: true, patched: 0, called, .. } => {
                format!(
                    "the webhook was called {called} times and never changed an object: its mutation was \
                     not tested"
                )
            }
            Self { .. } => return None,
        };
        let mut hint = "add objects that it mutates (-f), or the annotations and labels that it looks for \
                        (--annotation, --label)"
            .to_owned();
        if !self.selects.is_empty() {
            let _ = write!(hint, "; its objectSelector names {}", self.selects.join(", "));
        }
        // The keys of a product start with its domain.
        let labels: Vec<&str> = name.rsplit('/').next().unwrap_or_default().rsplitn(3, '.').collect();
        if let [last, domain, _] = labels.as_slice() {
            let _ = write!(hint, "; such keys often begin with its domain, as in {domain}.{last}/inject");
        }
        Some(format!("{what}; {hint}"))
    }
}
