//! Gives a baseline access to the findings of `admit lint`.

use std::collections::BTreeSet;

use harness::verify::report::StaleEntry;

use super::output::{NotChecked, Report};
use crate::baseline::{Findings, Known, Subcommand};
use crate::check_help::is_verbose_note;

/// Describes `admit lint` to the baseline.
pub(super) const LINT: Subcommand = Subcommand {
    name: "lint",
    find: crate::check_help::linted,
    // A finding can be about a configuration with an invalid name.
    is_webhook: |_| true,
    webhook: "CONFIGURATION/WEBHOOK or CONFIGURATION",
};

impl Findings for Report {
    fn findings(&mut self) -> Vec<(BTreeSet<Known>, &mut Option<String>)> {
        let listed = self.findings.iter_mut();
        let listed = listed.filter(|finding| !is_verbose_note(finding.check, &finding.kind));
        let findings = listed.map(|finding| {
            let known = Known {
                check: finding.check.to_owned(),
                kind: finding.kind.clone(),
                webhook: finding.webhook.clone(),
                field: String::new(),
            };
            (BTreeSet::from([known]), &mut finding.accepted)
        });
        findings.collect()
    }

    /// Returns `false` if the check did not run or could not read the webhook, so that the entry is kept.
    fn would_find(&self, known: &Known) -> bool {
        let configuration = known.webhook.split('/').next().unwrap_or_default();
        let concerns = |unchecked: &NotChecked| {
            unchecked.check == known.check
                && (unchecked.webhook.is_empty() || unchecked.webhook == known.webhook)
        };
        self.checks.iter().any(|check| check.id == known.check)
            && !self.unreadable.iter().any(|name| name == configuration)
            && !self.not_checked.iter().any(concerns)
    }

    fn report_stale(&mut self, stale: Vec<StaleEntry>) {
        self.stale = stale;
    }
}
