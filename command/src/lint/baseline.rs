//! The findings that `--baseline` of `admit lint` accepts.

use std::collections::BTreeSet;

use harness::verify::report::StaleEntry;

use super::output::{NotChecked, Report};
use crate::baseline::{Findings, Known, Subcommand};

/// Names the findings of `admit lint` in a baseline.
pub(super) const LINT: Subcommand = Subcommand {
    name: "lint",
    noun: "lint check",
    find: super::find,
    // A finding can be about a configuration with an invalid name.
    is_webhook: |_| true,
    webhook: "CONFIGURATION/WEBHOOK or CONFIGURATION",
};

impl Findings for Report {
    fn findings(&mut self) -> Vec<(BTreeSet<Known>, &mut Option<String>)> {
        let findings = self.findings.iter_mut().map(|finding| {
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

    /// Checks that were not run, and webhooks that cannot be read, do not affect the entries of a baseline.
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
