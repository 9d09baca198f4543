//! Gives a baseline access to the findings of `admit lint`.

use std::collections::BTreeSet;

use harness::verify::report::StaleEntry;

use super::output::{NotChecked, Report};
use crate::baseline::{Acceptance, Findings, Known, Subcommand, Unfinished};
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
    fn findings(&mut self) -> Vec<(BTreeSet<Known>, Acceptance<'_>)> {
        let listed = self.findings.iter_mut();
        let listed = listed.filter(|finding| !is_verbose_note(finding.check, &finding.kind));
        let findings = listed.map(|finding| {
            let known = Known {
                check: finding.check.to_owned(),
                kind: finding.kind.clone(),
                webhook: finding.webhook.clone(),
                field: String::new(),
            };
            let acceptance = Acceptance {
                accepted: &mut finding.accepted,
                added: &mut finding.added,
                message: &mut finding.message,
            };
            (BTreeSet::from([known]), acceptance)
        });
        findings.collect()
    }

    /// Returns an empty list, because findings of `admit lint` do not have consequences.
    fn consequences(&mut self) -> Vec<(BTreeSet<Known>, &mut Option<String>)> {
        Vec::new()
    }

    /// Returns the checks that depend on a rejected field. Other checks are not completed because of missing manifests.
    fn unfinished(&self) -> Vec<Unfinished> {
        let rejected = self.not_checked.iter().filter(|unchecked| unchecked.is_rejected);
        let unfinished = rejected.map(|unchecked| Unfinished {
            check: unchecked.check.to_owned(),
            webhook: unchecked.webhook.clone(),
            reason: unchecked.reason.clone(),
        });
        unfinished.collect()
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
