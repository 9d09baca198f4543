//! Marks checks of changes as not exercised if the webhooks never changed an object.

use super::report::{CheckResult, Report, TOGETHER, Tally};

/// The checks that judge only how webhooks change objects.
const CHANGES: [&str; 10] = ["V01", "V02", "V03", "V04", "V05", "V06", "V07", "V08", "V09", "V10"];

/// The reason to report if a check of one webhook's changes was not exercised.
pub const NEVER_CHANGED: &str = "the webhook never changed an object";
/// The reason to report if a check of the changes by all webhooks together was not exercised.
pub const NONE_CHANGED: &str = "no webhook changed an object";

/// Marks passes of the checks in [`CHANGES`] as not exercised if the checked webhooks never changed an object.
pub(super) fn mark(report: &mut Report) {
    let mutating = report.webhooks.iter().filter(|(_, tried)| tried.mutating && !tried.cannot_change());
    let never = |called: u64, patched: u64| called > 0 && patched == 0;
    let unchanged: Vec<String> = mutating
        .clone()
        .filter(|(_, tried)| never(tried.called, tried.patched))
        .map(|(name, _)| name.clone())
        .collect();
    let none_changed = !unchanged.is_empty() && mutating.clone().all(|(_, tried)| tried.patched == 0);
    let checks = report.checks.iter_mut().filter(|check| CHANGES.contains(&check.id.as_str()));
    for result in checks.flat_map(|check| &mut check.results) {
        let reason = match result.webhook.as_str() {
            TOGETHER if none_changed => NONE_CHANGED,
            webhook if unchanged.iter().any(|name| name == webhook) => NEVER_CHANGED,
            _ => continue,
        };
        if result.verdict == Tally::Passed {
            result.not_exercised(reason);
        }
    }
}

impl CheckResult {
    /// Counts the passes as not exercised.
    fn not_exercised(&mut self, reason: &str) {
        *self.not_exercised.entry(reason.to_owned()).or_default() += std::mem::take(&mut self.held);
        self.verdict = self.tally(false);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns the verdicts of V01, V11, and V05 for a webhook that changed `patched` objects.
    fn verdicts(patched: u64) -> Vec<Tally> {
        let check = |id: &str, webhook: &str| {
            json!({"id": id, "title": "t", "severity": "error", "why": "w", "source": "s", "findings": [], "results": [
                {"webhook": webhook, "verdict": "passed", "held": 3, "notChecked": {}, "notApplicable": {}}]})
        };
        let mut report: Report =
            serde_json::from_value(json!({"version": 2, "objects": 3, "calls": 9, "leftOut": {},
            "webhooks": {"c/w": {"mutating": true, "called": 9, "answered": 9, "patched": patched}},
            "checks": [check("V01", "c/w"), check("V11", "c/w"), check("V05", TOGETHER)]}))
            .unwrap();
        mark(&mut report);
        report.checks.iter().map(|check| check.results[0].verdict).collect()
    }

    #[test]
    fn checks_of_changes_do_not_pass_without_a_change() {
        assert_eq!(verdicts(0), [Tally::NotExercised, Tally::Passed, Tally::NotExercised]);
        assert_eq!(verdicts(1), [Tally::Passed; 3]);
    }
}
