//! Explains findings, and results without a finding.

use super::report::{CheckReport, CheckResult, Finding, Report, Tally};

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
    /// Omits results that refer to a finding of another check, because that finding is in the report.
    pub fn incomplete(&self) -> impl Iterator<Item = (&CheckReport, &CheckResult)> {
        let results = self.checks.iter().flat_map(|check| check.results.iter().map(move |it| (check, it)));
        results.filter(|(_, result)| {
            result.verdict == Tally::NotChecked
                && !result.unequipped
                && !result.not_checked.keys().all(|reason| self.explains(reason, &result.webhook))
        })
    }

    /// Returns whether `reason` ends with `see ID`, and that check has a finding about the webhook.
    fn explains(&self, reason: &str, webhook: &str) -> bool {
        let Some((_, id)) = reason.rsplit_once(": see ") else { return false };
        let check = self.checks.iter().find(|check| check.id == id);
        check.is_some_and(|check| {
            check.findings_of(webhook).next().is_some() || self.cause_of(check, webhook).is_some()
        })
    }
}
