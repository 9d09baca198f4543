//! Gives a baseline access to the findings of `admit verify`.

use std::collections::BTreeSet;

use harness::verify::report::{CheckReport, CheckResult, Consequence, Report, StaleEntry, TOGETHER, Tally};
use harness::verify::{Repeatability, checks};

use crate::baseline::{Acceptance, Findings, Known, Subcommand, Unfinished};
use crate::check_help::is_verbose_note;
use crate::{failure_cause, verdict};

/// Describes `admit verify` to the baseline.
pub(crate) const VERIFY: Subcommand = Subcommand {
    name: "verify",
    find: checks::find,
    is_webhook: |name| name == TOGETHER || name.contains('/'),
    webhook: "CONFIGURATION/WEBHOOK or `all webhooks together`",
};

/// Returns the identities of a finding: one for each combination of a webhook and a field.
fn identities<'a>(
    (check, kind): (&str, &str),
    webhooks: impl IntoIterator<Item = &'a String>,
    fields: &BTreeSet<String>,
) -> BTreeSet<Known> {
    let mut known = BTreeSet::new();
    for webhook in webhooks {
        let of = |field: &str| Known {
            check: check.to_owned(),
            kind: kind.to_owned(),
            webhook: webhook.clone(),
            field: field.to_owned(),
        };
        if fields.is_empty() {
            known.insert(of(""));
        }
        known.extend(fields.iter().map(|field| of(field)));
    }
    known
}

impl Findings for Report {
    fn findings(&mut self) -> Vec<(BTreeSet<Known>, Acceptance<'_>)> {
        let mut all = Vec::new();
        for check in &mut self.checks {
            for finding in &mut check.findings {
                if is_verbose_note(&check.id, &finding.kind) {
                    continue;
                }
                let own = finding.webhooks.keys();
                let mut known = identities((&check.id, &finding.kind), own, &finding.fields);
                for Consequence { check, kind, webhooks, fields, .. } in &finding.consequences {
                    known.extend(identities((check, kind), webhooks, fields));
                }
                all.push((
                    known,
                    Acceptance {
                        accepted: &mut finding.accepted,
                        added: &mut finding.added,
                        message: &mut finding.message,
                    },
                ));
            }
        }
        all
    }

    fn consequences(&mut self) -> Vec<(BTreeSet<Known>, &mut Option<String>)> {
        let findings = self.checks.iter_mut().flat_map(|check| &mut check.findings);
        let consequences = findings.flat_map(|finding| &mut finding.consequences);
        let identified = consequences
            .map(|it| (identities((&it.check, &it.kind), &it.webhooks, &it.fields), &mut it.accepted));
        identified.collect()
    }

    fn unfinished(&self) -> Vec<Unfinished> {
        let incomplete = self.incomplete().map(|(check, result)| Unfinished {
            check: check.id.clone(),
            webhook: result.webhook.clone(),
            reason: failure_cause::brief(self, &result.webhook, &verdict::most(&result.not_checked)),
        });
        incomplete.collect()
    }

    /// Returns `false` for a run on one shard, for checks that did not run or were not exercised, and for checks whose
    /// result varies between runs, so that the entry is kept. Entries of webhooks that no longer exist are not kept.
    fn would_find(&self, known: &Known) -> bool {
        let was_made = |check: &&CheckReport| check.id == known.check && check.skipped.is_none();
        let Some(check) = self.checks.iter().find(was_made) else { return false };
        let result = check.results.iter().find(|result| result.webhook == known.webhook);
        let is_judged =
            |result: &CheckResult| !matches!(result.verdict, Tally::NotChecked | Tally::NotExercised);
        let varies = checks::find(&known.check).is_some_and(|it| it.repeatability == Repeatability::Varies);
        self.shard.is_none() && result.is_none_or(|result| is_judged(result) && !varies)
    }

    fn report_stale(&mut self, stale: Vec<StaleEntry>) {
        self.stale = stale;
    }
}
