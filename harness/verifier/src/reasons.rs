//! Counts reasons, such as those of failed calls.

use std::collections::BTreeMap;

/// The maximum number of distinct reasons and findings to keep for a combination of a check and a webhook.
pub(super) const MAX_KEPT: usize = 20;

/// Increments the count of `reason`, or of `other reasons` if too many reasons have been kept.
pub(super) fn count(counts: &mut BTreeMap<String, u64>, reason: String) {
    let reason = if counts.len() >= MAX_KEPT && !counts.contains_key(&reason) {
        "other reasons".to_owned()
    } else {
        reason
    };
    *counts.entry(reason).or_default() += 1;
}
