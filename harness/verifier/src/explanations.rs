//! Explains findings, and results without a finding.

use kubernetes_admission::event::Phase;

use super::check::{Check, Probe};
use super::checks;
use super::reasons;
use super::report::{CheckReport, CheckResult, Finding, Report, Tally};
use super::tried::{Tried, UNMATCHED, send_matching};

/// The ID of the check that examines every response.
const ENVELOPE: &str = "V22";

impl CheckReport {
    /// Returns the reason why a finding of this check matters.
    pub fn why_of<'a>(&'a self, finding: &'a Finding) -> &'a str {
        finding.why.as_deref().unwrap_or(&self.why)
    }

    /// Returns the advice on how to fix a finding of this check.
    pub fn help_of<'a>(&'a self, finding: &'a Finding) -> &'a str {
        finding.help.as_deref().unwrap_or(&self.help)
    }
}

impl Report {
    /// Returns the results that make the run incomplete: those that were not checked because of the webhook.
    ///
    /// Includes results that do not cover all objects because of an invalid or missing response. Omits results that a finding of
    /// another check explains, because that finding is in the report.
    pub fn incomplete(&self) -> impl Iterator<Item = (&CheckReport, &CheckResult)> {
        let results = self.checks.iter().flat_map(|check| check.results.iter().map(move |it| (check, it)));
        results.filter(|(_, result)| {
            let is_unchecked = result.verdict == Tally::NotChecked
                && !result.not_checked.keys().all(|reason| self.explains(reason, &result.webhook));
            !result.unequipped && (is_unchecked || self.lacks_responses(result))
        })
    }

    /// Returns whether the webhook was never called although a check that sends objects applies to it.
    pub fn is_untried(&self, webhook: &str) -> bool {
        let Some(tried) = self.webhooks.get(webhook) else { return false };
        let phase = if tried.mutating { Phase::Mutating } else { Phase::Validating };
        let ran = self.checks.iter().filter(|check| check.skipped.is_none());
        let sends_objects = |check: &Check| {
            matches!(check.probe, Probe::Object(_) | Probe::Collection(_)) && check.audience.includes(phase)
        };
        tried.called == 0 && ran.filter_map(|check| checks::find(&check.id)).any(sends_objects)
    }

    /// Returns a note about a webhook that was not called or never changed an object, and a suggestion.
    pub(super) fn unseen_of(&self, webhook: &str, tried: &Tried) -> Option<String> {
        let is_unmatched = |reason: &String| reason.starts_with(UNMATCHED);
        let is_unmatched = tried.called == 0 && tried.mismatches.keys().all(is_unmatched);
        if let Some(error) = tried.rule_errors.first().filter(|_| is_unmatched) {
            return Some(format!("the webhook was not called: {error}; correct the rule"));
        }
        // The rules determine the objects of the built-in corpus.
        let has_no_object =
            self.objects == 0 && !self.interrupted && self.shard.is_none() && !self.has_option("-f");
        if has_no_object && tried.called == 0 {
            let advice = send_matching(false);
            return Some(format!(
                "the webhook was not called: none of its rules matches an object of the built-in corpus; {advice}"
            ));
        }
        let mut results = self.checks.iter().filter(|check| check.id == "V01").flat_map(|it| &it.results);
        // If V01 was not checked, the verdict gives the reason, such as a patch that does not apply.
        if tried.called > 0 && results.any(|it| it.webhook == webhook && it.verdict == Tally::NotChecked) {
            return None;
        }
        tried.unseen(webhook, self.objects, &self.options)
    }

    /// Returns the webhooks with invalid responses, each with the number of these and the most frequent reason.
    ///
    /// Omits webhooks without a valid response, and webhooks whose responses have a finding of V22.
    pub fn invalid_responses(&self) -> impl Iterator<Item = (&str, u64, &str)> {
        self.webhooks.keys().filter_map(|webhook| {
            let (count, reason) = self.invalid_responses_of(webhook)?;
            Some((webhook.as_str(), count, reason))
        })
    }

    /// Returns the number of the webhook's invalid responses and the most frequent reason.
    ///
    /// Returns `None` if [`Self::invalid_responses`] omits the webhook.
    pub fn invalid_responses_of(&self, webhook: &str) -> Option<(u64, &str)> {
        let invalid = self.webhooks.get(webhook)?.invalid_responses()?;
        (!self.has_finding(ENVELOPE, webhook)).then_some(invalid)
    }

    /// Returns the webhooks that did not respond to some calls, each with the number of these and the most frequent reason.
    ///
    /// Omits webhooks without a valid response, and failures that did not prevent a check, such as those of V12.
    pub fn failed_calls(&self) -> impl Iterator<Item = (&str, u64, &str)> {
        self.webhooks.keys().filter_map(|webhook| {
            let (count, reason) = self.failed_calls_of(webhook)?;
            Some((webhook.as_str(), count, reason))
        })
    }

    /// Returns the number of the webhook's calls without a response and the most frequent reason.
    ///
    /// Returns `None` if [`Self::failed_calls`] omits the webhook.
    pub fn failed_calls_of(&self, webhook: &str) -> Option<(u64, &str)> {
        let failed = self.webhooks.get(webhook)?.failed_calls()?;
        let results = self.checks.iter().flat_map(|check| &check.results);
        let mut of_webhook = results.filter(|result| result.webhook == webhook);
        of_webhook.any(lacks_calls).then_some(failed)
    }

    /// Returns whether the check passed but does not cover all objects because of an invalid or missing response.
    fn lacks_responses(&self, result: &CheckResult) -> bool {
        if result.verdict != Tally::Passed {
            return false;
        }
        self.failed_calls_of(&result.webhook).is_some() && lacks_calls(result)
            || self
                .invalid_responses_of(&result.webhook)
                .is_some_and(|(_, failure)| result.not_checked.keys().any(|reason| reason.contains(failure)))
    }

    /// Returns whether `reason` ends with `see ID`, and that check has a finding about the webhook.
    fn explains(&self, reason: &str, webhook: &str) -> bool {
        let Some((_, id)) = reason.rsplit_once(": see ") else { return false };
        self.has_finding(id, webhook)
    }

    /// Returns whether a check has a finding about the webhook. A consequence of another finding counts.
    fn has_finding(&self, id: &str, webhook: &str) -> bool {
        let check = self.checks.iter().find(|check| check.id == id);
        check.is_some_and(|check| {
            check.findings_of(webhook).next().is_some() || self.cause_of(check, webhook).is_some()
        })
    }
}

/// Returns whether the check did not judge a request because a call failed without a response.
fn lacks_calls(result: &CheckResult) -> bool {
    result.not_checked.keys().any(|reason| reasons::is_missing_response(reason))
}
