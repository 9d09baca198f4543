//! The findings that `--baseline` of `admit verify` accepts.

use std::collections::BTreeSet;

use harness::verify::checks;
use harness::verify::report::{CheckReport, Report, StaleEntry, TOGETHER, Tally};

use crate::baseline::{Findings, Known, Subcommand};

/// Names the findings of `admit verify` in a baseline.
pub(crate) const VERIFY: Subcommand = Subcommand {
    name: "verify",
    noun: "check",
    find: checks::find,
    is_webhook: |name| name == TOGETHER || name.contains('/'),
    webhook: "CONFIGURATION/WEBHOOK or `all webhooks together`",
};

impl Findings for Report {
    fn findings(&mut self) -> Vec<(BTreeSet<Known>, &mut Option<String>)> {
        let mut all = Vec::new();
        for check in &mut self.checks {
            for finding in &mut check.findings {
                let known = finding.webhooks.keys().map(|webhook| Known {
                    check: check.id.clone(),
                    kind: finding.kind.clone(),
                    webhook: webhook.clone(),
                });
                all.push((known.collect(), &mut finding.accepted));
            }
        }
        all
    }

    /// A run on one shard, and checks that were not run, do not affect the entries of a baseline.
    fn would_find(&self, known: &Known) -> bool {
        let was_made = |check: &&CheckReport| check.id == known.check && check.skipped.is_none();
        let Some(check) = self.checks.iter().find(was_made) else { return false };
        let result = check.results.iter().find(|result| result.webhook == known.webhook);
        self.shard.is_none() && result.is_none_or(|result| result.verdict != Tally::NotChecked)
    }

    fn report_stale(&mut self, stale: Vec<StaleEntry>) {
        self.stale = stale;
    }
}
