//! The causes that are known, and the words by which each is recognized.

use std::sync::LazyLock;

use fake_webhooks::{Class, Fault};
use regex::Regex;
use serde::{Deserialize, Deserializer, de};

/// Why a request failed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Cause {
    pub(super) id: String,
    #[serde(deserialize_with = "regex")]
    pub(super) pattern: Regex,
    /// Whether the pattern is for a whole message, and not only for what went wrong with a call.
    #[serde(default)]
    pub(super) anywhere: bool,
    /// Where no fault of the catalog says so.
    class: Option<Class>,
    /// The file of Kubernetes or the package of Go that the words are from, where no recording has them.
    pub(super) source: Option<String>,
    #[serde(default)]
    faults: Vec<String>,
    /// One sentence; names in braces are filled in.
    pub(super) meaning: String,
    /// What most often leads to it.
    pub(super) usually: Vec<String>,
    /// Commands that show more; names in braces are filled in.
    pub(super) look: Vec<String>,
}

impl Cause {
    /// The faults of the catalog with this cause.
    pub(super) fn faults(&self) -> impl Iterator<Item = &'static Fault> {
        self.faults.iter().filter_map(|id| fake_webhooks::catalog().iter().find(|fault| fault.id == *id))
    }

    /// What the failure policy has to do with it.
    pub(super) fn class(&self) -> Option<Class> {
        self.class.or_else(|| Some(self.faults().next()?.class))
    }
}

fn regex<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Regex, D::Error> {
    Regex::new(&String::deserialize(deserializer)?).map_err(de::Error::custom)
}

/// All causes; the first whose pattern matches counts.
pub(super) static CAUSES: LazyLock<Vec<Cause>> = LazyLock::new(|| {
    serde_saphyr::from_str(include_str!("causes.yaml")).unwrap_or_else(|error| panic!("causes.yaml: {error}"))
});

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use fake_webhooks::Family;

    use super::*;

    #[test]
    fn every_cause_says_where_its_words_are_from() {
        let mut ids = BTreeSet::new();
        for cause in &*CAUSES {
            assert!(ids.insert(&cause.id), "{} is there twice", cause.id);
            assert_eq!(cause.faults().count(), cause.faults.len(), "{} names an unknown fault", cause.id);
            // Of conversion webhooks no policy decides.
            let of_admission = cause.faults().filter(|fault| fault.family != Family::Conversion);
            let classes: BTreeSet<Class> = of_admission.map(|fault| fault.class).collect();
            assert!(classes.len() <= 1, "{}: {classes:?}", cause.id);
            assert_eq!(cause.faults.is_empty(), cause.source.is_some(), "{}", cause.id);
            assert_eq!(cause.faults.is_empty(), cause.class.is_some(), "{}", cause.id);
        }
    }
}
