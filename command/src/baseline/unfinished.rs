//! Warns about a baseline that is written although some checks could not be completed.

use std::collections::BTreeSet;

/// A check that could not be completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unfinished {
    /// The ID of the check.
    pub(crate) check: String,
    /// The webhook or configuration; empty if the check is not about one.
    pub(crate) webhook: String,
    /// The reason, in a few words.
    pub(crate) reason: String,
}

/// The maximum number of checks to name in the warning about an incomplete baseline.
const MAX_UNFINISHED: usize = 10;

/// Returns the warning about a baseline that may lack findings because checks could not be completed.
pub(super) fn warning(unfinished: &[Unfinished]) -> Option<String> {
    let first = unfinished.first()?;
    let ids: BTreeSet<&str> = unfinished.iter().map(|it| it.check.as_str()).collect();
    let webhooks: BTreeSet<&str> =
        unfinished.iter().map(|it| it.webhook.as_str()).filter(|webhook| !webhook.is_empty()).collect();
    let list = |names: &BTreeSet<&str>| names.iter().copied().collect::<Vec<_>>().join(", ");
    let ids = if ids.len() > MAX_UNFINISHED { format!("{} checks", ids.len()) } else { list(&ids) };
    let webhooks = if webhooks.is_empty() { String::new() } else { format!(" for {}", list(&webhooks)) };
    Some(format!(
        "warning: the baseline may be incomplete: {ids} could not be completed{webhooks}: {}; write it again when they \
         can be completed",
        output::one_line(&first.reason)
    ))
}
