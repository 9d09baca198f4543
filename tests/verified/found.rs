//! Represents the findings for a webhook, without values that vary between runs: `NAME/found.json`.

use std::collections::BTreeMap;
use std::fs;

use harness::verify::report::{Report, Tally};
use harness::verify::{Difference, Severity};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::manifest::Manifest;

/// The results of `admit verify` for a webhook.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct VerificationFindings {
    /// The number of objects that the checks used.
    pub(crate) objects: u64,
    /// The number of skipped objects, by reason.
    pub(crate) left_out: BTreeMap<String, u64>,
    /// The verdicts by webhook and check.
    pub(crate) verdicts: BTreeMap<String, BTreeMap<String, Tally>>,
    /// The reasons for skipped checks, by webhook and check.
    pub(crate) not_checked: BTreeMap<String, BTreeMap<String, Vec<String>>>,
    /// The findings, by check.
    pub(crate) findings: Vec<Finding>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Finding {
    pub(crate) check: String,
    /// The webhooks with the finding, by name.
    pub(crate) webhooks: Vec<String>,
    pub(crate) kind: String,
    pub(crate) severity: Severity,
    pub(crate) message: String,
    pub(crate) object: Option<Value>,
    pub(crate) differences: Vec<Difference>,
}

impl VerificationFindings {
    /// Reads the recorded findings, if there are any.
    pub(crate) fn read(manifest: &Manifest) -> Self {
        let text = fs::read_to_string(manifest.folder().join("found.json")).expect("there is a found.json");
        serde_json::from_str(&text).expect("it is what this test wrote")
    }

    /// Returns the content of the file.
    pub(crate) fn text(&self) -> String {
        format!("{}\n", serde_json::to_string_pretty(self).expect("it is made of texts and numbers"))
    }
}

impl From<Report> for VerificationFindings {
    fn from(report: Report) -> Self {
        let mut verdicts: BTreeMap<String, BTreeMap<String, Tally>> = BTreeMap::new();
        let mut not_checked: BTreeMap<String, BTreeMap<String, Vec<String>>> = BTreeMap::new();
        let mut findings = Vec::new();
        for check in report.checks {
            for result in check.results {
                let webhook = result.webhook;
                verdicts.entry(webhook.clone()).or_default().insert(check.id.clone(), result.verdict);
                if result.verdict == Tally::NotChecked {
                    let reasons = result.not_checked.into_keys().collect();
                    not_checked.entry(webhook).or_default().insert(check.id.clone(), reasons);
                }
            }
            // A random difference appears with another object each time.
            let is_random = check.id == "V11";
            for finding in check.findings {
                let consequences = finding.consequences.into_iter().map(|consequence| Finding {
                    check: consequence.check,
                    webhooks: consequence.webhooks.into_iter().collect(),
                    kind: consequence.kind,
                    severity: consequence.severity,
                    message: consequence.message,
                    object: None,
                    differences: Vec::new(),
                });
                let consequences: Vec<Finding> = consequences.collect();
                findings.push(Finding {
                    check: check.id.clone(),
                    webhooks: finding.webhooks.into_keys().collect(),
                    kind: finding.kind,
                    severity: finding.severity,
                    message: finding.message,
                    object: finding.object.filter(|_| !is_random),
                    differences: if is_random { Vec::new() } else { finding.differences },
                });
                findings.extend(consequences);
            }
        }
        findings.sort_by(|a, b| a.check.cmp(&b.check));
        Self { objects: report.objects, left_out: report.left_out, verdicts, not_checked, findings }
    }
}
