//! What `--baseline` of `admit lint` accepts in a report.

use std::collections::BTreeSet;

use harness::verify::report::StaleEntry;

use super::output::{NotChecked, Report};
use crate::baseline::{Findings, Known, Subcommand};

/// How a baseline of `admit lint` names findings.
pub(super) const LINT: Subcommand = Subcommand {
    name: "lint",
    noun: "static check",
    find: super::find,
    // A configuration may be refused for its name.
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
            };
            (BTreeSet::from([known]), &mut finding.accepted)
        });
        findings.collect()
    }

    /// A check that was not made says nothing, nor does one of webhooks that cannot be read.
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
