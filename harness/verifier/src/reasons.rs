//! Counts reasons, such as the reasons for failed calls.

use std::collections::BTreeMap;

/// The maximum number of distinct reasons, and of findings, to keep for each check and webhook.
pub(super) const MAX_KEPT: usize = 20;

/// The part of kube-apiserver's message about a wrong `response.uid` that precedes the UID of the review.
const EXPECTED_UID: &str = "expected response.uid=\"";

/// Increments the count of `reason`, or of `other reasons` if too many reasons have been kept.
pub(super) fn count(counts: &mut BTreeMap<String, u64>, reason: String) {
    let reason = counted(counts, reason);
    *counts.entry(reason).or_default() += 1;
}

/// Returns the reason as [`count`] counts it.
pub(super) fn counted(counts: &BTreeMap<String, u64>, reason: String) -> String {
    let reason = without_uid(reason);
    if counts.len() >= MAX_KEPT && !counts.contains_key(&reason) {
        "other reasons".to_owned()
    } else {
        reason
    }
}

/// The part of kube-apiserver's error message that occurs only if a webhook did not respond.
const NO_RESPONSE: &str = "failed to call webhook: Post \"";

/// Returns whether a call failed with `reason` because the response was invalid, rather than missing.
pub(super) fn is_invalid_response(reason: &str) -> bool {
    !is_missing_response(reason)
}

/// Returns whether a call failed with `reason` because the webhook did not respond.
pub(super) fn is_missing_response(reason: &str) -> bool {
    reason.contains(NO_RESPONSE)
}

/// Returns whether `reason`, the error of a call, is a timeout.
///
/// Source: Go context, `DeadlineExceeded`; net/http, `Client.Timeout`.
pub fn is_timeout(reason: &str) -> bool {
    reason.contains("deadline exceeded") || reason.contains("Client.Timeout exceeded")
}

/// Replaces the UID of a review with `UID`, because the UID is different in each call.
fn without_uid(reason: String) -> String {
    let replaced = reason.split_once(EXPECTED_UID).and_then(|(before, rest)| {
        let (_, after) = rest.split_once('"')?;
        Some(format!("{before}{EXPECTED_UID}UID\"{after}"))
    });
    replaced.unwrap_or(reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeout_of_the_context_and_of_the_client_is_recognized() {
        assert!(is_timeout("Post \"https://a/\": context deadline exceeded"));
        assert!(is_timeout("Post \"https://a/\": EOF (Client.Timeout exceeded while awaiting headers)"));
        assert!(!is_timeout("Post \"https://a/\": EOF"));
    }

    #[test]
    fn reasons_that_differ_in_the_uid_of_the_review_are_counted_together() {
        let mut counts = BTreeMap::new();
        for uid in ["8bd9", "14f9"] {
            let reason =
                format!("received invalid webhook response: expected response.uid=\"{uid}\", got \"\"");
            count(&mut counts, reason);
        }
        let expected = "received invalid webhook response: expected response.uid=\"UID\", got \"\"";
        assert_eq!(counts, BTreeMap::from([(expected.to_owned(), 2)]));
    }
}
