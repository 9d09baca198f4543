//! Collects warnings about accepted objects.

use kubernetes_types::names;
use serde_json::Value;

use crate::kinds::common::fields::{get, int, text};

/// The warnings for an object in kube-apiserver's order.
#[derive(Debug, Default)]
pub(crate) struct Warnings(Vec<String>);

impl Warnings {
    /// The maximum number of warnings. The warnings in a response contain at most this number of characters.
    ///
    /// Source: apiserver pkg/endpoints/filters/warning.go, `truncateAtTotalRunes`.
    const TRUNCATE_AT_TOTAL_RUNES: usize = 4096;

    pub(crate) fn push(&mut self, text: String) {
        if !self.is_full() {
            self.0.push(text);
        }
    }

    pub(crate) fn into_texts(self) -> Vec<String> {
        self.0
    }

    pub(crate) fn is_full(&self) -> bool {
        self.0.len() >= Self::TRUNCATE_AT_TOTAL_RUNES
    }
}

pub(crate) const POD_NAMES: &str = "Pod names and hostnames";

/// Warns about a name that is used as a DNS label but is not a valid DNS label.
pub(crate) fn named_as_host(warnings: &mut Warnings, object: &Value, what: &str) {
    let wrong = names::dns1123_label(text(get(object, "metadata"), "name"));
    if !wrong.is_empty() {
        let wrong = wrong.join(" ");
        warnings.push(format!(
            "metadata.name: this is used in {what}, which can result in surprising behavior; a DNS label is \
             recommended: [{wrong}]"
        ));
    }
}

/// Returns whether an object is new or its generation has changed.
pub(crate) fn has_next_generation(object: &Value, old: Option<&Value>) -> bool {
    let generation = |object| int(get(object, "metadata"), "generation");
    old.is_none_or(|old| generation(old) != generation(object))
}

pub(crate) fn has_annotation(object: &Value, name: &str) -> bool {
    get(get(object, "metadata"), "annotations").get(name).is_some()
}

pub(crate) fn is_managed_by(object: &Value, label: &str, managers: &[&str]) -> bool {
    managers.contains(&text(get(get(object, "metadata"), "labels"), label))
}
