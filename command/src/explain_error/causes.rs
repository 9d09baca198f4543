//! Defines the known causes of errors and the patterns that match their messages.

use std::sync::LazyLock;

use fake_webhooks::{Class, Fault};
use regex::Regex;
use serde::{Deserialize, Deserializer, de};

use super::pattern;

/// A cause of an error, with its explanation and advice.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Cause {
    pub(super) id: String,
    #[serde(deserialize_with = "regex")]
    pub(super) pattern: Regex,
    /// Whether the pattern applies to the complete message rather than only to the error of a call.
    #[serde(default)]
    pub(super) anywhere: bool,
    /// Whether the pattern also applies to a message without `failed calling webhook`.
    #[serde(default)]
    pub(super) fragment: bool,
    /// Whether the message appears in the webhook's log rather than in kube-apiserver's log.
    #[serde(default)]
    pub(super) is_in_webhook_log: bool,
    /// The class of the cause, if no fault in the catalog determines it.
    class: Option<Class>,
    /// What happens to the request, if the failure policy of a webhook does not determine it.
    pub(super) consequence: Option<String>,
    /// The Kubernetes file or Go package that contains the message, if the message was not recorded.
    pub(super) source: Option<String>,
    #[serde(default)]
    faults: Vec<String>,
    /// The behavior of a fake that causes the message, if the message is not a fault of the webhook.
    pub(super) behavior: Option<String>,
    /// The explanation. Names in braces are placeholders.
    pub(super) meaning: String,
    /// The most common reasons for the error.
    pub(super) usually: Vec<String>,
    /// The most common reasons for a webhook at a loopback address; empty if they are the same.
    #[serde(default)]
    pub(super) usually_on_loopback: Vec<String>,
    /// The commands for diagnosis. Names in braces are placeholders.
    pub(super) look: Vec<String>,
}

impl Cause {
    /// Returns the faults in the catalog that have this cause.
    pub(super) fn faults(&self) -> impl Iterator<Item = &'static Fault> {
        self.faults.iter().filter_map(|id| fake_webhooks::catalog().iter().find(|fault| fault.id == *id))
    }

    /// Returns the most common reasons, for a webhook at a loopback address if `is_loopback` is set.
    pub(super) fn usually(&self, is_loopback: bool) -> &[String] {
        if is_loopback && !self.usually_on_loopback.is_empty() {
            &self.usually_on_loopback
        } else {
            &self.usually
        }
    }

    /// Returns the class of the cause. The class determines how the failure policy applies.
    pub(super) fn class(&self) -> Option<Class> {
        self.class.or_else(|| Some(self.faults().next()?.class))
    }
}

fn regex<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Regex, D::Error> {
    pattern::compile(&String::deserialize(deserializer)?).map_err(de::Error::custom)
}

/// All causes; the first cause with a matching pattern is used.
pub(super) static CAUSES: LazyLock<Vec<Cause>> = LazyLock::new(|| {
    serde_saphyr::from_str(include_str!("causes.yaml")).unwrap_or_else(|error| panic!("causes.yaml: {error}"))
});

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use fake_webhooks::Family;

    use super::*;

    #[test]
    fn every_cause_has_a_recording_or_a_source() {
        let mut ids = BTreeSet::new();
        for cause in &*CAUSES {
            assert!(ids.insert(&cause.id), "{} is there twice", cause.id);
            assert_eq!(cause.faults().count(), cause.faults.len(), "{} names an unknown fault", cause.id);
            // Conversion webhooks do not have a failure policy.
            let of_admission = cause.faults().filter(|fault| fault.family != Family::Conversion);
            let classes: BTreeSet<Class> = of_admission.map(|fault| fault.class).collect();
            assert!(classes.len() <= 1, "{}: {classes:?}", cause.id);
            assert_eq!(cause.faults.is_empty(), cause.source.is_some(), "{}", cause.id);
            assert_eq!(cause.faults.is_empty(), cause.class.is_some(), "{}", cause.id);
        }
    }
}
