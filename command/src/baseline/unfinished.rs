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
    let reason = output::one_line(&first.reason);
    let why = if unfinished.iter().all(|it| it.reason == first.reason) {
        reason.into_owned()
    } else {
        let webhook =
            if first.webhook.is_empty() { String::new() } else { format!(" for {}", first.webhook) };
        format!("for example, {}{webhook}: {reason}", first.check)
    };
    Some(format!(
        "warning: the baseline may be incomplete: {ids} could not be completed{webhooks}: {why}; write it again when \
         they can be completed"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reason_is_an_example_unless_all_checks_have_it() {
        let unfinished = |check: &str, webhook: &str, reason: &str| Unfinished {
            check: check.to_owned(),
            webhook: webhook.to_owned(),
            reason: reason.to_owned(),
        };
        let mut all = vec![
            unfinished("V02", "c/a", "connection refused"),
            unfinished("V03", "c/b", "connection refused"),
        ];
        let expected = |why: &str| {
            format!(
                "warning: the baseline may be incomplete: V02, V03 could not be completed for c/a, c/b: {why}; write it \
                 again when they can be completed"
            )
        };
        assert_eq!(warning(&all).unwrap(), expected("connection refused"));
        all[1].reason = "needs --api-server-out".to_owned();
        assert_eq!(warning(&all).unwrap(), expected("for example, V02 for c/a: connection refused"));
        assert_eq!(warning(&[]), None);
    }
}
