//! Describes how a baseline changes when it is written again.

use std::collections::{BTreeMap, BTreeSet};

use super::{Accepted, Baseline, Findings, Known};
use crate::diagnostic::several;

/// The maximum number of changes to list; any other changes are only counted.
const MAX_LISTED: usize = 20;

/// A change of the entries for the findings of one check and kind for one webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    /// The run has a finding that the baseline does not have.
    Added,
    /// The check no longer has the finding.
    Removed,
    /// The entry does not have fields, but the finding has fields.
    ReplacedByFields,
}

impl Baseline {
    /// Returns the entry that accepts the finding: an entry with its field, or an entry without fields.
    pub(super) fn entry(&self, known: &Known) -> Option<&Accepted> {
        let any_field = || self.entries.get(&known.without_field());
        self.entries.get(known).or_else(any_field)
    }

    /// Returns the end of the message about a finding that the baseline accepts only in other fields; otherwise empty.
    pub(super) fn new_fields(&self, keys: &BTreeSet<Known>) -> String {
        let accepted: BTreeSet<Known> =
            keys.iter().filter(|key| self.entry(key).is_some()).map(Known::without_field).collect();
        let is_new = |key: &&Known| self.entry(key).is_none() && accepted.contains(&key.without_field());
        let fields: BTreeSet<&str> = keys.iter().filter(is_new).map(|key| key.field.as_str()).collect();
        if fields.is_empty() {
            return String::new();
        }
        format!("; not in the baseline: {}", fields.into_iter().collect::<Vec<_>>().join(", "))
    }

    /// Returns a line for each change, with its reason. Returns no lines if the baseline was empty.
    pub(super) fn changes(&self, report: &mut impl Findings) -> Vec<String> {
        let Some(first) = self.entries.values().next() else { return Vec::new() };
        let file = &first.place.file;
        let found: BTreeSet<Known> = report.findings().into_iter().flat_map(|(known, _)| known).collect();
        let added = found.iter().filter(|known| self.entry(known).is_none());
        let added = added.map(|known| (known, Change::Added));
        let missing = self.entries.keys().filter(|known| !found.contains(*known));
        let removed = missing.filter_map(|known| {
            if known.is_without_the_fields_of(&found) {
                Some((known, Change::ReplacedByFields))
            } else {
                report.would_find(known).then_some((known, Change::Removed))
            }
        });
        let mut changes: BTreeMap<(Change, &str, &str, &str), Vec<&str>> = BTreeMap::new();
        for (known, change) in added.chain(removed) {
            let fields = changes.entry((change, &known.check, &known.kind, &known.webhook)).or_default();
            fields.extend(Some(known.field.as_str()).filter(|field| !field.is_empty()));
        }
        let more = changes.len().saturating_sub(MAX_LISTED);
        let lines = changes.into_iter().take(MAX_LISTED).map(|((change, check, kind, webhook), fields)| {
            let fields = if fields.is_empty() { String::new() } else { format!(" ({})", fields.join(", ")) };
            let entry = format!("{check} \"{kind}\" for {webhook}{fields}");
            let what = match change {
                Change::Added => format!("added {entry}: new finding"),
                Change::Removed => format!("removed {entry}: no longer found"),
                Change::ReplacedByFields => {
                    format!("removed {entry} (any field): replaced by entries that list fields")
                }
            };
            output::one_line(&format!("{file}: {what}")).into_owned()
        });
        let mut lines: Vec<String> = lines.collect();
        if more > 0 {
            lines.push(format!("{file}: and {}", several(more, "more change")));
        }
        lines
    }
}

impl Known {
    /// Returns whether this key is without a field although `found` has the same finding with fields.
    pub(super) fn is_without_the_fields_of(&self, found: &BTreeSet<Self>) -> bool {
        self.field.is_empty() && found.iter().any(|it| !it.field.is_empty() && it.without_field() == *self)
    }

    /// Returns the key of an entry that accepts the finding in any field.
    pub(super) fn without_field(&self) -> Self {
        Self { field: String::new(), ..self.clone() }
    }
}
